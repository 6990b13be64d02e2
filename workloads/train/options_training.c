/* SPDX-License-Identifier: Apache-2.0 */
/* The options of recipe, optimiser and schedule. The recipe's values apply unless an option is given; an option without meaning for
   the chosen optimiser or schedule is refused. */
#include "base/base.h"

#include "train/options_parse.h"

#include "base/str.h"
#include "base/strbuf.h"

#include <math.h>

#define NAMES_MAX 256

static bool is_set(double value)
{
    return !isnan(value);
}

static int choose_recipe(struct raw *raw, struct err *err)
{
    CLEANUP(strbuf) struct strbuf known;
    const char *model = raw->opts.model->name;
    strbuf_init(&known, NAMES_MAX);
    for (int i = 0; recipe_of(model, i); i++) {
        const struct recipe *recipe = recipe_of(model, i);
        if (!raw->recipe || strcmp(recipe->name, raw->recipe) == 0) {
            raw->opts.recipe = recipe;
            return 0;
        }
        strbuf_printf(&known, "%s%s", i > 0 ? ", " : "", recipe->name);
    }
    return err_set(err, ERR_USAGE, "--recipe %s: %s has no such recipe; it has %.*s", raw->recipe,
                   model, (int)known.len, known.ptr);
}

/* ---- the optimiser ---- */

/* A number given by an option, in its range, or else the recipe's. */
struct knob {
    const char *option;
    double given;
    double *value;
    bool is_used; /* by the chosen optimiser or schedule */
    double least; /* itself allowed */
    double most;  /* not allowed; 0: there is none */
};

static int turn_knobs(const struct knob *knobs, size_t n_knobs, const char *of, struct err *err)
{
    for (size_t i = 0; i < n_knobs; i++) {
        const struct knob *knob = &knobs[i];
        if (!is_set(knob->given)) {
            continue;
        }
        if (!knob->is_used) {
            return err_set(err, ERR_USAGE, "--%s means nothing to %s", knob->option, of);
        }
        if (knob->given < knob->least || (knob->most > 0.0 && knob->given >= knob->most)) {
            return knob->most > 0.0 ? err_set(err, ERR_USAGE, "--%s %g: expected %g to below %g",
                                              knob->option, knob->given, knob->least, knob->most)
                                    : err_set(err, ERR_USAGE, "--%s %g: expected %g or more",
                                              knob->option, knob->given, knob->least);
        }
        *knob->value = knob->given;
    }
    return 0;
}

/* The recipe's rule is for one optimiser; another one starts from its paper's numbers. */
static void start_rule(struct opt_rule *rule, enum opt_method method)
{
    if (rule->method == method) {
        return;
    }
    rule->method = method;
    rule->momentum = method == OPT_SGD ? 0.9 : 0.0;
    rule->beta1 = method == OPT_SGD ? 0.0 : 0.9;
    rule->beta2 = method == OPT_SGD ? 0.0 : 0.999;
    rule->eps = method == OPT_SGD ? 0.0 : 1e-8;
}

static int choose_decay(struct raw *raw, struct err *err)
{
    raw->opts.decay = raw->opts.recipe->decay;
    if (!raw->decay) {
        return 0;
    }
    if (strcmp(raw->decay, "all") != 0 && strcmp(raw->decay, "matrices") != 0) {
        return err_set(err, ERR_USAGE, "--decay %s: expected all or matrices", raw->decay);
    }
    raw->opts.decay = strcmp(raw->decay, "all") == 0 ? NET_DECAY_ALL : NET_DECAY_MATRICES;
    return 0;
}

