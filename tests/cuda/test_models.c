/* SPDX-License-Identifier: Apache-2.0 */
/* Small whole networks on the CUDA backend against the CPU backend in double: loss, every gradient, running statistics, FP32 and
   AMP, call by call as the model has them, and with everything fused on four streams; AMP also against a CPU that rounds as the
   device does. On a GPU, or on the emulator. Prints TAP; an argument is the name of the only model to test. */
#include "base/base.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/nets.h"
#include "tests/cuda/rounded.h"
#include "tests/cuda/sides.h"
#include "tests/cuda/tap.h"

#ifdef CUDA_EMU
#include "emu.h"
#endif

static const struct {
    const char *name;
    struct model_opts size;
    /* On the emulator, if no model is named; the rest is left to TIER=all. Of the large ones AMP as it is trained. */
    enum { DAILY, DAILY_FUSED_AMP, NOT_DAILY } how_much;
} MODELS[] = {
    {"resnet50", {.batch = 3, .height = 33, .width = 33}, DAILY_FUSED_AMP},
    {"hrnet_w18", {.batch = 2, .height = 33, .width = 40}, NOT_DAILY},
    {"deeplabv3p", {.batch = 5, .height = 17, .width = 25}, NOT_DAILY},
    /* The one above, wider. */
    {"deeplabv3p_mmseg", {.batch = 5, .height = 17, .width = 25}, NOT_DAILY},
    {"bert_nano", {.batch = 3, .sequence = 16, .predictions = 3, .has_dropout = true}, DAILY},
};

/* --- one step --------------------------------------------------------------------------------------- */
/* FP32: the CPU in float rounds each stored result to 24 bits but sums in double; the device sums in float, too: where large terms cancel
   it was off by up to 60 times as much (batch norm after batch norm). Medians were at most 7e-6. */
static const struct trial_allowed ALLOWED = {.times = 200.0, .plus = 1e-5, .grad_scale = 1.0};
/* AMP is compared call by call (rounded.h). The effect of half precision on the whole step, medians of 0.03 and single gradients of 0.25,
   is only checked for gross errors: that the fused calls and the loss scale compute the network. */
#define AMP_GRAD_SCALE 64.0
static const struct trial_allowed ALLOWED_AMP = {.plus = 1.0, .grad_scale = AMP_GRAD_SCALE};
static const double LOSS_ALLOWED[2] = {1e-5, 2e-3};
static const double MEDIAN_ALLOWED[2] = {2e-5, 0.1};

/* How the network is run on the device. */
static const struct variant {
    const char *name;
    bool is_fused;
    int n_streams;
} VARIANTS[] = {{"as it is", false, 1}, {"fused, 4 streams", true, 4}};
/* On a GPU the last bits of fused sums may differ from run to run: there the same network without them is run twice, too. */
static const struct variant REPEATED = {"fused without sums, 4 streams", true, 4};
#define N_VARIANTS ((int)ARRAY_LEN(VARIANTS))

struct held_model {
    struct sides *sides;
    int idx;
    struct nets_opts opts;        /* of the device */
    struct fuse_list *fusions;    /* that it has */
    bool is_any_order;            /* the device's bits may differ from run to run */
    struct trial first;           /* on the device: where parameters and inputs come from */
    struct trial want, yardstick; /* on the CPU in double; in float, for FP32 alone */
};

static bool is_amp(const struct held_model *m)
{
    return m->sides->types.dtype == DT_F16;
}

static bool compute(struct trial *trial)
{
    return !net_gradients(&trial->net, NULL);
}

static void open_like(const struct held_model *m, bool is_fused, int n_streams, struct trial *trial)
{
    struct nets_opts opts = m->opts;
    opts.fuse = is_fused ? m->fusions : NULL;
    opts.n_streams = n_streams;
    trial_must_open(trial, &opts);
    trial_copy(trial, &m->first);
}

