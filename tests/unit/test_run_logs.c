/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of a run that cannot be created or written: an error like any other, after which nothing continues and the journal agrees. */
#include "unit.h"

#include <unistd.h>

#include "run_stage.h"
#include "scratch.h"

/* The log of the unit's job, while it is collected. */
static const char *part_of(struct stage *stage, size_t unit, size_t job)
{
    return arena_printf(&stage->arena, "%s/collect-%zu-%zu.part", stage->r.dir.folder, unit, job);
}

static void fails_for(struct stage *stage, enum err_code code, const char *path)
{
    (void)alarm(HANGS_S);
    FAILS(run_schedule(&stage->r, ERR), ERR_ANY);
    (void)alarm(0);
    assert_int_equal(ERR->code, code);
    SAYS(path);
    assert_int_equal(stage->n_at_once, 0);
}

/* The journal loses nothing that was not started, and other running units are stopped. */
TEST_IN_SCRATCH(a_log_that_cannot_be_made_ends_the_run)
{
    STAGE(stage, *state, ONE_NODE, N_NODES + 1);
    for (size_t idx = 0; idx < N_NODES - 1; idx++) {
        stage.fakes[idx]->way = FAKE_HANGS;
    }
    const char *path = part_of(&stage, N_NODES, 0);
    PASSES(fs_mkdir_p(path, ERR));
    fails_for(&stage, ERR_IO, path);
    assert_int_equal(count(&stage, J_STARTED), N_NODES);
    assert_int_equal(count(&stage, J_LOST), N_NODES - 1);
    assert_int_equal(count(&stage, J_PARSED), 1);
    assert_int_equal(stage.fakes[N_NODES - 1]->n_started, 1);
    assert_false(fs_exists(part_of(&stage, 0, 0)));
    assert_true(fs_exists(path)); /* not ours */
}

TEST_IN_SCRATCH(one_of_several_logs_that_cannot_be_made_ends_the_run)
{
    STAGE(stage, *state, FOUR_NODES, 1);
    const char *path = part_of(&stage, 0, 2);
    PASSES(fs_mkdir_p(path, ERR));
    fails_for(&stage, ERR_IO, path);
    assert_int_equal(count(&stage, J_STARTED), 0);
    assert_int_equal(count(&stage, J_LOST), 0);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        assert_int_equal(stage.fakes[idx]->n_started, 0);
    }
}

TEST_IN_SCRATCH(jobs_that_are_found_and_cannot_be_followed_are_stopped)
{
    struct stage stage;
    set_up_resumed(&stage, *state);
    put_jobs(&stage, FAKE_HANGS);
    const char *path = part_of(&stage, 0, 2);
    PASSES(fs_mkdir_p(path, ERR));
    fails_for(&stage, ERR_IO, path);
    assert_int_equal(count(&stage, J_LOST), 1);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        assert_true(stage.fakes[idx]->is_killed && stage.fakes[idx]->was_journaled);
    }
    stage_cleanup(&stage);
}

TEST_IN_SCRATCH(a_job_whose_log_meets_a_full_disk_is_stopped)
{
    STAGE(stage, *state, FOUR_NODES, 1);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        stage.fakes[idx]->way = FAKE_HANGS;
    }
    const char *path = part_of(&stage, 0, 0);
    assert_int_equal(symlink("/dev/full", path), 0);
    fails_for(&stage, ERR_DISK, path);
    assert_int_equal(count(&stage, J_STARTED), 1);
    assert_int_equal(count(&stage, J_LOST), 1);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        assert_true(stage.fakes[idx]->is_killed && stage.fakes[idx]->was_journaled);
    }
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
