/* SPDX-License-Identifier: Apache-2.0 */
/* Repeats on several fake nodes: how they are packed, what a lost node or a failing rank does, and that nothing counts that
   did not end well everywhere. */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "evidence/result.h"
#include "kept.h"
#include "run_stage.h"
#include "scratch.h"

/* It ends, with this code. */
static void fails_for(struct stage *stage, enum err_code code, const char *says)
{
    (void)alarm(HANGS_S);
    FAILS_WITH(run_schedule(&stage->r, ERR), code, says);
    (void)alarm(0);
}

TEST_IN_SCRATCH(repeats_on_other_nodes_run_at_one_time)
{
    STAGE(stage, *state, ONE_NODE, 8);
    PASSES(run_schedule(&stage.r, ERR));
    assert_int_equal(stage.most_at_once, N_NODES);
    assert_int_equal(count(&stage, J_STARTED), 8);
    assert_int_equal(count(&stage, J_PARSED), 8);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        assert_true(stage.fakes[idx]->n_started >= 1);
    }
}

/* The fifth waits for a node, at each turn of the loop: however long that takes, it takes no memory. */
TEST_IN_SCRATCH(a_repeat_that_waits_takes_no_memory)
{
    size_t used_bytes[2];
    for (int is_long = 0; is_long < 2; is_long++) {
        STAGE(stage, arena_printf(ARENA, "%s/%d", (const char *)*state, is_long), ONE_NODE, 5);
        stage.r.frozen.plan.deadline_s = is_long ? 90 : 10;
        for (size_t idx = 0; idx < N_NODES; idx++) {
            stage.fakes[idx]->way = FAKE_HANGS;
        }
        PASSES(run_schedule(&stage.r, ERR));
        used_bytes[is_long] = stage.arena.used_bytes;
    }
    assert_int_equal(used_bytes[1], used_bytes[0]);
}

/* Without a container a mount's path is where its folder was brought: the inner of two, and never a part of a name or of another path. */
TEST_IN_SCRATCH(a_mount_without_a_container_is_found_as_a_whole)
{
    struct plan_mount mounts[] = {
        {.kind = MOUNT_DATASET, .version = STR_LIT("outer"), .inside = STR_LIT("/w")},
        {.kind = MOUNT_DATASET, .version = STR_LIT("inner"), .inside = STR_LIT("/w/data")}};
    struct str argv[] = {
        STR_LIT("true"),
        STR_LIT("--in=/w/data/x:/w/database:/w:/w2 -I/w /mnt/w sub/w $HOME/w ${T}/w")};
    struct launch_job *jobs;
    size_t n;
    STAGE(stage, *state, ONE_NODE, 1);
    struct plan_step step = *stage.r.units[0].step;
    struct unit unit = {.step = &step, .nodes = &(const size_t){0}};
    step.mounts = mounts;
    step.argv = argv;
    step.n_mounts = step.n_argv = 2;
    PASSES(run_jobs(&stage.r, &unit, &jobs, &n, ERR));
    while (strncmp(*jobs->job.argv, "--in=", 5) != 0) {
        jobs->job.argv++;
    }
    assert_string_equal(*jobs->job.argv, "--in=/@reperf-dataset-inner@/x:/@reperf-dataset-outer@/"
                                         "database:/@reperf-dataset-outer@:/w2 "
                                         "-I/@reperf-dataset-outer@ /mnt/w sub/w $HOME/w ${T}/w");
}

TEST_IN_SCRATCH(one_job_a_node_and_each_log_is_kept)
{
    struct fs_names logs;
    STAGE(stage, *state, FOUR_NODES, 2);
    PASSES(run_schedule(&stage.r, ERR));
    assert_int_equal(stage.most_at_once, N_NODES);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        assert_int_equal(stage.fakes[idx]->n_started, 2);
    }
    PASSES(
        fs_walk(&stage.arena, fs_join(&stage.arena, stage.r.dir.evidence, "logs/raw"), &logs, ERR));
    assert_int_equal(logs.n, 2 * N_NODES);
}

