/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/cmd.h"
#include "cmd/store_args.h"
#include "sys/stop.h"

#define OUTPUT_MAX  (256u << 20)
#define GRACE_S_MAX (3650 * INT64_C(86400))

/* Of all verbs; from gc's on, those of gc; the last is everybody's. */
static const struct opt OPTS[] = {
    OPT(struct store_args, is_quick, "quick",
        "verify: do not read blobs again that have not changed since they were read"),
    OPT(struct store_args, is_dry_run, "dry-run", "gc: list what would be dropped, drop nothing",
        .letter = 'n'),
    OPT(struct store_args, grace_s, "grace",
        "gc: keep what is younger (default a day; a week for interrupted fetches)",
        .value = "SECONDS", .min = 0, .max = GRACE_S_MAX),
    OPT(struct store_args, want_json, "json", "print one JSON document"),
    OPT_END,
};
#define GC_OPTS   (OPTS + 1)
#define JSON_OPTS (OPTS + 3)

static const struct verb {
    const char *name;
    size_t operands_min, operands_max;
    const char *expected;
    int (*run)(struct store_cmd *cmd, struct err *err);
} VERBS[] = {
    {"ls", 0, 0, "no operand", store_ls},
    {"gc", 0, 0, "no operand", store_gc_now},
    {"verify", 0, 0, "no operand", store_check},
    {"add", 1, SIZE_MAX, "FILE...", store_add},
    {"path", 1, 1, "sha256:HEX, md5:HEX, NAME or KIND/NAME", store_path_of},
    {"drop", 1, 1, "KIND/NAME", store_drop},
};

char *store_size_text(struct arena *arena, uint64_t size_bytes)
{
    static const char *const UNITS[] = {"kB", "MB", "GB", "TB"};
    double size = (double)size_bytes / 1000;
    size_t unit = 0;
    if (size_bytes < 1000) {
        return arena_printf(arena, "%llu B", (unsigned long long)size_bytes);
    }
    /* From 999.95 on one decimal would show 1000.0 of the smaller unit. */
    for (; size >= 999.95 && unit + 1 < ARRAY_LEN(UNITS); size /= 1000) {
        unit++;
    }
    return arena_printf(arena, "%.1f %s", size, UNITS[unit]);
}

static const struct verb *find_verb(const char *name, struct err *err)
{
    static const char EXPECTED[] = "store: expected ls, gc, verify, add, path or drop";
    for (size_t idx = 0; name && idx < ARRAY_LEN(VERBS); idx++) {
        if (strcmp(VERBS[idx].name, name) == 0) {
            return &VERBS[idx];
        }
    }
    (void)!(name ? err_set(err, ERR_USAGE, "%s, found \"%.100s\"", EXPECTED, name)
                 : err_set(err, ERR_USAGE, "%s", EXPECTED));
    return NULL;
}

/* An option of another verb would have no effect and is refused. */
static int check_options(const struct verb *verb, const struct store_args *args, struct err *err)
{
    bool is_gc = strcmp(verb->name, "gc") == 0;
    if (!is_gc && (args->is_dry_run || args->grace_s >= 0)) {
        return err_set(err, ERR_USAGE, "store %s: --dry-run and --grace are for gc", verb->name);
    }
    if (args->is_quick && strcmp(verb->name, "verify") != 0) {
        return err_set(err, ERR_USAGE, "store %s: --quick is for verify", verb->name);
    }
    return 0;
}

