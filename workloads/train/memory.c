/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory there still is, so that a run that cannot fit says so before its first step. */
#include "base/base.h"

#include "train/train.h"

#include "base/str.h"

#include <fcntl.h>
#include <unistd.h>

#define FILE_BYTES_MAX 4096

/* A small file of the kernel's; these have no size to ask for. False if it cannot be read. */
static bool read_small(const char *path, char *text, struct str *ret_text)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t n = read(fd, text, FILE_BYTES_MAX);
    close(fd);
    *ret_text = (struct str){text, n > 0 ? (size_t)n : 0};
    return n > 0;
}

static bool whole_number(struct str text, int64_t *ret_value)
{
    struct err err = {0};
    return str_to_i64(str_trim(text), 0, INT64_MAX, ret_value, &err) == 0;
}

/* "MemAvailable:   23456 kB" */
static int64_t machine_available(void)
{
    char text[FILE_BYTES_MAX];
    struct str rest;
    struct str line;
    if (!read_small("/proc/meminfo", text, &rest)) {
        return INT64_MAX;
    }
    while (str_next(&rest, '\n', &line)) {
        const struct str key = STR_LIT("MemAvailable:");
        const struct str unit = STR_LIT(" kB");
        int64_t kib = 0;
        if (str_starts(line, key) && str_ends(line, unit) &&
            whole_number(str_sub(line, key.len, line.len - key.len - unit.len), &kib)) {
            return kib * 1024;
        }
    }
    return INT64_MAX;
}

/* The limit of this process' own control group (version 2, unified), "max" where there is none. */
static int64_t group_limit(void)
{
    char text[FILE_BYTES_MAX];
    struct str limit;
    int64_t bytes = 0;
    if (read_small("/sys/fs/cgroup/memory.max", text, &limit) && whole_number(limit, &bytes)) {
        return bytes;
    }
    return INT64_MAX;
}

int64_t memory_available(void)
{
    int64_t machine = machine_available();
    int64_t group = group_limit();
    return machine < group ? machine : group;
}
