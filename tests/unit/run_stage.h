/* SPDX-License-Identifier: Apache-2.0 */
/* A run on fake nodes, whose clock advances by itself. */
#pragma once

#include "unit.h"

#include "base/fs.h"
#include "document.h"
#include "fake_nodes.h"
#include "judge/bind.h"
#include "load/load.h"
#include "run/planner.h"
#include "run/run_attempt.h"

#define REPORT  "paddle-perf-2020"
#define RUN_ID  "20261121T000000.000Z-00000001"
#define N_NODES 4

#define ONE_NODE   "resnet50/reperf/fp32/n1g1/bs96"
#define FOUR_NODES "resnet50/reperf/fp32/n4g8/bs96"
#define HANGS_S    120 /* then the test is what hangs, and nothing is slow */

struct stage {
    struct arena arena;
    struct runner r;
    struct cmd_ctx ctx;
    struct run_opts opts;
    struct fake *fakes[N_NODES];
    int n_at_once, most_at_once;
    int64_t now_ns; /* the clock advances by itself: nothing is waited for */
};

static int64_t fake_mono(void *ctx)
{
    struct stage *stage = ctx;
    stage->now_ns += 200 * NS_PER_MS;
    return stage->now_ns;
}

static struct inventory *make_inventory(struct arena *arena)
{
    struct inventory *inventory = arena_new(arena, struct inventory);
    *inventory = (struct inventory){.id = STR_LIT("pretended")};
    inventory->nodes = arena_array(arena, struct inventory_node, N_NODES);
    for (; inventory->n_nodes < N_NODES; inventory->n_nodes++) {
        inventory->nodes[inventory->n_nodes] =
            (struct inventory_node){.name = str_printf(arena, "n%zu", inventory->n_nodes + 1),
                                    .address = STR_LIT("127.0.0.1"),
                                    .gpus = 8};
    }
    return inventory;
}

/* The folder of a run whose plan has these cases. */
static void freeze(struct stage *stage, const char *folder, const char *glob, int64_t repeats)
{
    struct arena *arena = &stage->arena;
    struct inventory *inventory = make_inventory(arena);
    const char *globs[] = {glob};
    struct planner_opts opts = {.asked.profile = PROFILE_SMOKE,
                                .root = ".",
                                .asked.repeats = repeats,
                                .inventory = inventory,
                                .globs = {.items = globs, .n = 1},
                                .asked.report_sha256 = STR_LIT("none"),
                                .train_path = "/bin/true",
                                .clock = clock_system()};
    struct err err = {0};
    struct frozen *frozen = &stage->r.frozen;
    struct str format;
    struct format **formats = arena_new(arena, struct format *);
    assert_int_equal(load_report(arena, ".", REPORT, &frozen->report, &err), 0);
    assert_int_equal(plan_make(arena, &frozen->report, &opts, &frozen->plan, &err), 0);
    frozen->plan.runtime = RUNTIME_NONE;
    frozen->inventory = *inventory;
    frozen->run_id = STR_LIT(RUN_ID);
    frozen->folder = fs_join(arena, folder, "evidence");
    assert_int_equal(fs_mkdir_p(frozen->folder, &err), 0);
    assert_int_equal(fs_read(arena, "manifests/formats/reperf.json", JSON_TEXT_MAX, &format, &err),
                     0);
    frozen->vocabulary = vocabulary_builtin(arena);
    const struct json *root = document(format.ptr, frozen->vocabulary, &err);
    assert_int_equal(format_read(root, arena, formats, &err), 0);
    frozen->formats = (struct format_set){.items = formats, .n = 1};
    bind_plan(arena, &frozen->report, &frozen->formats, &frozen->plan);
}

static size_t count(struct stage *stage, enum journal_state state)
{
    struct journal_records records = {0};
    struct err err = {0};
    size_t n = 0;
    assert_int_equal(journal_read(&stage->arena, stage->r.dir.journal, &records, &err), 0);
    for (size_t idx = 0; idx < records.n; idx++) {
        n += records.items[idx].state == state;
    }
    return n;
}

