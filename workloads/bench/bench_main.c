/* SPDX-License-Identifier: Apache-2.0 */
/* reperf-bench: the bundled networks and the frameworks that their reports compare, on one device. */
#include "base/base.h"

#include "bench/bench.h"

#include "base/opt.h"
#include "base/strbuf.h"
#include "core/interrupt.h"
#include "core/json_writer.h"

#include <stdio.h>
#include <unistd.h>

struct raw {
    const char *model, *image;
    struct bench_opts opts;
    bool is_help, is_version;
};

#define AT(member) offsetof(struct raw, member)
#define STEPS_MAX  10000

static const struct opt ROWS[] = {
    {"model", 0, OPT_TEXT, "NAME", "as reperf-train has them", AT(model), 0, 0},
    {"precision", 0, OPT_TEXT, "NAME", "amp or fp32 (amp; on a cpu fp32)", AT(opts.precision), 0,
     0},
    {"tf32", 0, OPT_FLAG, NULL, "fp32: products rounded to TF32 first, for all programs",
     AT(opts.has_tf32), 0, 0},
    {"device", 0, OPT_TEXT, "NAME", "cuda, or cpu to try the bench itself (cuda)", AT(opts.device),
     0, 0},
    {"batch", 0, OPT_I64, "N", "samples a step (as in the reports)", AT(opts.batch), 1, 65536},
    {"image", 0, OPT_TEXT, "N|HxW", "height and width (the model's own)", AT(image), 0, 0},
    {"sequence", 0, OPT_I64, "N", "tokens a sample (128)", AT(opts.sequence), 1, 65536},
    {"predictions", 0, OPT_I64, "N", "of them that are predicted (20)", AT(opts.predictions), 1,
     65536},
    {"rivals", 0, OPT_TEXT, "LIST",
     "of eager, compile, jax; agree: also paddleseg, mmseg, torchvision; empty: none "
     "(eager,compile,jax)",
     AT(opts.rivals), 0, 0},
    {"turns", 0, OPT_I64, "N", "of each program; the first is warm-up (12)", AT(opts.n_turns), 2,
     STEPS_MAX},
    {"turn", 0, OPT_I64, "N", "steps of a turn (10)", AT(opts.turn_steps), 1, STEPS_MAX},
    {"seed", 0, OPT_I64, "N", "of parameters and data (0)", AT(opts.seed), 0, INT64_C(1) << 53},
    {"deadline", 0, OPT_I64, "SECONDS", "for all of it, compiling included (530)",
     AT(opts.deadline_s), 1, 86400},
    {"python", 0, OPT_TEXT, "PROGRAM", "that runs the rivals (python3)", AT(opts.python), 0, 0},
    {"train", 0, OPT_TEXT, "PROGRAM", "reperf-train (the one next to this program)", AT(opts.train),
     0, 0},
    {"competitors", 0, OPT_TEXT, "FOLDER", "the rivals' programs (workloads/competitors)",
     AT(opts.competitors), 0, 0},
    {"out", 'o', OPT_TEXT, "FOLDER", "models: a folder for the run is created there", AT(opts.out),
     0, 0},
    {"tune-seconds", 0, OPT_I64, "N",
     "cuda: for choosing our plans by timing, half of it before the check (a quarter of "
     "--deadline); later ones are the libraries' first",
     AT(opts.tune_s), 0, 86400},
    {"compile-plans", 0, OPT_FLAG, NULL,
     "cuda: also try cuDNN's engines that are compiled on request", AT(opts.allows_compiled), 0, 0},
    {"nondeterministic", 0, OPT_FLAG, NULL,
     "cuda: also fused convolutions, whose sums differ in their last bits from run to run",
     AT(opts.allows_nondeterministic), 0, 0},
    {"fuse", 0, OPT_FLAG, NULL, "kernels: everything fused that can be", AT(opts.is_fused), 0, 0},
    {"gpu", 0, OPT_TEXT, "NAME", "floor: as nvidia-smi names it", AT(opts.gpu), 0, 0},
    {"help", 'h', OPT_FLAG, NULL, "this list", AT(is_help), 0, 0},
    {"version", 0, OPT_FLAG, NULL, "print the version", AT(is_version), 0, 0},
    OPT_END,
};

