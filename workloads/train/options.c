/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/options_parse.h"

#include "base/opt.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "data/reader.h"

#include <math.h>

#define BATCH_MAX      65536
#define IMAGE_MAX      65536
#define SEQUENCE_MAX   65536 /* a model has its own limit */
#define STEPS_MAX      INT64_C(1000000000000)
#define BATCH_START    32
#define STEPS_START    20
#define WORKERS_START  4 /* as the reports' loaders have */
#define STD_MIN        1e-6
#define STD_MAX        1e6
#define MODEL_LIST_MAX 256
#define TIMEOUT_MAX    86400
#define ACCUMULATE_MAX 65536

#define AT(member) offsetof(struct raw, member)

#ifdef REPERF_HAVE_CUDA
#define DEVICE_HELP "cpu or cuda (cpu)"
#else
#define DEVICE_HELP "cpu (this build has no cuda)"
#endif

static const struct opt ROWS[] = {
    {"model", 0, OPT_TEXT, "NAME",
     "resnet50, hrnet_w18, deeplabv3p, deeplabv3p_mmseg, bert_base, bert_tiny, bert_nano",
     AT(model), 0, 0},
    {"device", 0, OPT_TEXT, "NAME", DEVICE_HELP, AT(device), 0, 0},
    {"backend", 0, OPT_TEXT, "NAME", "plain or onednn; default: onednn for f32 if built in",
     AT(backend), 0, 0},
    {"precision", 0, OPT_TEXT, "NAME", "fp32, or amp with --device cuda (fp64 with --dtype f64)",
     AT(precision), 0, 0},
    {"tf32", 0, OPT_FLAG, NULL, "cuda, fp32: matrix products with 10 bits of fraction",
     AT(opts.has_tf32), 0, 0},
    {"no-fuse", 0, OPT_FLAG, NULL, "cuda: every operation separately, no fused kernels",
     AT(has_no_fuse), 0, 0},
    {"streams", 0, OPT_I64, "N", "cuda: independent operations run concurrently (4)",
     AT(opts.n_streams), 1, NET_STREAMS_MAX},
    {"no-graph", 0, OPT_FLAG, NULL, "cuda: launch every kernel by itself in every step",
     AT(has_no_graph), 0, 0},
    {"no-tune", 0, OPT_FLAG, NULL, "cuda: take the libraries' first choices, time nothing",
     AT(has_no_tune), 0, 0},
    {"tune-seconds", 0, OPT_I64, "N",
     "cuda: time for that; later choices are the libraries' first (300)", AT(opts.tune_limit_s), 0,
     TIMEOUT_MAX},
    {"compile-plans", 0, OPT_FLAG, NULL,
     "cuda: also try cuDNN's engines that are compiled on request, 0.2 to 1.5 s each",
     AT(opts.allows_compiled), 0, 0},
    {"nondeterministic", 0, OPT_FLAG, NULL,
     "cuda: also fused convolutions, whose sums differ in their last bits from run to run",
     AT(opts.allows_nondeterministic), 0, 0},
    {"plan-cache", 0, OPT_TEXT, "FOLDER",
     "cuda: where choices made by timing are kept, or none ($XDG_CACHE_HOME/reperf/plans)",
     AT(plan_cache), 0, 0},
    {"ahead", 0, OPT_I64, "N",
     "cuda: batches given to the device before the first one's loss is looked at (2)",
     AT(opts.ahead), 0, AHEAD_MAX},
    {"dtype", 0, OPT_TEXT, "NAME", "f32 or f64", AT(dtype), 0, 0},
    {"batch", 0, OPT_I64, "N", "samples a step (32)", AT(opts.batch), 1, BATCH_MAX},
    {"image", 0, OPT_TEXT, "N|HxW", "height and width (the model's own)", AT(image), 0, 0},
    {"sequence", 0, OPT_I64, "N", "tokens a sample, of models that read tokens (128)",
     AT(opts.size.sequence), 1, SEQUENCE_MAX},
    {"predictions", 0, OPT_I64, "N", "of them that are predicted, at most (20, or --sequence)",
     AT(opts.size.predictions), 1, SEQUENCE_MAX},
    {"data", 0, OPT_TEXT, "NAME",
     "synthetic: one batch repeated; synthetic-fresh: a new one each step; synthetic-learnable: "
     "the same, with images whose pixels encode their labels; or a folder made by reperf-pack",
     AT(data), 0, 0},
    {"data-seed", 0, OPT_I64, "N", "of a folder's order and crops (that of --seed)",
     AT(opts.data_seed), 0, INT64_C(1) << 53},
    {"start-step", 0, OPT_I64, "N", "resume a folder's data after N steps (0)", AT(opts.start_step),
     0, STEPS_MAX},
    {"workers", 0, OPT_I64, "N", "threads that read a folder (4)", AT(opts.n_workers), 1,
     READER_WORKERS_MAX},
    {"mean", 0, OPT_TEXT, "R,G,B", "taken from pixels of a folder in [0, 1] (ImageNet's, or 0.5)",
     AT(mean), 0, 0},
    {"std", 0, OPT_TEXT, "R,G,B", "that they are then divided by (ImageNet's, or 0.5)", AT(std), 0,
     0},
    {"steps", 0, OPT_I64, "N", "training steps (20; of --check: none)", AT(opts.steps), 1,
     STEPS_MAX},
    {"warmup", 0, OPT_I64, "N", "first steps left out of the run's rate (0)", AT(opts.warmup_steps),
     0, STEPS_MAX},
    {"turn", 0, OPT_I64, "N", "wait for a line of standard input before every N steps (0: do not)",
     AT(opts.turn_steps), 0, STEPS_MAX},
    {"recipe", 0, OPT_TEXT, "NAME",
     "a report's training settings, which the options below replace one by one (the model's first; "
     "resnet50: paddle, dlperf; bert: paddle, nvidia)",
     AT(recipe), 0, 0},
    {"optimizer", 0, OPT_TEXT, "NAME", "sgd (with momentum) or adamw", AT(optimizer), 0, 0},
    {"lr", 0, OPT_F64, "X", "learning rate, after the warm-up and before it falls", AT(lr), 0, 0},
    {"momentum", 0, OPT_F64, "X", "sgd: of the velocity", AT(momentum), 0, 0},
    {"beta1", 0, OPT_F64, "X", "adamw: of the mean gradient", AT(beta1), 0, 0},
    {"beta2", 0, OPT_F64, "X", "adamw: of the mean square", AT(beta2), 0, 0},
    {"eps", 0, OPT_F64, "X", "adamw: added to the root of the mean square", AT(eps), 0, 0},
    {"weight-decay", 0, OPT_F64, "X", "sgd: L2; adamw: decoupled", AT(weight_decay), 0, 0},
    {"decay", 0, OPT_TEXT, "WHAT", "decays: all, or matrices (no biases and norms)", AT(decay), 0,
     0},
    {"schedule", 0, OPT_TEXT, "NAME", "constant, poly, linear, cosine or piecewise", AT(schedule),
     0, 0},
    {"schedule-steps", 0, OPT_I64, "N", "poly, linear, cosine: until the end (--steps)",
     AT(schedule_steps), 1, STEPS_MAX},
    {"lr-end", 0, OPT_F64, "X", "poly, linear, cosine: the rate at the end", AT(lr_end), 0, 0},
    {"lr-power", 0, OPT_F64, "X", "poly: the power", AT(lr_power), 0, 0},
    {"lr-drops", 0, OPT_TEXT, "N,N,...", "piecewise: the steps after which it drops", AT(lr_drops),
     0, 0},
    {"lr-factor", 0, OPT_F64, "X", "piecewise: times this", AT(lr_factor), 0, 0},
    {"warmup-lr-steps", 0, OPT_I64, "N", "steps of linear warm-up in front", AT(warmup_lr_steps), 0,
     STEPS_MAX},
    {"warmup-lr-start", 0, OPT_F64, "X", "the rate it starts from", AT(warmup_lr_start), 0, 0},
    {"schedule-covers-warmup", 0, OPT_FLAG, NULL,
     "poly, linear, cosine: counted from the first step", AT(covers_warmup), 0, 0},
    {"accumulate", 0, OPT_I64, "K", "batches of one step, whose gradients are averaged (1)",
     AT(accumulate), 1, ACCUMULATE_MAX},
    {"loss-scale", 0, OPT_TEXT, "X|dynamic", "amp: what losses are multiplied by", AT(loss_scale),
     0, 0},
    {"loss-scale-window", 0, OPT_I64, "N", "dynamic: good steps until it is doubled",
     AT(loss_scale_window), 1, STEPS_MAX},
    {"label-smoothing", 0, OPT_F64, "X", "0 to below 1", AT(label_smoothing), 0, 0},
    {"seed", 0, OPT_I64, "N", "of parameters and data (0)", AT(opts.seed), 0, INT64_C(1) << 53},
    {"threads", 0, OPT_I64, "N", "OpenMP threads; 0: its own default", AT(opts.n_threads), 0,
     CPU_THREADS_MAX},
    {"sync-bn", 0, OPT_FLAG, NULL, "batch norm over the batches of all ranks", AT(opts.has_sync_bn),
     0, 0},
    {"rendezvous-timeout", 0, OPT_I64, "SECONDS", "until all ranks must have joined (60)",
     AT(opts.rendezvous_s), 1, TIMEOUT_MAX},
    {"comm-timeout", 0, OPT_I64, "SECONDS", "of silence until a rank is given up (30)",
     AT(opts.comm_timeout_s), 1, TIMEOUT_MAX},
    {"save", 0, OPT_TEXT, "FILE", "write a checkpoint after the last step", AT(opts.save_path), 0,
     0},
    {"save-every", 0, OPT_I64, "N", "and also after every N steps", AT(opts.save_every), 1,
     STEPS_MAX},
    {"load", 0, OPT_TEXT, "FILE", "continue from a checkpoint, with its next batch",
     AT(opts.load_path), 0, 0},
    {"eval-every", 0, OPT_I64, "N",
     "cpu: evaluate after every N steps and the last, out of their time: top-1, mean IoU, or the "
     "share of masked words",
     AT(opts.eval_every), 1, STEPS_MAX},
    {"eval-data", 0, OPT_TEXT, "FOLDER",
     "a held-out split of --data FOLDER's set (of synthetic data: batches of another seed)",
     AT(opts.eval_path), 0, 0},
    {"eval-image", 0, OPT_TEXT, "N|HxW", "what is cut out of the middle of its images (--image)",
     AT(eval_image), 0, 0},
    {"until", 0, OPT_F64, "TARGET",
     "end with the evaluation that reaches it, status 0; with 8 where --steps are over before",
     AT(until), 0, 0},
    {"data-only", 0, OPT_FLAG, NULL,
     "read a folder's batches, train nothing, print the rate as JSON", AT(is_data_only), 0, 0},
    {"describe", 0, OPT_FLAG, NULL, "print size and cost of the network as JSON and end",
     AT(is_describe), 0, 0},
    {"check", 0, OPT_TEXT, "FILE",
     "one forward and backward, or --steps of training, on the tensors of FILE", AT(check), 0, 0},
    {"out", 0, OPT_TEXT, "FILE",
     "where --check writes logits, loss, gradients, and parameters after --steps", AT(out), 0, 0},
    {"inference", 0, OPT_FLAG, NULL,
     "cpu, --check: forward only, by running statistics; write logits alone", AT(opts.is_inference),
     0, 0},
    {"make-check", 0, OPT_TEXT, "FILE",
     "write the parameters of --seed and a synthetic batch as --check takes them", AT(make_check),
     0, 0},
    {"help", 'h', OPT_FLAG, NULL, "this list", AT(is_help), 0, 0},
    {"version", 0, OPT_FLAG, NULL, "print the version", AT(is_version), 0, 0},
    OPT_END,
};

