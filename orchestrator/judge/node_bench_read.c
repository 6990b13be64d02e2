/* SPDX-License-Identifier: Apache-2.0 */
/* A node's own answer, which is not trusted. */
#include "base/base.h"

#include "judge/node_bench.h"

#include <math.h>

#include "codec/json_table.h"

#define REPEAT_NS_MAX 3600e9
#define WORK_MAX      (INT64_C(1) << 53)
#define SIZE_MAX_HERE (1 << 20)
#define CPUS_MAX      8192
#define GPUS_MAX      1024
#define NOTES_MAX     16
#define TEXT_MAX      512

/* The bounds of what is possible are at least a hundred times what the fastest machine of 2026 does. */
/* clang-format off */
const struct bench_measure BENCH_MEASURE[BENCH_MEASURES] = {
    {"memory.triad", BENCH_MEMORY, BENCH_RATE, 1, 0, true, 1e6, "GB/s", "memory",
     "24 n / t: a[i] = b[i] + s c[i] over n doubles, all processors"},
    {"flops.fp32.core", BENCH_FLOPS, BENCH_RATE, 1, 0, true, 1e5, "GFLOP/s", "FP32 core",
     "2 lanes chains turns / t: x = x m + c in registers, one processor"},
    {"flops.fp32.all", BENCH_FLOPS, BENCH_RATE, 1, 0, true, 1e8, "GFLOP/s", "FP32 all",
     "2 lanes chains turns processors / t: x = x m + c in registers, all processors"},
    {"flops.fp64.core", BENCH_FLOPS, BENCH_RATE, 1, 0, true, 1e5, "GFLOP/s", "FP64 core",
     "2 lanes chains turns / t: x = x m + c in registers, one processor"},
    {"flops.fp64.all", BENCH_FLOPS, BENCH_RATE, 1, 0, true, 1e8, "GFLOP/s", "FP64 all",
     "2 lanes chains turns processors / t: x = x m + c in registers, all processors"},
    {"disk.write", BENCH_DISK, BENCH_RATE, 1000, 0, true, 1e7, "MB/s", "disk write",
     "bytes / t: direct sequential writes of 1 MiB, then fdatasync"},
    {"disk.read", BENCH_DISK, BENCH_RATE, 1000, 0, true, 1e7, "MB/s", "disk read",
     "bytes / t: direct sequential reads of 1 MiB"},
    {"disk.fsync", BENCH_DISK, BENCH_TIME, 0.001, 0, false, 1e3, "us", "fsync",
     "t / n: a direct write of 4 KiB and fdatasync"},
    {"clock.jitter", BENCH_CLOCK, BENCH_JITTER, 100, 0, false, 1e12, "%", "jitter",
     "100 (p95 - median) / median of 20 times of a fixed busy loop"},
    {"clock.drift", BENCH_CLOCK, BENCH_DRIFT, 1, 0, false, 1e12, "ppm", "drift",
     "|median of slopes| of the node's clock against this machine's, least delayed of 20 lines each time"},
    {"net.latency", BENCH_NET, BENCH_TIME, 0.0005, 1, false, 1e3, "us", "latency",
     "t / 2 n: half a round trip of 1 byte over TCP; middle one of the peers"},
    {"net.send", BENCH_NET, BENCH_RATE, 8, 1 << 20, true, 1e6, "Gbit/s", "send",
     "8 bytes / t: messages of 1 MiB over one TCP connection to a peer; middle one of the peers"},
    {"net.receive", BENCH_NET, BENCH_RATE, 8, 1 << 20, true, 1e6, "Gbit/s", "receive",
     "8 bytes / t: messages of 1 MiB over one TCP connection from a peer; middle one of the peers"},
    {"net.ring", BENCH_RING, BENCH_RATE, 8, 1 << 20, true, 1e6, "Gbit/s", "ring",
     "8 bytes / t: messages of 1 MiB to the next node, all nodes at once"},
    {"gpu.hbm", BENCH_GPU, BENCH_RATE, 1, 0, true, 1e6, "GB/s", "HBM",
     "2 bytes GPUs / t: copy on each GPU, all at once; t is the slowest one's"},
    {"gpu.matmul", BENCH_GPU, BENCH_RATE, 1, 0, true, 1e8, "GFLOP/s", "FP16 products",
     "2 n^3 GPUs / t: n x n matrices in FP16 with sums in FP32, all GPUs at once; t is the slowest one's"},
    {"gpu.matmul.fp32", BENCH_GPU, BENCH_RATE, 1, 0, true, 1e8, "GFLOP/s", "FP32 products",
     "2 n^3 GPUs / t: n x n matrices in FP32 without TF32, all GPUs at once; t is the slowest one's"},
    {"gpu.allreduce", BENCH_GPU, BENCH_RATE, 1, 0, true, 1e6, "GB/s", "all-reduce",
     "2 (n - 1) / n bytes / t: bus bandwidth of NCCL's all-reduce between the node's n GPUs"},
};
/* clang-format on */

