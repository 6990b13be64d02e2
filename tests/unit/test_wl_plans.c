/* SPDX-License-Identifier: Apache-2.0 */
/* The plans of the CUDA backend, without one: every model as the reports train it, in both precisions, plain and fused, on one stream and
   on four, each checked by an interpreter; where values lie; and the interpreter with wrong plans. */
#include "wl_fixture.h"

#include "backend_cuda/layout.h"
#include "graph/streams.h"
#include "plan_check.h"
#include "wl_fuse.h"

#define EVENTS 512
#define WINDOW 64

struct full {
    const struct model *model;
    int64_t batch; /* of the reports, one GPU */
};
static const struct full FULL[] = {{&model_resnet50, 256},
                                   {&model_hrnet_w18, 8},
                                   {&model_deeplabv3p, 4},
                                   {&model_deeplabv3p_mmseg, 4},
                                   {&model_bert_base, 96}};

struct trace {
    bool is_amp, is_fused;
    int n_streams, window;
};

/* As in backend_cuda: channels in multiples of 8 with AMP, of 4 with FP32. */
static int64_t device_bytes(void *self, const struct tensor_desc *desc)
{
    const struct layout layout = layout_of(desc, *(const int64_t *)self);
    return layout_bytes(&layout);
}

struct planned {
    struct arena arena;
    struct graph *graph;
    struct memplan plan;
    struct streams_report streams;
    struct traffic traffic;
};

static void plan_full(struct planned *p, const struct full *full, const struct trace *how)
{
    int64_t channel_pad = how->is_amp ? 8 : 4;
    const struct fuse_support hopper = fuse_support_hopper();
    const struct fuse_policy policy = how->is_fused ? fuse_supported(&hopper) : fuse_none();
    *p = (struct planned){0};
    p->graph = graph_new_typed(
        &p->arena, &(struct graph_types){
                       .dtype = how->is_amp ? DT_F16 : DT_F32, .norm = DT_F32, .stat = DT_F32});
    full->model->build(p->graph,
                       &(struct model_opts){.batch = full->batch,
                                            .height = full->model->height_default,
                                            .width = full->model->width_default,
                                            .sequence = full->model->sequence_default,
                                            .predictions = full->model->predictions_default,
                                            .has_dropout = true});
    PASSES(graph_finish(p->graph, ERR));
    PASSES(graph_fuse(p->graph, &policy, NULL, ERR));
    const struct streams_opts opts = {.n_streams = how->n_streams,
                                      .n_events = EVENTS,
                                      .window = how->window,
                                      .bytes_of = device_bytes,
                                      .self = &channel_pad};
    PASSES(streams_assign(p->graph, &opts, &p->streams, ERR));
    PASSES(memplan_make(&p->arena, p->graph, device_bytes, &channel_pad, &p->plan, ERR));
    p->traffic = traffic_of_graph(p->graph, device_bytes, &channel_pad);
}

static void must_hold(const struct planned *p, const char *what)
{
    char fault[256] = "";
    int n_faults = plan_check_run(p->graph, &p->plan, EVENTS, fault);
    if (n_faults > 0) {
        fail_msg("%s: %d faults: %s", what, n_faults, fault);
    }
}

