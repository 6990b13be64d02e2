/* SPDX-License-Identifier: Apache-2.0 */
/* `nodes bench`: measures the nodes and finds outliers. */
#include "base/base.h"

#include "base/fs.h"
#include "base/log.h"
#include "cmd/history_nodes.h"
#include "cmd/nodes.h"
#include "cmd/nodes_fleet.h"
#include "load/load_limits.h"
#include "store/image_spec.h"
#include "store/lock_file.h"
#include "sys/stop.h"
#include "view/bench_out.h"
#include "view/html.h"

#define OUTPUT_MAX        (256u << 20)
#define REPEATS_DEFAULT   7
#define REPEATS_MIN       3 /* fewer have no spread */
#define REPEATS_MAX       199
#define SAMPLE_DEFAULT_MS 50
#define DISK_DEFAULT_MIB  64
#define SAMPLE_DEEP_MS    20
#define DISK_DEEP_MIB     16
#define CONFIRM_DEFAULT   2
#define CONFIRM_MAX       10
#define LIMIT_DEFAULT_S   120
#define LIMIT_MAX_S       3600
#define MIB_MAX           (INT64_C(1) << 23)
#define PORT_MAX          60000
#define OUTAGE_NS         (5 * NS_PER_S)
#define BENCH_NAME_MAX    200             /* bytes of a file's name */
#define IMAGE_DEFAULT     "reperf-cuda12" /* runs on all GPUs from V100 on */

struct bench_args {
    struct opt_list only;
    const char *nodes, *limits, *html;
    const char *image, *runtime, *locks;
    int64_t fanout, repeats, confirm, sample_ms, memory_mib, disk_mib, port, limit_s;
    bool want_json, want_junit;
};

#define AT(member) offsetof(struct bench_args, member)
static const struct opt OPTS[] = {
    {"confirm", 0, OPT_I64, "N",
     "how often a measurement with an outlier is repeated, for its whole group (2)", AT(confirm), 0,
     CONFIRM_MAX},
    {"disk-mib", 0, OPT_I64, "N", "size of the file in the work folder (64)", AT(disk_mib), 1,
     MIB_MAX},
    {"fanout", 'f', OPT_I64, "N", "nodes at one time, but for the network (64)", AT(fanout), 1,
     INVENTORY_NODES_MAX},
    {"html", 0, OPT_TEXT, "FILE", "also a page for a browser", AT(html), 0, 0},
    {"image", 0, OPT_TEXT, "IMAGE",
     "that has reperf-bench, for GPUs: by its id or reference (reperf-cuda12)", AT(image), 0, 0},
    {"json", 0, OPT_FLAG, NULL, "print one JSON document", AT(want_json), 0, 0},
    {"junit", 0, OPT_FLAG, NULL, "print JUnit XML", AT(want_junit), 0, 0},
    {"limits", 0, OPT_TEXT, "FILE",
     "when a node is an outlier, instead of manifests/node-bench.json", AT(limits), 0, 0},
    {"locks", 0, OPT_TEXT, "DIR", "the image's pin is taken from there (manifests/locks)",
     AT(locks), 0, 0},
    {"memory-mib", 0, OPT_I64, "N",
     "of memory at most, of a GPU's too (each of three arrays four times the caches)",
     AT(memory_mib), 3, MIB_MAX},
    {"nodes", 'w', OPT_TEXT, "SET", "only these nodes of the inventory", AT(nodes), 0, 0},
    {"only", 0, OPT_LIST, "WHAT", "memory, flops, disk, clock, net or gpu; may be repeated (all)",
     AT(only), 0, 0},
    {"port", 0, OPT_I64, "N", "node K listens on port N + K for another (29600)", AT(port), 1024,
     PORT_MAX},
    {"repeats", 0, OPT_I64, "N", "of each measurement (7)", AT(repeats), REPEATS_MIN, REPEATS_MAX},
    {"runtime", 0, OPT_TEXT, "ENGINE", "that runs the image (the inventory's)", AT(runtime), 0, 0},
    {"sample-ms", 0, OPT_I64, "MS", "that a repeat of a rate takes (50)", AT(sample_ms), 1, 10000},
    {"timeout", 't', OPT_I64, "SECONDS", "of one measurement on one node (120)", AT(limit_s), 1,
     LIMIT_MAX_S},
    OPT_END,
};
#undef AT

static int read_only(const struct opt_list *only, bool *wants, struct err *err)
{
    for (size_t idx = 0; idx < only->n; idx++) {
        enum bench_what what;
        if (!bench_what_of_name(str_of(only->items[idx]), &what) || what == BENCH_RING) {
            return err_set(err, ERR_USAGE,
                           "--only %.60s: expected memory, flops, disk, clock, net or gpu",
                           only->items[idx]);
        }
        wants[what] = true;
    }
    for (int what = 0; what < BENCH_WHATS; what++) {
        wants[what] = wants[what] || only->n == 0;
    }
    wants[BENCH_RING] = wants[BENCH_NET];
    return 0;
}