static const char *const WHAT_NAMES[BENCH_WHATS] = {"memory", "flops", "disk", "clock",
                                                    "net",    "ring",  "gpu"};

/* The busy loop's times belong to the node; the figure has another id. */
#define LOOP_ID "clock.loop"

const char *bench_what_name(enum bench_what what)
{
    return WHAT_NAMES[what];
}

bool bench_what_of_name(struct str name, enum bench_what *ret)
{
    for (int what = 0; what < BENCH_WHATS; what++) {
        if (str_eq_z(name, WHAT_NAMES[what])) {
            *ret = (enum bench_what)what;
            return true;
        }
    }
    return false;
}

const struct bench_measure *bench_measure_of(struct str id)
{
    for (size_t idx = 0; idx < BENCH_MEASURES; idx++) {
        if (str_eq_z(id, BENCH_MEASURE[idx].id)) {
            return &BENCH_MEASURE[idx];
        }
    }
    return NULL;
}

/* ---- one answer ---- */

struct bench_reading {
    struct arena *arena;
    enum bench_what what;
    int64_t took_ns;
    double sum_ns;
    struct bench_answer *answer;
};

bool bench_is_excused(const struct bench_measure *measure, int64_t gpus, size_t n_nodes)
{
    bool is_net = measure->what == BENCH_NET || measure->what == BENCH_RING;
    bool is_between = measure == bench_measure_of(STR_LIT("gpu.allreduce"));
    return (is_net && n_nodes < 2) ||
           (measure->what == BENCH_GPU && (gpus == 0 || (gpus == 1 && is_between)));
}

static int read_measure(const struct json *at, struct bench_reading *r, struct str id,
                        const struct bench_measure **ret, struct err *err)
{
    const char *name = str_eq_z(id, LOOP_ID) ? "clock.jitter" : NULL;
    const struct bench_measure *measure = bench_measure_of(name ? str_of(name) : id);
    if (!measure || measure->what != r->what ||
        (measure->kind == BENCH_JITTER && !str_eq_z(id, LOOP_ID)) || measure->kind == BENCH_DRIFT) {
        return json_fail(at, err, "expected a measure of %s, found \"%.*s\"", WHAT_NAMES[r->what],
                         (int)(id.len < 40 ? id.len : 40), id.ptr);
    }
    *ret = measure;
    return 0;
}

static int read_ns(const struct json *at, struct bench_reading *r, struct bench_series *series,
                   struct err *err)
{
    struct json item;
    double *ns;
    if (json_expect_array(at, NODE_BENCH_REPEATS, &series->n, err) < 0) {
        return -1;
    }
    if (series->n == 0) {
        return json_fail(at, err, "expected at least one repeat");
    }
    ns = arena_array(r->arena, double, series->n);
    size_t n = 0;
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        int64_t value;
        if (json_i64(&item, 1, (int64_t)REPEAT_NS_MAX, &value, err) < 0) {
            return -1;
        }
        ns[n++] = (double)value;
        r->sum_ns += (double)value;
    }
    series->ns = ns;
    return 0;
}