TEST(full_plans_hold)
{
    for (size_t m = 0; m < ARRAY_LEN(FULL); m++) {
        for (unsigned i = 0; i < 8; i++) {
            const struct trace how = {(i & 1U) != 0, (i & 2U) != 0, (i & 4U) != 0 ? 4 : 1, WINDOW};
            struct planned p;
            char what[128];
            plan_full(&p, &FULL[m], &how);
            snprintf(what, sizeof(what), "%s, batch %d, %s, %s, %d streams", FULL[m].model->name,
                     (int)FULL[m].batch, how.is_amp ? "amp" : "fp32",
                     how.is_fused ? "fused" : "plain", how.n_streams);
            const int64_t *bytes = p.plan.arena_bytes;
            print_message(
                "# %s: MB: %d parameters, %d activations (%d live); %d calls, %d events, %d "
                "waits; moves %.1f + %.1f GB; expected %.2f ms, alone %.2f\n",
                what, (int)(bytes[MEMPLAN_PARAM] / 1000000), (int)(bytes[MEMPLAN_ACT] / 1000000),
                (int)(p.plan.live_bytes_max / 1000000), p.graph->n_calls, p.streams.n_events,
                p.streams.n_waits, 1e-9 * (double)p.traffic.floor_bytes,
                1e-9 * (double)p.traffic.reread_bytes, 1e-6 * p.streams.side_by_side_ns,
                1e-6 * p.streams.serial_ns);
            must_hold(&p, what);
            /* No plan can do with less than what lives at once; ours for one stream comes within 5 % of it. */
            assert_true(bytes[MEMPLAN_ACT] >= p.plan.live_bytes_max);
            assert_true(how.n_streams > 1 || how.is_fused ||
                        (double)bytes[MEMPLAN_ACT] <= 1.05 * (double)p.plan.live_bytes_max);
            arena_release(&p.arena);
        }
    }
}

/* ---- where values lie ---- */

static int64_t dense_bytes(void *self UNUSED, const struct tensor_desc *desc)
{
    return shape_count(&desc->shape) * dtype_bytes(desc->dtype);
}

/* A finished graph on one stream. */
static struct memplan plan_of(struct graph *graph)
{
    struct memplan plan;
    PASSES(graph_finish(graph, ERR));
    PASSES(memplan_make(ARENA, graph, dense_bytes, NULL, &plan, ERR));
    assert_int_equal(plan_check_run(graph, &plan, 1, NULL), 0);
    return plan;
}

/* A loss that computes its gradient in the forward pass, a matrix of three parameters, a table that two layers share. */
TEST(berts_losses_are_in_place_and_its_matrices_joined)
{
    for (int has_logits = 0; has_logits < 2; has_logits++) {
        struct graph *graph = graph_new(ARENA, DT_F32);
        model_bert_base.build(graph, &(struct model_opts){.batch = 2,
                                                          .sequence = 31,
                                                          .predictions = 5,
                                                          .has_logits = has_logits == 1,
                                                          .has_dropout = true});
        const struct memplan plan = plan_of(graph);
        int n_in_place = 0;
        int n_joined = 0;
        for (int i = 0; i < graph->n_calls; i++) {
            const struct call *call = &graph->calls[i];
            n_in_place += call->args.id == K_ROW_LOSS && plan.places[call->out[1]].offset_bytes ==
                                                             plan.places[call->in[0]].offset_bytes;
        }
        for (int i = 1; i < graph->n_values; i++) {
            n_joined += graph->values[i].is_joined &&
                        plan.places[i].offset_bytes ==
                            plan.places[i - 1].offset_bytes +
                                shape_count(&graph->values[i - 1].shape) * (int64_t)sizeof(float);
        }
        assert_int_equal(n_in_place, has_logits ? 0 : 2);
        assert_int_equal(n_joined, 12 * 4);
    }
}

/* An addition takes the memory of its first term and a ReLU that of the sum, since its backward needs its result only; a kept value's memory is
   not taken. */
TEST(elementwise_ops_work_in_place)
{
    for (int is_kept = 0; is_kept < 2; is_kept++) {
        struct graph *graph = graph_new(ARENA, DT_F64);
        int x = graph_input(graph, "x", SHAPE(2, 3, 8, 8), DT_F64);
        int labels = graph_input(graph, "labels", SHAPE(2, 8, 8), DT_I64);
        int a =
            graph_conv(graph, x, &(struct conv_opts){.name = "a", .out_channels = 4, .kernel = 1});
        int b =
            graph_conv(graph, x, &(struct conv_opts){.name = "b", .out_channels = 4, .kernel = 1});
        int sum = graph_add(graph, a, b, false);
        if (is_kept) {
            graph_output(graph, "sum", sum);
        }
        int relu = graph_relu(graph, sum);
        (void)graph_loss(graph, relu, labels,
                         &(struct loss_opts){.ignore_label = LOSS_IGNORE_NONE});
        const struct memplan plan = plan_of(graph);
        assert_int_equal(plan.places[sum].root, a);
        assert_int_equal(plan.places[relu].root, is_kept ? relu : a);
        assert_true((plan.places[relu].offset_bytes == plan.places[a].offset_bytes) == !is_kept);
    }
}

