/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion by a backend's answer for each site: which calls it is asked about, and what becomes of its answers. The backend is a fake. */
#include "unit.h"

#include "core/forms.h"
#include "graph/fuse_choose.h"
#include "models/model.h"

#define ASKED_MAX 4096

struct teller {
    int n_asked;
    /* The answer to the question number i. */
    enum form_choice (*answer)(const struct forms *forms);
    bool is_broken;
    struct forms first_of[K_COUNT]; /* the first question whose fused form begins with that call */
};

static int compare(void *self, const struct forms *forms, enum form_choice *ret_choice,
                   struct form_times *ret_times, struct err *err)
{
    struct teller *teller = self;
    teller->n_asked++;
    if (teller->is_broken) {
        return err_set(err, ERR_WORKLOAD, "the device is gone");
    }
    assert_true(forms->plain.n_calls > 0 && forms->fused.n_calls > 0);
    enum kernel_id id = forms->fused.calls[0].args.id;
    if (teller->first_of[id].n_buffers == 0) {
        teller->first_of[id] = *forms;
    }
    *ret_choice = teller->answer(forms);
    *ret_times = (struct form_times){1, 1};
    return 0;
}

static enum form_choice say_faster(const struct forms *forms UNUSED)
{
    return FORM_FASTER;
}
static enum form_choice say_slower(const struct forms *forms UNUSED)
{
    return FORM_SLOWER;
}
static enum form_choice say_unsupported(const struct forms *forms UNUSED)
{
    return FORM_UNSUPPORTED;
}
static bool has_stride_2(const struct form *form)
{
    for (int i = 0; i < form->n_calls; i++) {
        if ((form->calls[i].args.id == K_CONV_STATS_FWD ||
             form->calls[i].args.id == K_CONV_BWD_DATA_BN) &&
            form->calls[i].args.geom.conv.stride_h == 2) {
            return true;
        }
    }
    return false;
}
static enum form_choice say_stride_2_slower(const struct forms *forms)
{
    return has_stride_2(&forms->fused) ? FORM_SLOWER : FORM_FASTER;
}

static struct graph *build(struct arena *arena)
{
    const struct graph_types types = {DT_F16, DT_F32, DT_F32};
    const struct model_opts opts = {.batch = 2, .height = 64, .width = 64};
    struct graph *graph = graph_new_typed(arena, &types);
    model_find("resnet50")->build(graph, &opts);
    PASSES(graph_finish(graph, ERR));
    return graph;
}

static struct fuse_list choose(struct arena *arena, struct teller *teller,
                               struct fuse_tally *ret_tally)
{
    struct fuse_support support = fuse_support_hopper();
    struct backend backend = {.self = teller, .compare = teller ? compare : NULL};
    const struct fuse_asked asked = {.support = &support, .backend = &backend};
    struct fuse_list list = {0};
    PASSES(fuse_choose(arena, build(arena), &asked, &list, ret_tally, ERR));
    return list;
}

static int count_fused(const struct fuse_list *list, enum fuse_pattern pattern)
{
    int n = 0;
    for (int i = 0; i < list->n_choices; i++) {
        n += list->choices[i].pattern == pattern && list->choices[i].is_fused;
    }
    return n;
}

static int count_calls(const struct graph *graph, enum kernel_id id, int64_t stride)
{
    int n = 0;
    for (int i = 0; i < graph->n_calls; i++) {
        n += graph->calls[i].args.id == id &&
             (stride == 0 || graph->calls[i].args.geom.conv.stride_h == stride);
    }
    return n;
}

/* The list applied to a new graph. */
static struct graph *apply(struct arena *arena, struct fuse_list *list)
{
    struct graph *graph = build(arena);
    PASSES(graph_fuse_listed(graph, list, NULL, ERR));
    return graph;
}

TEST(all_that_is_faster)
{
    struct teller teller = {.answer = say_faster};
    struct fuse_tally tally;
    struct fuse_tally untimed;
    struct fuse_list list = choose(ARENA, &teller, &tally);
    struct fuse_list all = choose(ARENA, NULL, &untimed); /* no backend to ask */
    assert_int_equal(list.n_choices, all.n_choices);
    assert_memory_equal(list.choices, all.choices, (size_t)all.n_choices * sizeof(*all.choices));
    int n_said = tally.n_sites[FUSE_CONV_STATS][FORM_FASTER] +
                 tally.n_sites[FUSE_NORM_CONV][FORM_FASTER] +
                 tally.n_sites[FUSE_CONV_BN_BWD][FORM_FASTER];
    assert_int_equal(teller.n_asked, n_said);
    assert_int_equal(tally.n_sites[FUSE_CONV_STATS][FORM_FASTER],
                     count_fused(&all, FUSE_CONV_STATS));
    assert_true(n_said > 100);
    assert_int_equal(untimed.n_sites[FUSE_CONV_BN_BWD][FORM_UNTIMED],
                     tally.n_sites[FUSE_CONV_BN_BWD][FORM_FASTER]);
}