static int choose_optimizer(struct raw *raw, struct err *err)
{
    struct opt_rule *rule = &raw->opts.rule;
    enum opt_method method = raw->opts.recipe->rule.method;
    *rule = raw->opts.recipe->rule;
    if (raw->optimizer && !opt_method_find(raw->optimizer, &method)) {
        return err_set(err, ERR_USAGE, "--optimizer %s: expected sgd or adamw", raw->optimizer);
    }
    start_rule(rule, method);
    bool is_sgd = method == OPT_SGD;
    const struct knob knobs[] = {
        {"momentum", raw->momentum, &rule->momentum, is_sgd, 0, 1},
        {"beta1", raw->beta1, &rule->beta1, !is_sgd, 0, 1},
        {"beta2", raw->beta2, &rule->beta2, !is_sgd, 0, 1},
        {"eps", raw->eps, &rule->eps, !is_sgd, 0, 0},
        {"weight-decay", raw->weight_decay, &rule->weight_decay, true, 0, 0},
    };
    rule->n_micro = raw->accumulate;
    return turn_knobs(knobs, ARRAY_LEN(knobs), opt_method_name(method), err) < 0
               ? -1
               : choose_decay(raw, err);
}

/* Only half precision is scaled. */
static int choose_loss_scale(struct raw *raw, struct err *err)
{
    struct opt_rule *rule = &raw->opts.rule;
    if (raw->opts.dtype != DT_F16) {
        rule->scaling = OPT_SCALE_NONE;
        rule->loss_scale = 1.0F;
        rule->scale_window = 0;
        return raw->loss_scale || raw->loss_scale_window != UNSET
                   ? err_set(err, ERR_USAGE,
                             "--loss-scale and --loss-scale-window go with --precision amp only")
                   : 0;
    }
    if (raw->loss_scale && strcmp(raw->loss_scale, "dynamic") != 0) {
        double value = 0.0;
        int n = 0;
        if (parse_numbers("loss-scale", raw->loss_scale, 1, &value, &n, err) < 0) {
            return -1;
        }
        if (n != 1 || value < (double)OPT_SCALE_MIN || value > (double)OPT_SCALE_MAX) {
            return err_set(err, ERR_USAGE, "--loss-scale %s: expected dynamic, or %g to %g",
                           raw->loss_scale, (double)OPT_SCALE_MIN, (double)OPT_SCALE_MAX);
        }
        rule->scaling = OPT_SCALE_STATIC;
        rule->loss_scale = (float)value;
    } else if (raw->loss_scale && rule->scaling != OPT_SCALE_DYNAMIC) {
        rule->scaling = OPT_SCALE_DYNAMIC;
        rule->loss_scale = OPT_SCALE_START;
        rule->scale_window = OPT_SCALE_WINDOW;
    }
    if (raw->loss_scale_window != UNSET) {
        rule->scale_window = raw->loss_scale_window;
    }
    return 0;
}

/* ---- the schedule ---- */

static int choose_drops(struct raw *raw, struct schedule *schedule, struct err *err)
{
    double drops[SCHEDULE_DROPS_MAX];
    if (!raw->lr_drops) {
        return 0;
    }
    if (schedule->kind != SCHEDULE_PIECEWISE) {
        return err_set(err, ERR_USAGE, "--lr-drops means nothing to schedule %s",
                       schedule_name(schedule->kind));
    }
    if (parse_numbers("lr-drops", raw->lr_drops, SCHEDULE_DROPS_MAX, drops, &schedule->n_drops,
                      err) < 0) {
        return -1;
    }
    if (schedule->n_drops > SCHEDULE_DROPS_MAX) {
        return err_set(err, ERR_USAGE, "--lr-drops: expected %d at most", SCHEDULE_DROPS_MAX);
    }
    for (int i = 0; i < schedule->n_drops; i++) {
        double before = i == 0 ? 0.0 : drops[i - 1];
        if (drops[i] <= before || drops[i] != floor(drops[i]) || drops[i] > 1e12) {
            return err_set(err, ERR_USAGE, "--lr-drops %s: expected rising numbers of steps",
                           raw->lr_drops);
        }
        schedule->drops[i] = (int64_t)drops[i];
    }
    return 0;
}