void train_print_help(FILE *out)
{
    fprintf(out, "usage: reperf-train --model NAME [options]\n"
                 "       reperf-train --model NAME --describe\n"
                 "       reperf-train --model NAME --data FOLDER --data-only\n"
                 "       reperf-train --model NAME --check IN.safetensors --out OUT.safetensors\n"
                 "       reperf-train --model NAME --make-check IN.safetensors\n\n"
                 "Trains a bundled network and prints one JSON object a line (run_start, step,\n"
                 "eval, checkpoint, time_to_train, run_stop, fatal). Options:\n");
    opt_print_help(out, ROWS);
    fprintf(
        out,
        "\nSeveral ranks (one process each, rank 0 prints for all): RANK, WORLD_SIZE, LOCAL_RANK,\n"
        "LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them, or what mpirun\n"
        "(OMPI_COMM_WORLD_*) or srun (SLURM_*) sets, with MASTER_ADDR where it is not the\n"
        "first host of SLURM_JOB_NODELIST, and MASTER_PORT (29500). REPERF_JOB: any text,\n"
        "the same for all ranks of a job, so that two jobs do not mix (it is no secret).\n"
        "REPERF_DIST_IFACE: the network interface that others reach this rank by.\n");
}

/* ---- each choice ---- */

static int refuse_model(const char *name, struct err *err)
{
    CLEANUP(strbuf) struct strbuf known;
    strbuf_init(&known, MODEL_LIST_MAX);
    for (int i = 0; model_at(i); i++) {
        strbuf_printf(&known, "%s%s", i > 0 ? ", " : "", model_at(i)->name);
    }
    return err_set(err, ERR_USAGE, "--model %s: unknown model; expected one of %.*s", name,
                   (int)known.len, known.ptr);
}

