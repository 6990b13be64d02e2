/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a kept choice: refused with a message, or a plan of printable text for the key that was asked for. */
#include "base/base.h"

#include "core/plan_cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct plan_choice choice = {0};
    struct err err = {0};
    if (size > PLAN_FILE_MAX) {
        return 0; /* a longer file is not read */
    }
    struct str text = {(const char *)data, size};
    if (plan_cache_parse(&arena, text, "k", &choice, &err) < 0) {
        ASSERT(err.code == ERR_PARSE);
        ASSERT(err.msg[0] != '\0');
        ASSERT(choice.plan[0] == '\0');
        return 0;
    }
    size_t len = strnlen(choice.plan, sizeof(choice.plan));
    ASSERT(len > 0 && len < sizeof(choice.plan));
    for (size_t i = 0; i < len; i++) {
        ASSERT(choice.plan[i] >= ' ' && choice.plan[i] <= '~');
    }
    ASSERT(choice.time_ns >= 0 && choice.time_ns <= PLAN_TIME_MAX_NS);
    return 0;
}
