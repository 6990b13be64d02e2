/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/fetch_state.h"

#include "base/crc32c.h"

static const char MAGIC[] = "reperf-fetch 1";

void state_head_text(const struct state_head *head, struct strbuf *out, uint32_t *ret_seed)
{
    char sha256[SHA256_HEX_SIZE] = "-";
    char md5[MD5_HEX_SIZE] = "-";
    size_t from = out->len;
    if (head->has_sha256) {
        hex_encode(head->sha256, SHA256_BYTES, sha256);
    }
    if (head->has_md5) {
        hex_encode(head->md5, MD5_BYTES, md5);
    }
    strbuf_printf(out, "%s\nsize %" PRIu64 "\nblock %" PRIu64 "\nsha256 %s\nmd5 %s\n", MAGIC,
                  head->size_bytes, head->block_bytes, sha256, md5);
    for (size_t idx = 0; idx < head->n_mirrors; idx++) {
        const struct state_mirror *mirror = &head->mirrors[idx];
        strbuf_printf(out, "mirror %.*s\t%.*s\t%.*s\n", STR_ARG(mirror->shown),
                      STR_ARG(mirror->etag), STR_ARG(mirror->last_modified));
    }
    *ret_seed = crc32c(0, out->ptr + from, out->len - from);
    strbuf_printf(out, "end %08" PRIx32 "\n", *ret_seed);
}

static void put_u32(uint8_t *dst, uint32_t value)
{
    for (int idx = 0; idx < 4; idx++) {
        dst[idx] = (uint8_t)(value >> (8 * idx));
    }
}

static uint32_t get_u32(const uint8_t *src)
{
    uint32_t value = 0;
    for (int idx = 0; idx < 4; idx++) {
        value |= (uint32_t)src[idx] << (8 * idx);
    }
    return value;
}

void state_record(uint32_t seed, uint32_t block_idx, uint32_t crc, uint32_t mirror,
                  uint8_t *ret_record)
{
    put_u32(ret_record, block_idx);
    put_u32(ret_record + 4, crc);
    put_u32(ret_record + 8, mirror);
    put_u32(ret_record + 12, crc32c(seed, ret_record, 12));
}

/* "KEY VALUE\n" off the front of rest. */
static int take_line(struct str *rest, const char *key, struct str *ret_value, struct err *err)
{
    struct str line;
    size_t key_len = strlen(key);
    if (!rest->ptr || str_find(*rest, STR_LIT("\n")) < 0 || !str_next(rest, '\n', &line) ||
        line.len <= key_len || memcmp(line.ptr, key, key_len) != 0 || line.ptr[key_len] != ' ') {
        return err_set(err, ERR_PARSE, "expected a line \"%s\"", key);
    }
    *ret_value = str_sub(line, key_len + 1, line.len);
    return 0;
}

static int take_number(struct str *rest, const char *key, uint64_t *ret_value, struct err *err)
{
    struct str text;
    int64_t value;
    if (take_line(rest, key, &text, err) < 0 || str_to_i64(text, 1, INT64_MAX, &value, err) < 0) {
        return -1;
    }
    *ret_value = (uint64_t)value;
    return 0;
}

static int take_digest(struct str *rest, const char *key, size_t n, uint8_t *ret_bytes,
                       struct err *err)
{
    struct str text;
    if (take_line(rest, key, &text, err) < 0) {
        return -1;
    }
    if (str_eq_z(text, "-")) {
        return 0;
    }
    return hex_decode(text, n, ret_bytes, err) < 0 ? -1 : 1;
}

