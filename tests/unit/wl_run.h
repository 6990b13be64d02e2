/* SPDX-License-Identifier: Apache-2.0 */
/* A training run in this process, with a clock of its own. */
#ifndef UNIT_WL_RUN_H
#define UNIT_WL_RUN_H

#include "scratch.h"
#include "train/train.h"
#include "unit.h"

#define ARGS_MAX 40

/* Each reading of the clock is 0.25 s after the last. */
static int64_t ticking(void *ctx)
{
    int64_t *now_ns = ctx;
    *now_ns += NS_PER_S / 4;
    return *now_ns;
}

/* Runs with "--data DATA", one OpenMP thread (several would compete with the reader's) and the words of `line`; returns what was printed, which is in
   FOLDER/out and in the scratch arena. */
static struct str run_with(const char *data, const char *folder, const char *line, int *ret_status,
                           struct err *err)
{
    char *argv[ARGS_MAX] = {arena_printf(&scratch_arena, "--data"),
                            arena_printf(&scratch_arena, "%s", data),
                            arena_printf(&scratch_arena, "--threads=1")};
    int argc = 3;
    int64_t now_ns = 0;
    struct clock_src clock = {.mono_ns = ticking, .ctx = &now_ns};
    struct train_opts opts;
    struct str rest = str_of(line);
    struct str word;
    static const stop_flag never;
    const char *path = fs_join(&scratch_arena, folder, "out");
    while (rest.ptr && str_next(&rest, ' ', &word)) {
        ASSERT(argc < ARGS_MAX);
        argv[argc++] = str_z(&scratch_arena, word);
    }
    if (train_options(argc, argv, &opts, err) < 0) {
        fail_msg("%s", err->msg);
    }
    int fd = scratch_create(path);
    *ret_status = train_run(&opts, clock, fd, &never, err);
    close(fd);
    return scratch_read(path);
}

#endif