static void print_help(void)
{
    printf(
        "usage: reperf-bench models --model NAME --out FOLDER [options]\n"
        "       reperf-bench agree --model NAME --out FOLDER [options]\n"
        "       reperf-bench kernels --model NAME [--out FOLDER] [options]\n"
        "       reperf-bench floor --model NAME --gpu NAME [options]\n\n"
        "models: reperf-train and its rivals, compared with each other from the same parameters,\n"
        "then timed in turns on one device. agree: the first half of that alone. kernels: each\n"
        "call of one step by itself, against the GPU's peaks. floor: the least a step can take.\n");
    opt_print_help(stdout, ROWS);
    printf("\nGPUs of the table:\n");
    for (int i = 0; peak_at(i); i++) {
        printf("  %s\n", peak_at(i)->name);
    }
}

/* Source: the reports' single-GPU batches with AMP (manifests/reports), the table in the README. */
static int64_t batch_of(const struct model *model)
{
    static const struct {
        const char *model;
        int64_t batch;
    } batches[] = {{"resnet50", 256}, {"hrnet_w18", 8}, {"bert_base", 96}};
    for (size_t i = 0; i < ARRAY_LEN(batches); i++) {
        if (strcmp(model->name, batches[i].model) == 0) {
            return batches[i].batch;
        }
    }
    return 4;
}

static int choose_image(const struct raw *raw, struct bench_opts *opts, struct err *err)
{
    opts->height = opts->model->height_default;
    opts->width = opts->model->width_default;
    if (!raw->image) {
        return 0;
    }
    struct str rest = str_of(raw->image);
    struct str part = STR_EMPTY;
    (void)str_next(&rest, 'x', &part);
    struct str second = rest.ptr ? rest : part;
    if (opts->model->kind == MODEL_TOKENS ||
        str_to_i64(part, opts->model->image_min, 65536, &opts->height, err) < 0 ||
        str_to_i64(second, opts->model->image_min, 65536, &opts->width, err) < 0) {
        *err = (struct err){0};
        return err_set(err, ERR_USAGE, "--image %s: expected N or HxW, of a model of images",
                       raw->image);
    }
    return 0;
}

static int choose_words(const struct raw *raw, struct bench_opts *opts, struct err *err)
{
    opts->model = raw->model ? model_find(raw->model) : NULL;
    if (!opts->model) {
        return err_set(err, ERR_USAGE, "--model %s: unknown model",
                       raw->model ? raw->model : "(missing)");
    }
    bool is_cpu = opts->device && strcmp(opts->device, "cpu") == 0;
    if (opts->device && !is_cpu && strcmp(opts->device, "cuda") != 0) {
        return err_set(err, ERR_USAGE, "--device %s: expected cpu or cuda", opts->device);
    }
    opts->device = is_cpu ? "cpu" : "cuda";
    bool is_fp32 = opts->precision ? strcmp(opts->precision, "fp32") == 0 : is_cpu;
    if (opts->precision && !is_fp32 && strcmp(opts->precision, "amp") != 0) {
        return err_set(err, ERR_USAGE, "--precision %s: expected amp or fp32", opts->precision);
    }
    opts->precision = is_fp32 ? "fp32" : "amp";
    return opts->has_tf32 && !is_fp32
               ? err_set(err, ERR_USAGE, "--tf32 goes with --precision fp32 only")
               : 0;
}

