/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/options.h"

#include "base/opt.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "data/reader.h"

#define BATCH_MAX      65536
#define IMAGE_MAX      65536
#define STEPS_MAX      INT64_C(1000000000000)
#define RANKS_MAX      65536
#define BATCH_START    32
#define WORKERS_START  4 /* as the reports' loaders have */
#define UNSET          (-1)
#define STD_MIN        1e-6
#define STD_MAX        1e6
#define MODEL_LIST_MAX 256

/* The command line as typed, before it is understood. */
struct raw {
    const char *model, *device, *precision, *dtype, *backend, *data, *image, *mean, *std;
    const char *check, *out;
    struct train_opts opts;
    bool is_describe, is_data_only, is_help, is_version;
};

#define AT(member) offsetof(struct raw, member)

static const struct opt ROWS[] = {
    {"model", 0, OPT_TEXT, "NAME", "resnet50, hrnet_w18, deeplabv3p, deeplabv3p_mmseg", AT(model),
     0, 0},
    {"device", 0, OPT_TEXT, "NAME", "cpu (this build has no cuda)", AT(device), 0, 0},
    {"backend", 0, OPT_TEXT, "NAME", "plain or onednn; default: onednn for f32 if built in",
     AT(backend), 0, 0},
    {"precision", 0, OPT_TEXT, "NAME", "fp32 (fp64 with --dtype f64)", AT(precision), 0, 0},
    {"dtype", 0, OPT_TEXT, "NAME", "f32 or f64", AT(dtype), 0, 0},
    {"batch", 0, OPT_I64, "N", "samples a step (32)", AT(opts.batch), 1, BATCH_MAX},
    {"image", 0, OPT_TEXT, "N|HxW", "height and width (the model's own)", AT(image), 0, 0},
    {"data", 0, OPT_TEXT, "NAME",
     "synthetic: one batch again and again; synthetic-fresh; or a folder made by reperf-pack",
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
    {"steps", 0, OPT_I64, "N", "training steps (20)", AT(opts.steps), 1, STEPS_MAX},
    {"warmup", 0, OPT_I64, "N", "first steps left out of the run's rate (0)", AT(opts.warmup_steps),
     0, STEPS_MAX},
    {"lr", 0, OPT_F64, "X", "learning rate (0.01)", AT(opts.lr), 0, 0},
    {"momentum", 0, OPT_F64, "X", "of the velocity (0.9)", AT(opts.momentum), 0, 0},
    {"weight-decay", 0, OPT_F64, "X", "L2, on every parameter (1e-4)", AT(opts.weight_decay), 0, 0},
    {"label-smoothing", 0, OPT_F64, "X", "0 to below 1 (0)", AT(opts.label_smoothing), 0, 0},
    {"seed", 0, OPT_I64, "N", "of parameters and data (0)", AT(opts.seed), 0, INT64_C(1) << 53},
    {"threads", 0, OPT_I64, "N", "OpenMP threads; 0: its own default", AT(opts.n_threads), 0,
     CPU_THREADS_MAX},
    {"data-only", 0, OPT_FLAG, NULL,
     "read a folder's batches, train nothing, print the rate as JSON", AT(is_data_only), 0, 0},
    {"describe", 0, OPT_FLAG, NULL, "print size and cost of the network as JSON and end",
     AT(is_describe), 0, 0},
    {"check", 0, OPT_TEXT, "FILE", "one forward and backward on the tensors of FILE", AT(check), 0,
     0},
    {"out", 0, OPT_TEXT, "FILE", "where --check writes logits, loss and gradients", AT(out), 0, 0},
    {"help", 'h', OPT_FLAG, NULL, "this list", AT(is_help), 0, 0},
    {"version", 0, OPT_FLAG, NULL, "print the version", AT(is_version), 0, 0},
    OPT_END,
};

void train_print_help(FILE *out)
{
    fprintf(out, "usage: reperf-train --model NAME [options]\n"
                 "       reperf-train --model NAME --describe\n"
                 "       reperf-train --model NAME --data FOLDER --data-only\n"
                 "       reperf-train --model NAME --check IN.safetensors --out OUT.safetensors\n\n"
                 "Trains a bundled network and prints one JSON object a line (run_start, step,\n"
                 "run_stop, fatal). Options:\n");
    opt_print_help(out, ROWS);
}

/* ---- each choice ---- */

static int refuse_model(const char *name, struct err *err)
{
    CLEANUP(strbuf) struct strbuf known;
    strbuf_init(&known, MODEL_LIST_MAX);
    for (int i = 0; model_at(i); i++) {
        strbuf_printf(&known, "%s%s", i > 0 ? ", " : "", model_at(i)->name);
    }
    return err_set(err, ERR_USAGE, "--model %s: there is no such model; there is %.*s", name,
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

static int choose_device(struct raw *raw, struct err *err)
{
    if (raw->device && strcmp(raw->device, "cpu") != 0) {
        bool is_cuda = strcmp(raw->device, "cuda") == 0;
        return err_set(err, ERR_USAGE, "--device %s: %s", raw->device,
                       is_cuda ? "this build has no CUDA backend"
                               : "unknown device, expected cpu or cuda");
    }
    raw->opts.device = "cpu";
    return 0;
}

static int choose_type(struct raw *raw, struct err *err)
{
    struct train_opts *opts = &raw->opts;
    bool is_f64 = raw->dtype && strcmp(raw->dtype, "f64") == 0;
    if (raw->dtype && !is_f64 && strcmp(raw->dtype, "f32") != 0) {
        return err_set(err, ERR_USAGE, "--dtype %s: expected f32 or f64", raw->dtype);
    }
    opts->dtype = is_f64 ? DT_F64 : DT_F32;
    opts->precision = is_f64 ? "fp64" : "fp32";
    if (!raw->precision || strcmp(raw->precision, opts->precision) == 0) {
        return 0;
    }
    if (strcmp(raw->precision, "amp") == 0 || strcmp(raw->precision, "fp16") == 0) {
        return err_set(err, ERR_USAGE, "--precision %s: the cpu device computes in fp32 only",
                       raw->precision);
    }
    if (strcmp(raw->precision, "fp32") == 0 || strcmp(raw->precision, "fp64") == 0) {
        return err_set(err, ERR_USAGE, "--precision %s does not go with --dtype %s", raw->precision,
                       dtype_name(opts->dtype));
    }
    return err_set(err, ERR_USAGE, "--precision %s: unknown precision, expected fp32 or amp",
                   raw->precision);
}

static int choose_backend(struct raw *raw, struct err *err)
{
    struct train_opts *opts = &raw->opts;
    bool is_onednn = raw->backend && strcmp(raw->backend, "onednn") == 0;
    if (!raw->backend) {
        /* --check is the oracle's work. */
        bool may = cpu_has_onednn() && opts->dtype == DT_F32 && !raw->check;
        opts->flavour = may ? CPU_ONEDNN : CPU_PLAIN;
        return 0;
    }
    if (!is_onednn && strcmp(raw->backend, "plain") != 0) {
        return err_set(err, ERR_USAGE, "--backend %s: expected plain or onednn", raw->backend);
    }
    if (is_onednn && !cpu_has_onednn()) {
        return err_set(err, ERR_USAGE, "--backend onednn: this build has no oneDNN");
    }
    if (is_onednn && opts->dtype == DT_F64) {
        return err_set(err, ERR_USAGE, "--backend onednn: oneDNN does not compute in f64");
    }
    opts->flavour = is_onednn ? CPU_ONEDNN : CPU_PLAIN;
    return 0;
}

static int choose_image(struct raw *raw, struct err *err)
{
    struct train_opts *opts = &raw->opts;
    if (!raw->image) {
        opts->height = opts->model->height_default;
        opts->width = opts->model->width_default;
        return 0;
    }
    struct str rest = str_of(raw->image);
    struct str part = STR_EMPTY;
    (void)str_next(&rest, 'x', &part); /* text without an x is one part */
    struct str second = rest.ptr ? rest : part;
    if (str_to_i64(part, opts->model->image_min, IMAGE_MAX, &opts->height, err) < 0 ||
        str_to_i64(second, opts->model->image_min, IMAGE_MAX, &opts->width, err) < 0) {
        err->code = ERR_USAGE;
        return err_wrap(err, "--image %s", raw->image);
    }
    return 0;
}

static int three_numbers(const char *name, const char *text, double *ret_values, struct err *err)
{
    struct str rest = str_of(text);
    struct str part;
    int n = 0;
    while (rest.ptr && n < 3 && str_next(&rest, ',', &part)) {
        if (str_to_f64(part, &ret_values[n++], err) < 0) {
            err->code = ERR_USAGE;
            return err_wrap(err, "--%s %s", name, text);
        }
    }
    return n == 3 && !rest.ptr
               ? 0
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
    bool is_made = !raw->data || strcmp(raw->data, "synthetic") == 0 ||
                   strcmp(raw->data, "synthetic-fresh") == 0;
    bool has_more = opts->data_seed != UNSET || opts->start_step != UNSET ||
                    opts->n_workers != UNSET || raw->mean || raw->std || raw->is_data_only;
    opts->is_fresh_data = is_made && raw->data && strcmp(raw->data, "synthetic-fresh") == 0;
    opts->data_path = is_made ? NULL : raw->data;
    if (is_made && has_more) {
        return err_set(
            err, ERR_USAGE,
            "--data-seed, --start-step, --workers, --mean, --std and --data-only go with --data "
            "FOLDER only");
    }
    opts->data_seed = opts->data_seed == UNSET ? opts->seed : opts->data_seed;
    opts->start_step = opts->start_step == UNSET ? 0 : opts->start_step;
    opts->n_workers = opts->n_workers == UNSET ? WORKERS_START : opts->n_workers;
    return choose_pixels(raw, err);
}

static int check_numbers(const struct train_opts *opts, struct err *err)
{
    if (opts->lr < 0 || opts->weight_decay < 0 || opts->momentum < 0 || opts->momentum >= 1 ||
        opts->label_smoothing < 0 || opts->label_smoothing >= 1) {
        return err_set(err, ERR_USAGE,
                       "--lr and --weight-decay: expected 0 or more; --momentum and "
                       "--label-smoothing: 0 to below 1");
    }
    if (opts->warmup_steps >= opts->steps) {
        return err_set(err, ERR_USAGE, "--warmup %" PRId64 " leaves none of --steps %" PRId64,
                       opts->warmup_steps, opts->steps);
    }
    return 0;
}

/* A launcher's RANK and WORLD_SIZE (DESIGN.md section 6). */
static int read_rank(const char *name, int64_t unset, int64_t min, int64_t max, int64_t *ret_value,
                     struct err *err)
{
    const char *text = getenv(name);
    *ret_value = unset;
    if (text && str_to_i64(str_of(text), min, max, ret_value, err) < 0) {
        err->code = ERR_USAGE;
        return err_wrap(err, "environment: %s", name);
    }
    return 0;
}

static int choose_ranks(struct train_opts *opts, struct err *err)
{
    int64_t n_ranks = 1;
    int64_t rank = 0;
    if (read_rank("WORLD_SIZE", 1, 1, RANKS_MAX, &n_ranks, err) < 0 ||
        read_rank("RANK", 0, 0, n_ranks - 1, &rank, err) < 0) {
        return -1;
    }
    if (n_ranks > 1) {
        return err_set(err, ERR_USAGE, "WORLD_SIZE=%" PRId64 ": this build trains on one rank only",
                       n_ranks);
    }
    opts->rank = (int)rank;
    opts->n_ranks = (int)n_ranks;
    return 0;
}

static int choose_mode(struct raw *raw, struct err *err)
{
    struct train_opts *opts = &raw->opts;
    if (raw->is_describe + (raw->check != NULL) + raw->is_data_only > 1) {
        return err_set(err, ERR_USAGE, "--describe, --check and --data-only exclude each other");
    }
    if (!raw->check != !raw->out) {
        return err_set(err, ERR_USAGE, "--check and --out need each other");
    }
    if (raw->check && (raw->dtype || raw->precision || raw->image || opts->batch != 0)) {
        return err_set(err, ERR_USAGE,
                       "--check takes type, batch and image from its file: --dtype, --precision, "
                       "--batch and --image do not go with it");
    }
    opts->batch = opts->batch == 0 ? BATCH_START : opts->batch;
    opts->check_path = raw->check;
    opts->out_path = raw->out;
    opts->mode = raw->is_describe    ? TRAIN_DESCRIBE
                 : raw->check        ? TRAIN_CHECK
                 : raw->is_data_only ? TRAIN_READ
                                     : TRAIN_RUN;
    return 0;
}

static int understand(struct raw *raw, struct err *err)
{
    if (choose_mode(raw, err) < 0 || choose_model(raw, err) < 0 || choose_device(raw, err) < 0 ||
        choose_type(raw, err) < 0 || choose_backend(raw, err) < 0 || choose_image(raw, err) < 0 ||
        choose_data(raw, err) < 0 || check_numbers(&raw->opts, err) < 0) {
        return -1;
    }
    return choose_ranks(&raw->opts, err);
}

int train_options(int argc, char **argv, struct train_opts *ret_opts, struct err *err)
{
    CLEANUP(opt_list) struct opt_list operands = {0};
    struct raw raw = {
        .opts = {.steps = 20,
                 .lr = 0.01,
                 .momentum = 0.9,
                 .weight_decay = 1e-4,
                 .data_seed = UNSET,
                 .start_step = UNSET,
                 .n_workers = UNSET},
    };
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