/* Two cases of one row: a repeat of each, then the next of each, one at a time and all on the first node. */
TEST_IN_SCRATCH(frameworks_of_a_row_take_turns)
{
    struct journal_records records = {0};
    const char *cases[] = {"resnet50/reperf/amp/n1g1/bs128", "resnet50/reperf/amp/n1g1/bs208"};
    size_t n = 0;
    STAGE(stage, *state, "resnet50/reperf/amp/n1g1/*", 2);
    stage.r.frozen.plan.takes_turns = true;
    stage.r.n_units = 0;
    run_make_units(&stage.r);
    PASSES(run_schedule(&stage.r, ERR));
    assert_int_equal(stage.most_at_once, 1);
    assert_int_equal(stage.fakes[0]->n_started, 4);
    PASSES(journal_read(&stage.arena, stage.r.dir.journal, &records, ERR));
    for (size_t idx = 0; idx < records.n; idx++) {
        if (records.items[idx].state == J_STARTED) {
            assert_true(str_eq_z(records.items[idx].case_id, cases[n % 2]));
            assert_int_equal(records.items[idx].repeat, 1 + (int64_t)n / 2);
            n++;
        }
    }
    assert_int_equal(n, 4);
}

/* What is recorded of the one repeat on four nodes. */
static struct str read_outcome_text(struct stage *stage)
{
    struct str text;
    const char *name = rundir_name(&stage->arena, RUNDIR_OUTCOME,
                                   (struct rundir_of){.case_id = STR_LIT(FOUR_NODES), .repeat = 1});
    PASSES(fs_read(&stage->arena, fs_join(&stage->arena, stage->r.dir.evidence, name), 65536, &text,
                   ERR));
    return text;
}

/* One rank that fails takes the others down, and the repeat is collected with its status; ranks that report the loss of another may be
   seen to end before the one that was killed. Of what left no status nothing counts, and it is made again three times; a log that is
   another on its node ends the run. */
TEST_IN_SCRATCH(what_a_job_does_is_what_its_repeat_is)
{
    static const struct {
        enum fake_way ways[N_NODES];
        enum err_code code;
        size_t n_lost, n_finished;
        const char *status; /* of n3, which failed; NULL: none did */
    } ROWS[] = {
        {{FAKE_HANGS, FAKE_HANGS, FAKE_FAILS}, ERR_NONE, 0, 1, "\"exit_status\": 3"},
        {{FAKE_WELL, FAKE_FAILS, FAKE_KILLED, FAKE_FAILS}, ERR_NONE, 0, 1, "\"exit_status\": 137"},
        {{FAKE_LOSES}, ERR_NODE, 3, 0, NULL},
        {{FAKE_HANGS, FAKE_WELL, FAKE_BLAMED},
         ERR_NODE,
         3,
         0,
         NULL}, /* no failure of the program */
        {{FAKE_WELL, FAKE_WELL, FAKE_ANOTHER}, ERR_INTEGRITY, 0, 0, NULL},
    };
    for (EACH(row, ROWS)) {
        struct err err = {0};
        STAGE(stage, arena_printf(ARENA, "%s/%zu", (const char *)*state, (size_t)(row - ROWS)),
              FOUR_NODES, 1);
        for (size_t idx = 0; idx < N_NODES; idx++) {
            stage.fakes[idx]->way = row->ways[idx];
        }
        assert_int_equal(run_schedule(&stage.r, &err), row->code ? -1 : 0);
        assert_int_equal(err.code, row->code);
        assert_int_equal(count(&stage, J_LOST), row->n_lost);
        assert_int_equal(count(&stage, J_FINISHED), row->n_finished);
        assert_int_equal(stage.n_at_once, 0);
        assert_false(stage.r.units[0].counts);
        assert_true(stage.r.progress.done < stage.r.progress.total);
        for (size_t idx = 0; idx < N_NODES; idx++) {
            assert_true(stage.fakes[idx]->is_killed || row->ways[idx] != FAKE_HANGS);
        }
        if (row->status) {
            struct str text = read_outcome_text(&stage);
            assert_non_null(strstr(text.ptr, row->status));
            assert_non_null(strstr(text.ptr, "\"failed_node\": \"n3\""));
        }
    }
}

TEST_IN_SCRATCH(a_lost_node_is_left_out_and_others_take_its_repeats)
{
    STAGE(stage, *state, ONE_NODE, 6);
    stage.fakes[1]->way = FAKE_DROPS;
    PASSES(run_schedule(&stage.r, ERR));
    assert_int_equal(count(&stage, J_LOST), 1);
    assert_int_equal(count(&stage, J_PARSED), 6);
    assert_int_equal(stage.fakes[1]->n_started, 1);
    assert_int_equal(stage.r.orphans.n, 1);
}

TEST_IN_SCRATCH(too_few_nodes_left_is_a_node_failure_that_resume_mends)
{
    STAGE(stage, *state, "resnet50/reperf/fp32/n?g?/bs96", 1);
    stage.fakes[3]->way = FAKE_DROPS;
    FAILS_WITH(run_schedule(&stage.r, ERR), ERR_NODE, "n4: no answer");
    assert_true(count(&stage, J_PARSED) >= 2); /* the smaller cases went on */
    assert_int_equal(stage.n_at_once, 0);
}