static bool is_lost(void *ctx)
{
    return count(ctx, J_LOST) > 0;
}

static void set_up(struct stage *stage, const char *folder, const char *glob, int64_t repeats)
{
    struct runner *r = &stage->r;
    struct err err = {0};
    struct journal_records records = {0};
    *stage = (struct stage){.arena = ARENA_EMPTY, .now_ns = NS_PER_S};
    stage->ctx = (struct cmd_ctx){.self = "/nowhere/reperf", .clock = clock_system()};
    stage->ctx.clock.mono_ns = fake_mono;
    stage->ctx.clock.ctx = stage;
    stage->opts.ctx = &stage->ctx;
    *r = (struct runner){.arena = &stage->arena,
                         .opts = &stage->opts,
                         .journal = JOURNAL_EMPTY,
                         .events = EVENTS_EMPTY,
                         .loop = LOOP_EMPTY};
    freeze(stage, folder, glob, repeats);
    rundir_paths(&stage->arena, folder, STR_LIT(RUN_ID), &r->dir);
    r->dir.folder = folder;
    r->dir.evidence = r->frozen.folder;
    r->dir.journal = fs_join(&stage->arena, folder, "journal.jsonl");
    loop_init(&r->loop, stage->ctx.clock);
    assert_int_equal(
        journal_open(&r->journal, &stage->arena, r->dir.journal, clock_system(), &records, &err),
        0);
    r->fleet =
        (struct fleet){.loop = &r->loop, .inventory = &r->frozen.inventory, .fanout = N_NODES};
    r->fleet.nodes = xcalloc(N_NODES, sizeof(*r->fleet.nodes));
    for (size_t idx = 0; idx < N_NODES; idx++) {
        struct fake *fake = xcalloc(1, sizeof(*fake));
        *fake = (struct fake){.remote = {&FAKE_OPS},
                              .is_lost = is_lost,
                              .ctx = stage,
                              .loop = &r->loop,
                              .n_at_once = &stage->n_at_once,
                              .most_at_once = &stage->most_at_once};
        stage->fakes[idx] = fake;
        r->fleet.nodes[idx] =
            (struct fleet_node){.spec = &r->frozen.inventory.nodes[idx], .remote = &fake->remote};
    }
    r->fleet.n_nodes = N_NODES;
    r->nodes = arena_array(&stage->arena, struct run_node, N_NODES);
    VEC_PUSH(&r->tokens, RUN_TOKEN_PROGRAM);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        r->nodes[idx].paths = arena_array(&stage->arena, const char *, 1);
        r->nodes[idx].paths[0] = "/disk/reperf-train";
    }
    r->chunk = arena_array(&stage->arena, char, RUN_CHUNK_BYTES);
    run_make_units(r);
}

static void stage_cleanup(struct stage *stage)
{
    runner_cleanup(&stage->r);
    arena_release(&stage->arena);
}

#define STAGE(stage, ...)                                                                          \
    CLEANUP(stage) struct stage stage;                                                             \
    set_up(&(stage), __VA_ARGS__)

/* Its one unit was begun in 1970 and not watched since. */
static void set_up_resumed(struct stage *stage, const char *folder)
{
    static const size_t ALL[N_NODES] = {0, 1, 2, 3};
    set_up(stage, folder, FOUR_NODES, 1);
    stage->r.units[0].state = UNIT_STARTED;
    stage->r.units[0].attempt = 1;
    stage->r.units[0].started_wall_ns = NS_PER_S; /* 1970 */
    stage->r.units[0].nodes = ALL;
}

/* As the previous orchestrator left them: each node has the unit's job. */
static void put_jobs(struct stage *stage, enum fake_way way)
{
    for (size_t idx = 0; idx < N_NODES; idx++) {
        struct fake *fake = stage->fakes[idx];
        snprintf(fake->job, sizeof(fake->job), "%s", run_job_id(&stage->r, &stage->r.units[0]));
        fake->is_started = true;
        fake->way = way;
        stage->n_at_once++;
    }
}
