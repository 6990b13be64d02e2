/* SPDX-License-Identifier: Apache-2.0 */
/* Time as an input: a struct clock is passed in, so that tests replay it. Spans are monotonic nanoseconds; wall time
   appears only in records, as RFC 3339 UTC. */
#pragma once

#include "base/str.h"

#define NS_PER_S    1000000000LL
#define NS_PER_MS   1000000LL
#define RFC3339_MAX 32

struct clock_src {
    int64_t (*mono_ns)(void *ctx);
    int64_t (*wall_ns)(void *ctx); /* since 1970-01-01T00:00:00Z */
    void *ctx;
};

/* The machine's own clocks. */
struct clock_src clock_system(void);
/* Monotonic, for programs that measure and wait by themselves and have no clock passed in. */
int64_t clock_now_ns(void);
/* Since the machine began, its sleep included: nobody sets it, and every process there sees the same. */
int64_t clock_boot_ns(void);

/* The wall time now, as clock_rfc3339 writes it. */
struct str clock_text(struct arena *arena, struct clock_src clock);
/* "2026-11-21T10:00:00.123Z" (milliseconds) into ret_text, which has RFC3339_MAX bytes. */
void clock_rfc3339(int64_t wall_ns, char *ret_text);