/* A value beyond any machine cannot have been measured. */
static int check_values(const struct json *at, struct bench_reading *r,
                        const struct bench_series *series, struct err *err)
{
    double *values = arena_array(r->arena, double, series->n);
    size_t n = bench_values(series, values);
    for (size_t idx = 0; idx < n; idx++) {
        bool is_time = series->measure->kind == BENCH_TIME;
        double value = is_time ? 1 / values[idx] : values[idx];
        if (!isfinite(value) || value > series->measure->most) {
            return json_fail(at, err, "no machine reaches %.4g %s", values[idx],
                             series->measure->unit);
        }
    }
    return 0;
}

static int read_series(const struct json *at, struct bench_reading *r, struct err *err)
{
    struct raw {
        struct str measure;
        int64_t size_bytes, work;
    } raw = {0};
    static const struct json_field FIELDS[] = {
        ROW("measure", struct raw, measure, JSON_REQUIRED),
        ROW("size_bytes", struct raw, size_bytes, JSON_REQUIRED, .max = SIZE_MAX_HERE),
        ROW("work", struct raw, work, JSON_REQUIRED, .min = 1, .max = WORK_MAX),
        ROW_ANY("ns", JSON_REQUIRED),
    };
    struct bench_answer *answer = r->answer;
    struct bench_series series = {0};
    struct json ns;
    if (json_decode(at, r->arena, FIELDS, ARRAY_LEN(FIELDS), &raw, err) < 0 ||
        read_measure(at, r, raw.measure, &series.measure, err) < 0 ||
        json_member(at, "ns", &ns, err) < 0 || read_ns(&ns, r, &series, err) < 0) {
        return -1;
    }
    series.size_bytes = raw.size_bytes;
    series.work = raw.work;
    if ((series.measure->size_bytes == 0) != (series.size_bytes == 0)) {
        return json_fail(at, err, "%s in messages of %lld bytes", series.measure->id,
                         (long long)series.size_bytes);
    }
    for (size_t idx = 0; idx < answer->n_series; idx++) {
        if (answer->series[idx].measure == series.measure &&
            answer->series[idx].size_bytes == series.size_bytes) {
            return json_fail(at, err, "%s occurs twice", series.measure->id);
        }
    }
    if (check_values(at, r, &series, err) < 0) {
        return -1;
    }
    answer->series[answer->n_series++] = series;
    return 0;
}

static struct str plain(struct arena *arena, struct str text)
{
    char *copy = arena_strndup(arena, text.ptr, text.len < TEXT_MAX ? text.len : TEXT_MAX);
    size_t len = strlen(copy);
    text_plain(copy, len);
    return (struct str){copy, len};
}

static int read_lack(const struct json *at, struct bench_reading *r, struct err *err)
{
    struct raw {
        struct str measure, why;
    } raw = {0};
    static const struct json_field FIELDS[] = {
        ROW("measure", struct raw, measure, JSON_REQUIRED),
        ROW("why", struct raw, why, JSON_REQUIRED),
    };
    struct bench_lack *lack = &r->answer->lacks[r->answer->n_lacks];
    if (json_decode(at, r->arena, FIELDS, ARRAY_LEN(FIELDS), &raw, err) < 0 ||
        read_measure(at, r, raw.measure, &lack->measure, err) < 0) {
        return -1;
    }
    lack->why = plain(r->arena, raw.why);
    r->answer->n_lacks++;
    return 0;
}

