/* SPDX-License-Identifier: Apache-2.0 */
/* Steadiness: the same busy loop, again and again. A longer turn was interrupted, throttled or moved. */
#include "base/base.h"

#include "node/gauge.h"

#define TURNS                                                                                      \
    500000 /* about 1 ms: below the scheduler's slices, far above the clock's resolution */
#define PER_REPEAT 20
#define ODD        INT64_C(6364136223846793005) /* Knuth's multiplier: no turn can be optimised away */

static volatile uint64_t the_sink;

static void turn(void)
{
    uint64_t x = 1;
    for (int64_t idx = 0; idx < TURNS; idx++) {
        x = x * (uint64_t)ODD + 1;
    }
    the_sink = x;
}

void gauge_loop(struct gauge *gauge, size_t n_repeats)
{
    int64_t ns[GAUGE_REPEATS_MAX];
    size_t n = n_repeats * PER_REPEAT;
    n = n < GAUGE_REPEATS_MAX ? n : GAUGE_REPEATS_MAX;
    turn();
    for (size_t idx = 0; idx < n; idx++) {
        int64_t begin_ns = clock_now_ns();
        turn();
        ns[idx] = clock_now_ns() - begin_ns;
    }
    gauge_add(gauge,
              &(struct gauge_series){.measure = "clock.loop", .work = TURNS, .ns = ns, .n = n});
}