/* Left out before anything was started on it, as if it could not be reached at all. */
TEST_IN_SCRATCH(too_few_nodes_from_the_first_are_named)
{
    STAGE(stage, *state, FOUR_NODES, 1);
    run_leave_out(&stage.r, 2, &(struct err){.code = ERR_NODE, .msg = "connection refused"});
    FAILS_WITH(run_schedule(&stage.r, ERR), ERR_NODE, "n3");
}

TEST_IN_SCRATCH(a_deadline_stops_all_and_does_not_count)
{
    STAGE(stage, *state, FOUR_NODES, 1);
    stage.r.frozen.plan.deadline_s = 2;
    stage.fakes[1]->way = FAKE_HANGS;
    PASSES(run_schedule(&stage.r, ERR));
    assert_int_equal(count(&stage, J_FINISHED), 1);
    assert_false(stage.r.units[0].counts);
    assert_true(stage.r.progress.done < stage.r.progress.total);
    assert_true(stage.fakes[1]->is_killed);
    /* In between it has its grace. */
    assert_true(stage.fakes[1]->told_ns > 0);
    assert_true(stage.fakes[1]->killed_ns - stage.fakes[1]->told_ns >= 5 * NS_PER_S);
}

TEST_IN_SCRATCH(a_changed_host_key_ends_the_run_and_stops_the_others)
{
    STAGE(stage, *state, ONE_NODE, 8);
    for (size_t idx = 0; idx < 3; idx++) {
        stage.fakes[idx]->way = FAKE_HANGS;
    }
    stage.fakes[3]->way = FAKE_NEW_KEY;
    FAILS(run_schedule(&stage.r, ERR), ERR_INTEGRITY);
    assert_int_equal(stage.n_at_once, 0);
    assert_int_equal(count(&stage, J_PARSED), 0);
    /* Otherwise resume would find jobs that ended with 143, and take that for how their programs ended. */
    assert_int_equal(count(&stage, J_LOST), 3);
    for (size_t idx = 0; idx < 3; idx++) {
        assert_true(stage.fakes[idx]->was_journaled);
    }
}

/* ---- leases, while other things go on ---- */

static enum step stay(void *ctx, struct fleet_node *node UNUSED, size_t node_idx UNUSED,
                      struct err *err UNUSED)
{
    struct stage *stage = ctx;
    stage->now_ns += 2 * NS_PER_S;
    return stage->now_ns < 300 * NS_PER_S ? STEP_AGAIN : STEP_DONE;
}

static struct remote *open_fake(struct loop *loop, const struct inventory *inventory UNUSED,
                                const struct inventory_node *node UNUSED, struct err *err UNUSED)
{
    struct fake *fake = xcalloc(1, sizeof(*fake));
    *fake = (struct fake){.remote = {&FAKE_OPS}, .loop = loop};
    return &fake->remote;
}

static const struct fake *keeper_of(struct stage *stage, size_t node)
{
    return (const struct fake *)stage->r.nodes[node].keeper;
}

static void take_leases(struct stage *stage)
{
    stage->r.open = open_fake;
    stage->r.has_leases = true;
    stage->r.lease_due_ns = loop_now_ns(&stage->r.loop);
    stage->r.fleet.on_turn = run_keep_leases;
    stage->r.fleet.turn_ctx = &stage->r;
}

/* Images and data are transferred for five minutes: nobody may think that the run is dead. */
TEST_IN_SCRATCH(leases_are_kept_while_nodes_are_provisioned)
{
    STAGE(stage, *state, ONE_NODE, 1);
    run_leave_out(&stage.r, 2, &(struct err){.code = ERR_NODE, .msg = "unreachable"});
    take_leases(&stage);
    PASSES(fleet_each(&stage.r.fleet, 0, stay, &stage, ERR));
    for (size_t idx = 0; idx < N_NODES; idx++) {
        if (idx == 2) {
            assert_null(keeper_of(&stage, idx)); /* left out */
        } else {
            assert_in_range(keeper_of(&stage, idx)->n_asked, 300 / 30 - 4, 300 / 30);
        }
    }
}

