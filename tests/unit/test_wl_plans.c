/* SPDX-License-Identifier: Apache-2.0 */
/* The plans of the CUDA backend, without one: every model as the reports train it, in both precisions, plain and fused, on one stream and
   on four, each checked by an interpreter; and the interpreter with wrong plans. */
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
            arena_release(&p.arena);
        }
    }
}

/* ---- the interpreter detects what is wrong ---- */

static int faults_of(const struct planned *p)
{
    return plan_check_run(p->graph, &p->plan, EVENTS, NULL);
}

static void plan_hrnet(struct planned *p, int n_streams, int window)
{
    const struct full small = {&model_hrnet_w18, 2};
    const struct trace how = {
        .is_amp = true, .is_fused = true, .n_streams = n_streams, .window = window};
    plan_full(p, &small, &how);
    must_hold(p, "as planned");
}

/* Without a window every wait is for a value, and no wait is redundant. */
TEST(a_dropped_wait_is_seen)
{
    struct planned p;
    plan_hrnet(&p, 4, 0);
    int n_seen = 0;
    int n_tried = 0;
    for (int i = 0; i < p.graph->n_calls; i++) {
        struct call *call = &p.graph->calls[i];
        const struct call kept = *call;
        if (call->n_waits == 0 || n_tried == 60 || i % 5 != 0) {
            continue;
        }
        call->n_waits--;
        call->waits[0] = kept.waits[call->n_waits];
        n_tried++;
        n_seen += faults_of(&p) > 0;
        *call = kept;
    }
    assert_int_equal(n_tried, 60);
    assert_int_equal(n_seen, n_tried);
    arena_release(&p.arena);
}

TEST(a_lost_or_doubled_event_is_seen)
{
    struct planned p;
    plan_hrnet(&p, 4, 0);
    int n_tried = 0;
    for (int i = 0; i < p.graph->n_calls && n_tried < 20; i++) {
        struct call *call = &p.graph->calls[i];
        const struct call kept = *call;
        if (call->is_recorded && i % 7 == 0) {
            n_tried++;
            call->is_recorded = false;
            assert_true(faults_of(&p) > 0);
            *call = kept;
            call->event = EVENTS;
            assert_true(faults_of(&p) > 0);
            *call = kept;
        }
    }
    assert_int_equal(n_tried, 20);
    arena_release(&p.arena);
}

/* The call that writes a value and its first reader, swapped. */
TEST(swapped_calls_are_seen)
{
    for (int n_streams = 1; n_streams <= 4; n_streams += 3) {
        struct planned p;
        plan_hrnet(&p, n_streams, WINDOW);
        int n_tried = 0;
        for (int i = 0; i + 1 < p.graph->n_calls && n_tried < 20; i += 13) {
            int made = p.graph->calls[i].out[0];
            for (int j = i + 1; j < p.graph->n_calls; j++) {
                if (call_reads(&p.graph->calls[j], made)) {
                    const struct call kept[2] = {p.graph->calls[i], p.graph->calls[j]};
                    p.graph->calls[i] = kept[1];
                    p.graph->calls[j] = kept[0];
                    n_tried++;
                    assert_true(faults_of(&p) > 0);
                    p.graph->calls[i] = kept[0];
                    p.graph->calls[j] = kept[1];
                    break;
                }
            }
        }
        assert_int_equal(n_tried, 20);
        arena_release(&p.arena);
    }
}

/* A value moved onto another one, one that is not aligned, one past the end, an arena declared too small. */
TEST(a_shifted_value_is_seen)
{
    struct planned p;
    plan_hrnet(&p, 4, WINDOW);
    int n_tried = 0;
    int n_seen = 0;
    for (int v = 0; v < p.graph->n_values; v += 23) {
        struct place *place = &p.plan.places[v];
        const struct place kept = *place;
        if (place->arena != MEMPLAN_ACT || place->first_call < 0) {
            continue;
        }
        n_tried++;
        bool has_room = place->offset_bytes >= MEMPLAN_ALIGN_BYTES;
        place->offset_bytes += has_room ? -MEMPLAN_ALIGN_BYTES : MEMPLAN_ALIGN_BYTES;
        n_seen += faults_of(&p) > 0;
        place->offset_bytes = kept.offset_bytes + MEMPLAN_ALIGN_BYTES / 2;
        assert_true(faults_of(&p) > 0);
        place->offset_bytes = p.plan.arena_bytes[MEMPLAN_ACT];
        assert_true(faults_of(&p) > 0);
        *place = kept;
    }
    print_message("# %d of %d shifted values seen\n", n_seen, n_tried);
    assert_true(n_tried > 50);
    assert_true(n_seen * 2 > n_tried); /* some have a gap next to them */
    p.plan.arena_bytes[MEMPLAN_ACT] -= MEMPLAN_ALIGN_BYTES;
    assert_true(faults_of(&p) > 0);
    p.plan.arena_bytes[MEMPLAN_ACT] += MEMPLAN_ALIGN_BYTES;
    p.plan.places[p.graph->grad_order[3]].offset_bytes -= MEMPLAN_ALIGN_BYTES;
    assert_true(faults_of(&p) > 0);
    arena_release(&p.arena);
}

/* A plan made for one stream is invalid on several: memory is reused before other streams are done with it. */
TEST(a_plan_for_one_stream_does_not_hold_on_four)
{
    struct planned p;
    plan_hrnet(&p, 4, WINDOW);
    int64_t channel_pad = 8;
    struct call *kept = arena_array(&p.arena, struct call, (size_t)p.graph->n_calls);
    memcpy(kept, p.graph->calls, (size_t)p.graph->n_calls * sizeof(*kept));
    for (int i = 0; i < p.graph->n_calls; i++) {
        p.graph->calls[i].args.stream = 0;
        p.graph->calls[i].n_waits = 0;
    }
    PASSES(memplan_make(&p.arena, p.graph, device_bytes, &channel_pad, &p.plan, ERR));
    must_hold(&p, "one stream, in the order of four");
    memcpy(p.graph->calls, kept, (size_t)p.graph->n_calls * sizeof(*kept));
    assert_true(faults_of(&p) > 0);
    arena_release(&p.arena);
}

/* In place against the contract: a convolution's gradient over its input. */
TEST(a_wrong_take_over_is_seen)
{
    struct planned p;
    plan_hrnet(&p, 1, WINDOW);
    int n_tried = 0;
    for (int i = 0; i < p.graph->n_calls; i++) {
        const struct call *call = &p.graph->calls[i];
        if (call->args.id == K_CONV_BWD_DATA_BN && n_tried < 20) {
            struct place *dz = &p.plan.places[call->out[0]];
            const struct place kept = *dz;
            dz->offset_bytes = p.plan.places[call->in[0]].offset_bytes;
            n_tried++;
            assert_true(faults_of(&p) > 0);
            *dz = kept;
        }
    }
    assert_int_equal(n_tried, 20);
    arena_release(&p.arena);
}
