/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory is still available, so that a run that cannot fit is refused before its first step. */
#include "base/base.h"

#include "train/train.h"

#include "base/str.h"

#include <fcntl.h>
#include <unistd.h>

#define FILE_BYTES_MAX 4096
#define PATH_BYTES_MAX 4096

/* A small file of the kernel's, which has no size. False if it cannot be read. */
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

/* The number after `key` in the line that starts with it, before `unit`. False if there is no such line. */
static bool number_of(struct str text, struct str key, struct str unit, int64_t *ret_value)
{
    struct str line;
    while (text.ptr && str_next(&text, '\n', &line)) {
        if (line.len > key.len + unit.len && str_starts(line, key) && str_ends(line, unit) &&
            whole_number(str_sub(line, key.len, line.len - key.len - unit.len), ret_value)) {
            return true;
        }
    }
    return false;
}

/* "MemAvailable:   23456 kB" */
static int64_t machine_available(const char *proc)
{
    char path[PATH_BYTES_MAX];
    char text[FILE_BYTES_MAX];
    struct str all;
    int64_t kib = 0;
    snprintf(path, sizeof(path), "%s/meminfo", proc);
    if (read_small(path, text, &all) &&
        number_of(all, STR_LIT("MemAvailable:"), STR_LIT(" kB"), &kib)) {
        return kib * 1024;
    }
    return INT64_MAX;
}

/* The kernel's files for the limit and the usage of a control group. */
struct group_files {
    const char *controller; /* in /proc/self/cgroup, after the number: "::" in version 2 */
    const char *folder;     /* below the groups' root */
    const char *limit, *used;
    const char *cached; /* in memory.stat */
};

static const struct group_files VERSIONS[] = {
    {":memory:", "/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file "},
    {"::", "", "memory.max", "memory.current", "inactive_file "},
};

/* What one group still allows: its limit minus its usage; file pages not used recently are reclaimed before anything is
   killed. INT64_MAX without a limit. */
static int64_t group_available(const struct group_files *files, const char *folder)
{
    char path[PATH_BYTES_MAX + 32];
    char text[FILE_BYTES_MAX];
    struct str all;
    int64_t limit = 0;
    int64_t used = 0;
    int64_t cached = 0;
    snprintf(path, sizeof(path), "%s/%s", folder, files->limit);
    if (!read_small(path, text, &all) || !whole_number(all, &limit)) {
        return INT64_MAX; /* "max", or no such file in the root group */
    }
    snprintf(path, sizeof(path), "%s/%s", folder, files->used);
    if (!read_small(path, text, &all) || !whole_number(all, &used)) {
        return limit;
    }
    snprintf(path, sizeof(path), "%s/memory.stat", folder);
    if (!read_small(path, text, &all) ||
        !number_of(all, str_of(files->cached), STR_EMPTY, &cached)) {
        cached = 0;
    }
    int64_t held = used > cached ? used - cached : 0;
    return limit > held ? limit - held : 0;
}

/* A group and all its ancestors. A name with ".." is outside what this process can see. */
static int64_t chain_available(const struct group_files *files, const char *cgroups,
                               struct str name)
{
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof(path), "%s%s", cgroups, files->folder);
    int64_t least = group_available(files, path);
    while (name.len > 1 && str_find(name, STR_LIT("..")) < 0) {
        snprintf(path, sizeof(path), "%s%s%.*s", cgroups, files->folder, STR_ARG(name));
        int64_t here = group_available(files, path);
        least = here < least ? here : least;
        do {
            name.len--;
        } while (name.len && name.ptr[name.len] != '/');
    }
    return least;
}

/* "4:memory:/slice/job" (version 1) or "0::/slice/job" (version 2) in /proc/self/cgroup. */
static int64_t groups_available(const char *proc, const char *cgroups)
{
    char path[PATH_BYTES_MAX];
    char text[FILE_BYTES_MAX];
    struct str rest;
    struct str line;
    int64_t least = INT64_MAX;
    snprintf(path, sizeof(path), "%s/self/cgroup", proc);
    if (!read_small(path, text, &rest)) {
        return least;
    }
    while (rest.ptr && str_next(&rest, '\n', &line)) {
        for (size_t i = 0; i < ARRAY_LEN(VERSIONS); i++) {
            struct str controller = str_of(VERSIONS[i].controller);
            int64_t at = str_find(line, controller);
            if (at > 0) {
                struct str name = str_sub(line, (size_t)at + controller.len, line.len);
                int64_t here = chain_available(&VERSIONS[i], cgroups, name);
                least = here < least ? here : least;
            }
        }
    }
    return least;
}

int64_t memory_available_by(const char *proc, const char *cgroups)
{
    int64_t machine = machine_available(proc);
    int64_t group = groups_available(proc, cgroups);
    return machine < group ? machine : group;
}

int64_t memory_available(void)
{
    return memory_available_by("/proc", "/sys/fs/cgroup");
}
