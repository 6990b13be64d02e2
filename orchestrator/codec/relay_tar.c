/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/relay_tar.h"

#define NAME_MAX_BYTES 48 /* two numbers of 63 bits and the '@' */

static struct str name_of(const struct relay_member *member, char text[NAME_MAX_BYTES])
{
    int len = snprintf(text, NAME_MAX_BYTES, "%" PRIu64 "@%" PRIu64, member->file, member->offset);
    return (struct str){text, (size_t)len};
}

void relay_member_write(const struct relay_member *member, uint8_t ret_block[USTAR_BLOCK])
{
    char text[NAME_MAX_BYTES];
    struct err never = {0};
    int result = ustar_header(name_of(member, text), member->size_bytes, ret_block, &never);
    ASSERT(result == 0);
}

static int begin(void *ctx, struct str name, uint64_t size_bytes, struct err *err)
{
    const struct relay_sink *sink = ctx;
    struct relay_member member = {.size_bytes = size_bytes};
    struct str rest = name, file, offset;
    char text[NAME_MAX_BYTES];
    int64_t numbers[2];
    struct err ignored = {0};
    /* One spelling alone: no sign, no zeros in front. */
    if (!str_next(&rest, '@', &file) || !str_next(&rest, '@', &offset) ||
        str_to_i64(file, 0, INT64_MAX, &numbers[0], &ignored) < 0 ||
        str_to_i64(offset, 0, INT64_MAX, &numbers[1], &ignored) < 0) {
        return err_set(err, ERR_INTEGRITY, "stream: not a member of a staging");
    }
    member.file = (uint64_t)numbers[0];
    member.offset = (uint64_t)numbers[1];
    if (!str_eq(name_of(&member, text), name) || size_bytes > RELAY_MEMBER_MAX) {
        return err_set(err, ERR_INTEGRITY, "stream: not a member as it is sent");
    }
    return sink->begin(sink->ctx, &member, err);
}

static int data(void *ctx, const void *ptr, size_t len, struct err *err)
{
    const struct relay_sink *sink = ctx;
    return sink->data(sink->ctx, ptr, len, err);
}

static int end(void *ctx, struct err *err)
{
    const struct relay_sink *sink = ctx;
    return sink->end(sink->ctx, err);
}

int relay_tar_take(struct relay_tar *tar, const struct relay_sink *sink, const uint8_t *bytes,
                   size_t len, struct err *err)
{
    struct relay_sink own = *sink;
    tar->reader.sink = (struct ustar_sink){&own, begin, data, end};
    tar->reader.takes_any_order = true;
    if (ustar_feed(&tar->reader, bytes, len, err) < 0) {
        return -1;
    }
    tar->is_over = tar->reader.state == USTAR_DONE;
    return 0;
}
