/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a kept choice: refused with a message, or a plan of printable text for the key that was asked for. */
#include "tests/fuzz/fuzz.h"

#include "core/plan_cache.h"

FUZZ(arena, text)
{
    struct plan_choice choice = {0};
    struct err err = {0};
    if (text.len > PLAN_FILE_MAX) {
        return; /* a longer file is not read */
    }
    if (plan_cache_parse(arena, text, "k", &choice, &err) < 0) {
        ASSERT(err.code == ERR_PARSE);
        ASSERT(err.msg[0] != '\0');
        ASSERT(choice.plan[0] == '\0');
        return;
    }
    size_t len = strnlen(choice.plan, sizeof(choice.plan));
    ASSERT(len > 0 && len < sizeof(choice.plan));
    for (size_t i = 0; i < len; i++) {
        ASSERT(choice.plan[i] >= ' ' && choice.plan[i] <= '~');
    }
    ASSERT(choice.time_ns >= 0 && choice.time_ns <= PLAN_TIME_MAX_NS);
}
