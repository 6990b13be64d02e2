/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of training on the CUDA backend: losses against the CPU's, a recorded step against the same call by call bit for bit, and a
   stop in between that leaves no trace. FP32 and AMP, as the model has it and with everything fused on four streams. On a GPU, or
   on the emulator. Prints TAP; an argument is the name of the only model to test. */
#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/nets.h"
#include "tests/cuda/sides.h"
#include "tests/cuda/tap.h"

#define STEPS_MAX 10
#define SEED      11
static int n_steps = STEPS_MAX; /* the third is the first to be replayed */
static int stops_at = 5;

static const struct opt_rule SGD = {
    .method = OPT_SGD, .momentum = 0.9, .weight_decay = 1e-4, .loss_scale = 1.0F, .n_micro = 1};
static const struct opt_rule ADAMW = {.method = OPT_ADAMW,
                                      .beta1 = 0.9,
                                      .beta2 = 0.999,
                                      .eps = 1e-6,
                                      .weight_decay = 0.01,
                                      .loss_scale = 1.0F,
                                      .n_micro = 1};

static const struct row {
    const char *model;
    struct model_opts size;
    const struct opt_rule *rule;
    double lr;
    double allowed[2]; /* what a loss may be off by, of itself: FP32, AMP */
    bool is_slow;      /* on the emulator, left to TIER=all where all are tested */
    bool has_tails;    /* words that are rounded up */
} ROWS[] = {
    {"bert_nano",
     {.batch = 2, .sequence = 8, .predictions = 2, .has_dropout = true},
     &ADAMW,
     1e-4,
     {1e-4, 1e-2},
     false,
     true},
    {"resnet50", {.batch = 4, .height = 64, .width = 64}, &SGD, 3e-5, {1e-4, 1e-2}, true, false},
    {"hrnet_w18", {.batch = 2, .height = 64, .width = 64}, &SGD, 1e-2, {1e-4, 5e-4}, true, false},
    {"deeplabv3p", {.batch = 4, .height = 33, .width = 33}, &SGD, 1e-3, {1e-4, 1e-2}, true, false},
};

/* A falling rate: a recorded step that kept the first one would show. */
static double rate_of(const struct row *row, int step)
{
    return row->lr * (1.0 - 0.05 * (double)step);
}

/* Steps from `from` to below `to`; losses[step], and false at the first that fails. */
static bool play(struct net_player *player, const struct row *row, int from, int to, double *losses)
{
    struct err err = {0};
    for (int step = from; step < to; step++) {
        struct net_report report;
        bool is_stopped = false;
        int64_t ns = 0;
        if (net_player_micro(player, rate_of(row, step), NULL, &is_stopped, &err) < 0) {
            (void)printf("# step %d: %s\n", step, err.msg);
            return false;
        }
        net_mark(player->net, 0);
        if (net_collect(player->net, 0, 0, &report, &ns, &err) < 0) {
            (void)printf("# step %d: %s\n", step, err.msg);
            return false;
        }
        losses[step] = report.loss;
    }
    return true;
}

/* --- losses ------------------------------------------------------------------------------------- */
static void host_losses(struct trial *trial, const struct row *row, double losses[STEPS_MAX])
{
    for (int step = 0; step < n_steps; step++) {
        if (net_gradients(&trial->net, NULL)) {
            tap_bail("the CPU was stopped");
        }
        losses[step] = net_loss(&trial->net);
        net_update(&trial->net, rate_of(row, step));
    }
}

static double furthest(const double *losses, const double *want)
{
    double worst = 0.0;
    for (int i = 0; i < n_steps; i++) {
        double off = fabs(losses[i] - want[i]) / fabs(want[i]);
        worst = off <= worst ? worst : off; /* not a number is the worst */
    }
    return worst;
}

/* Rounding grows from step to step, and fastest where losses rise: at the rate of its row a network learns. A step that is left
   out, done twice or done with another rate moves the last loss by more than its share of what all steps moved it by: that is
   checked here, with an allowance for rounding. */
