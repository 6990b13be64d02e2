/* SPDX-License-Identifier: Apache-2.0 */
/* A document by its table: any bytes are refused with a message, or are a document that is written and read again to the same bytes. */
#include "base/base.h"
#include "base/strbuf.h"
#include "report/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int decode(struct arena *arena, struct str text, struct plan *ret, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json root;
    if (json_parse(text, "fuzz", &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    return plan_decode(&root, arena, ret, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf once = {0};
    CLEANUP(strbuf) struct strbuf twice = {0};
    struct plan plan;
    struct plan again;
    struct err err = {0};
    if (decode(&arena, (struct str){(const char *)data, size}, &plan, &err) < 0) {
        ASSERT(err.code == ERR_MANIFEST && err.msg[0]);
        return 0;
    }
    strbuf_init(&once, 64u << 20);
    strbuf_init(&twice, 64u << 20);
    plan_encode(&plan, &once);
    ASSERT(!once.is_full);
    ASSERT(decode(&arena, strbuf_str(&once), &again, &err) == 0);
    plan_encode(&again, &twice);
    ASSERT(str_eq(strbuf_str(&once), strbuf_str(&twice)));
    return 0;
}
