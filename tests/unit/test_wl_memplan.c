/* SPDX-License-Identifier: Apache-2.0 */
/* The memory plan, checked by an interpreter: every call's reads must find the bytes their writers left. */
#include "wl_fixture.h"

/* Last writer of each MEMPLAN_ALIGN_BYTES of each arena; NO_VALUE: none. */
struct machine {
    const struct graph *graph;
    const struct memplan *plan;
    int *owner[MEMPLAN_ARENA_COUNT];
};

static void machine_init(struct machine *m, const struct graph *graph, const struct memplan *plan)
{
    *m = (struct machine){.graph = graph, .plan = plan};
    for (int i = 0; i < MEMPLAN_ARENA_COUNT; i++) {
        int64_t n = plan->arena_bytes[i] / MEMPLAN_ALIGN_BYTES + 1;
        m->owner[i] = xmalloc((size_t)n * sizeof(int));
        for (int64_t j = 0; j < n; j++) {
            m->owner[i][j] = NO_VALUE;
        }
    }
}

static void machine_release(struct machine *m)
{
    for (int i = 0; i < MEMPLAN_ARENA_COUNT; i++) {
        free(m->owner[i]);
    }
}

static void write_value(struct machine *m, int value)
{
    const struct place *place = &m->plan->places[value];
    assert_true(place->offset_bytes >= 0);
    assert_true(place->offset_bytes % MEMPLAN_ALIGN_BYTES == 0);
    assert_true(place->offset_bytes + place->size_bytes <= m->plan->arena_bytes[place->arena]);
    for (int64_t i = 0; i < place->size_bytes / MEMPLAN_ALIGN_BYTES; i++) {
        m->owner[place->arena][place->offset_bytes / MEMPLAN_ALIGN_BYTES + i] = value;
    }
}

/* True if all of the value's bytes are still its own. */
static bool holds(const struct machine *m, int value)
{
    const struct place *place = &m->plan->places[value];
    for (int64_t i = 0; i < place->size_bytes / MEMPLAN_ALIGN_BYTES; i++) {
        if (m->owner[place->arena][place->offset_bytes / MEMPLAN_ALIGN_BYTES + i] != value) {
            return false;
        }
    }
    return true;
}

/* Whether out and in of one call may share memory: only all of it, and only where the kernel's contract allows it. */
static bool clash(const struct machine *m, const struct call *call, int j, int k)
{
    const struct place *out = &m->plan->places[call->out[j]];
    const struct place *in = &m->plan->places[call->in[k]];
    bool meets = out->arena == in->arena && out->offset_bytes < in->offset_bytes + in->size_bytes &&
                 in->offset_bytes < out->offset_bytes + out->size_bytes;
    bool may = (call->inplace[j] >> k & 1U) != 0 && out->offset_bytes == in->offset_bytes &&
               out->size_bytes == in->size_bytes;
    return meets && call->out[j] != call->in[k] && !may;
}

/* Faults found: reads of overwritten bytes, forbidden overlaps, kept values that are gone at the end. */
static int run_calls(struct machine *m)
{
    int faults = 0;
    for (int i = 0; i < m->graph->n_values; i++) {
        enum value_kind kind = m->graph->values[i].kind;
        if (kind == VALUE_INPUT || kind == VALUE_PARAM || kind == VALUE_STATE) {
            write_value(m, i);
        }
    }
    for (int i = 0; i < m->graph->n_calls; i++) {
        const struct call *call = &m->graph->calls[i];
        for (int k = 0; k < KERNEL_IN_MAX; k++) {
            faults += call->in[k] != NO_VALUE && !holds(m, call->in[k]);
        }
        for (int j = 0; j < KERNEL_OUT_MAX; j++) {
            if (call->out[j] == NO_VALUE) {
                continue;
            }
            faults += (call->reads_out >> j & 1U) != 0 && !holds(m, call->out[j]);
            for (int k = 0; k < KERNEL_IN_MAX; k++) {
                faults += call->in[k] != NO_VALUE && clash(m, call, j, k);
            }
        }
        for (int j = 0; j < KERNEL_OUT_MAX; j++) {
            if (call->out[j] != NO_VALUE) {
                write_value(m, call->out[j]);
            }
        }
        for (int j = 0; j < KERNEL_OUT_MAX; j++) { /* two results of one call in one place */
            faults += call->out[j] != NO_VALUE && !holds(m, call->out[j]);
        }
    }
    for (int i = 0; i < m->graph->n_values; i++) {
        const struct value *value = &m->graph->values[i];
        bool lasts = value->is_kept || value->kind == VALUE_PARAM || value->kind == VALUE_STATE ||
                     value->kind == VALUE_GRAD_PARAM;
        faults += lasts && !holds(m, i);
    }
    return faults;
}

