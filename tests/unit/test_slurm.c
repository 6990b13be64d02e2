/* SPDX-License-Identifier: Apache-2.0 */
/* node/slurm.c: what squeue says of a job, and what that means. */
#include "unit.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "remote_here.h"

static void write_in(const char *folder, const char *name, const char *text)
{
    scratch_write(fs_join(&scratch_arena, folder, name), str_of(text));
}

/* What ended its ranks, and a status on its way through a network file system, are waited for: those cases are not claimed. */
TEST_IN_SCRATCH(states_mean_what_slurm_says)
{
    static const struct {
        const char *status, *said;
        enum job_state state;
        int exit_status;
        bool is_waiting;
        enum err_code cause;
        const char *why;
    } CASES[] = {
        {"exit 0", "NODE_FAIL|None", JOB_ENDED, 0, false, ERR_NONE, ""},
        {"exit 143", "COMPLETED|None", JOB_ENDED, 143, false, ERR_NONE, ""},
        {"exit 143", "TIMEOUT|TimeLimit", JOB_ENDED, 143, false, ERR_TIMEOUT,
         "Slurm job 12: TIMEOUT (TimeLimit)"},
        {"exit 137", "OUT_OF_MEMORY|None", JOB_ENDED, 137, false, ERR_WORKLOAD,
         "Slurm job 12: OUT_OF_MEMORY"},
        {NULL, "PENDING|Resources", JOB_RUNNING, 0, true, ERR_NONE,
         "Slurm job 12: PENDING (Resources)"},
        {NULL, "RUNNING|None", JOB_RUNNING, 0, false, ERR_NONE, "Slurm job 12: RUNNING"},
        {NULL, "NODE_FAIL|None", JOB_LOST, 0, false, ERR_NODE, "Slurm job 12: NODE_FAIL"},
        {NULL, "CANCELLED by 0|None", JOB_LOST, 0, false, ERR_NONE,
         "Slurm job 12: CANCELLED (by 0)"},
        {NULL, "DEADLINE|None", JOB_LOST, 0, false, ERR_TIMEOUT, "Slurm job 12: DEADLINE"},
        {NULL, "COMPLETED|None", JOB_LOST, 0, false, ERR_NONE, "Slurm job 12: COMPLETED"},
        {NULL, "", JOB_LOST, 0, false, ERR_NONE, "Slurm job 12: UNKNOWN"},
    };
    const char *bin = fs_join(&scratch_arena, *state, "bin");
    const char *dir = fs_join(&scratch_arena, *state, "jobs/run/x");
    PASSES(fs_mkdir_p(bin, ERR));
    PASSES(fs_mkdir_p(dir, ERR));
    write_in(bin, "squeue", arena_printf(&scratch_arena, "#!/bin/sh\ncat %s/said\n", dir));
    write_in(bin, "sacct", "#!/bin/sh\nexit 1\n");
    assert_int_equal(chmod(fs_join(&scratch_arena, bin, "squeue"), 0755), 0);
    assert_int_equal(chmod(fs_join(&scratch_arena, bin, "sacct"), 0755), 0);
    assert_int_equal(setenv("PATH", arena_printf(&scratch_arena, "%s:%s", bin, getenv("PATH")), 1),
                     0);
    use_built_node();
    REMOTE_BELOW(*state);
    write_in(dir, "batch", "");
    write_in(dir, "slurm", "12\n");
    for (EACH(row, CASES)) {
        struct job_report report = {0};
        write_in(dir, "status", row->status ? row->status : "");
        write_in(dir, "said", row->said);
        DONE(remote->ops->poll(remote, "run/x", &report, ERR));
        assert_int_equal(report.state, row->state);
        assert_int_equal(report.exit_status, row->exit_status);
        assert_int_equal(report.is_waiting, row->is_waiting);
        assert_int_equal(report.cause, row->cause);
        assert_string_equal(report.why, row->why);
    }
}
