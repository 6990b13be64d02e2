/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/fetch_state.h"

static const char MAGIC[] = "reperf-fetch 2";

void state_text(const struct state *state, struct strbuf *out)
{
    char sha256[SHA256_HEX_SIZE] = "-";
    char md5[MD5_HEX_SIZE] = "-";
    if (state->has_sha256) {
        hex_encode(state->sha256, SHA256_BYTES, sha256);
    }
    if (state->has_md5) {
        hex_encode(state->md5, MD5_BYTES, md5);
    }
    strbuf_printf(out, "%s\nboot %.*s\nsize %" PRIu64 "\nblock %" PRIu64 "\nsha256 %s\nmd5 %s\n",
                  MAGIC, STR_ARG(state->boot), state->size_bytes, state->block_bytes, sha256, md5);
    for (size_t idx = 0; idx < state->n_mirrors; idx++) {
        const struct state_mirror *mirror = &state->mirrors[idx];
        strbuf_printf(out, "mirror %.*s\t%.*s\t%.*s\n", STR_ARG(mirror->shown),
                      STR_ARG(mirror->etag), STR_ARG(mirror->last_modified));
    }
    strbuf_add_z(out, "map\n");
    strbuf_add(out, state->map, state->n_blocks);
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

static int take_number(struct str *rest, const char *key, int64_t min, uint64_t *ret_value,
                       struct err *err)
{
    struct str text;
    int64_t value;
    if (take_line(rest, key, &text, err) < 0 || str_to_i64(text, min, INT64_MAX, &value, err) < 0) {
        return -1;
    }
    *ret_value = (uint64_t)value;
    return 0;
}

static int take_digest(struct str *rest, const char *key, size_t n, uint8_t *ret_bytes,
                       bool *ret_has, struct err *err)
{
    struct str text;
    if (take_line(rest, key, &text, err) < 0) {
        return -1;
    }
    *ret_has = !str_eq_z(text, "-");
    return *ret_has ? hex_decode(text, n, ret_bytes, err) : 0;
}

static int take_mirrors(struct str *rest, struct state *state, struct err *err)
{
    while (str_starts(*rest, STR_LIT("mirror "))) {
        struct state_mirror *mirror = &state->mirrors[state->n_mirrors];
        struct str value;
        if (state->n_mirrors == FETCH_MIRRORS_MAX) {
            return err_set(err, ERR_PARSE, "more than %d mirrors", FETCH_MIRRORS_MAX);
        }
        if (take_line(rest, "mirror", &value, err) < 0) {
            return -1;
        }
        if (!str_next(&value, '\t', &mirror->shown) || !str_next(&value, '\t', &mirror->etag) ||
            !str_next(&value, '\t', &mirror->last_modified) || value.ptr) {
            return err_set(err, ERR_PARSE, "expected a mirror with two validators");
        }
        state->n_mirrors++;
    }
    return 0;
}

int state_parse(struct str text, struct state *ret_state, struct err *err)
{
    struct state state = {0};
    struct str rest = text;
    struct str line;
    if (!str_next(&rest, '\n', &line) || !str_eq_z(line, MAGIC)) {
        return err_set(err, ERR_PARSE, "expected \"%s\"", MAGIC);
    }
    if (take_line(&rest, "boot", &state.boot, err) < 0 ||
        take_number(&rest, "size", 0, &state.size_bytes, err) < 0 ||
        take_number(&rest, "block", 1, &state.block_bytes, err) < 0 ||
        take_digest(&rest, "sha256", SHA256_BYTES, state.sha256, &state.has_sha256, err) < 0 ||
        take_digest(&rest, "md5", MD5_BYTES, state.md5, &state.has_md5, err) < 0 ||
        take_mirrors(&rest, &state, err) < 0) {
        return -1;
    }
    state.n_blocks = state_n_blocks(state.size_bytes, state.block_bytes);
    if (!str_next(&rest, '\n', &line) || !str_eq_z(line, "map") || !rest.ptr ||
        rest.len != state.n_blocks || state.n_blocks > FETCH_PIECES_MAX) {
        return err_set(err, ERR_PARSE, "expected a map of %zu blocks", state.n_blocks);
    }
    state.map = rest.ptr;
    *ret_state = state;
    return 0;
}
