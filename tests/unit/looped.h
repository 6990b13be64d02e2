/* SPDX-License-Identifier: Apache-2.0 */
/* A loop of the test's own, and what takes steps on it. */
#pragma once

#include "unit.h"

#include "sys/loop.h"

#define TICK_NS (10 * NS_PER_MS)

static UNUSED struct loop *current; /* of the test */

#define LOOP(loop)                                                                                 \
    CLEANUP(loop) struct loop loop = LOOP_EMPTY;                                                   \
    loop_init(current = &(loop), clock_system())

/* An operation that reports into ERR, to its end; one that fails, with this code. */
#define ENDS(call, wanted)                                                                         \
    do {                                                                                           \
        enum step ends_step;                                                                       \
        *ERR = (struct err){0};                                                                    \
        while ((ends_step = (call)) == STEP_AGAIN) {                                               \
            assert_int_equal(loop_once(current, TICK_NS, &(struct err){0}), 0);                    \
        }                                                                                          \
        if (ERR->code != (wanted)) {                                                               \
            fail_msg("%s", ERR->msg);                                                              \
        }                                                                                          \
        assert_int_equal(ends_step == STEP_FAIL, (wanted) != ERR_NONE);                            \
    } while (0)
#define DONE(call) ENDS(call, ERR_NONE)