static int choose_model(struct raw *raw, struct err *err)
{
    if (!raw->model) {
        return err_set(err, ERR_USAGE, "--model is needed (see --help)");
    }
    raw->opts.model = model_find(raw->model);
    return raw->opts.model ? 0 : refuse_model(raw->model, err);
}

static int choose_sequence(struct train_opts *opts, struct err *err)
{
    const struct model *model = opts->model;
    opts->size.sequence = opts->size.sequence == 0 ? model->sequence_default : opts->size.sequence;
    if (opts->size.sequence > model->sequence_max) {
        return err_set(err, ERR_USAGE, "--sequence %" PRId64 ": %s has %" PRId64 " places",
                       opts->size.sequence, model->name, model->sequence_max);
    }
    bool is_short = opts->size.sequence < model->predictions_default;
    int64_t usual = is_short ? opts->size.sequence : model->predictions_default;
    opts->size.predictions = opts->size.predictions == 0 ? usual : opts->size.predictions;
    if (opts->size.predictions > opts->size.sequence) {
        return err_set(err, ERR_USAGE, "--predictions %" PRId64 " of a sequence of %" PRId64,
                       opts->size.predictions, opts->size.sequence);
    }
    return 0;
}

int parse_image(const char *name, const char *text, const struct model *model,
                struct sample_size *ret_size, struct err *err)
{
    struct str rest = str_of(text);
    struct str part = STR_EMPTY;
    (void)str_next(&rest, 'x', &part); /* text without an x is one part */
    struct str second = rest.ptr ? rest : part;
    if (str_to_i64(part, model->image_min, IMAGE_MAX, &ret_size->height, err) < 0 ||
        str_to_i64(second, model->image_min, IMAGE_MAX, &ret_size->width, err) < 0) {
        err->code = ERR_USAGE;
        return err_wrap(err, "--%s %s", name, text);
    }
    return 0;
}