TEST(nothing_that_is_slower_or_not_had)
{
    struct fuse_tally tally;
    for (int i = 0; i < 2; i++) {
        struct teller teller = {.answer = i == 0 ? say_slower : say_unsupported};
        enum form_choice said = i == 0 ? FORM_SLOWER : FORM_UNSUPPORTED;
        struct fuse_list list = choose(ARENA, &teller, &tally);
        assert_int_equal(count_fused(&list, FUSE_CONV_STATS), 0);
        assert_int_equal(count_fused(&list, FUSE_CONV_BN_BWD), 0);
        assert_true(count_fused(&list, FUSE_BN_ADD) > 0); /* our own kernels are not asked about */
        assert_true(tally.n_sites[FUSE_CONV_STATS][said] > 50);
        /* A site that needs an earlier fused convolution never comes up. */
        assert_int_equal(tally.n_sites[FUSE_NORM_CONV][said], 0);
        const struct graph *graph = apply(ARENA, &list);
        assert_int_equal(count_calls(graph, K_CONV_STATS_FWD, 0), 0);
        assert_int_equal(count_calls(graph, K_CONV_BWD_DATA_BN, 0), 0);
    }
}

TEST(one_layer_so_another_otherwise)
{
    struct teller teller = {.answer = say_stride_2_slower};
    struct fuse_tally tally;
    struct fuse_list list = choose(ARENA, &teller, &tally);
    const struct graph *graph = apply(ARENA, &list);
    assert_int_equal(count_calls(graph, K_CONV_STATS_FWD, 2), 0);
    assert_int_equal(count_calls(graph, K_CONV_BWD_DATA_BN, 2), 0);
    assert_true(count_calls(graph, K_CONV_STATS_FWD, 1) > 40);
    assert_true(count_calls(graph, K_CONV_BWD_DATA_BN, 1) > 30);
    assert_true(tally.n_sites[FUSE_CONV_STATS][FORM_SLOWER] >= 6);
}

static void hold_calls(const struct form *form, const enum kernel_id *ids, int n)
{
    assert_int_equal(form->n_calls, n);
    for (int i = 0; i < n; i++) {
        assert_string_equal(kernel_name(form->calls[i].args.id), kernel_name(ids[i]));
    }
}

/* Every tensor that the plain calls leave for others the fused ones leave, too, and buffers are the calls' inputs and outputs. */
TEST(the_calls_that_are_compared)
{
    static const enum kernel_id STATS_PLAIN[] = {K_CONV_FWD, K_BN_FWD};
    static const enum kernel_id STATS_FUSED[] = {K_CONV_STATS_FWD, K_BN_FINALIZE, K_BN_APPLY};
    static const enum kernel_id BWD_PLAIN[] = {K_CONV_BWD_DATA, K_BN_BWD};
    static const enum kernel_id BWD_FUSED[] = {K_CONV_BWD_DATA_BN, K_BN_BWD_APPLY};
    struct teller *teller = arena_array(ARENA, struct teller, 1);
    struct fuse_tally tally;
    teller->answer = say_faster;
    (void)choose(ARENA, teller, &tally);
    const struct forms *stats = &teller->first_of[K_CONV_STATS_FWD];
    hold_calls(&stats->plain, STATS_PLAIN, 2);
    hold_calls(&stats->fused, STATS_FUSED, 3);
    const struct forms *bwd = &teller->first_of[K_CONV_BWD_DATA_BN];
    hold_calls(&bwd->fused, BWD_FUSED, 2);
    assert_true(bwd->plain.calls[1].args.id == K_BN_BWD ||
                bwd->plain.calls[1].args.id == K_BN_ADD_BWD);
    assert_int_equal(bwd->plain.calls[0].args.id, BWD_PLAIN[0]);
    const struct form_call *conv = &stats->plain.calls[0];
    const struct form_call *fused = &stats->fused.calls[0];
    const struct form_call *bn = &stats->plain.calls[1];
    assert_int_equal(conv->in[0], fused->in[0]);
    assert_int_equal(conv->in[1], fused->in[1]);
    assert_int_equal(conv->out[0], fused->out[0]);
    assert_int_equal(bn->in[0], conv->out[0]);
    assert_int_equal(bn->out[0], stats->fused.calls[2].out[0]); /* the normalised image */
    assert_int_equal(fused->args.has_in, 3);
    assert_int_equal(fused->out[3], FORM_ABSENT);
    const struct tensor_desc *y = &stats->buffers[conv->out[0]];
    assert_int_equal(y->dtype, DT_F16);
    assert_int_equal(y->role, ROLE_IMAGE);
    assert_int_equal(y->shape.dim[1], conv->args.geom.conv.k);
    assert_int_equal(stats->buffers[fused->out[1]].dtype, DT_F32); /* sums */
}

TEST(what_the_device_says_is_passed_on)
{
    struct fuse_support support = fuse_support_hopper();
    struct teller teller = {.answer = say_faster, .is_broken = true};
    struct backend backend = {.self = &teller, .compare = compare};
    const struct fuse_asked asked = {.support = &support, .backend = &backend};
    struct fuse_list list = {0};
    struct fuse_tally tally;
    FAILS(fuse_choose(ARENA, build(ARENA), &asked, &list, &tally, ERR), ERR_ANY);
    SAYS("fusion conv_stats at op ");
    SAYS("the device is gone");
    assert_int_equal(teller.n_asked, 1);
}
