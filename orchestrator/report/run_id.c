/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/run_id.h"

#include "base/clock.h"

/* d: decimal digit, x: lower-case hex digit, the rest is literal. */
static const char SHAPE[] = "ddddddddTdddddd.dddZ-xxxxxxxx";

void run_id_make(int64_t wall_ns, uint64_t random, char ret_id[RUN_ID_SIZE])
{
    char text[RFC3339_MAX]; /* 2026-11-21T11:53:00.123Z */
    _Static_assert(sizeof(SHAPE) == RUN_ID_SIZE, "the shape is the id's");
    clock_rfc3339(wall_ns, text);
    snprintf(ret_id, RUN_ID_SIZE, "%.4s%.2s%.2sT%.2s%.2s%.2s.%.3sZ-%08x", text, text + 5, text + 8,
             text + 11, text + 14, text + 17, text + 20, (unsigned)(random & UINT32_MAX));
}

static bool is_of(char kind, char c)
{
    switch (kind) {
    case 'd':
        return is_digit(c);
    case 'x':
        return is_digit(c) || (c >= 'a' && c <= 'f');
    default:
        return c == kind;
    }
}

bool run_id_is_valid(struct str id)
{
    if (id.len != RUN_ID_SIZE - 1) {
        return false;
    }
    for (size_t idx = 0; idx < id.len; idx++) {
        if (!is_of(SHAPE[idx], id.ptr[idx])) {
            return false;
        }
    }
    return true;
}

void run_id_time(struct str id, char *ret_time)
{
    const char *at = id.ptr;
    ASSERT(run_id_is_valid(id));
    snprintf(ret_time, RFC3339_MAX, "%.4s-%.2s-%.2sT%.2s:%.2s:%.6sZ", at, at + 4, at + 6, at + 9,
             at + 11, at + 13);
}

int64_t run_id_wall_s(struct str id)
{
    struct tm tm = {0};
    ASSERT(run_id_is_valid(id));
    const char *end = strptime(id.ptr, "%Y%m%dT%H%M%S", &tm);
    return end ? timegm(&tm) : 0;
}