static int choose_image(struct raw *raw, struct err *err)
{
    struct train_opts *opts = &raw->opts;
    bool is_tokens = opts->model->kind == MODEL_TOKENS;
    if (is_tokens ? raw->image || raw->mean || raw->std
                  : opts->size.sequence != 0 || opts->size.predictions != 0) {
        return err_set(err, ERR_USAGE,
                       is_tokens ? "--image, --mean and --std: %s reads tokens and no images"
                                 : "--sequence and --predictions: %s reads images and no tokens",
                       opts->model->name);
    }
    if (is_tokens) {
        return choose_sequence(opts, err);
    }
    if (!raw->image) {
        opts->size.height = opts->model->height_default;
        opts->size.width = opts->model->width_default;
        return 0;
    }
    return parse_image("image", raw->image, opts->model, &opts->size, err);
}

int parse_numbers(const char *name, const char *text, int n_max, double *ret_values, int *ret_n,
                  struct err *err)
{
    struct str rest = str_of(text);
    struct str part;
    int n = 0;
    while (rest.ptr && n < n_max && str_next(&rest, ',', &part)) {
        if (str_to_f64(part, &ret_values[n++], err) < 0) {
            err->code = ERR_USAGE;
            return err_wrap(err, "--%s %s", name, text);
        }
    }
    *ret_n = rest.ptr ? n + 1 : n;
    return 0;
}