/* operands: those after the verb. */
static int carry_out(const struct cmd_ctx *ctx, const struct verb *verb,
                     const struct store_args *args, const char *const *operands, size_t n,
                     struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(store) struct store store = STORE_EMPTY;
    CLEANUP(strbuf) struct strbuf buf = {0};
    struct json_out out;
    struct store_cmd cmd = {.ctx = ctx,
                            .args = args,
                            .arena = &arena,
                            .store = &store,
                            .operands = operands,
                            .n_operands = n,
                            .buf = &buf,
                            .out = &out};
    int status;
    strbuf_init(&buf, OUTPUT_MAX);
    if (store_open(&arena, ctx->store, &store, err) < 0) {
        return -1;
    }
    jw_begin(&out, &buf, false);
    if (args->want_json) {
        jw_object(&out, NULL);
        jw_i64(&out, "schema_version", 1);
        jw_z(&out, "command", verb->name);
        jw_z(&out, "store", store.folder);
    }
    status = verb->run(&cmd, err);
    if (status < 0) {
        return -1;
    }
    if (args->want_json) {
        jw_end_object(&out);
    }
    if (buf.is_full) {
        return err_set(err, ERR_IO, "store %s: the output is longer than %u bytes", verb->name,
                       OUTPUT_MAX);
    }
    return cmd_print(strbuf_str(&buf), err) < 0 ? -1 : status;
}

static int run_verb(const struct cmd_ctx *ctx, const struct verb *verb,
                    const struct store_args *args, const char *const *operands, size_t n,
                    struct err *err)
{
    int status;
    if (n < verb->operands_min || n > verb->operands_max) {
        return err_set(err, ERR_USAGE, "%s: expected %s, found %zu operands", verb->name,
                       verb->expected, n);
    }
    if (check_options(verb, args, err) < 0) {
        return -1;
    }
    stop_hold();
    status = carry_out(ctx, verb, args, operands, n, err);
    return status < 0 ? stop_end(err) : status;
}

static int run_store(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(opt_list) struct opt_list operands = {0};
    struct store_args args = {.grace_s = -1};
    const struct verb *verb;
    if (opt_parse(OPTS, argc, argv, &args, &operands, err) < 0) {
        return -1;
    }
    verb = find_verb(operands.n ? operands.items[0] : NULL, err);
    return verb ? run_verb(ctx, verb, &args, operands.items + 1, operands.n - 1, err) : -1;
}

const struct cmd CMD_STORE = {
    "store", "ls|gc|verify|add FILE...|path NAME|drop KIND/NAME",
    "list, check and extend what was fetched, drop what nothing references", OPTS, run_store};

static int run_named(const struct cmd_ctx *ctx, const char *name, const struct opt *opts, int argc,
                     char **argv, struct err *err)
{
    CLEANUP(opt_list) struct opt_list operands = {0};
    struct store_args args = {.grace_s = -1};
    const struct verb *verb = find_verb(name, err);
    return !verb || opt_parse(opts, argc, argv, &args, &operands, err) < 0
               ? -1
               : run_verb(ctx, verb, &args, operands.items, operands.n, err);
}

int store_verify_all(const struct cmd_ctx *ctx, const struct store_args *args, struct err *err)
{
    return run_verb(ctx, find_verb("verify", err), args, NULL, 0, err);
}

static int run_ls(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    return run_named(ctx, "ls", JSON_OPTS, argc, argv, err);
}

static int run_gc(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    return run_named(ctx, "gc", GC_OPTS, argc, argv, err);
}

static int run_add(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    return run_named(ctx, "add", JSON_OPTS, argc, argv, err);
}

static int run_path(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    return run_named(ctx, "path", JSON_OPTS, argc, argv, err);
}

static int run_drop(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    return run_named(ctx, "drop", JSON_OPTS, argc, argv, err);
}

const struct cmd DATA_LS = {"ls", "", "what the store holds, for what, and its size", JSON_OPTS,
                            run_ls};
const struct cmd DATA_GC = {"gc", "", "drop what nothing references", GC_OPTS, run_gc};
const struct cmd DATA_ADD = {
    "add", "FILE...", "put files that were downloaded by hand into the store", JSON_OPTS, run_add};
const struct cmd DATA_PATH = {"path", "sha256:HEX|md5:HEX|NAME|KIND/NAME",
                              "where in the store the bytes of a name are", JSON_OPTS, run_path};
const struct cmd DATA_DROP = {"drop", "KIND/NAME", "remove a reference; gc then drops its bytes",
                              JSON_OPTS, run_drop};
