/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/fetch_state.h"

#include "codec/json_table.h"

static const struct json_field MIRROR_ROWS[] = {
    ROW("url", struct state_mirror, shown, JSON_REQUIRED),
    ROW("etag", struct state_mirror, etag, JSON_REQUIRED | JSON_NULLABLE),
    ROW("last_modified", struct state_mirror, last_modified, JSON_REQUIRED | JSON_NULLABLE),
};
static const struct json_field ROWS[] = {
    ROW_NUMBER("schema_version", 4),
    ROW("boot", struct state, boot, JSON_REQUIRED),
    ROW("size", struct state, size_bytes, JSON_REQUIRED),
    ROW("block", struct state, block_bytes, JSON_REQUIRED, .min = 1),
    ROW_LIST("mirrors", struct state, mirrors, n_mirrors, MIRROR_ROWS, JSON_REQUIRED,
             .max = FETCH_MIRRORS_MAX),
};

void state_text(const struct state *state, struct strbuf *out)
{
    json_encode_document(out, ROWS, ARRAY_LEN(ROWS), state);
    strbuf_add(out, state->map, state->n_blocks);
}

/* No byte of a map is a bracket. */
static int parse(struct arena *arena, struct str text, struct state *state, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const char *end = text.len ? memrchr(text.ptr, '}', text.len) : NULL;
    struct str head = {text.ptr, end ? (size_t)(end - text.ptr) + 1 : 0};
    struct str map = str_sub(text, head.len, text.len);
    if (json_parse(head, "state", &doc, err) < 0 ||
        json_decode(&doc.root, arena, ROWS, ARRAY_LEN(ROWS), state, err) < 0) {
        return -1;
    }
    state->n_blocks = state_n_blocks((uint64_t)state->size_bytes, (uint64_t)state->block_bytes);
    if (state->n_blocks > FETCH_PIECES_MAX || map.len != state->n_blocks + 1 ||
        map.ptr[0] != '\n') {
        return err_set(err, ERR_PARSE, "expected a map of %zu blocks", state->n_blocks);
    }
    state->map = map.ptr + 1;
    return 0;
}

int state_parse(struct arena *arena, struct str text, struct state *ret_state, struct err *err)
{
    struct state state = {0};
    if (parse(arena, text, &state, err) < 0) {
        err->code = ERR_PARSE;
        return -1;
    }
    *ret_state = state;
    return 0;
}