/* The basis of data parallelism: gradients are stored in the order in which backward completes them, without a gap. */
TEST(gradients_lie_in_backward_order)
{
    struct graph *graph = graph_new(ARENA, DT_F32);
    model_resnet50.build(graph, &(struct model_opts){.batch = 2, .height = 32, .width = 35});
    const struct memplan plan = plan_of(graph);
    int64_t at = 0;
    assert_int_equal(graph->n_params, 161);
    assert_string_equal(graph->values[graph->grad_order[0]].name, "fc.weight");
    assert_string_equal(graph->values[graph->grad_order[160]].name, "conv1.weight");
    for (int i = 0; i < graph->n_params; i++) {
        int param = graph->grad_order[i];
        int grad = graph->values[param].grad;
        assert_int_equal(plan.places[param].offset_bytes, at);
        assert_int_equal(plan.places[grad].offset_bytes, at);
        at += plan.places[param].size_bytes;
        assert_true(i == 0 || graph->grad_ready[i] >= graph->grad_ready[i - 1]);
        assert_true(call_writes(&graph->calls[graph->grad_ready[i]], grad));
    }
    assert_int_equal(at, plan.arena_bytes[MEMPLAN_GRAD]);
}

/* ---- the interpreter sees what is wrong ---- */

/* Each plants a fault at call or value i, where there is a place for it. */
static bool drops_wait(struct planned *p, int i)
{
    struct call *call = &p->graph->calls[i];
    if (call->n_waits > 0) {
        call->n_waits--;
        call->waits[0] = call->waits[call->n_waits];
        return true;
    }
    return false;
}

static bool loses_event(struct planned *p, int i)
{
    struct call *call = &p->graph->calls[i];
    bool is_there = call->is_recorded;
    call->is_recorded = false;
    return is_there;
}

static bool records_no_event(struct planned *p, int i)
{
    p->graph->calls[i].event = EVENTS;
    return p->graph->calls[i].is_recorded;
}

/* The call that writes a value and its first reader. */
static bool swaps_calls(struct planned *p, int i)
{
    struct call *calls = p->graph->calls;
    for (int j = i + 1; j < p->graph->n_calls; j++) {
        if (call_reads(&calls[j], calls[i].out[0])) {
            const struct call writer = calls[i];
            calls[i] = calls[j];
            calls[j] = writer;
            return true;
        }
    }
    return false;
}

/* In place against the contract: a convolution's gradient over its input. */
static bool takes_over_what_it_reads(struct planned *p, int i)
{
    const struct call *call = &p->graph->calls[i];
    if (call->args.id == K_CONV_BWD_DATA_BN) {
        p->plan.places[call->out[0]].offset_bytes = p->plan.places[call->in[0]].offset_bytes;
        return true;
    }
    return false;
}

static bool lies_unaligned(struct planned *p, int i)
{
    p->plan.places[i].offset_bytes += MEMPLAN_ALIGN_BYTES / 2;
    return p->plan.places[i].arena == MEMPLAN_ACT && p->plan.places[i].first_call >= 0;
}

static bool lies_behind_the_end(struct planned *p, int i)
{
    p->plan.places[i].offset_bytes = p->plan.arena_bytes[MEMPLAN_ACT];
    return p->plan.places[i].arena == MEMPLAN_ACT && p->plan.places[i].first_call >= 0;
}

