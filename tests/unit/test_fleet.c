/* SPDX-License-Identifier: Apache-2.0 */
/* The same on many nodes (fleet/fleet), with 64 nodes that exist only in this file: for each, how many steps it takes, whether
   it then fails, and whether it ever ends. */
#include "unit.h"

#include "fleet/fleet.h"

#include <signal.h>

#define NODES_MAX 64
#define TICK_NS   (10 * NS_PER_MS)

struct fake { /* one node */
    struct remote remote;
    int n_steps; /* STEP_AGAIN that many times, -1: for ever */
    bool fails;  /* in the end */
    int exit_status;
    int n_calls;
    int n_aborts;
};

struct world {
    struct loop loop;
    struct inventory inventory;
    struct inventory_node specs[NODES_MAX];
    struct fleet_node nodes[NODES_MAX];
    struct fleet fleet;
    struct fake fakes[NODES_MAX];
    char names[NODES_MAX][24];
    int64_t now_ns;
    size_t n_busy, n_busy_most; /* nodes between their first step and their last */
    int stop_after;             /* steps in all until stop_signal is set; 0: never */
    int stop_signal;
    int n_steps;
};

static struct world world; /* the clock can reach it only here */

static int64_t world_mono_ns(void *ctx UNUSED)
{
    world.now_ns += NS_PER_MS; /* each look costs time: a short wait is over after some */
    return world.now_ns;
}

static void note_abort(struct remote *remote)
{
    ((struct fake *)remote)->n_aborts++;
}

static enum step take_step(struct fake *fake, struct err *err)
{
    if (fake->n_calls++ == 0) {
        world.n_busy++;
    }
    world.n_busy_most = world.n_busy > world.n_busy_most ? world.n_busy : world.n_busy_most;
    world.n_steps++;
    world.stop_signal = world.n_steps == world.stop_after ? SIGINT : world.stop_signal;
    if (fake->n_steps < 0 || fake->n_calls <= fake->n_steps) {
        return STEP_AGAIN;
    }
    world.n_busy--;
    return fake->fails ? step_fail(err_set(err, ERR_NODE, "no route")) : STEP_DONE;
}

static enum step fake_exec(struct remote *remote, const struct remote_exec *exec,
                           int *ret_exit_status, struct err *err)
{
    struct fake *fake = (struct fake *)remote;
    enum step step = take_step(fake, err);
    if (step == STEP_DONE) {
        strbuf_printf(exec->output, "%s of %d\n", exec->script, (int)(fake - world.fakes));
        *ret_exit_status = fake->exit_status;
    }
    return step;
}

static const struct remote_ops FAKE_OPS = {.exec = fake_exec, .abort = note_abort};

static enum step step_fake(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    assert_ptr_equal(ctx, &world);
    assert_ptr_equal(node->remote, &world.fakes[node_idx].remote);
    assert_ptr_equal(node->spec, &world.specs[node_idx]);
    return take_step(&world.fakes[node_idx], err);
}

static void begin(size_t n_nodes, size_t fanout)
{
    struct clock_src clock = clock_system();
    world = (struct world){0};
    clock.mono_ns = world_mono_ns;
    loop_init(&world.loop, clock);
    for (size_t idx = 0; idx < n_nodes; idx++) {
        snprintf(world.names[idx], sizeof(world.names[idx]), "n%zu", idx);
        world.fakes[idx].remote.ops = &FAKE_OPS;
        world.specs[idx].name = str_of(world.names[idx]);
        world.nodes[idx] =
            (struct fleet_node){.spec = &world.specs[idx], .remote = &world.fakes[idx].remote};
    }
    world.inventory = (struct inventory){.nodes = world.specs, .n_nodes = n_nodes};
    world.fleet = (struct fleet){.loop = &world.loop,
                                 .inventory = &world.inventory,
                                 .nodes = world.nodes,
                                 .n_nodes = n_nodes,
                                 .fanout = fanout,
                                 .stop_signal = &world.stop_signal};
}

TEST(all_are_done)
{
    begin(NODES_MAX, NODES_MAX);
    for (int idx = 0; idx < NODES_MAX; idx++) {
        world.fakes[idx].n_steps = idx % 7;
    }
    PASSES(fleet_each(&world.fleet, 0, step_fake, &world, ERR));
    for (int idx = 0; idx < NODES_MAX; idx++) {
        assert_int_equal(world.fakes[idx].n_calls, idx % 7 + 1);
        assert_int_equal(world.fakes[idx].n_aborts, 0);
        assert_int_equal(world.nodes[idx].err.code, ERR_NONE);
    }
    PASSES(fleet_first_error(&world.fleet, ERR));
    loop_release(&world.loop);
}

