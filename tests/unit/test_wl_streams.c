/* SPDX-License-Identifier: Apache-2.0 */
/* Several streams on a CPU: the calls in the order and memory that were planned for them give exactly the bits of one stream; the schedule. */
#include "wl_fixture.h"

#include "graph/streams.h"
#include "wl_fuse.h"

#define STREAMS 4
#define EVENTS  512
#define WINDOW  64

static int64_t packed(void *self UNUSED, const struct tensor_desc *desc)
{
    return shape_count(&desc->shape) * dtype_bytes(desc->dtype);
}

static void no_event(void *self UNUSED, int event UNUSED, int stream UNUSED)
{
}

static void no_fork(void *self UNUSED)
{
}

static void net_on(struct fixture *f, const struct model *model, int n_streams, bool is_fused,
                   struct streams_report *ret_report)
{
    fixture_init(f, DT_F64, CPU_PLAIN, 1);
    /* A CPU has no streams: the calls run one after the other, each stream with a workspace of its own. */
    f->backend.async = (struct backend_async){.n_streams = n_streams,
                                              .n_events = EVENTS,
                                              .record = no_event,
                                              .wait = no_event,
                                              .fork = no_fork,
                                              .join = no_fork};
    const struct fuse_support support = {
        .dtype = DT_F64, .channel_pad = 8, .channel_multiple = 8, .dilation_max = 8};
    const struct fuse_policy policy = is_fused ? fuse_supported(&support) : fuse_none();
    const struct streams_opts opts = {
        .n_streams = n_streams, .n_events = EVENTS, .window = WINDOW, .bytes_of = packed};
    model->build(f->graph,
                 &(struct model_opts){.batch = 2, .height = 33, .width = 33, .has_dropout = true});
    PASSES(graph_finish(f->graph, ERR));
    PASSES(graph_fuse(f->graph, &policy, NULL, ERR));
    PASSES(streams_assign(f->graph, &opts, ret_report, ERR));
    PASSES(net_plan(&f->net, &f->arena, f->graph, &f->backend, ERR));
    PASSES(net_alloc(&f->net, ERR));
}

static void fill(struct fixture *f, const struct model *model)
{
    net_init_values(&f->net, 7);
    fill_spread(f, graph_find(f->graph, "input"), 11);
    fill_labels(f, model->n_classes, 5);
    int step = graph_find(f->graph, "step");
    if (step != NO_VALUE) {
        net_write(&f->net, step, &(int64_t){3});
    }
}

/* Gradients, running statistics, loss, and logits: values have the same numbers in both graphs. */
static int count_differences(const struct fixture *a, const struct fixture *b)
{
    int n_different = 0;
    for (int i = 0; i < a->graph->n_values; i++) {
        const struct value *value = &a->graph->values[i];
        if (value->kind == VALUE_GRAD_PARAM || value->kind == VALUE_STATE ||
            (value->kind == VALUE_ACT && value->name)) {
            double *x = read_doubles(a, i);
            double *y = read_doubles(b, i);
            n_different += memcmp(x, y, (size_t)count_of(a, i) * sizeof(*x)) != 0;
            free(x);
            free(y);
        }
    }
    return n_different;
}

/* Leftover memory must not help: every byte of the activations is poisoned, except for the inputs. */
static void poison(struct fixture *f, const struct model *model)
{
    memset(f->net.mem[MEMPLAN_ACT], 0xff, (size_t)f->net.plan.arena_bytes[MEMPLAN_ACT]);
    memset(f->net.mem[MEMPLAN_GRAD], 0xff, (size_t)f->net.plan.arena_bytes[MEMPLAN_GRAD]);
    memset(f->net.workspace, 0xff, (size_t)f->net.workspace_bytes);
    fill(f, model);
}

/* That no order which the events allow may differ: test_wl_plans.c. */
TEST(calls_in_the_order_of_four_streams_give_the_same_bits)
{
    static const struct model *const models[] = {&model_hrnet_w18, &model_resnet50};
    for (unsigned i = 0; i < 4; i++) {
        const struct model *model = models[i / 2];
        struct fixture one;
        struct fixture four;
        struct streams_report report;
        net_on(&one, model, 1, i % 2 == 1, NULL);
        net_on(&four, model, STREAMS, i % 2 == 1, &report);
        fill(&one, model);
        (void)loss_now(&one);
        poison(&four, model);
        assert_true(loss_now(&four) == net_loss(&one.net));
        assert_int_equal(count_differences(&one, &four), 0);
        fixture_release(&one);
        fixture_release(&four);
    }
}