/* Another schedule than the recipe's starts from plain numbers. */
static int start_schedule(struct raw *raw, struct err *err)
{
    struct schedule *schedule = &raw->opts.schedule;
    enum schedule_kind kind = schedule->kind;
    if (raw->schedule && !schedule_find(raw->schedule, &kind)) {
        return err_set(err, ERR_USAGE,
                       "--schedule %s: expected constant, poly, linear, cosine or piecewise",
                       raw->schedule);
    }
    if (kind == schedule->kind) {
        return 0;
    }
    if (kind == SCHEDULE_PIECEWISE && !raw->lr_drops) {
        return err_set(err, ERR_USAGE, "--schedule piecewise needs --lr-drops");
    }
    schedule->kind = kind;
    schedule->end = 0.0;
    schedule->power = kind == SCHEDULE_POLY ? 0.9 : 0.0;
    schedule->factor = kind == SCHEDULE_PIECEWISE ? 0.1 : 0.0;
    schedule->n_drops = 0;
    return 0;
}

static int choose_schedule(struct raw *raw, struct err *err)
{
    struct train_opts *opts = &raw->opts;
    struct schedule *schedule = &opts->schedule;
    *schedule = recipe_schedule(opts->recipe, samples_per_step(opts));
    if (opts->mode == TRAIN_CHECK) {
        *schedule = (struct schedule){.kind = SCHEDULE_CONSTANT}; /* no schedule was chosen */
    }
    if (start_schedule(raw, err) < 0) {
        return -1;
    }
    enum schedule_kind kind = schedule->kind;
    bool is_falling = kind == SCHEDULE_POLY || kind == SCHEDULE_LINEAR || kind == SCHEDULE_COSINE;
    const struct knob knobs[] = {
        {"lr", raw->lr, &schedule->lr, true, 0, 0},
        {"lr-end", raw->lr_end, &schedule->end, is_falling, 0, 0},
        {"lr-power", raw->lr_power, &schedule->power, kind == SCHEDULE_POLY, 0, 0},
        {"lr-factor", raw->lr_factor, &schedule->factor, kind == SCHEDULE_PIECEWISE, 0, 0},
        {"warmup-lr-start", raw->warmup_lr_start, &schedule->warmup_start, true, 0, 0},
    };
    char of[32];
    snprintf(of, sizeof(of), "schedule %s", schedule_name(kind));
    if (turn_knobs(knobs, ARRAY_LEN(knobs), of, err) < 0 || choose_drops(raw, schedule, err) < 0) {
        return -1;
    }
    if (!is_falling && (raw->schedule_steps != UNSET || raw->covers_warmup)) {
        return err_set(err, ERR_USAGE,
                       "--schedule-steps and --schedule-covers-warmup mean nothing to %s", of);
    }
    schedule->covers_warmup = is_falling && (schedule->covers_warmup || raw->covers_warmup);
    opts->has_schedule_steps = raw->schedule_steps != UNSET || schedule->steps > 0;
    schedule->steps = raw->schedule_steps != UNSET ? raw->schedule_steps : schedule->steps;
    schedule->warmup_steps =
        raw->warmup_lr_steps != UNSET ? raw->warmup_lr_steps : schedule->warmup_steps;
    fit_schedule(opts);
    return 0;
}

void fit_schedule(struct train_opts *opts)
{
    if (!opts->has_schedule_steps) {
        opts->schedule.steps = opts->start_step + opts->steps;
    }
}

int choose_training(struct raw *raw, struct err *err)
{
    struct train_opts *opts = &raw->opts;
    if (choose_recipe(raw, err) < 0 || choose_optimizer(raw, err) < 0 ||
        choose_loss_scale(raw, err) < 0 || choose_schedule(raw, err) < 0) {
        return -1;
    }
    opts->label_smoothing = opts->recipe->label_smoothing;
    const struct knob knob = {
        "label-smoothing", raw->label_smoothing, &opts->label_smoothing, true, 0, 1};
    return turn_knobs(&knob, 1, "it", err);
}
