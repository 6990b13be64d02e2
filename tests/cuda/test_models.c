/* SPDX-License-Identifier: Apache-2.0 */
/* Whole networks, in small, on the CUDA backend against the CPU backend in double: loss, every gradient, running statistics,
   FP32 and AMP, call by call as the model has them, and with everything fused on four streams. On a GPU, or on the emulator. Speaks
   TAP; an argument is the name of the one model to look at. */
#include "base/base.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/nets.h"
#include "tests/cuda/sides.h"
#include "tests/cuda/tap.h"

#ifdef CUDA_EMU
#include "emu.h"
#endif

static const struct {
    const char *name;
    struct model_opts size;
    bool is_slow; /* on the emulator, and left to TIER=all where all are looked at */
} MODELS[] = {
    {"resnet50", {.batch = 3, .height = 33, .width = 33}, false},
    {"hrnet_w18", {.batch = 2, .height = 33, .width = 40}, false},
    {"deeplabv3p", {.batch = 5, .height = 17, .width = 25}, false},
    {"deeplabv3p_mmseg", {.batch = 5, .height = 17, .width = 25}, true}, /* the one above, wider */
    {"bert_tiny", {.batch = 3, .sequence = 16, .predictions = 3, .has_dropout = true}, false},
};

/* --- one step --------------------------------------------------------------------------------------- */
/* The CPU in float rounds each stored result to 24 bits but sums in double; the device sums in float, too: where large terms cancel
   it was off by up to 60 times as much (batch norm after batch norm). AMP stores 11 bits, 2^13 times the rounding. What is added is
   for values that rounding puts on the other side of a ReLU's kink: in AMP the gradients of some shifts, whose terms nearly cancel, were
   off by 0.25. Medians were at most 7e-6 and 0.06. */
static const struct trial_allowed ALLOWED[2] = {
    {.times = 200.0, .plus = 1e-5, .grad_scale = 1.0},
    {.times = 30.0 * 8192.0, .plus = 0.1, .grad_scale = 64.0},
};
static const double LOSS_ALLOWED[2] = {1e-5, 2e-3};
static const double MEDIAN_ALLOWED[2] = {2e-5, 0.1};

static void must_open(struct trial *trial, const struct nets_opts *opts)
{
    struct err err = {0};
    if (trial_open(trial, opts, &err) < 0) {
        tap_bail("%s", err.msg);
    }
}

/* How the network is run on the device. */
static const struct variant {
    const char *name;
    bool is_fused;
    int n_streams;
} VARIANTS[] = {{"as it is", false, 1}, {"fused, 4 streams", true, 4}};
#define N_VARIANTS ((int)ARRAY_LEN(VARIANTS))

static bool compute(struct trial *trial)
{
    return !net_gradients(&trial->net, NULL);
}

static void hold_variant(const struct sides *s, int idx, int variant, const struct trial *got,
                         const struct trial *want, const struct trial *yardstick)
{
    bool is_amp = s->types.dtype == DT_F16;
    const char *name = MODELS[idx].name;
    const char *how = VARIANTS[variant].name;
    bool has_sites = VARIANTS[variant].is_fused && got->model->kind == MODEL_IMAGES;
    struct trial_distance d = trial_compare(got, want, yardstick, &ALLOWED[is_amp]);
    tap_report(d.loss <= LOSS_ALLOWED[is_amp] && d.share <= 1.0 &&
                   d.median <= MEDIAN_ALLOWED[is_amp] && d.n_compared > 10 &&
                   (got->n_fused > 0) == has_sites,
               "%s %s, %s: %d sites fused, loss %.9g off by %.2g; of %d gradients and statistics "
               "the median is off by %.2g, the worst by %.2g, "
               "%.2g of what is allowed (%s, float on the CPU: %.2g)",
               s->mode, name, how, got->n_fused, net_loss(&want->net), d.loss, d.n_compared,
               d.median, d.worst, d.share, d.worst_name, d.noise);
    if (!is_amp) {
        struct trial_allowed off = ALLOWED[is_amp];
        off.grad_scale *= 1.001;
        d = trial_compare(got, want, yardstick, &off);
        tap_report(d.share > 1.0, "%s %s, %s: gradients that are 0.1 %% too small are noticed",
                   s->mode, name, how);
    }
}

static void hold_model(struct sides *s, int idx)
{
    const struct fuse_support support = fuse_support_hopper();
    bool is_amp = s->types.dtype == DT_F16;
    struct err err = {0};
    struct trial got[N_VARIANTS];
    struct trial want;
    struct trial yardstick;
    const struct nets_opts host = {.model = model_find(MODELS[idx].name),
                                   .size = MODELS[idx].size,
                                   .backend = &s->host,
                                   .types = {DT_F64, DT_F64, DT_F64}};
    struct nets_opts opts = host;
    must_open(&want, &host);
    opts.types = (struct graph_types){DT_F32, DT_F32, DT_F64};
    must_open(&yardstick, &opts);
    opts.types = s->types;
    opts.backend = &s->device;
    opts.loss_scale = is_amp ? (float)ALLOWED[is_amp].grad_scale : 0.0F;
    for (int i = 0; i < N_VARIANTS; i++) {
        opts.fuse = VARIANTS[i].is_fused ? &support : NULL;
        opts.n_streams = VARIANTS[i].n_streams;
        must_open(&got[i], &opts);
        if (i == 0) {
            trial_fill(&got[0], 7);
        } else {
            trial_copy(&got[i], &got[0]);
        }
    }
    trial_copy(&want, &got[0]);
    trial_copy(&yardstick, &got[0]);
    bool is_done = compute(&want) && compute(&yardstick);
    for (int i = 0; i < N_VARIANTS; i++) {
        if (is_done && compute(&got[i]) && s->device.async.check(s->device.self, &err) == 0) {
            hold_variant(s, idx, i, &got[i], &want, &yardstick);
        } else {
            tap_report(false, "%s %s, %s: %s", s->mode, MODELS[idx].name, VARIANTS[i].name,
                       err.msg);
        }
        trial_release(&got[i]);
    }
    trial_release(&want);
    trial_release(&yardstick);
}

/* ASan slows whole networks down too much to look at them all; each kernel is seen by test_device. */
static bool is_wanted(const char *only, int idx)
{
#ifdef __SANITIZE_ADDRESS__
    only = only != NULL ? only : "hrnet_w18";
#endif
#ifdef CUDA_EMU
    const char *tier = getenv("TIER");
    if (only == NULL && MODELS[idx].is_slow && (tier == NULL || strcmp(tier, "all") != 0)) {
        (void)printf("# test-all: %s on the device\n", MODELS[idx].name);
        return false;
    }
#endif
    return only == NULL || strcmp(only, MODELS[idx].name) == 0;
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    const char *precision = getenv("REPERF_TEST_PRECISION"); /* both, or this one */
    for (int is_amp = 0; is_amp < 2; is_amp++) {
        struct sides s;
        if (precision != NULL && strcmp(precision, is_amp ? "amp" : "fp32") != 0) {
            continue;
        }
        sides_open(&s, is_amp != 0);
        for (int i = 0; i < (int)ARRAY_LEN(MODELS); i++) {
            if (is_wanted(only, i)) {
                hold_model(&s, i);
            }
        }
        sides_close(&s);
    }
    return tap_end();
}
