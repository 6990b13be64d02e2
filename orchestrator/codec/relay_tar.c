/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/relay_tar.h"

/* Source: POSIX.1-2017, pax, "ustar Interchange Format". */
struct ustar {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8];
    char type, link[100], magic[6], version[2], owner[32], group[32], major[8], minor[8];
    char prefix[155], unused[12];
};
_Static_assert(sizeof(struct ustar) == RELAY_BLOCK_BYTES, "a header is one block");

static const uint8_t ZEROS[RELAY_BLOCK_BYTES];

void relay_member_write(const struct relay_member *member, uint8_t ret_block[RELAY_BLOCK_BYTES])
{
    struct ustar head = {.mode = "0000644",
                         .uid = "0000000",
                         .gid = "0000000",
                         .mtime = "00000000000",
                         .sum = {' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '},
                         .type = '0',
                         .magic = "ustar",
                         .version = {'0', '0'},
                         .major = "0000000",
                         .minor = "0000000"};
    unsigned sum = 0;
    snprintf(head.name, sizeof(head.name), "%" PRIu64 "@%" PRIu64, member->file, member->offset);
    snprintf(head.size, sizeof(head.size), "%011" PRIo64, member->size_bytes);
    memcpy(ret_block, &head, sizeof(head));
    for (size_t idx = 0; idx < RELAY_BLOCK_BYTES; idx++) {
        sum += ret_block[idx];
    }
    snprintf(head.sum, sizeof(head.sum), "%06o", sum);
    memcpy(ret_block, &head, sizeof(head));
}

/* Digits of a base up to the character that ends them; false: others, none, or more than 63 bits. */
static bool read_digits(const char *text, size_t size, unsigned base, char end, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (size_t at = 0; at < size; at++) {
        unsigned digit = (unsigned)(text[at] - '0');
        if (text[at] == end && at > 0) {
            *ret_value = value;
            return true;
        }
        if (text[at] < '0' || digit >= base || value > ((uint64_t)INT64_MAX - digit) / base) {
            return false;
        }
        value = value * base + digit;
    }
    return false;
}

static int take_header(struct relay_tar *tar, struct relay_member *ret_member, struct err *err)
{
    uint8_t ours[RELAY_BLOCK_BYTES];
    struct ustar head;
    struct relay_member member;
    const char *at;
    memcpy(&head, tar->block, sizeof(head));
    at = memchr(head.name, '@', sizeof(head.name));
    if (!at || !read_digits(head.name, sizeof(head.name), 10, '@', &member.file) ||
        !read_digits(at + 1, sizeof(head.name) - (size_t)(at + 1 - head.name), 10, '\0',
                     &member.offset) ||
        !read_digits(head.size, sizeof(head.size), 8, '\0', &member.size_bytes) ||
        member.size_bytes > RELAY_MEMBER_MAX) {
        return err_set(err, ERR_INTEGRITY, "stream: not a member of a staging");
    }
    relay_member_write(&member, ours);
    if (memcmp(ours, tar->block, sizeof(ours)) != 0) {
        return err_set(err, ERR_INTEGRITY, "stream: not a header as it is sent");
    }
    *ret_member = member;
    return 0;
}

/* A complete block that is no member's data. */
static int take_block(struct relay_tar *tar, const struct relay_sink *sink, struct err *err)
{
    struct relay_member member;
    bool is_zero = memcmp(tar->block, ZEROS, sizeof(ZEROS)) == 0;
    tar->have = 0;
    if (is_zero || tar->n_zero) {
        tar->n_zero += is_zero;
        tar->is_over = tar->n_zero == 2;
        return is_zero ? 0 : err_set(err, ERR_INTEGRITY, "stream: data after its end");
    }
    if (take_header(tar, &member, err) < 0 || sink->begin(sink->ctx, &member, err) < 0) {
        return -1;
    }
    tar->left_bytes = member.size_bytes;
    tar->padding = relay_padding(member.size_bytes);
    return member.size_bytes == 0 ? sink->end(sink->ctx, err) : 0;
}

/* Consumes at most len bytes of the state that it is in. */
static int take_some(struct relay_tar *tar, const struct relay_sink *sink, const uint8_t *bytes,
                     size_t *len, struct err *err)
{
    if (tar->left_bytes) {
        *len = *len < tar->left_bytes ? *len : (size_t)tar->left_bytes;
        tar->left_bytes -= *len;
        return sink->data(sink->ctx, bytes, *len, err) < 0             ? -1
               : tar->left_bytes == 0 && sink->end(sink->ctx, err) < 0 ? -1
                                                                       : 0;
    }
    if (tar->padding) {
        *len = *len < tar->padding ? *len : tar->padding;
        tar->padding -= *len;
        return memcmp(bytes, ZEROS, *len) == 0
                   ? 0
                   : err_set(err, ERR_INTEGRITY, "stream: data in a member's padding");
    }
    if (*len > RELAY_BLOCK_BYTES - tar->have) {
        *len = RELAY_BLOCK_BYTES - tar->have;
    }
    memcpy(tar->block + tar->have, bytes, *len);
    tar->have += *len;
    return tar->have == RELAY_BLOCK_BYTES ? take_block(tar, sink, err) : 0;
}

int relay_tar_take(struct relay_tar *tar, const struct relay_sink *sink, const uint8_t *bytes,
                   size_t len, struct err *err)
{
    while (len > 0) {
        size_t n = len;
        if (tar->is_over) {
            return err_set(err, ERR_INTEGRITY, "stream: data after its end");
        }
        if (take_some(tar, sink, bytes, &n, err) < 0) {
            return -1;
        }
        bytes += n;
        len -= n;
    }
    return 0;
}