static const char *train_next_to_this(struct arena *arena)
{
    char path[BENCH_PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(path, '/');
    return slash ? arena_printf(arena, "%.*s/reperf-train", (int)(slash - path), path)
                 : "reperf-train";
}

static int understand(struct arena *arena, struct raw *raw, struct err *err)
{
    struct bench_opts *opts = &raw->opts;
    if (choose_words(raw, opts, err) < 0 || choose_image(raw, opts, err) < 0) {
        return -1;
    }
    bool is_tokens = opts->model->kind == MODEL_TOKENS;
    if (!is_tokens && (opts->sequence != 0 || opts->predictions != 0)) {
        return err_set(err, ERR_USAGE, "--sequence and --predictions are of models of tokens");
    }
    opts->batch = opts->batch != 0 ? opts->batch : batch_of(opts->model);
    opts->sequence = opts->sequence != 0 ? opts->sequence : opts->model->sequence_default;
    opts->predictions = opts->predictions != 0 ? opts->predictions
                        : opts->model->predictions_default < opts->sequence
                            ? opts->model->predictions_default
                            : opts->sequence;
    opts->train = opts->train ? opts->train : train_next_to_this(arena);
    opts->tune_s = opts->tune_s < 0 ? opts->deadline_s / 4 : opts->tune_s;
    return 0;
}

int bench_floor(const struct bench_opts *opts, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf text;
    struct graph *graph;
    struct floor_count count;
    const struct peak *peak = opts->gpu ? peak_find(str_of(opts->gpu)) : NULL;
    strbuf_init(&text, 1 << 20);
    if (!peak) {
        return err_set(err, ERR_USAGE, "--gpu %s: not in the table (see --help)",
                       opts->gpu ? opts->gpu : "(missing)");
    }
    if (bench_graph(&arena, opts, &graph, err) < 0) {
        return -1;
    }
    floor_of_graph(&arena, graph, bench_moments(opts), peak_fuses_norms(peak), &count);
    struct json_out out = {.buf = &text};
    double seconds = floor_seconds(&count, bench_peak_flops(opts, peak), peak->bytes_per_s);
    json_out_open(&out, '{');
    json_out_put_i64(&out, "schema_version", 1);
    json_out_put_text(&out, "model", opts->model->name);
    json_out_put_text(&out, "precision", opts->precision);
    json_out_put_i64(&out, "batch", opts->batch);
    json_out_put_text(&out, "gpu", peak->name);
    json_out_put_text(&out, "source", peak->source);
    json_out_put_f64(&out, "flops_a_step", count.flops);
    json_out_put_f64(&out, "bytes_a_step", count.bytes);
    json_out_put_f64(&out, "seconds_a_step", seconds);
    json_out_put_f64(&out, "samples_per_s", (double)opts->batch / seconds);
    json_out_close(&out, '}');
    printf("%.*s\n", (int)text.len, text.ptr);
    return 0;
}

static int run(struct raw *raw, const struct opt_list *operands, const volatile sig_atomic_t *stop,
               struct err *err)
{
    static const struct {
        const char *name;
        int (*run)(const struct bench_opts *opts, struct clock_src clock,
                   const volatile sig_atomic_t *stop, struct err *err);
        bool needs_out;
    } commands[] = {{"models", bench_models, true},
                    {"agree", bench_agree, true},
                    {"kernels", bench_kernels, false},
                    {"floor", NULL, false}};
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *asked = operands->n == 1 ? operands->items[0] : "";
    size_t i = 0;
    while (i < ARRAY_LEN(commands) && strcmp(asked, commands[i].name) != 0) {
        i++;
    }
    if (i == ARRAY_LEN(commands)) {
        return err_set(err, ERR_USAGE,
                       "expected one of models, agree, kernels, floor (see --help)");
    }
    if (understand(&arena, raw, err) < 0) {
        return -1;
    }
    if (commands[i].needs_out && !raw->opts.out) {
        return err_set(err, ERR_USAGE, "--out is needed");
    }
    return commands[i].run ? commands[i].run(&raw->opts, clock_system(), stop, err)
                           : bench_floor(&raw->opts, err);
}

int main(int argc, char **argv)
{
    CLEANUP(opt_list) struct opt_list operands = {0};
    struct err err = {0};
    struct raw raw = {.opts = {.rivals = "eager,compile,jax",
                               .n_turns = 12,
                               .turn_steps = 10,
                               .deadline_s = 530,
                               .tune_s = -1,
                               .python = "python3",
                               .competitors = "workloads/competitors"}};
    const volatile sig_atomic_t *stop = interrupt_catch();
    int result = opt_parse(ROWS, argc - 1, argv + 1, &raw, &operands, &err);
    if (result == 0 && raw.is_help) {
        print_help();
        return 0;
    }
    if (result == 0 && raw.is_version) {
        printf("reperf-bench %s\n", REPERF_VERSION);
        return 0;
    }
    if (result < 0 || run(&raw, &operands, stop, &err) < 0) {
        fprintf(stderr, "reperf-bench: %s\n", err.msg);
        return err.code == ERR_INTERRUPTED ? 128 + (int)*stop : err_exit_status(err.code);
    }
    return fflush(stdout) == 0 ? 0 : err_exit_status(ERR_DISK);
}
