/* SPDX-License-Identifier: Apache-2.0 */
/* A report's container command: what is read comes back from JSON as it went in. The first byte says whether the rest is a line or such JSON. */
#include "base/base.h"
#include "report/container.h"

#define JSON_CAP (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode(const struct container_flags *flags, struct strbuf *buf)
{
    struct json_out out;
    strbuf_init(buf, JSON_CAP);
    jw_begin(&out, buf, true);
    jw_object(&out, NULL);
    json_encode(&out, CONTAINER_FLAGS_ROWS, CONTAINER_FLAGS_N, flags);
    jw_end_object(&out);
    ASSERT(!buf->is_full);
}

static int decode(struct arena *arena, struct str text, struct container_flags *ret_flags,
                  struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json root;
    if (json_parse(text, "fuzz", &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    return json_decode(&root, arena, CONTAINER_FLAGS_ROWS, CONTAINER_FLAGS_N, ret_flags, err);
}

/* A second time it must be the same bytes: the first may have put U+FFFD for what is no UTF-8. */
static void there_and_back(struct arena *arena, const struct container_flags *flags)
{
    CLEANUP(strbuf) struct strbuf once;
    CLEANUP(strbuf) struct strbuf twice;
    struct container_flags back = {0};
    struct err err = {0};
    encode(flags, &once);
    ASSERT(decode(arena, strbuf_str(&once), &back, &err) == 0);
    encode(&back, &twice);
    ASSERT(str_eq(strbuf_str(&once), strbuf_str(&twice)) ||
           str_find(strbuf_str(&once), STR_LIT("\\ufffd")) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str text = {(const char *)data + 1, size ? size - 1 : 0};
    struct container_flags flags = {0};
    struct err err = {0};
    if (size && data[0] % 2 == 0) {
        if (container_flags_of_command(&arena, text, &flags, &err) == 0) {
            there_and_back(&arena, &flags);
        } else {
            ASSERT(err.code == ERR_MANIFEST && err.msg[0]);
        }
    } else if (size) {
        if (decode(&arena, text, &flags, &err) == 0) {
            there_and_back(&arena, &flags);
        } else {
            ASSERT(err.code == ERR_MANIFEST && err.msg[0]);
        }
    }
    return 0;
}
