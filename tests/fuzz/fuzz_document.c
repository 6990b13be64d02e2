/* SPDX-License-Identifier: Apache-2.0 */
/* A document by its table: any bytes are refused with a message, or are a document that is written and read again to the same bytes. */
#include "base/strbuf.h"
#include "report/plan.h"
#include "tests/fuzz/fuzz.h"

FUZZ_DECODE(struct plan, plan_decode)

FUZZ(arena, text)
{
    CLEANUP(strbuf) struct strbuf once = {0};
    CLEANUP(strbuf) struct strbuf twice = {0};
    struct plan plan;
    struct plan again;
    struct err err = {0};
    if (fuzz_decode(arena, text, &plan, &err) < 0) {
        ASSERT(err.code == ERR_MANIFEST && err.msg[0]);
        return;
    }
    strbuf_init(&once, 64u << 20);
    strbuf_init(&twice, 64u << 20);
    plan_encode(&plan, &once);
    ASSERT(!once.is_full);
    ASSERT(fuzz_decode(arena, strbuf_str(&once), &again, &err) == 0);
    plan_encode(&again, &twice);
    ASSERT(str_eq(strbuf_str(&once), strbuf_str(&twice)));
}