static int three_numbers(const char *name, const char *text, double *ret_values, struct err *err)
{
    int n = 0;
    if (parse_numbers(name, text, 3, ret_values, &n, err) < 0) {
        return -1;
    }
    return n == 3 ? 0
                  : err_set(err, ERR_USAGE, "--%s %s: expected three numbers, R,G,B", name, text);
}

static int choose_pixels(struct raw *raw, struct err *err)
{
    struct train_opts *opts = &raw->opts;
    opts->has_mean = raw->mean != NULL;
    opts->has_std = raw->std != NULL;
    if ((raw->mean && three_numbers("mean", raw->mean, opts->mean, err) < 0) ||
        (raw->std && three_numbers("std", raw->std, opts->std, err) < 0)) {
        return -1;
    }
    for (int i = 0; i < 3; i++) {
        bool is_good = (!raw->mean || (opts->mean[i] >= 0.0 && opts->mean[i] <= 1.0)) &&
                       (!raw->std || (opts->std[i] >= STD_MIN && opts->std[i] <= STD_MAX));
        if (!is_good) {
            return err_set(err, ERR_USAGE, "--mean: expected 0 to 1; --std: %g to %g", STD_MIN,
                           STD_MAX);
        }
    }
    return 0;
}

static int choose_data(struct raw *raw, struct err *err)
{
    struct train_opts *opts = &raw->opts;
    const char *data = raw->data ? raw->data : "synthetic";
    opts->is_learnable = strcmp(data, "synthetic-learnable") == 0;
    opts->is_fresh_data = opts->is_learnable || strcmp(data, "synthetic-fresh") == 0;
    bool is_made = opts->is_fresh_data || strcmp(data, "synthetic") == 0;
    bool has_more = opts->data_seed != UNSET || opts->start_step != UNSET ||
                    opts->n_workers != UNSET || raw->mean || raw->std || raw->is_data_only;
    opts->data_path = is_made ? NULL : raw->data;
    if (opts->is_learnable && opts->model->kind == MODEL_TOKENS) {
        return err_set(err, ERR_USAGE,
                       "--data synthetic-learnable is of images: %s can learn synthetic-fresh",
                       opts->model->name);
    }
    if (is_made && has_more) {
        return err_set(
            err, ERR_USAGE,
            "--data-seed, --start-step, --workers, --mean, --std and --data-only go with --data "
            "FOLDER only");
    }
    opts->data_seed = opts->data_seed == UNSET ? opts->seed : opts->data_seed;
    opts->start_step = opts->start_step == UNSET ? 0 : opts->start_step;
    opts->n_workers = opts->n_workers == UNSET ? WORKERS_START : opts->n_workers;
    choose_augment(raw);
    return choose_pixels(raw, err);
}

static int check_steps(const struct train_opts *opts, struct err *err)
{
    if (opts->warmup_steps > 0 && opts->warmup_steps >= opts->steps) {
        return err_set(err, ERR_USAGE, "--warmup %" PRId64 " leaves none of --steps %" PRId64,
                       opts->warmup_steps, opts->steps);
    }
    return 0;
}

static const char *from_environment(void *ctx UNUSED, const char *name)
{
    return getenv(name);
}

/* Modes that print and exit need no other rank. */
static int choose_ranks(struct train_opts *opts, struct err *err)
{
    bool is_alone =
        opts->mode == TRAIN_DESCRIBE || opts->mode == TRAIN_READ || opts->mode == TRAIN_MAKE_CHECK;
    if (ranks_read(from_environment, NULL, is_alone, &opts->ranks, err) < 0) {
        return -1;
    }
    return choose_tuning(opts, err);
}

/* Skips the options that --check takes from its file, and those that do not apply. */
static int go_with_check(const struct raw *raw, struct err *err)
{
    const struct train_opts *opts = &raw->opts;
    /* A GPU computes F32 in two ways. The device is not chosen yet. */
    bool has_precision = raw->precision && (!raw->device || strcmp(raw->device, "cpu") == 0);
    if (raw->dtype || has_precision || raw->image || opts->batch != 0 || opts->size.sequence != 0 ||
        opts->size.predictions != 0) {
        return err_set(err, ERR_USAGE,
                       "--check takes type, batch and image from its file: --dtype, --precision, "
                       "--batch, --image, --sequence and --predictions do not go with it");
    }
    if (opts->steps > 0 && (!raw->optimizer || isnan(raw->lr))) {
        return err_set(err, ERR_USAGE, "--check with --steps needs --optimizer and --lr");
    }
    if (opts->steps > 0 && raw->precision && strcmp(raw->precision, "amp") == 0) {
        return err_set(err, ERR_USAGE, "--check with --precision amp does not go with --steps");
    }
    if (raw->accumulate > 1) {
        return err_set(err, ERR_USAGE, "--accumulate does not go with --check");
    }
    return 0;
}