static int64_t bytes_of(void *self UNUSED, const struct tensor_desc *desc)
{
    return shape_count(&desc->shape) * dtype_bytes(desc->dtype);
}

static int faults_of(const struct graph *graph, const struct memplan *plan)
{
    struct machine m;
    machine_init(&m, graph, plan);
    int faults = run_calls(&m);
    machine_release(&m);
    return faults;
}

static void plan_of(struct arena *arena, struct graph *graph, struct memplan *ret_plan)
{
    PASSES(graph_finish(graph, ERR));
    PASSES(memplan_make(arena, graph, bytes_of, NULL, ret_plan, ERR));
}

static void plan_resnet(struct arena *arena, int64_t size, struct graph **ret_graph,
                        struct memplan *ret_plan)
{
    *ret_graph = graph_new(arena, DT_F32);
    model_resnet50.build(*ret_graph,
                         &(struct model_opts){.batch = 2, .height = size, .width = size + 3});
    plan_of(arena, *ret_graph, ret_plan);
}

TEST(resnet_reads_what_was_written)
{
    struct graph *graph;
    struct memplan plan;
    plan_resnet(ARENA, 64, &graph, &plan);
    assert_int_equal(faults_of(graph, &plan), 0);
    /* No plan can do with less than what lives at once; ours comes within 5 % of it. */
    assert_true(plan.arena_bytes[MEMPLAN_ACT] >= plan.live_bytes_max);
    assert_true((double)plan.arena_bytes[MEMPLAN_ACT] <= 1.05 * (double)plan.live_bytes_max);
}

/* Parallel branches keep much alive: upsampling, concatenation and dropout must not overwrite it. */
TEST(segmentation_networks_read_what_was_written)
{
    static const struct model *const models[] = {&model_hrnet_w18, &model_deeplabv3p,
                                                 &model_deeplabv3p_mmseg};
    static const int n_wanted[] = {35 + 4, 3 + 7, 4 + 7};
    for (size_t m = 0; m < ARRAY_LEN(models); m++) {
        struct graph *graph = graph_new(ARENA, DT_F32);
        struct memplan plan;
        models[m]->build(graph, &(struct model_opts){
                                    .batch = 2, .height = 61, .width = 96, .has_dropout = true});
        plan_of(ARENA, graph, &plan);
        assert_int_equal(faults_of(graph, &plan), 0);
        assert_true(plan.arena_bytes[MEMPLAN_ACT] >= plan.live_bytes_max);
        assert_true((double)plan.arena_bytes[MEMPLAN_ACT] <= 1.05 * (double)plan.live_bytes_max);
        int n_found = 0;
        for (int i = 0; i < graph->n_calls; i++) {
            enum kernel_id id = graph->calls[i].args.id;
            n_found += id == K_UPSAMPLE_BWD || id == K_CONCAT_BWD;
        }
        assert_int_equal(n_found, n_wanted[m]);
    }
}

/* A loss that computes its gradient in the forward pass, a matrix of three parameters, a table that two layers
   share. */