/* Each takes 15 s to answer. */
TEST_IN_SCRATCH(nodes_that_are_slow_get_their_leases_back_and_others_are_said)
{
    struct str said;
    CLEANUP(fd) int before = dup(STDERR_FILENO);
    const char *path;
    STAGE(stage, *state, ONE_NODE, 1);
    path = fs_join(&stage.arena, *state, "said");
    CLEANUP(fd) int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    run_leave_out(&stage.r, 1, &(struct err){.code = ERR_NODE, .msg = "unreachable for 30 s"});
    stage.r.has_leases = true;
    assert_true(file >= 0 && before >= 0 && dup2(file, STDERR_FILENO) == STDERR_FILENO);
    run_leave_nodes(&stage.r, false);
    assert_true(dup2(before, STDERR_FILENO) == STDERR_FILENO);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        assert_int_equal(stage.fakes[idx]->n_asked, idx == 1 ? 0 : 1);
    }
    PASSES(fs_read(&stage.arena, path, 65536, &said, ERR));
    if (str_find(said, STR_LIT("may be left on n2: unreachable for 30 s")) < 0) {
        fail_msg("%.*s", STR_ARG(said));
    }
    assert_false(stage.r.has_leases);
}

/* If the drop came before its end, the lease would stay there. */
TEST_IN_SCRATCH(a_lease_that_is_being_renewed_at_the_end_is_dropped_after_it)
{
    STAGE(stage, *state, ONE_NODE, 1);
    take_leases(&stage);
    PASSES(run_schedule(&stage.r, ERR));
    stage.r.lease_due_ns = loop_now_ns(&stage.r.loop);
    run_keep_leases(&stage.r);
    assert_true(stage.r.nodes[3].is_due);
    const int n_before = keeper_of(&stage, 3)->n_asked;
    run_leave_nodes(&stage.r, true);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        assert_int_equal(stage.fakes[idx]->n_asked, 1);
    }
    assert_int_equal(keeper_of(&stage, 3)->n_asked, n_before + 1);
    assert_false(stage.r.nodes[3].is_due);
}

/* The node is another's by now: the attempt on it is lost, and so is the node. */
TEST_IN_SCRATCH(a_lease_that_was_taken_over_ends_the_attempt_there)
{
    STAGE(stage, *state, FOUR_NODES, 1);
    take_leases(&stage);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        stage.fakes[idx]->way = FAKE_HANGS;
    }
    stage.r.nodes[2].keeper = open_fake(&stage.r.loop, NULL, NULL, ERR);
    ((struct fake *)stage.r.nodes[2].keeper)->holder = "held 20261121T000000.000Z-0000beef";
    fails_for(&stage, ERR_NODE, "taken over by run 20261121T000000.000Z-0000beef");
    assert_int_equal(count(&stage, J_LOST), 1);
    assert_int_equal(stage.r.orphans.n, 1);
}

/* ---- resumed long after ---- */

TEST_IN_SCRATCH(jobs_that_ended_while_nobody_looked_ended_in_time)
{
    CLEANUP(stage) struct stage stage;
    set_up_resumed(&stage, *state);
    put_jobs(&stage, FAKE_WELL);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        stage.fakes[idx]->n_polls = 4;
    }
    PASSES(run_schedule(&stage.r, ERR));
    struct str text = read_outcome_text(&stage);
    assert_true(str_find(text, STR_LIT("\"outcome\": \"exited\"")) >= 0);
    assert_int_equal(count(&stage, J_FINISHED), 1);
    assert_int_equal(stage.fakes[0]->n_started, 0);
    assert_false(stage.fakes[0]->is_killed && stage.fakes[0]->is_started);
}

/* Its jobs elsewhere would wait for it for ever, and so would we. */
TEST_IN_SCRATCH(an_attempt_with_a_node_that_is_gone_is_lost)
{
    CLEANUP(stage) struct stage stage;
    set_up_resumed(&stage, *state);
    put_jobs(&stage, FAKE_HANGS);
    run_leave_out(&stage.r, 3, &(struct err){.code = ERR_NODE, .msg = "unreachable for 30 s"});
    fails_for(&stage, ERR_NODE, "n4");
    assert_int_equal(count(&stage, J_LOST), 1);
    assert_int_equal(count(&stage, J_STARTED), 0); /* too few nodes are left */
    assert_int_equal(stage.r.orphans.n, 1);
    for (size_t idx = 0; idx < 3; idx++) {
        assert_true(stage.fakes[idx]->is_killed);
    }
    assert_false(stage.fakes[3]->is_killed);
}

/* A job that was never started did not run past its deadline: it is started now. */
TEST_IN_SCRATCH(jobs_that_were_never_started_are_not_past_their_deadline)
{
    CLEANUP(stage) struct stage stage;
    set_up_resumed(&stage, *state);
    PASSES(run_schedule(&stage.r, ERR));
    struct str text = read_outcome_text(&stage);
    assert_true(str_find(text, STR_LIT("\"outcome\": \"exited\"")) >= 0);
    assert_int_equal(count(&stage, J_LOST), 1);
    assert_int_equal(count(&stage, J_FINISHED), 1);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        assert_int_equal(stage.fakes[idx]->n_started, 1);
    }
}