static void hold_losses(const struct sides *s, const struct row *row, const char *how,
                        const double *losses, const double *want)
{
    double allowed = row->allowed[s->types.dtype == DT_F16];
    double worst = furthest(losses, want);
    double moved = fabs(want[n_steps - 1] - want[0]) / fabs(want[0]);
    tap_report(worst <= allowed && moved > 2.0 * allowed,
               "%s %s, %s: %d losses from %.6g to %.6g are off by %.2g at most, allowed %.2g",
               s->mode, row->model, how, n_steps, want[0], want[n_steps - 1], worst, allowed);
}

/* --- a recorded step, and a stop ---------------------------------------------------------------------- */
static bool same_losses(const double *a, const double *b)
{
    return memcmp(a, b, (size_t)n_steps * sizeof(*a)) == 0;
}

/* The padding of BERT's words in the table, its bias and the optimiser's state of both is 0 after all steps, is not part of what is
   read out, whatever it is, and is 0 in what was written. */
static void hold_tails(const struct sides *s, const struct row *row, const char *how,
                       struct trial *played, struct trial *again, const struct trial *eager)
{
    int n = 0;
    int n_again = 0;
    const char *first = trial_tails(played, &n);
    tap_report(first == NULL && n > 0,
               "%s %s, %s: after all steps %d rounded tensors end in zeros%s%s", s->mode,
               row->model, how, n, first != NULL ? ", but not " : "", first != NULL ? first : "");
    trial_poison_tails(played);
    trial_poison_tails(again);
    tap_report(trial_tails(played, &n) != NULL, "%s %s, %s: what is not zero there is noticed",
               s->mode, row->model, how);
    first = trial_differs(played, eager);
    tap_report(first == NULL, "%s %s, %s: NaN there is not read out%s%s", s->mode, row->model, how,
               first != NULL ? ", but in " : "", first != NULL ? first : "");
    trial_restore(again, played);
    first = trial_tails(again, &n_again);
    tap_report(first == NULL && n_again > 0 && trial_differs(again, eager) == NULL,
               "%s %s, %s: nor put into another network", s->mode, row->model, how);
}

/* `eager` has made all steps call by call, `start` is its beginning. */
static void hold_replay(const struct sides *s, const struct row *row, const struct nets_opts *opts,
                        const struct trial *start, struct trial *eager, const double *losses)
{
    struct trial played;
    struct trial again;
    struct net_player player;
    struct net_player other;
    double got[STEPS_MAX];
    double after[STEPS_MAX];
    trial_must_open(&played, opts);
    trial_must_open(&again, opts);
    trial_restore(&played, start);
    net_player_init(&player, &played.net, true);
    bool is_done = play(&player, row, 0, stops_at, got);
    memcpy(after, got, sizeof(after));
    trial_fill(&again, SEED + 1);
    trial_restore(&again, &played);
    net_player_init(&other, &again.net, false); /* a device has one program of a kind */
    is_done = is_done && play(&player, row, stops_at, n_steps, got) &&
              play(&other, row, stops_at, n_steps, after);
    const char *how = opts->fuse != NULL ? "fused, 4 streams" : "as it is";
    const char *differs = is_done ? trial_differs(&played, eager) : "the run";
    tap_report(is_done && player.has_program[NET_WHOLE] && same_losses(got, losses) &&
                   differs == NULL,
               "%s %s, %s: a recorded step is the same bit for bit as call by call%s%s", s->mode,
               row->model, how, differs != NULL ? ": not " : "", differs != NULL ? differs : "");
    differs = is_done ? trial_differs(&again, eager) : "the run";
    tap_report(is_done && same_losses(after, losses) && differs == NULL,
               "%s %s, %s: read out, put into another network, gone on with: bit for bit%s%s",
               s->mode, row->model, how, differs != NULL ? ": not " : "",
               differs != NULL ? differs : "");
    if (is_done && row->has_tails && opts->fuse == NULL) {
        hold_tails(s, row, how, &played, &again, eager);
        trial_restore(&played, &again); /* without NaN */
    }
    if (is_done && play(&player, row, 0, 1, got)) {
        tap_report(trial_differs(&played, eager) != NULL, "%s %s, %s: a step too many is noticed",
                   s->mode, row->model, how);
    }
    trial_release(&played);
    trial_release(&again);
}