/* One unit on; some values have a gap next to them. */
static bool lies_beside(struct planned *p, int i)
{
    int64_t *offset_bytes = &p->plan.places[i].offset_bytes;
    *offset_bytes +=
        *offset_bytes >= MEMPLAN_ALIGN_BYTES ? -MEMPLAN_ALIGN_BYTES : MEMPLAN_ALIGN_BYTES;
    return p->plan.places[i].arena == MEMPLAN_ACT && p->plan.places[i].first_call >= 0;
}

static bool arena_is_too_small(struct planned *p, int i)
{
    p->plan.arena_bytes[MEMPLAN_ACT] -= MEMPLAN_ALIGN_BYTES;
    return i == 0;
}

static bool gradient_lies_beside(struct planned *p, int i)
{
    p->plan.places[p->graph->grad_order[3]].offset_bytes -= MEMPLAN_ALIGN_BYTES;
    return i == 0;
}

/* A plan for one stream in the order of four: memory is reused before other streams are done with it. */
static bool is_for_one_stream(struct planned *p, int i)
{
    int64_t channel_pad = 8;
    struct call *kept = arena_array(&p->arena, struct call, (size_t)p->graph->n_calls);
    memcpy(kept, p->graph->calls, (size_t)p->graph->n_calls * sizeof(*kept));
    for (int k = 0; k < p->graph->n_calls; k++) {
        p->graph->calls[k].args.stream = 0;
        p->graph->calls[k].n_waits = 0;
    }
    PASSES(memplan_make(&p->arena, p->graph, device_bytes, &channel_pad, &p->plan, ERR));
    must_hold(p, "one stream, in the order of four");
    memcpy(p->graph->calls, kept, (size_t)p->graph->n_calls * sizeof(*kept));
    return i == 0;
}

/* HRNet on four streams. Without a window every wait is for a value, and no wait is redundant. */
TEST(planted_faults_are_seen)
{
    static const struct {
        bool (*plant)(struct planned *p, int i);
        bool is_of_value; /* and not of a call */
        int step, n_tried, n_seen;
    } ROWS[] = {{drops_wait, false, 5, 60, 60},
                {loses_event, false, 7, 20, 20},
                {records_no_event, false, 7, 20, 20},
                {swaps_calls, false, 13, 20, 20},
                {takes_over_what_it_reads, false, 1, 20, 20},
                {lies_unaligned, true, 23, 50, 50},
                {lies_behind_the_end, true, 23, 50, 50},
                {lies_beside, true, 23, 50, 26},
                {arena_is_too_small, false, 1, 1, 1},
                {gradient_lies_beside, false, 1, 1, 1},
                {is_for_one_stream, false, 1, 1, 1}};
    const struct full small = {&model_hrnet_w18, 2};
    const struct trace how = {.is_amp = true, .is_fused = true, .n_streams = 4, .window = 0};
    struct planned p;
    plan_full(&p, &small, &how);
    must_hold(&p, "as planned");
    size_t call_bytes = (size_t)p.graph->n_calls * sizeof(struct call);
    size_t place_bytes = (size_t)p.graph->n_values * sizeof(struct place);
    const struct memplan plan = p.plan;
    void *calls = arena_alloc(&p.arena, call_bytes, alignof(max_align_t));
    void *places = arena_alloc(&p.arena, place_bytes, alignof(max_align_t));
    memcpy(calls, p.graph->calls, call_bytes);
    memcpy(places, plan.places, place_bytes);
    for (EACH(row, ROWS)) {
        const int n = row->is_of_value ? p.graph->n_values : p.graph->n_calls;
        int n_tried = 0;
        int n_seen = 0;
        for (int i = 0; i < n && n_tried < row->n_tried; i += row->step) {
            if (row->plant(&p, i)) {
                n_tried++;
                n_seen += plan_check_run(p.graph, &p.plan, EVENTS, NULL) > 0;
            }
            p.plan = plan;
            memcpy(p.graph->calls, calls, call_bytes);
            memcpy(plan.places, places, place_bytes);
        }
        assert_int_equal(n_tried, row->n_tried);
        assert_true(n_seen >= row->n_seen);
    }
    arena_release(&p.arena);
}