static void say_stage(void *ctx UNUSED, const char *stage)
{
    log_line(LOG_INFO, "measuring: %s", stage);
}

static int show(const struct bench_args *args, const struct bench_view *view, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text, page;
    strbuf_init(&text, OUTPUT_MAX);
    strbuf_init(&page, HTML_BYTES_MAX);
    if (args->html) {
        bench_out_page(view, &page);
    }
    if (args->want_json) {
        bench_out_json(view, &text);
    } else if (args->want_junit) {
        bench_out_junit(view, &text);
    } else {
        bench_out_text(view, &text);
    }
    if (text.is_full || page.is_full) {
        return err_set(err, ERR_INTERNAL, "more than %u bytes to print", OUTPUT_MAX);
    }
    if (args->html && fs_write_atomic(args->html, strbuf_str(&page), err) < 0) {
        return -1;
    }
    return cmd_print(strbuf_str(&text), err);
}

/* STATE/nodes-bench/TIME-INVENTORY.json: what `history --nodes` lists, and `run --gate` takes. */
static int keep(struct arena *arena, const struct cmd_ctx *ctx, const struct bench_view *view,
                struct err *err)
{
    CLEANUP(strbuf) struct strbuf text, name;
    const char *folder = fs_join(arena, ctx->state, BENCH_HISTORY_FOLDER);
    const char *path;
    strbuf_init(&text, OUTPUT_MAX);
    strbuf_init(&name, BENCH_NAME_MAX);
    bench_out_json(view, &text);
    for (const char *at = view->time; *at; at++) {
        if (*at != '-' && *at != ':') {
            strbuf_add_char(&name, *at);
        }
    }
    strbuf_add_char(&name, '-');
    for (size_t idx = 0; idx < view->inventory->id.len && idx < BENCH_NAME_MAX / 2; idx++) {
        char c = view->inventory->id.ptr[idx];
        bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        strbuf_add_char(&name, is_plain || c == '-' ? c : '_');
    }
    strbuf_add_z(&name, ".json");
    path = fs_join(arena, folder, name.ptr);
    if (text.is_full) {
        return err_set(err, ERR_INTERNAL, "more than %u bytes to keep", OUTPUT_MAX);
    }
    if (fs_mkdir_p(folder, err) < 0 || fs_write_atomic(path, strbuf_str(&text), err) < 0) {
        return -1;
    }
    log_line(LOG_INFO, "kept as %s", path);
    return 0;
}

struct measured { /* borrowed by a view of it */
    struct bench_limits limits;
    struct bench_gpu_opts gpu;
    struct image_spec image;
    struct store store;
    struct bench_opts opts;
    struct bench_result result;
    char time[RFC3339_MAX];
    struct bench_view view;
};

/* Whoever names no image learns why GPUs are not measured only if there are any. */
static int choose_image(struct arena *arena, const struct cmd_ctx *ctx,
                        const struct bench_args *args, const struct inventory *inventory,
                        struct measured *m, struct err *err)
{
    const char *name = args->image ? args->image : IMAGE_DEFAULT;
    const char *equals = strchr(name, '='); /* as `run --image` has it: ID=NAME@DIGEST */
    const char *locks = lock_folder(arena, ctx->root, args->locks);
    struct err why = {0};
    m->gpu = (struct bench_gpu_opts){.image = &m->image};
    if (!m->opts.wants[BENCH_GPU]) {
        return 0;
    }
    if (nodes_runtime(args->runtime, inventory, &m->gpu.runtime, err) < 0) {
        return -1;
    }
    if (m->gpu.runtime == RUNTIME_NONE) {
        (void)!err_set(&why, ERR_USAGE,
                       "inventory %.*s has runtime none: --runtime says what runs the image of "
                       "reperf-bench",
                       STR_ARG(inventory->id));
    } else if (image_spec_load(arena, ctx->root, locks, equals ? equals + 1 : name, &m->image,
                               &why) == 0 &&
               !inventory->registry.ptr && store_open(arena, ctx->store, &m->store, &why) == 0) {
        m->gpu.store = &m->store;
    }
    if (why.code != ERR_NONE && args->image) {
        *err = why;
        return -1;
    }
    m->gpu.why_not = why.code != ERR_NONE ? arena_printf(arena, "%s", why.msg) : NULL;
    return 0;
}