/* --- one model ------------------------------------------------------------------------------------------ */
static void hold_variant(struct sides *s, const struct row *row, const struct nets_opts *opts,
                         const struct trial *start, const double *want)
{
    struct trial eager;
    struct net_player player;
    double losses[STEPS_MAX];
    trial_must_open(&eager, opts);
    trial_restore(&eager, start);
    net_player_init(&player, &eager.net, false);
    if (play(&player, row, 0, n_steps, losses)) {
        hold_losses(s, row, opts->fuse != NULL ? "fused, 4 streams" : "as it is", losses, want);
        hold_replay(s, row, opts, start, &eager, losses);
    } else {
        tap_report(false, "%s %s: its steps", s->mode, row->model);
    }
    trial_release(&eager);
}

static void hold_model(bool is_amp, const struct row *row)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct err err = {0};
    struct fuse_list fusions;
    struct opt_rule rule = *row->rule;
    struct sides s;
    struct sides other;
    struct trial host;
    struct trial start;
    double want[STEPS_MAX];
    sides_open(&s, is_amp, false);
    sides_open(&other, is_amp, false);
    struct nets_opts opts = {.model = model_find(row->model),
                             .size = row->size,
                             .backend = &s.host,
                             .types = {DT_F64, DT_F64, DT_F64},
                             .rule = &rule};
    trial_must_open(&host, &opts);
    if (is_amp) {
        rule.scaling = OPT_SCALE_DYNAMIC;
        rule.loss_scale = 128.0F;
        rule.scale_window = 4; /* it grows within the run */
    }
    opts.backend = &s.device;
    opts.types = s.types;
    trial_must_open(&start, &opts);
    trial_fill(&start, SEED);
    trial_copy(&host, &start);
    host_losses(&host, row, want);
    hold_variant(&s, row, &opts, &start, want);
    opts.backend = &other.device;
    if (nets_fusions(&opts, &arena, &fusions, &err) < 0) {
        tap_bail("%s", err.msg);
    }
    opts.fuse = &fusions;
    opts.n_streams = 4;
    hold_variant(&other, row, &opts, &start, want);
    trial_release(&start);
    trial_release(&host);
    sides_close(&s);
    sides_close(&other);
}

#ifdef CUDA_EMU
static bool is_all(void)
{
    const char *tier = getenv("TIER");
    return tier != NULL && strcmp(tier, "all") == 0;
}
#endif

static bool is_wanted(const char *only, const struct row *row)
{
#ifdef CUDA_EMU
    if (only == NULL && row->is_slow && !is_all()) {
        (void)printf("# test-all: steps of %s\n", row->model);
        return false;
    }
#endif
    return only == NULL || strcmp(only, row->model) == 0;
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    int first_mode = 0;
#ifdef CUDA_EMU
    if (!is_all()) {
        n_steps = 5;
        stops_at = 3;
        first_mode = 1; /* AMP has all that FP32 has, and the loss scale */
        (void)printf("# test-all: FP32, and %d steps, not %d\n", STEPS_MAX, n_steps);
    }
#endif
    for (int is_amp = first_mode; is_amp < 2; is_amp++) {
        for (int i = 0; i < (int)ARRAY_LEN(ROWS); i++) {
            if (is_wanted(only, &ROWS[i])) {
                hold_model(is_amp != 0, &ROWS[i]);
            }
        }
    }
    return tap_end();
}
