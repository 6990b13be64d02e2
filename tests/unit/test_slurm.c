/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/remote_slurm: what Slurm reports of a job, and what that means. */
#include "unit.h"

#include "fleet/remote_slurm.h"

#define NOW_NS (1000 * NS_PER_S)

static struct job_report read_line(const char *line, int64_t now_ns, int64_t *gone_ns)
{
    struct job_report report = {.state = JOB_ABSENT};
    PASSES(slurm_read_report(str_of(line), now_ns, gone_ns, &report, ERR));
    return report;
}

TEST(states_mean_what_slurm_says)
{
    static const struct {
        const char *line;
        enum job_state state;
        int exit_status;
        bool is_waiting;
        enum err_code cause;
        const char *why;
    } CASES[] = {
        {"absent", JOB_ABSENT, 0, false, ERR_NONE, ""},
        {"ended 0", JOB_ENDED, 0, false, ERR_NONE, ""},
        {"ended 7", JOB_ENDED, 7, false, ERR_NONE, ""},
        {"ended 143 12 COMPLETED None", JOB_ENDED, 143, false, ERR_NONE, ""},
        {"ended 143 12 TIMEOUT TimeLimit", JOB_ENDED, 143, false, ERR_TIMEOUT,
         "Slurm job 12: TIMEOUT (TimeLimit)"},
        {"ended 137 12 OUT_OF_MEMORY None", JOB_ENDED, 137, false, ERR_WORKLOAD,
         "Slurm job 12: OUT_OF_MEMORY"},
        {"ended 143 12 UNKNOWN", JOB_ENDED, 143, false, ERR_NONE, ""},
        {"slurm 0 12 PENDING Resources", JOB_RUNNING, 0, true, ERR_NONE,
         "Slurm job 12: PENDING (Resources)"},
        {"slurm 0 12 CONFIGURING None", JOB_RUNNING, 0, true, ERR_NONE,
         "Slurm job 12: CONFIGURING"},
        {"slurm 1 12 RUNNING None", JOB_RUNNING, 0, false, ERR_NONE, "Slurm job 12: RUNNING"},
        {"slurm 1 12 COMPLETING None", JOB_RUNNING, 0, false, ERR_NONE, "Slurm job 12: COMPLETING"},
        {"slurm 0 12 NODE_FAIL None", JOB_LOST, 0, false, ERR_NODE, "Slurm job 12: NODE_FAIL"},
        {"slurm 0 12 BOOT_FAIL None", JOB_LOST, 0, false, ERR_NODE, "Slurm job 12: BOOT_FAIL"},
        {"slurm 0 12 CANCELLED by 0", JOB_LOST, 0, false, ERR_NONE,
         "Slurm job 12: CANCELLED (by 0)"},
        {"slurm 0 12 DEADLINE None", JOB_LOST, 0, false, ERR_TIMEOUT, "Slurm job 12: DEADLINE"},
        {"slurm 0 12 COMPLETED None", JOB_LOST, 0, false, ERR_NONE, "Slurm job 12: COMPLETED"},
        {"slurm 0 12 UNKNOWN", JOB_LOST, 0, false, ERR_NONE, "Slurm job 12: UNKNOWN"},
    };
    for (EACH(row, CASES)) {
        int64_t gone_ns = 0;
        struct job_report report = read_line(row->line, NOW_NS, &gone_ns);
        assert_int_equal(report.state, row->state);
        assert_int_equal(report.exit_status, row->exit_status);
        assert_int_equal(report.is_waiting, row->is_waiting);
        assert_int_equal(report.cause, row->cause);
        assert_string_equal(report.why, row->why);
    }
}

/* Its status may still be on its way through a network file system; COMPLETED alone is never a success. */
TEST(a_status_is_waited_for)
{
    int64_t gone_ns = 0;
    assert_int_equal(read_line("slurm 1 12 COMPLETED None", NOW_NS, &gone_ns).state, JOB_RUNNING);
    assert_int_equal(read_line("slurm 1 12 COMPLETED None", NOW_NS + 14 * NS_PER_S, &gone_ns).state,
                     JOB_RUNNING);
    assert_int_equal(read_line("slurm 1 12 COMPLETED None", NOW_NS + 15 * NS_PER_S, &gone_ns).state,
                     JOB_LOST);
    assert_int_equal(read_line("slurm 1 12 RUNNING None", NOW_NS + 16 * NS_PER_S, &gone_ns).state,
                     JOB_RUNNING);
    assert_int_equal(gone_ns, 0);
}

/* Ranks of a node that went down are killed a moment before Slurm calls it NODE_FAIL. */
TEST(what_ended_the_ranks_is_waited_for)
{
    int64_t gone_ns = 0;
    assert_int_equal(read_line("ended 168 12 RUNNING None", NOW_NS, &gone_ns).state, JOB_RUNNING);
    struct job_report report =
        read_line("ended 168 12 NODE_FAIL None", NOW_NS + NS_PER_S, &gone_ns);
    assert_int_equal(report.state, JOB_ENDED);
    assert_int_equal(report.cause, ERR_NODE);
    gone_ns = 0;
    assert_int_equal(read_line("ended 143 12 COMPLETING None", NOW_NS, &gone_ns).state,
                     JOB_RUNNING);
    report = read_line("ended 143 12 COMPLETING None", NOW_NS + 15 * NS_PER_S, &gone_ns);
    assert_int_equal(report.state, JOB_ENDED);
    assert_int_equal(report.exit_status, 143);
    assert_int_equal(report.cause, ERR_NONE);
}

TEST(other_words_are_an_error)
{
    static const char *const BAD[] = {"", "Welcome to login1!", "ended x", "ended 300"};
    for (EACH(row, BAD)) {
        struct job_report report;
        int64_t gone_ns = 0;
        FAILS(slurm_read_report(str_of(*row), NOW_NS, &gone_ns, &report, ERR), ERR_ANY);
    }
}
