/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/cmd.h"
#include "cmd/store_args.h"
#include "sys/stop.h"

#define OUTPUT_MAX  (256u << 20)
#define GRACE_S_MAX (3650 * INT64_C(86400))

static const struct opt OPTS[] = {
    {.name = "dry-run",
     .letter = 'n',
     .kind = OPT_FLAG,
     .help = "gc: list what would be dropped, drop nothing",
     .offset = offsetof(struct store_args, is_dry_run)},
    {.name = "grace",
     .kind = OPT_I64,
     .value = "SECONDS",
     .help = "gc: keep what is younger (default a day; a week for interrupted fetches)",
     .offset = offsetof(struct store_args, grace_s),
     .min = 0,
     .max = GRACE_S_MAX},
    {.name = "quick",
     .kind = OPT_FLAG,
     .help = "verify: do not read blobs again that have not changed since they were read",
     .offset = offsetof(struct store_args, is_quick)},
    {.name = "json",
     .kind = OPT_FLAG,
     .help = "print one JSON document",
     .offset = offsetof(struct store_args, want_json)},
    OPT_END,
};

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

static const struct verb *find_verb(const struct opt_list *operands, struct err *err)
{
    static const char EXPECTED[] = "store: expected ls, gc, verify, add, path or drop";
    for (size_t idx = 0; operands->n && idx < ARRAY_LEN(VERBS); idx++) {
        const struct verb *verb = &VERBS[idx];
        if (strcmp(verb->name, operands->items[0]) != 0) {
            continue;
        }
        if (operands->n - 1 < verb->operands_min || operands->n - 1 > verb->operands_max) {
            (void)!err_set(err, ERR_USAGE, "store %s: expected %s, found %zu operands", verb->name,
                           verb->expected, operands->n - 1);
            return NULL;
        }
        return verb;
    }
    if (operands->n) {
        (void)!err_set(err, ERR_USAGE, "%s, found \"%.100s\"", EXPECTED, operands->items[0]);
    } else {
        (void)!err_set(err, ERR_USAGE, "%s", EXPECTED);
    }
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

static int run_verb(const struct cmd_ctx *ctx, const struct verb *verb,
                    const struct store_args *args, const struct opt_list *operands, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(store) struct store store = STORE_EMPTY;
    CLEANUP(strbuf) struct strbuf buf = {0};
    struct json_out out;
    struct store_cmd cmd = {.ctx = ctx,
                            .args = args,
                            .arena = &arena,
                            .store = &store,
                            .operands = operands->items + 1,
                            .n_operands = operands->n - 1,
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

static int run_store(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(opt_list) struct opt_list operands = {0};
    struct store_args args = {.grace_s = -1};
    const struct verb *verb;
    int status;
    if (opt_parse(OPTS, argc, argv, &args, &operands, err) < 0) {
        return -1;
    }
    verb = find_verb(&operands, err);
    if (!verb || check_options(verb, &args, err) < 0) {
        return -1;
    }
    stop_hold();
    status = run_verb(ctx, verb, &args, &operands, err);
    return status < 0 ? stop_end(err) : status;
}

const struct cmd CMD_STORE = {
    "store", "ls|gc|verify|add FILE...|path NAME|drop KIND/NAME",
    "list, check and extend what was fetched, drop what nothing references", OPTS, run_store};
