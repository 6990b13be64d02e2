/* SPDX-License-Identifier: Apache-2.0 */
/* The options of device, precision and backend, and of how a GPU is used. */
#include "base/base.h"

#include "train/options_parse.h"

#include "dist/job.h"

#include "train/device.h"

#define AHEAD_START 2 /* one micro-batch being computed, one waiting */
#define TUNE_START_S                                                                               \
    300                 /* HRNet-W18 has some 200 calls, and up to twelve plans are timed of each */
#define STREAMS_START 4 /* HRNet has four branches; what needs no second stream is on the first */

static int find_device(struct raw *raw, struct err *err)
{
    const char *device = raw->device ? raw->device : "cpu";
    if (!device_is_known(device)) {
        return err_set(err, ERR_USAGE, "--device %s: unknown device, expected cpu or cuda", device);
    }
    if (!device_is_built(device)) {
        return err_set(
            err, ERR_USAGE,
            "--device %s: this build has no CUDA backend (no CUDA toolkit was found when "
            "it was made)",
            device);
    }
    raw->opts.device = device;
    return 0;
}

static bool is_on_cpu(const struct raw *raw)
{
    return strcmp(raw->opts.device, "cpu") == 0;
}

/* --precision and --dtype name the same choice; each implies the other. */
static const struct precision {
    const char *name, *dtype_name;
    enum dtype dtype;
    bool is_on_cpu, is_on_cuda;
} PRECISIONS[] = {
    {"fp32", "f32", DT_F32, true, true},
    {"fp64", "f64", DT_F64, true, false},
    {"amp", "f16", DT_F16, false, true},
};

static const struct precision *find_precision(const struct raw *raw)
{
    if (!raw->precision && !raw->dtype) {
        return &PRECISIONS[0];
    }
    for (size_t i = 0; i < ARRAY_LEN(PRECISIONS); i++) {
        const struct precision *p = &PRECISIONS[i];
        if (raw->precision ? strcmp(raw->precision, p->name) == 0
                           : strcmp(raw->dtype, p->dtype_name) == 0) {
            return p;
        }
    }
    return NULL;
}

static int choose_type(struct raw *raw, struct err *err)
{
    const struct precision *precision = find_precision(raw);
    if (raw->dtype && strcmp(raw->dtype, "f32") != 0 && strcmp(raw->dtype, "f64") != 0) {
        return err_set(err, ERR_USAGE, "--dtype %s: expected f32 or f64", raw->dtype);
    }
    if (!precision) {
        return err_set(err, ERR_USAGE, "--precision %s: unknown precision, expected fp32 or amp",
                       raw->precision);
    }
    if (raw->dtype && strcmp(raw->dtype, precision->dtype_name) != 0) {
        return err_set(err, ERR_USAGE, "--precision %s does not go with --dtype %s", raw->precision,
                       raw->dtype);
    }
    if (is_on_cpu(raw) && !precision->is_on_cpu) {
        return err_set(err, ERR_USAGE, "--precision %s: the cpu device computes in fp32 only",
                       precision->name);
    }
    if (!is_on_cpu(raw) && !precision->is_on_cuda) {
        return err_set(err, ERR_USAGE, "--device cuda computes in fp32 or amp, not in %s",
                       precision->name);
    }
    raw->opts.dtype = precision->dtype;
    raw->opts.precision = precision->name;
    if (raw->opts.has_tf32 && (is_on_cpu(raw) || precision->dtype != DT_F32)) {
        return err_set(err, ERR_USAGE, "--tf32 goes with --device cuda and --precision fp32");
    }
    return 0;
}

static int choose_backend(struct raw *raw, struct err *err)
{
    struct train_opts *opts = &raw->opts;
    bool is_onednn = raw->backend && strcmp(raw->backend, "onednn") == 0;
    if (!is_on_cpu(raw)) {
        return raw->backend ? err_set(err, ERR_USAGE, "--backend goes with --device cpu only") : 0;
    }
    if (!raw->backend) {
        /* --check is for the oracle. */
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

/* How a GPU is used; refused on a CPU. */
static int choose_cuda(struct raw *raw, struct err *err)
{
    struct train_opts *opts = &raw->opts;
    bool has_any = raw->has_no_graph || raw->has_no_tune || raw->has_no_fuse || raw->plan_cache ||
                   opts->ahead != UNSET || opts->n_streams != UNSET ||
                   opts->tune_limit_s != UNSET || opts->allows_compiled ||
                   opts->allows_nondeterministic;
    if (is_on_cpu(raw)) {
        opts->ahead = 0;
        opts->n_streams = 1;
        return has_any ? err_set(err, ERR_USAGE,
                                 "--no-fuse, --streams, --no-graph, --ahead, --no-tune, "
                                 "--tune-seconds, --compile-plans, --nondeterministic and "
                                 "--plan-cache go with "
                                 "--device cuda only")
                       : 0;
    }
    if (raw->has_no_tune && (opts->tune_limit_s != UNSET || opts->allows_compiled)) {
        return err_set(err, ERR_USAGE,
                       "--tune-seconds and --compile-plans do not go with --no-tune");
    }
    opts->is_fused = !raw->has_no_fuse;
    opts->has_programs = !raw->has_no_graph;
    opts->is_tuned = !raw->has_no_tune;
    opts->plan_cache = raw->plan_cache;
    opts->ahead = opts->ahead == UNSET ? AHEAD_START : opts->ahead;
    opts->n_streams = opts->n_streams == UNSET ? STREAMS_START : opts->n_streams;
    return 0;
}

int choose_tuning(struct train_opts *opts, struct err *err)
{
    bool is_asked = opts->tune_limit_s != UNSET;
    int64_t most = opts->ranks.n_ranks == 1
                       ? INT64_MAX
                       : opts->comm_timeout_s * JOB_STALLS_A_TIMEOUT / 2; /* of what ranks wait */
    if (!opts->is_tuned) {
        return 0;
    }
    if (is_asked && opts->tune_limit_s > most) {
        return err_set(err, ERR_USAGE,
                       "--tune-seconds %" PRId64
                       ": the other ranks wait for the first one's plans, "
                       "and with --comm-timeout %" PRId64 " it may take %" PRId64 " s at most",
                       opts->tune_limit_s, opts->comm_timeout_s, most);
    }
    if (!is_asked) {
        opts->tune_limit_s = TUNE_START_S < most ? TUNE_START_S : most;
    }
    return 0;
}

void choose_augment(struct raw *raw)
{
    struct train_opts *opts = &raw->opts;
    opts->is_augmented_on_device =
        !is_on_cpu(raw) && opts->data_path && opts->model->kind == MODEL_IMAGES;
}

int choose_device(struct raw *raw, struct err *err)
{
    return find_device(raw, err) < 0 || choose_type(raw, err) < 0 || choose_backend(raw, err) < 0 ||
                   choose_cuda(raw, err) < 0
               ? -1
               : 0;
}