static void hold_whole(const struct held_model *m, const struct variant *how,
                       const struct trial *got)
{
    const char *name = MODELS[m->idx].name;
    const char *mode = m->sides->mode;
    const struct trial_allowed *allowed = is_amp(m) ? &ALLOWED_AMP : &ALLOWED;
    const struct trial *yardstick = is_amp(m) ? &m->want : &m->yardstick;
    struct trial_distance d = trial_compare(got, &m->want, yardstick, allowed);
    tap_report(d.loss <= LOSS_ALLOWED[is_amp(m)] && d.median <= MEDIAN_ALLOWED[is_amp(m)] &&
                   d.n_compared > 10 && (got->n_fused > 0) == how->is_fused,
               "%s %s, %s: %d sites fused, loss %.9g off by %.2g; of %d gradients and statistics "
               "the median is off by %.2g",
               mode, name, how->name, got->n_fused, net_loss(&m->want.net), d.loss, d.n_compared,
               d.median);
    if (is_amp(m)) {
        return;
    }
    tap_report(d.share <= 1.0,
               "%s %s, %s: the worst by %.2g, %.2g of what is allowed (%s, float on the CPU: %.2g)",
               mode, name, how->name, d.worst, d.share, d.worst_name, d.noise);
    struct trial_allowed off = ALLOWED;
    off.grad_scale *= 1.001;
    d = trial_compare(got, &m->want, &m->yardstick, &off);
    tap_report(d.share > 1.0, "%s %s, %s: gradients that are 0.1 %% too small are noticed", mode,
               name, how->name);
}

/* AMP on one stream, call by call. */
static void hold_rounded(const struct held_model *m, const struct variant *how,
                         struct trial *stepped)
{
    const char *name = MODELS[m->idx].name;
    struct held_model on_host = *m;
    struct trial host;
    struct rounded_report report;
    struct err err = {0};
    on_host.opts.backend = &m->sides->host;
    on_host.opts.types = (struct graph_types){DT_F64, DT_F64, DT_F64};
    on_host.opts.loss_scale = 0.0F;
    open_like(&on_host, how->is_fused, 1, &host);
    if (rounded_step(stepped, &host, AMP_GRAD_SCALE, &report, &err) < 0) {
        tap_report(false, "%s %s, %s: %s", m->sides->mode, name, how->name, err.msg);
    } else {
        tap_report(
            report.n_bad == 0,
            "%s %s, %s: %d results of %d calls beside a CPU that rounds as the device does: "
            "at most %.2g of what each may be off by is used (%s), %.2g of how many halves may be "
            "rounded otherwise (%s)%s%s",
            m->sides->mode, name, how->name, report.n_outputs, report.n_calls, report.off.value,
            report.off.name, report.other.value, report.other.name,
            report.n_bad > 0 ? "; the first that is beyond: " : "", report.first);
        tap_report(report.n_planted > 100 && report.n_missed == 0,
                   "%s %s, %s: %d faults planted in these are noticed, %d are not (%s)",
                   m->sides->mode, name, how->name, report.n_planted - report.n_missed,
                   report.n_missed, report.n_missed > 0 ? report.missed : "none");
    }
    trial_release(&host);
}

/* All at once, on as many streams as there are. */
static void hold_free(const struct held_model *m, const struct variant *how,
                      const struct trial *stepped)
{
    const char *name = MODELS[m->idx].name;
    const char *mode = m->sides->mode;
    struct err err = {0};
    struct trial got;
    open_like(m, how->is_fused, how->n_streams, &got);
    if (!compute(&got) || m->sides->device.async.check(m->sides->device.self, &err) < 0) {
        tap_report(false, "%s %s, %s: %s", mode, name, how->name, err.msg);
    } else {
        hold_whole(m, how, &got);
        const char *differs = stepped ? trial_step_differs(&got, stepped) : NULL;
        if (stepped != NULL && !m->is_any_order) {
            tap_report(differs == NULL, "%s %s, %s: the same bits as call by call%s%s", mode, name,
                       how->name, differs ? ", but for " : "", differs ? differs : "");
        }
    }
    trial_release(&got);
}

static void hold_variant(const struct held_model *m, const struct variant *how)
{
    struct trial stepped;
    if (!is_amp(m)) {
        hold_free(m, how, NULL);
        return;
    }
    open_like(m, how->is_fused, 1, &stepped);
    hold_rounded(m, how, &stepped);
    if (how->n_streams > 1) {
        hold_free(m, how, &stepped);
    } else {
        hold_whole(m, how, &stepped);
    }
    trial_release(&stepped);
}

