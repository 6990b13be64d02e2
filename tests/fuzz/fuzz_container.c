/* SPDX-License-Identifier: Apache-2.0 */
/* A report's container command: what is read comes back from JSON as it went in. The first byte says whether the rest is a line or such JSON. */
#include "report/container.h"
#include "tests/fuzz/fuzz.h"

#define JSON_CAP (64u << 20)

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

static int decode(const struct json *root, struct arena *arena, struct container_flags *ret_flags,
                  struct err *err)
{
    return json_decode(root, arena, CONTAINER_FLAGS_ROWS, CONTAINER_FLAGS_N, ret_flags, err);
}
FUZZ_DECODE(struct container_flags, decode)

/* A second time it must be the same bytes: the first may have put U+FFFD for what is no UTF-8. */
static void there_and_back(struct arena *arena, const struct container_flags *flags)
{
    CLEANUP(strbuf) struct strbuf once;
    CLEANUP(strbuf) struct strbuf twice;
    struct container_flags back = {0};
    struct err err = {0};
    encode(flags, &once);
    ASSERT(fuzz_decode(arena, strbuf_str(&once), &back, &err) == 0);
    encode(&back, &twice);
    ASSERT(str_eq(strbuf_str(&once), strbuf_str(&twice)) ||
           str_find(strbuf_str(&once), STR_LIT("\\ufffd")) >= 0);
}

static void read_line(struct arena *arena, struct str text)
{
    struct container_flags flags = {0};
    struct err err = {0};
    if (container_flags_of_command(arena, text, &flags, &err) == 0) {
        there_and_back(arena, &flags);
    } else {
        ASSERT(err.code == ERR_MANIFEST && err.msg[0]);
    }
}

static void read_json(struct arena *arena, struct str text)
{
    struct container_flags flags = {0};
    struct err err = {0};
    if (fuzz_decode(arena, text, &flags, &err) == 0) {
        there_and_back(arena, &flags);
    } else {
        ASSERT(err.code == ERR_MANIFEST && err.msg[0]);
    }
}

FUZZ_READERS(read_line, read_json)
