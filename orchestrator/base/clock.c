/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

static int64_t read_clock(clockid_t id)
{
    struct timespec now;
    ASSERT(clock_gettime(id, &now) == 0);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int64_t system_mono_ns(void *ctx UNUSED)
{
    return read_clock(CLOCK_MONOTONIC);
}

static int64_t system_wall_ns(void *ctx UNUSED)
{
    return read_clock(CLOCK_REALTIME);
}

struct clock_src clock_system(void)
{
    return (struct clock_src){system_mono_ns, system_wall_ns, NULL};
}

int64_t clock_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_boot_ns(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

void clock_rfc3339(int64_t wall_ns, char *ret_text)
{
    time_t seconds = (time_t)(wall_ns / NS_PER_S);
    int millis = (int)(wall_ns % NS_PER_S / NS_PER_MS);
    struct tm parts;
    ASSERT(wall_ns >= 0);
    ASSERT(gmtime_r(&seconds, &parts));
    size_t len = strftime(ret_text, RFC3339_MAX, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(ret_text + len, RFC3339_MAX - len, ".%03dZ", millis);
}

struct str clock_text(struct arena *arena, struct clock_src clock)
{
    char text[RFC3339_MAX];
    clock_rfc3339(clock.wall_ns(clock.ctx), text);
    return str_dup(arena, str_of(text));
}
