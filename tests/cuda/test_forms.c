/* SPDX-License-Identifier: Apache-2.0 */
/* Plain or fused, by time, on buffers of the calls' sizes: the whole way from a graph to the list of its fusions. On a GPU, on the emulator, and
   there with fake libraries. Prints TAP. REPERF_TEST_PLANS=FOLDER keeps the choices; REPERF_TEST_EXPECT is fused, plain or unsupported where the
   outcome is known. */
#include "base/base.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_cuda/cuda.h"
#include "core/forms.h"
#include "graph/fuse_choose.h"
#include "tests/cuda/tap.h"

/* Two convolutions of 3x3, each followed by batch norm and ReLU. */
static struct graph *build(struct arena *arena)
{
    const struct graph_types types = {DT_F16, DT_F32, DT_F32};
    struct err err = {0};
    struct graph *graph = graph_new_typed(arena, &types);
    int x = graph_input(graph, "input", SHAPE(2, 3, 9, 8), DT_F16);
    int labels = graph_input(graph, "labels", SHAPE(2), DT_I64);
    static const char *const NAMES[][2] = {{"a", "an"}, {"b", "bn"}, {"c", "cn"}};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        const struct conv_opts conv = {
            .name = NAMES[i][0], .out_channels = 16, .kernel = 3, .pad = 1};
        const struct bn_opts bn = {.name = NAMES[i][1], .has_relu = true};
        x = graph_bn(graph, graph_conv(graph, x, &conv), &bn);
    }
    x = graph_linear(graph, graph_global_avgpool(graph, x), "fc", 10);
    (void)graph_loss(graph, x, labels, &(struct loss_opts){.ignore_label = LOSS_IGNORE_NONE});
    if (graph_finish(graph, &err) < 0) {
        tap_bail("%s", err.msg);
    }
    return graph;
}

static void show(const struct fuse_tally *tally)
{
    static const char *const NAMES[FORM_CHOICE_COUNT] = {"untimed", "faster", "slower",
                                                         "unsupported"};
    for (int i = 0; i < FUSE_PATTERN_COUNT; i++) {
        for (int k = 0; k < FORM_CHOICE_COUNT; k++) {
            if (tally->n_sites[i][k] > 0) {
                (void)printf("# %s: %d %s\n", fuse_pattern_name((enum fuse_pattern)i),
                             tally->n_sites[i][k], NAMES[k]);
            }
        }
    }
}

/* True if every answer about these convolutions is `choice`, and there is one. */
static bool said_only(const struct fuse_tally *tally, enum form_choice choice)
{
    int n = 0;
    int n_other = 0;
    for (int i = 0; i < FUSE_PATTERN_COUNT; i++) {
        for (int k = 0; k < FORM_CHOICE_COUNT; k++) {
            *(k == (int)choice ? &n : &n_other) += tally->n_sites[i][k];
        }
    }
    return n > 0 && n_other == 0;
}

static void choose(const struct backend *backend, struct fuse_list *ret_list,
                   struct fuse_tally *ret_tally, struct arena *arena)
{
    struct err err = {0};
    struct fuse_support support = fuse_support_hopper();
    const struct fuse_asked asked = {.support = &support, .backend = backend};
    if (fuse_choose(arena, build(arena), &asked, ret_list, ret_tally, &err) < 0) {
        tap_bail("%s", err.msg);
    }
}

static void hold(const struct backend *backend, bool is_tuned)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct fuse_list list;
    struct fuse_list again;
    struct fuse_tally tally;
    struct fuse_tally second;
    struct err err = {0};
    const char *expect = getenv("REPERF_TEST_EXPECT");
    choose(backend, &list, &tally, &arena);
    show(&tally);
    choose(backend, &again, &second, &arena);
    tap_report(memcmp(&tally, &second, sizeof(tally)) == 0 && list.n_choices == again.n_choices &&
                   memcmp(list.choices, again.choices,
                          (size_t)list.n_choices * sizeof(*list.choices)) == 0,
               "asked again, it gives the same answer");
    struct graph *graph = build(&arena);
    tap_report(graph_fuse_listed(graph, &list, NULL, &err) == 0,
               "the list holds for a graph that is built again");
    if (!is_tuned) {
        tap_report(said_only(&tally, expect && strcmp(expect, "unsupported") == 0 ? FORM_UNSUPPORTED
                                                                                  : FORM_UNTIMED),
                   "nothing was timed, as nothing was to be");
    } else if (expect) {
        tap_report(said_only(&tally, strcmp(expect, "fused") == 0   ? FORM_FASTER
                                     : strcmp(expect, "plain") == 0 ? FORM_SLOWER
                                                                    : FORM_UNSUPPORTED),
                   "%s", expect);
    }
    tap_report(backend->async.check(backend->self, &err) == 0, "no call failed");
}

int main(void)
{
    const char *folder = getenv("REPERF_TEST_PLANS");
    bool is_repeated = getenv("REPERF_TEST_REPEATED") != NULL; /* the same bits in every run */
    for (int is_tuned = 0; is_tuned < 2; is_tuned++) {
        struct cuda cuda;
        struct backend backend;
        struct err err = {0};
        const struct cuda_opts opts = {.is_amp = true,
                                       .n_streams = 1,
                                       .n_marks = 2,
                                       .plan = {.is_tuned = is_tuned != 0,
                                                .allows_nondeterministic = !is_repeated,
                                                .cache_folder = is_tuned ? folder : NULL}};
        if (cuda_init(&cuda, &opts, &backend, &err) < 0) {
            tap_bail("%s", err.msg);
        }
        (void)printf("# %s\n", cuda_facts(&cuda).libraries);
        hold(&backend, is_tuned != 0);
        cuda_release(&cuda);
    }
    return tap_end();
}