/* ---- the schedule ---- */

static struct graph *finished(struct arena *arena, const struct model *model)
{
    struct graph *graph = graph_new_typed(
        arena, &(struct graph_types){.dtype = DT_F16, .norm = DT_F32, .stat = DT_F32});
    model->build(
        graph, &(struct model_opts){.batch = 2, .height = 256, .width = 256, .has_dropout = true});
    PASSES(graph_finish(graph, ERR));
    return graph;
}

TEST(one_stream_changes_nothing)
{
    struct graph *graph = finished(ARENA, &model_hrnet_w18);
    size_t bytes = (size_t)graph->n_calls * sizeof(struct call);
    void *kept = arena_alloc(ARENA, bytes, alignof(max_align_t));
    memcpy(kept, graph->calls, bytes);
    const struct streams_opts opts = {.n_streams = 1, .window = WINDOW, .bytes_of = packed};
    struct streams_report report;
    PASSES(streams_assign(graph, &opts, &report, ERR));
    assert_memory_equal(kept, graph->calls, bytes);
    assert_int_equal(report.n_waits, 0);
    assert_true(report.serial_ns > 0.0 && report.side_by_side_ns == report.serial_ns);
}

/* HRNet's branches share nothing within a module: more streams are expected to pay, up to the four branches and their weights'
   gradients; and no call waits twice for what one wait covers. */
TEST(branches_run_side_by_side)
{
    double before = 1.0;
    for (int n = 2; n <= 4; n *= 2) {
        struct graph *graph = finished(ARENA, &model_hrnet_w18);
        const struct streams_opts opts = {
            .n_streams = n, .n_events = EVENTS, .window = WINDOW, .bytes_of = packed};
        struct streams_report report;
        struct streams_clocks clocks;
        int n_on[GRAPH_STREAMS_MAX] = {0};
        PASSES(streams_assign(graph, &opts, &report, ERR));
        PASSES(streams_clocks_make(ARENA, graph, &clocks, ERR));
        assert_int_equal(clocks.n_streams, n);
        for (int i = 0; i < graph->n_calls; i++) {
            n_on[graph->calls[i].args.stream]++;
            assert_true(graph->calls[i].n_waits < n);
        }
        for (int s = 0; s < n; s++) {
            assert_true(n_on[s] > graph->n_calls / (4 * n));
        }
        double share = report.side_by_side_ns / report.serial_ns;
        print_message("# %d streams: %.2f of the time, %d waits, %d events\n", n, share,
                      report.n_waits, report.n_events);
        assert_true(share < 0.8 * before);
        before = share;
    }
}

/* Two graphs of one model get the same schedule on every machine: ranks must agree, and a cached plan must fit. */
TEST(the_schedule_is_the_same_each_time)
{
    struct graph *graphs[2];
    const struct streams_opts opts = {
        .n_streams = 4, .n_events = EVENTS, .window = WINDOW, .bytes_of = packed};
    for (int i = 0; i < 2; i++) {
        graphs[i] = finished(ARENA, &model_deeplabv3p);
        PASSES(streams_assign(graphs[i], &opts, NULL, ERR));
    }
    for (int i = 0; i < graphs[0]->n_calls; i++) {
        const struct call *a = &graphs[0]->calls[i];
        const struct call *b = &graphs[1]->calls[i];
        assert_true(a->op == b->op && a->args.id == b->args.id && a->args.stream == b->args.stream);
        assert_int_equal(a->n_waits, b->n_waits);
        assert_memory_equal(a->waits, b->waits, sizeof(a->waits));
    }
}

TEST(too_few_events_are_an_error)
{
    struct graph *graph = finished(ARENA, &model_hrnet_w18);
    const struct streams_opts opts = {
        .n_streams = 4, .n_events = 3, .window = WINDOW, .bytes_of = packed};
    assert_true(streams_assign(graph, &opts, NULL, ERR) < 0);
    assert_int_equal(ERR->code, ERR_USAGE);
}

TEST(an_event_that_nobody_records_is_an_error)
{
    struct graph *graph = finished(ARENA, &model_resnet50);
    struct memplan plan;
    graph->calls[5].waits[0] = 2;
    graph->calls[5].n_waits = 1;
    assert_true(memplan_make(ARENA, graph, packed, NULL, &plan, ERR) < 0);
    assert_int_equal(ERR->code, ERR_INTERNAL);
}