/* ---- kept files are not changed unnoticed ---- */

static enum err_code derive(struct stage *stage)
{
    struct repeat_result result;
    struct err err = {0};
    int rc = result_repeat(&stage->arena, &stage->r.frozen,
                           (struct repeat_of){stage->r.units[0].step, 1},
                           (struct derived_to){keep_nothing, NULL}, &result, &err);
    assert_true((rc == 0) == (err.code == ERR_NONE));
    return err.code;
}

static void put(struct stage *stage, const char *name, struct str text)
{
    PASSES(rundir_write(&stage->arena, stage->r.dir.evidence, name, text, ERR));
}

TEST_IN_SCRATCH(an_outcome_that_does_not_agree_is_refused)
{
    static const char *const ROWS[][2] = {
        {"\"repeat\": 1", "\"repeat\": 2"}, /* counted twice */
        {"\"case\": \"resnet50/reperf/fp32/n4g8/bs96\"",
         "\"case\": \"resnet50/reperf/fp32/n1g8/bs96\""},
        {"repeat-1.log", "repeat-2.log"},
        {"\"node\": \"n3\"", "\"node\": \"n9\""},
        {"\"node\": \"n3\"", "\"node\": \"n2\""},
        {"repeat-1.n3.log", "repeat-1.n2.log"},
        {"logs/raw/resnet50/reperf/fp32/n4g8/bs96/repeat-1.n3.log", "../../../etc/passwd"},
        {"\"monitor\": null", "\"monitor\": \"../../../etc/passwd\""},
        {"\"n3\",\n      \"exit_status\": 0", "\"n3\",\n      \"exit_status\": 9"},
        {"\"failed_node\": null", "\"failed_node\": \"n3\""},
    };
    STAGE(stage, *state, FOUR_NODES, 1);
    PASSES(run_schedule(&stage.r, ERR));
    assert_int_equal(derive(&stage), ERR_NONE);
    const char *name = rundir_name(&stage.arena, RUNDIR_OUTCOME,
                                   (struct rundir_of){.case_id = STR_LIT(FOUR_NODES), .repeat = 1});
    struct str text = read_outcome_text(&stage);
    for (EACH(row, ROWS)) {
        put(&stage, name, str_of(replaced(text.ptr, (*row)[0], (*row)[1])));
        assert_int_equal(derive(&stage), ERR_INTEGRITY);
    }
    put(&stage, name, text);
    assert_int_equal(derive(&stage), ERR_NONE);
    const char *log = rundir_name(
        &stage.arena, RUNDIR_NODE_LOG,
        (struct rundir_of){.case_id = STR_LIT(FOUR_NODES), .repeat = 1, .name = STR_LIT("n3")});
    put(&stage, log, STR_LIT("pretended otherwise\n"));
    assert_int_equal(derive(&stage), ERR_INTEGRITY);
}

/* ---- logs that cannot be created or written: an error like any other, after which nothing continues and the journal agrees ---- */

/* The log of the unit's job, while it is collected. */
static const char *part_of(struct stage *stage, size_t unit, size_t job)
{
    return arena_printf(&stage->arena, "%s/collect-%zu-%zu.part", stage->r.dir.folder, unit, job);
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
    assert_int_equal(stage.n_at_once, 0);
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
    assert_int_equal(stage.n_at_once, 0);
    assert_int_equal(count(&stage, J_STARTED), 0);
    assert_int_equal(count(&stage, J_LOST), 0);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        assert_int_equal(stage.fakes[idx]->n_started, 0);
    }
}

TEST_IN_SCRATCH(jobs_that_are_found_and_cannot_be_followed_are_stopped)
{
    CLEANUP(stage) struct stage stage;
    set_up_resumed(&stage, *state);
    put_jobs(&stage, FAKE_HANGS);
    const char *path = part_of(&stage, 0, 2);
    PASSES(fs_mkdir_p(path, ERR));
    fails_for(&stage, ERR_IO, path);
    assert_int_equal(stage.n_at_once, 0);
    assert_int_equal(count(&stage, J_LOST), 1);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        assert_true(stage.fakes[idx]->is_killed && stage.fakes[idx]->was_journaled);
    }
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
    assert_int_equal(stage.n_at_once, 0);
    assert_int_equal(count(&stage, J_STARTED), 1);
    assert_int_equal(count(&stage, J_LOST), 1);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        assert_true(stage.fakes[idx]->is_killed && stage.fakes[idx]->was_journaled);
    }
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