TEST(one_that_fails_stops_no_other)
{
    begin(NODES_MAX, 8);
    for (int idx = 0; idx < NODES_MAX; idx++) {
        world.fakes[idx].n_steps = idx % 5;
        world.fakes[idx].fails = idx % 3 == 1;
    }
    assert_int_equal(fleet_each(&world.fleet, 0, step_fake, &world, ERR), 21);
    assert_int_equal(ERR->code, ERR_NONE);
    for (int idx = 0; idx < NODES_MAX; idx++) {
        assert_int_equal(world.fakes[idx].n_calls, idx % 5 + 1);
        assert_int_equal(world.nodes[idx].err.code, idx % 3 == 1 ? ERR_NODE : ERR_NONE);
    }
    FAILS(fleet_first_error(&world.fleet, ERR), ERR_NODE);
    assert_string_equal(ERR->msg, "n1: no route");
    loop_release(&world.loop);
}

TEST(the_next_round_begins_anew)
{
    begin(3, 3);
    world.fakes[1].fails = true;
    assert_int_equal(fleet_each(&world.fleet, 0, step_fake, &world, ERR), 1);
    world.fakes[1].fails = false;
    PASSES(fleet_each(&world.fleet, 0, step_fake, &world, ERR));
    assert_int_equal(world.nodes[1].err.code, ERR_NONE);
    loop_release(&world.loop);
}

TEST(no_more_than_the_fanout_are_busy)
{
    static const size_t FANOUTS[] = {1, 5, 64};
    for (size_t at = 0; at < ARRAY_LEN(FANOUTS); at++) {
        begin(NODES_MAX, FANOUTS[at]);
        for (int idx = 0; idx < NODES_MAX; idx++) {
            world.fakes[idx].n_steps = 3;
        }
        PASSES(fleet_each(&world.fleet, 0, step_fake, &world, ERR));
        assert_int_equal(world.n_busy_most, FANOUTS[at]);
        assert_int_equal(world.n_busy, 0);
        loop_release(&world.loop);
    }
}

TEST(past_its_deadline_a_node_is_given_up)
{
    begin(8, 2);
    for (int idx = 0; idx < 8; idx++) {
        world.fakes[idx].n_steps = idx == 2 || idx == 5 ? -1 : 1;
    }
    /* From each node's own first step: those behind the hanging ones still have their own. */
    assert_int_equal(fleet_each(&world.fleet, 100 * TICK_NS, step_fake, &world, ERR), 2);
    for (int idx = 0; idx < 8; idx++) {
        bool hangs = idx == 2 || idx == 5;
        assert_int_equal(world.nodes[idx].err.code, hangs ? ERR_TIMEOUT : ERR_NONE);
        assert_int_equal(world.fakes[idx].n_aborts, hangs);
        assert_true(world.fakes[idx].n_calls >= 1);
    }
    assert_non_null(strstr(world.nodes[2].err.msg, "not done within 1 s"));
    loop_release(&world.loop);
}

TEST(a_stop_ends_it_and_aborts_who_is_busy)
{
    begin(NODES_MAX, 4);
    for (int idx = 0; idx < NODES_MAX; idx++) {
        world.fakes[idx].n_steps = idx < 2 ? 0 : -1;
    }
    world.stop_after = 50;
    FAILS(fleet_each(&world.fleet, 0, step_fake, &world, ERR), ERR_INTERRUPTED);
    for (int idx = 0; idx < NODES_MAX; idx++) {
        assert_int_equal(world.fakes[idx].n_aborts, idx >= 2 && world.fakes[idx].n_calls > 0);
        assert_true(idx < 6 || world.fakes[idx].n_calls == 0);
    }
    loop_release(&world.loop);
}

TEST(opened_it_has_a_remote_for_each_node)
{
    struct fleet fleet;
    struct fleet_opts opts = {.work_folder = "/nowhere", .clock = clock_system()};
    begin(3, 3);
    for (int idx = 0; idx < 3; idx++) {
        world.specs[idx].address = world.specs[idx].name;
    }
    PASSES(fleet_open(&fleet, &world.loop, &world.inventory, &opts, ERR));
    assert_int_equal(fleet.n_nodes, 3);
    assert_int_equal(fleet.fanout, FLEET_FANOUT_DEFAULT);
    for (int idx = 0; idx < 3; idx++) {
        assert_non_null(fleet.nodes[idx].remote);
        assert_ptr_equal(fleet.nodes[idx].spec, &world.specs[idx]);
    }
    fleet_release(&fleet);
    world.specs[1].work_folder = STR_LIT("relative");
    FAILS(fleet_open(&fleet, &world.loop, &world.inventory, &opts, ERR), ERR_ANY);
    assert_true(str_starts(str_of(ERR->msg), STR_LIT("n1: ")));
    loop_release(&world.loop);
}