static int take_mirrors(struct str *rest, struct state_head *head, struct err *err)
{
    while (str_starts(*rest, STR_LIT("mirror "))) {
        struct state_mirror *mirror = &head->mirrors[head->n_mirrors];
        struct str value;
        if (head->n_mirrors == FETCH_MIRRORS_MAX) {
            return err_set(err, ERR_PARSE, "more than %d mirrors", FETCH_MIRRORS_MAX);
        }
        if (take_line(rest, "mirror", &value, err) < 0) {
            return -1;
        }
        if (!str_next(&value, '\t', &mirror->shown) || !str_next(&value, '\t', &mirror->etag) ||
            !str_next(&value, '\t', &mirror->last_modified) || value.ptr) {
            return err_set(err, ERR_PARSE, "expected a mirror with two validators");
        }
        head->n_mirrors++;
    }
    return 0;
}

static int take_digests(struct str *rest, struct state_head *head, struct err *err)
{
    int has_sha256 = take_digest(rest, "sha256", SHA256_BYTES, head->sha256, err);
    int has_md5 = has_sha256 < 0 ? -1 : take_digest(rest, "md5", MD5_BYTES, head->md5, err);
    head->has_sha256 = has_sha256 > 0;
    head->has_md5 = has_md5 > 0;
    return has_md5 < 0 ? -1 : 0;
}

static int take_head(struct str text, struct state_head *head, struct str *ret_records,
                     uint32_t *ret_seed, struct err *err)
{
    struct str rest = text;
    struct str magic, end;
    uint8_t wanted[4];
    uint32_t seed;
    if (!str_next(&rest, '\n', &magic) || !str_eq_z(magic, MAGIC)) {
        return err_set(err, ERR_PARSE, "expected \"%s\"", MAGIC);
    }
    if (take_number(&rest, "size", &head->size_bytes, err) < 0 ||
        take_number(&rest, "block", &head->block_bytes, err) < 0 ||
        take_digests(&rest, head, err) < 0 || take_mirrors(&rest, head, err) < 0) {
        return -1;
    }
    seed = crc32c(0, text.ptr, (size_t)(rest.ptr - text.ptr));
    if (take_line(&rest, "end", &end, err) < 0 || hex_decode(end, 4, wanted, err) < 0) {
        return -1;
    }
    if (seed != ((uint32_t)wanted[0] << 24 | (uint32_t)wanted[1] << 16 | (uint32_t)wanted[2] << 8 |
                 wanted[3])) {
        return err_set(err, ERR_PARSE, "the checksum of the head does not match");
    }
    *ret_records = rest;
    *ret_seed = seed;
    return 0;
}

static void take_records(struct state *state, struct str records, uint32_t seed)
{
    for (size_t at = 0; at + STATE_RECORD_BYTES <= records.len; at += STATE_RECORD_BYTES) {
        const uint8_t *record = (const uint8_t *)records.ptr + at;
        uint32_t block_idx = get_u32(record);
        uint32_t mirror = get_u32(record + 8);
        if (crc32c(seed, record, 12) != get_u32(record + 12) || block_idx >= state->n_blocks ||
            (mirror >= state->head.n_mirrors && mirror != STATE_NO_MIRROR)) {
            state->n_torn++;
            continue;
        }
        state->blocks[block_idx].crc = get_u32(record + 4);
        state->blocks[block_idx].is_there = mirror != STATE_NO_MIRROR;
        state->blocks[block_idx].mirror = (uint8_t)mirror;
    }
}

int state_parse(struct arena *arena, struct str text, struct state *ret_state, struct err *err)
{
    struct state state = {0};
    struct str records = STR_EMPTY;
    uint32_t seed = 0;
    if (take_head(text, &state.head, &records, &seed, err) < 0) {
        return -1;
    }
    if (state.head.size_bytes / state.head.block_bytes >= FETCH_PIECES_MAX) {
        return err_set(err, ERR_PARSE, "more than %u blocks", FETCH_PIECES_MAX);
    }
    state.n_blocks = state_n_blocks(state.head.size_bytes, state.head.block_bytes);
    state.blocks = arena_array(arena, struct state_block, state.n_blocks);
    take_records(&state, records, seed);
    *ret_state = state;
    return 0;
}
