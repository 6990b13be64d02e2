/* SPDX-License-Identifier: Apache-2.0 */
/* The options of evaluation, and of the target at which a run ends. */
#include "base/base.h"

#include "train/options_parse.h"

#include <math.h>

static int check_eval_data(const struct raw *raw, struct err *err)
{
    const struct train_opts *opts = &raw->opts;
    if (opts->eval_path && !opts->data_path) {
        return err_set(err, ERR_USAGE,
                       "--eval-data goes with --data FOLDER only: data made here is evaluated on "
                       "the batches of another seed");
    }
    if (!opts->eval_path && opts->data_path) {
        return err_set(
            err, ERR_USAGE,
            "--eval-every with --data FOLDER needs --eval-data FOLDER, a held-out split");
    }
    return 0;
}

static int choose_target(struct raw *raw, struct err *err)
{
    struct train_opts *opts = &raw->opts;
    opts->has_target = !isnan(raw->until);
    if (!opts->has_target) {
        return 0;
    }
    if (!(raw->until > 0.0 && raw->until <= 1.0)) {
        return err_set(err, ERR_USAGE, "--until %g: expected above 0, at most 1", raw->until);
    }
    if (opts->eval_every <= opts->warmup_steps) {
        return err_set(err, ERR_USAGE,
                       "--until with --eval-every %" PRId64
                       ": the run could end within its --warmup of %" PRId64 " steps",
                       opts->eval_every, opts->warmup_steps);
    }
    opts->target = raw->until;
    return 0;
}

static int choose_eval_size(struct raw *raw, struct err *err)
{
    struct train_opts *opts = &raw->opts;
    opts->eval_size = opts->size;
    if (raw->eval_image && opts->model->kind == MODEL_TOKENS) {
        return err_set(err, ERR_USAGE, "--eval-image: %s reads tokens and no images",
                       opts->model->name);
    }
    return raw->eval_image
               ? parse_image("eval-image", raw->eval_image, opts->model, &opts->eval_size, err)
               : 0;
}

int choose_eval(struct raw *raw, struct err *err)
{
    struct train_opts *opts = &raw->opts;
    bool has_any = opts->eval_every > 0 || opts->eval_path || raw->eval_image || !isnan(raw->until);
    bool is_on_cpu = strcmp(opts->device, "cpu") == 0;
    if (opts->is_inference && (opts->mode != TRAIN_CHECK || opts->steps > 0)) {
        return err_set(err, ERR_USAGE, "--inference goes with --check without --steps only");
    }
    if ((opts->is_inference || has_any) && !is_on_cpu) {
        return err_set(err, ERR_USAGE,
                       "%s: --device %s has no forward pass by running statistics yet, --device "
                       "cpu has",
                       opts->is_inference ? "--inference" : "--eval-every", opts->device);
    }
    if (!has_any) {
        return 0;
    }
    bool is_trained = opts->mode == TRAIN_RUN || opts->mode == TRAIN_DESCRIBE;
    if (!is_trained || opts->eval_every == 0) {
        return err_set(err, ERR_USAGE,
                       "--eval-every, --eval-data, --eval-image and --until go with training and "
                       "--describe, and the last three with the first");
    }
    if (opts->turn_steps > 0) {
        return err_set(err, ERR_USAGE,
                       "--turn does not go with --eval-every: waiting is no time to train");
    }
    return check_eval_data(raw, err) < 0 || choose_target(raw, err) < 0
               ? -1
               : choose_eval_size(raw, err);
}