/* What is fused but for sums by channel, and what needs them. */
static void drop_sums(struct fuse_list *list)
{
    for (int i = 0; i < list->n_choices; i++) {
        enum fuse_pattern pattern = list->choices[i].pattern;
        list->choices[i].is_fused &=
            pattern != FUSE_CONV_STATS && pattern != FUSE_NORM_CONV && pattern != FUSE_CONV_BN_BWD;
    }
}

/* On one stream and on four: the same bits. */
static void hold_repeated(struct held_model *m)
{
    struct trial stepped;
    struct err err = {0};
    drop_sums(m->fusions);
    m->is_any_order = false;
    open_like(m, true, 1, &stepped);
    if (!compute(&stepped) || m->sides->device.async.check(m->sides->device.self, &err) < 0) {
        tap_report(false, "%s %s: %s", m->sides->mode, MODELS[m->idx].name, err.msg);
    } else {
        hold_free(m, &REPEATED, &stepped);
    }
    trial_release(&stepped);
}

static void open_host(const struct held_model *m, struct graph_types types, struct trial *trial)
{
    struct held_model host = *m;
    host.opts.backend = &m->sides->host;
    host.opts.types = types;
    host.opts.loss_scale = 0.0F;
    open_like(&host, false, 1, trial);
    if (!compute(trial)) {
        tap_bail("%s on the CPU", MODELS[m->idx].name);
    }
}

static void hold_model(struct sides *s, int idx, bool is_brief)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct err err = {0};
    struct fuse_list fusions;
    struct held_model m = {.sides = s,
                           .idx = idx,
                           .fusions = &fusions,
                           .is_any_order = getenv("REPERF_TEST_ANY_ORDER") != NULL,
                           .opts = {.model = model_find(MODELS[idx].name),
                                    .size = MODELS[idx].size,
                                    .backend = &s->device,
                                    .types = s->types}};
    m.opts.loss_scale = is_amp(&m) ? (float)AMP_GRAD_SCALE : 0.0F;
    if (nets_fusions(&m.opts, &arena, &fusions, &err) < 0) {
        tap_bail("%s", err.msg);
    }
    trial_must_open(&m.first, &m.opts);
    trial_fill(&m.first, 7);
    open_host(&m, (struct graph_types){DT_F64, DT_F64, DT_F64}, &m.want);
    if (!is_amp(&m)) {
        open_host(&m, (struct graph_types){DT_F32, DT_F32, DT_F64}, &m.yardstick);
    }
    for (int i = 0; i < N_VARIANTS; i++) {
        if (!is_brief || VARIANTS[i].is_fused) {
            hold_variant(&m, &VARIANTS[i]);
        }
    }
    if (m.is_any_order && is_amp(&m)) {
        hold_repeated(&m);
    }
    trial_release(&m.first);
    trial_release(&m.want);
    if (!is_amp(&m)) {
        trial_release(&m.yardstick);
    }
}

static bool is_daily(void)
{
#ifdef CUDA_EMU
    const char *tier = getenv("TIER");
    return tier == NULL || strcmp(tier, "all") != 0;
#else
    return false;
#endif
}

/* ASan slows whole networks down too much to test them all; each kernel is tested by test_device. */
static void hold_if_wanted(struct sides *s, int idx, const char *only)
{
    const char *name = MODELS[idx].name;
    bool is_less = only == NULL && is_daily() && MODELS[idx].how_much != DAILY;
#ifdef __SANITIZE_ADDRESS__
    only = only != NULL ? only : "hrnet_w18";
#endif
    if (only != NULL && strcmp(only, name) != 0) {
        return;
    }
    bool is_brief = is_less && MODELS[idx].how_much == DAILY_FUSED_AMP && s->types.dtype == DT_F16;
    if (is_less) {
        (void)printf("# test-all: %s %s on the device%s\n", s->mode, name,
                     is_brief ? ", as it is" : "");
    }
    if (!is_less || is_brief) {
        hold_model(s, idx, is_brief);
    }
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
        sides_open(&s, is_amp != 0, true);
        for (int i = 0; i < (int)ARRAY_LEN(MODELS); i++) {
            hold_if_wanted(&s, i, only);
        }
        sides_close(&s);
    }
    return tap_end();
}