TEST(bert_reads_what_was_written)
{
    for (int has_logits = 0; has_logits < 2; has_logits++) {
        struct graph *graph = graph_new(ARENA, DT_F32);
        struct memplan plan;
        model_bert_base.build(graph, &(struct model_opts){.batch = 2,
                                                          .sequence = 31,
                                                          .predictions = 5,
                                                          .has_logits = has_logits == 1,
                                                          .has_dropout = true});
        plan_of(ARENA, graph, &plan);
        assert_int_equal(faults_of(graph, &plan), 0);
        assert_true(plan.arena_bytes[MEMPLAN_ACT] >= plan.live_bytes_max);
        assert_true((double)plan.arena_bytes[MEMPLAN_ACT] <= 1.05 * (double)plan.live_bytes_max);
        int n_in_place = 0;
        int n_joined = 0;
        for (int i = 0; i < graph->n_calls; i++) {
            const struct call *call = &graph->calls[i];
            bool is_loss = call->args.id == K_ROW_LOSS;
            n_in_place += is_loss && plan.places[call->out[1]].offset_bytes ==
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

/* The interpreter must notice a wrong plan: move each activation in turn onto its neighbour. */
TEST(a_wrong_plan_is_seen)
{
    struct graph *graph;
    struct memplan plan;
    plan_resnet(ARENA, 32, &graph, &plan);
    int n_moved = 0;
    for (int i = 0; i < graph->n_ops; i++) {
        struct place *place = &plan.places[graph->ops[i].out[0]];
        struct place kept = *place;
        place->offset_bytes +=
            place->offset_bytes >= MEMPLAN_ALIGN_BYTES ? -MEMPLAN_ALIGN_BYTES : MEMPLAN_ALIGN_BYTES;
        if (place->offset_bytes + place->size_bytes <= plan.arena_bytes[MEMPLAN_ACT]) {
            n_moved += faults_of(graph, &plan) > 0;
        }
        *place = kept;
    }
    /* Some have a gap next to them; most have not. */
    assert_true(n_moved > graph->n_ops / 2);
    /* One call is in place against the contract: pooling over its input. */
    for (int i = 0; i < graph->n_calls; i++) {
        if (graph->calls[i].args.id == K_CONV_BWD_DATA) {
            struct place *dx = &plan.places[graph->calls[i].out[0]];
            struct place kept = *dx;
            dx->offset_bytes = plan.places[graph->calls[i].in[0]].offset_bytes;
            assert_true(faults_of(graph, &plan) > 0);
            *dx = kept;
        }
    }
}

TEST(elementwise_ops_work_in_place)
{
    struct graph *graph = graph_new(ARENA, DT_F64);
    int x = graph_input(graph, "x", SHAPE(2, 3, 8, 8), DT_F64);
    int labels = graph_input(graph, "labels", SHAPE(2, 8, 8), DT_I64);
    int a = graph_conv(graph, x, &(struct conv_opts){.name = "a", .out_channels = 4, .kernel = 1});
    int b = graph_conv(graph, x, &(struct conv_opts){.name = "b", .out_channels = 4, .kernel = 1});
    int relu = graph_relu(graph, graph_add(graph, a, b, false));
    (void)graph_loss(graph, relu, labels, &(struct loss_opts){.ignore_label = LOSS_IGNORE_NONE});
    struct memplan plan;
    plan_of(ARENA, graph, &plan);
    assert_int_equal(faults_of(graph, &plan), 0);
    /* add takes a's memory, relu that of the sum: the ReLU's backward needs its result only. */
    assert_int_equal(plan.places[relu].offset_bytes, plan.places[a].offset_bytes);
    assert_int_equal(plan.places[relu].root, a);
    /* The memory of a kept value is not reused. */
    struct graph *kept = graph_new(ARENA, DT_F64);
    x = graph_input(kept, "x", SHAPE(2, 3, 8, 8), DT_F64);
    labels = graph_input(kept, "labels", SHAPE(2, 8, 8), DT_I64);
    a = graph_conv(kept, x, &(struct conv_opts){.name = "a", .out_channels = 4, .kernel = 1});
    graph_output(kept, "a", a);
    relu = graph_relu(kept, a);
    (void)graph_loss(kept, relu, labels, &(struct loss_opts){.ignore_label = LOSS_IGNORE_NONE});
    plan_of(ARENA, kept, &plan);
    assert_int_equal(faults_of(kept, &plan), 0);
    assert_true(plan.places[relu].root == relu);
}

/* The basis of data parallelism: gradients are stored in the order in which backward completes them, without a gap. */
TEST(gradients_lie_in_backward_order)
{
    struct graph *graph;
    struct memplan plan;
    plan_resnet(ARENA, 32, &graph, &plan);
    assert_int_equal(graph->n_params, 161);
    assert_string_equal(graph->values[graph->grad_order[0]].name, "fc.weight");
    assert_string_equal(graph->values[graph->grad_order[160]].name, "conv1.weight");
    int64_t at = 0;
    for (int i = 0; i < graph->n_params; i++) {
        int param = graph->grad_order[i];
        int grad = graph->values[param].grad;
        assert_int_equal(plan.places[param].offset_bytes, at);
        assert_int_equal(plan.places[grad].offset_bytes, at);
        at += plan.places[param].size_bytes;
        assert_true(i == 0 || graph->grad_ready[i] >= graph->grad_ready[i - 1]);
        bool is_written = false;
        for (int j = 0; j < KERNEL_OUT_MAX; j++) {
            is_written = is_written || graph->calls[graph->grad_ready[i]].out[j] == grad;
        }
        assert_true(is_written);
    }
    assert_int_equal(at, plan.arena_bytes[MEMPLAN_GRAD]);
}