static int measure_nodes(struct arena *arena, const struct cmd_ctx *ctx,
                         const struct bench_args *args, struct nodes_fleet *nodes,
                         struct measured *m, struct err *err)
{
    if (read_only(&args->only, m->opts.wants, err) < 0 ||
        choose_image(arena, ctx, args, &nodes->inventory, m, err) < 0 ||
        load_bench_limits(arena, ctx->root, args->limits, &m->limits, err) < 0) {
        return -1;
    }
    if (nodes->fleet.n_nodes > (size_t)(UINT16_MAX - m->opts.port)) {
        return err_set(err, ERR_USAGE, "--port %lld: no room for a port of each of %zu nodes",
                       (long long)m->opts.port, nodes->fleet.n_nodes);
    }
    clock_rfc3339(ctx->clock.wall_ns(ctx->clock.ctx), m->time);
    return bench_nodes_run(arena, &nodes->fleet, &m->opts, &m->result, err);
}

/* Measures and keeps. */
static int measure(struct arena *arena, const struct cmd_ctx *ctx, const struct bench_args *args,
                   struct nodes_fleet *nodes, struct measured **ret_measured, struct err *err)
{
    struct measured *m = arena_new(arena, struct measured);
    m->store = STORE_EMPTY;
    m->opts = (struct bench_opts){.n_repeats = args->repeats,
                                  .n_confirm = args->confirm,
                                  .sample_ms = args->sample_ms,
                                  .memory_bytes = args->memory_mib << 20,
                                  .disk_bytes = args->disk_mib << 20,
                                  .port = args->port,
                                  .limit_s = args->limit_s,
                                  .limits = &m->limits,
                                  .gpu = &m->gpu,
                                  .clock = ctx->clock,
                                  .on_stage = say_stage};
    m->view = (struct bench_view){&nodes->inventory, &m->opts, &m->result, m->time};
    int rc = measure_nodes(arena, ctx, args, nodes, m, err);
    store_close(&m->store);
    if (rc < 0 || keep(arena, ctx, &m->view, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < m->result.n_nodes; idx++) {
        if (m->result.nodes[idx].err.code != ERR_NONE) {
            log_line(LOG_ERROR, "%.*s: %s", STR_ARG(m->result.nodes[idx].spec->name),
                     m->result.nodes[idx].err.msg);
        }
    }
    *ret_measured = m;
    return 0;
}

static const struct bench_args DEFAULTS = {.repeats = REPEATS_DEFAULT,
                                           .confirm = CONFIRM_DEFAULT,
                                           .sample_ms = SAMPLE_DEFAULT_MS,
                                           .disk_mib = DISK_DEFAULT_MIB,
                                           .port = BENCH_PORT_DEFAULT,
                                           .limit_s = LIMIT_DEFAULT_S};

int nodes_bench_deep(struct arena *arena, const struct cmd_ctx *ctx, const char *inventory,
                     const struct nodes_deep *deep, struct err *err)
{
    CLEANUP(nodes_fleet) struct nodes_fleet nodes = {0};
    struct nodes_fleet_opts opts = {inventory, NULL, 0, OUTAGE_NS};
    struct bench_args args = DEFAULTS;
    struct measured *m;
    args.repeats = REPEATS_MIN;
    args.sample_ms = SAMPLE_DEEP_MS;
    args.disk_mib = DISK_DEEP_MIB;
    if (nodes_open(arena, ctx, &opts, &nodes, err) < 0 ||
        measure(arena, ctx, &args, &nodes, &m, err) < 0) {
        return -1;
    }
    if (deep->want_json) {
        bench_out_json(&m->view, deep->out);
    } else {
        bench_out_text(&m->view, deep->out);
    }
    return bench_exit_status(&m->result);
}

static int run(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(opt_list) struct opt_list operands = {0};
    CLEANUP(nodes_fleet) struct nodes_fleet nodes = {0};
    struct bench_args args = DEFAULTS;
    struct measured *m = NULL;
    int status = opt_parse(OPTS, argc, argv, &args, &operands, err);
    if (status == 0 && operands.n != 1) {
        status = err_set(err, ERR_USAGE, "nodes bench: expected one inventory");
    }
    if (status == 0 && args.want_json && args.want_junit) {
        status = err_set(err, ERR_USAGE, "nodes bench: either --json or --junit");
    }
    if (status == 0) {
        struct nodes_fleet_opts opts = {operands.items[0], args.nodes, args.fanout, OUTAGE_NS};
        status = nodes_open(&arena, ctx, &opts, &nodes, err);
    }
    status = status < 0 || measure(&arena, ctx, &args, &nodes, &m, err) < 0 ||
                     show(&args, &m->view, err) < 0
                 ? stop_end(err)
                 : bench_exit_status(&m->result);
    opt_list_cleanup(&args.only);
    return status;
}

const struct cmd NODES_BENCH = {"bench", "INVENTORY",
                                "measure what the nodes can do, and find outliers", OPTS, run};