static int read_list(const struct json *root, const char *key, struct bench_reading *r,
                     int (*read_one)(const struct json *at, struct bench_reading *r,
                                     struct err *err),
                     struct err *err)
{
    struct json list, item;
    size_t n;
    if (json_member(root, key, &list, err) < 0 ||
        json_expect_array(&list, NODE_BENCH_SERIES_MAX, &n, err) < 0) {
        return -1;
    }
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (read_one(&item, r, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Each measure is either present, with the messages that are judged, or listed as missing. */
static int check_whole(const struct json *root, const struct bench_reading *r, struct err *err)
{
    for (size_t idx = 0; idx < BENCH_MEASURES; idx++) {
        const struct bench_measure *measure = &BENCH_MEASURE[idx];
        int n = 0;
        for (size_t at = 0; at < r->answer->n_series; at++) {
            n += r->answer->series[at].measure == measure &&
                 r->answer->series[at].size_bytes == measure->size_bytes;
        }
        for (size_t at = 0; at < r->answer->n_lacks; at++) {
            n += r->answer->lacks[at].measure == measure;
        }
        if (measure->what == r->what && measure->kind != BENCH_DRIFT && n != 1) {
            return json_fail(root, err, "%s is there %d times, expected once", measure->id, n);
        }
    }
    if (r->sum_ns > (double)r->took_ns) {
        return json_fail(root, err, "its repeats add up to %.3f s, but all of it took %.3f s",
                         r->sum_ns / 1e9, (double)r->took_ns / 1e9);
    }
    return 0;
}

static int read_all(const struct json *root, struct bench_reading *r, struct err *err)
{
    struct raw {
        int64_t version;
        struct str what, cpu_model;
        int64_t cpus, gpus;
    } raw = {0};
    static const struct json_field FIELDS[] = {
        ROW("schema_version", struct raw, version, JSON_REQUIRED, .min = 1, .max = 1),
        ROW("what", struct raw, what, JSON_REQUIRED),
        ROW("cpu_model", struct raw, cpu_model, JSON_REQUIRED),
        ROW("cpus", struct raw, cpus, JSON_REQUIRED, .min = 1, .max = CPUS_MAX),
        ROW("gpus", struct raw, gpus, JSON_REQUIRED, .max = GPUS_MAX),
        ROW_ANY("series", JSON_REQUIRED),
        ROW_ANY("notes", JSON_REQUIRED),
        ROW_ANY("not_measured", JSON_REQUIRED),
    };
    /* The busy loop is requested by its own name. */
    const char *what = r->what == BENCH_CLOCK ? "loop"
                       : r->what == BENCH_NET ? "link"
                                              : WHAT_NAMES[r->what];
    struct bench_answer *answer = r->answer;
    struct json notes;
    if (json_decode(root, r->arena, FIELDS, ARRAY_LEN(FIELDS), &raw, err) < 0) {
        return -1;
    }
    if (!str_eq_z(raw.what, what)) {
        return json_fail(root, err, "expected an answer about %s", what);
    }
    answer->cpu_model = plain(r->arena, raw.cpu_model);
    answer->cpus = raw.cpus;
    answer->gpus = raw.gpus;
    if (read_list(root, "series", r, read_series, err) < 0 ||
        read_list(root, "not_measured", r, read_lack, err) < 0 ||
        json_member(root, "notes", &notes, err) < 0 ||
        json_str_list(&notes, r->arena, NOTES_MAX, &answer->notes, &answer->n_notes, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < answer->n_notes; idx++) {
        answer->notes[idx] = plain(r->arena, answer->notes[idx]);
    }
    return check_whole(root, r, err);
}

int bench_answer_read(struct arena *arena, struct str text, enum bench_what what, int64_t took_ns,
                      struct bench_answer *ret_answer, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct bench_answer *answer = arena_new(arena, struct bench_answer);
    struct bench_reading r = {.arena = arena, .what = what, .took_ns = took_ns, .answer = answer};
    int rc = json_parse(text, "its answer", &doc, err);
    if (rc == 0) {
        struct json root = json_root(&doc);
        rc = read_all(&root, &r, err);
    }
    if (rc < 0) {
        err->code = ERR_NODE;
        return what == BENCH_GPU ? err_wrap(err, "reperf-bench gpus")
                                 : err_wrap(err, "reperf-node bench %s", WHAT_NAMES[what]);
    }
    *ret_answer = *answer;
    return 0;
}