static int choose_mode(struct raw *raw, struct err *err)
{
    struct train_opts *opts = &raw->opts;
    if (raw->is_describe + (raw->check != NULL) + raw->is_data_only + (raw->make_check != NULL) >
        1) {
        return err_set(err, ERR_USAGE,
                       "--describe, --check, --make-check and --data-only exclude each other");
    }
    bool is_run = !raw->is_describe && !raw->check && !raw->make_check && !raw->is_data_only;
    if (!is_run && (opts->save_path || opts->load_path)) {
        return err_set(err, ERR_USAGE, "--save and --load go with training only");
    }
    if (opts->save_every > 0 && !opts->save_path) {
        return err_set(err, ERR_USAGE, "--save-every needs --save");
    }
    if (opts->load_path && opts->start_step != UNSET) {
        return err_set(err, ERR_USAGE, "--load has its own step: --start-step does not go with it");
    }
    if (!raw->check != !raw->out) {
        return err_set(err, ERR_USAGE, "--check and --out need each other");
    }
    if (raw->check && go_with_check(raw, err) < 0) {
        return -1;
    }
    opts->steps = opts->steps == 0 && !raw->check ? STEPS_START : opts->steps;
    opts->batch = opts->batch == 0 ? BATCH_START : opts->batch;
    opts->check_path = raw->check;
    opts->out_path = raw->make_check ? raw->make_check : raw->out;
    opts->mode = raw->is_describe    ? TRAIN_DESCRIBE
                 : raw->check        ? TRAIN_CHECK
                 : raw->make_check   ? TRAIN_MAKE_CHECK
                 : raw->is_data_only ? TRAIN_READ
                                     : TRAIN_RUN;
    return 0;
}

static int understand(struct raw *raw, struct err *err)
{
    if (choose_mode(raw, err) < 0 || choose_model(raw, err) < 0 || choose_device(raw, err) < 0 ||
        choose_image(raw, err) < 0 || choose_data(raw, err) < 0 ||
        check_steps(&raw->opts, err) < 0 || choose_ranks(&raw->opts, err) < 0 ||
        choose_eval(raw, err) < 0) {
        return -1;
    }
    return choose_training(raw, err);
}

struct raw raw_start(void)
{
    return (struct raw){
        .lr = (double)NAN,
        .momentum = (double)NAN,
        .beta1 = (double)NAN,
        .beta2 = (double)NAN,
        .eps = (double)NAN,
        .weight_decay = (double)NAN,
        .label_smoothing = (double)NAN,
        .lr_end = (double)NAN,
        .lr_power = (double)NAN,
        .lr_factor = (double)NAN,
        .warmup_lr_start = (double)NAN,
        .until = (double)NAN,
        .schedule_steps = UNSET,
        .warmup_lr_steps = UNSET,
        .accumulate = 1,
        .loss_scale_window = UNSET,
        .opts = {.data_seed = UNSET,
                 .start_step = UNSET,
                 .n_workers = UNSET,
                 .ahead = UNSET,
                 .tune_limit_s = UNSET,
                 .n_streams = UNSET,
                 .rendezvous_s = 60,
                 .comm_timeout_s = 30},
    };
}

int train_options(int argc, char **argv, struct train_opts *ret_opts, struct err *err)
{
    CLEANUP(opt_list) struct opt_list operands = {0};
    struct raw raw = raw_start();
    if (opt_parse(ROWS, argc, argv, &raw, &operands, err) < 0) {
        return -1;
    }
    if (operands.n > 0) {
        return err_set(err, ERR_USAGE, "unexpected argument %s", operands.items[0]);
    }
    if (raw.is_help || raw.is_version) {
        raw.opts.mode = raw.is_help ? TRAIN_HELP : TRAIN_VERSION;
    } else if (understand(&raw, err) < 0) {
        return -1;
    }
    *ret_opts = raw.opts;
    return 0;
}
