/* SPDX-License-Identifier: Apache-2.0 */
/* reperf measure: logs of any origin to series, a number and a parse verdict. */
#include "base/base.h"

#include "base/log.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "cmd/guests.h"
#include "codec/json.h"
#include "load/load.h"
#include "view/measured_out.h"

#define FORMAT_BYTES_MAX (1u << 20)
#define DETAILS_MAX      (64u << 20)

struct args {
    const char *format;
    const char *rule;
    const char *pattern, *unit, *suggest;
    const char *results;
    int64_t gpus, nodes, batch;
    bool want_json, allows_incomplete;
};

static const struct opt OPTS[] = {
    OPT(struct args, format, "format",
        "format of the logs, by name or file (default auto: by reading)", .letter = 'f',
        .value = "FORMAT"),
    OPT(struct args, pattern, "pattern",
        "instead of a format: a regular expression with a group (?<value>...)", .letter = 'p',
        .value = "REGEX"),
    OPT(struct args, unit, "unit", "unit of the pattern's value, or of a number without one",
        .letter = 'u', .value = "UNIT"),
    OPT(struct args, suggest, "suggest",
        "write a format made from the log's own lines, and measure with it", .value = "FILE"),
    OPT(struct args, rule, "rule",
        "rule that turns the series into a number (default: of rates, items over time)",
        .letter = 'r', .value = "RULE"),
    OPT(struct args, gpus, "gpus", "GPUs of the job, if the log does not state it", .letter = 'g',
        .value = "N", .min = 1, .max = 1000000),
    OPT(struct args, nodes, "nodes", "nodes of the job, if the log does not state it",
        .letter = 'n', .value = "N", .min = 1, .max = 1000000),
    OPT(struct args, batch, "batch", "batch of one GPU, if the log does not state it",
        .letter = 'b', .value = "N", .min = 1, .max = 1000000000),
    OPT(struct args, results, "results",
        "with a checkout of an MLPerf round: the table of its results", .value = "CSV"),
    OPT(struct args, allows_incomplete, "allow-incomplete", "an incomplete log is not a failure"),
    OPT(struct args, want_json, "json", "one JSON document instead of a table"),
    OPT_END,
};

/* ---- how the logs are measured ---- */

static bool is_named(const struct args *args)
{
    return args->pattern || (args->format && strcmp(args->format, "auto") != 0);
}

/* The named format alone, or all of them for auto. */
static int load_wanted(struct arena *arena, const char *root, const struct args *args,
                       struct format_set *ret_set, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(FORMAT_BYTES_MAX);
    struct given_format given = {STR_LIT("pattern"), str_of(args->pattern), str_of(args->unit),
                                 NULL};
    if (!is_named(args)) {
        return load_formats(arena, root, ret_set, err);
    }
    if (!args->pattern) {
        return load_format_named(arena, root, args->format, ret_set, err);
    }
    if (load_vocabulary(arena, root, &given.vocabulary, err) < 0 ||
        GUESTS.proposer->given(&given, &text, err) < 0) {
        return -1;
    }
    if (load_format_text(arena, root, strbuf_str(&text), "--pattern", ret_set, err) < 0) {
        err->code = ERR_USAGE;
        return -1;
    }
    return 0;
}

/* The number of each log that is read, and where it goes. */
struct measuring {
    const struct args *args;
    const char *root;
    size_t n_files;
    struct json_out *json;
    struct table table;
    struct strbuf details;      /* below the table */
    int status;                 /* of the first log that fails */
    struct proposal proposal;   /* of the log at hand */
    struct format_set proposed; /* the format that was made of it */
};

static void measuring_cleanup(struct measuring *m)
{
    table_release(&m->table);
    strbuf_release(&m->details);
}

/* What is in a log that no format reads, and with --suggest the format for it. */
static int propose(const struct measure_ask *ask, struct arena *arena, struct measured *f,
                   struct err *err)
{
    struct measuring *m = ask->ctx;
    const struct proposal_want want = {.root = m->root,
                                       .file = m->args->suggest,
                                       .makes = m->args->suggest != NULL,
                                       .unit = str_of(m->args->unit),
                                       .log = f->file,
                                       .path = f->path};
    if (GUESTS.proposer->propose(arena, &want, &m->proposal, &m->proposed, err) < 0) {
        return -1;
    }
    f->survey = m->proposal.survey;
    if (m->proposal.why.ptr) {
        f->verdict = m->proposal.verdict;
        f->why = m->proposal.why;
    }
    if (m->proposed.n == 1) {
        f->format = m->proposed.items[0];
        log_line(LOG_INFO, "%s: written; --format %s reads logs like this one", want.file,
                 want.file);
    } else if (want.file) {
        log_line(LOG_WARN, "%s: not written", want.file);
    }
    return 0;
}

/* What is given must not contradict the log; and what is not used would be taken for granted. */
static int check_given(const struct args *args, const struct measured *f, struct err *err)
{
    const struct rule *rule = f->rule;
    const struct {
        const char *option;
        int64_t asked, stated;
    } counts[] = {{"--gpus", args->gpus, f->counts.gpus},
                  {"--nodes", args->nodes, f->counts.nodes},
                  {"--batch", args->batch, f->counts.batch_per_gpu}};
    for (size_t idx = 0; idx < ARRAY_LEN(counts); idx++) {
        if (counts[idx].asked > 0 && counts[idx].stated > 0 &&
            counts[idx].asked != counts[idx].stated) {
            return err_set(err, ERR_PARSE, "%s: %s %" PRId64 ", and the log states %" PRId64,
                           f->file, counts[idx].option, counts[idx].asked, counts[idx].stated);
        }
    }
    bool takes_batch =
        rule && (rule->scale == SCALE_GLOBAL_BATCH || rule->scale == SCALE_GLOBAL_BATCH_OVER ||
                 rule->statistic == STAT_TIMESTAMPS);
    return !f->format || args->batch == 0 || takes_batch || f->counts.batch_per_gpu > 0
               ? 0
               : err_set(err, ERR_USAGE,
                         "%s: --batch %" PRId64 " is not used: %s takes no batch; --rule names one "
                         "that does",
                         f->file, args->batch, rule ? "the rule" : "a number without a rule");
}

/* ---- what is said of each ---- */

static void put_text(struct measuring *m, const struct measured *f, bool has_proposal)
{
    measured_add_row(&m->table, f);
    if (m->n_files == 1 && has_proposal) {
        GUESTS.proposer->add(&m->details, f->file, &m->proposal);
    }
    if (m->n_files == 1) {
        measured_text(f, &m->details);
    } else if (measured_lacks_end(f)) { /* rows of several stand alone */
        log_line(LOG_INFO, "%s: %s", f->file, measured_lacks_end(f));
    }
    if (f->why.len) {
        log_line(LOG_WARN, "%s: %.*s", f->file, STR_ARG(f->why));
    }
}

static void put_json(struct measuring *m, const struct measured *f, bool has_proposal,
                     const struct err *failed)
{
    if (m->n_files > 1) {
        jw_object(m->json, NULL);
    }
    if (failed) {
        jw_z(m->json, "file", f->file);
        jw_z(m->json, "error", failed->msg);
    } else {
        measured_encode(f, m->json);
    }
    if (!failed && has_proposal) {
        GUESTS.proposer->put(m->json, &m->proposal);
    }
    if (m->n_files > 1) {
        jw_end_object(m->json);
    }
}

/* failed: it could not be read, which is one entry among several; the others still count. */
static void put_log(struct measuring *m, const struct measured *f, const struct err *failed)
{
    const struct args *args = m->args;
    bool has_proposal = !f->format && f->survey;
    bool is_given = f->has_value && (!judgement_is_part(f->verdict) || args->allows_incomplete);
    int status = failed           ? err_exit_status(failed->code)
                 : !is_given      ? STATUS_NOT_READ
                 : f->is_proposed ? STATUS_PROPOSED
                                  : 0;
    m->status = m->status ? m->status : status;
    if (failed) {
        log_line(LOG_ERROR, "%s", failed->msg);
    }
    if (args->want_json) {
        put_json(m, f, has_proposal, failed);
    } else if (!failed) {
        put_text(m, f, has_proposal);
    }
}

/* One log fails alone among several, but not by what was asked. */
static int measure_one(struct measuring *m, const struct measure_ask *ask, const char *file,
                       struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(log_forms) struct log_forms forms = {.arena = &arena};
    struct measured f = {.file = file};
    struct err why = {0};
    m->proposal = (struct proposal){0};
    bool has_failed =
        measured_log(&arena, ask, &forms, &f, &why) < 0 || check_given(m->args, &f, &why) < 0;
    bool ends = has_failed && (m->n_files == 1 || why.code == ERR_USAGE);
    if (!ends) {
        put_log(m, &f, has_failed ? &why : NULL);
    } else {
        *err = why;
    }
    if (GUESTS.proposer) {
        GUESTS.proposer->release(&m->proposal);
    }
    format_set_release(&m->proposed);
    return ends ? -1 : 0;
}

static int measure_files(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    CLEANUP(format_set) struct format_set set = {0};
    CLEANUP(guesser) struct guesser *guesser = NULL;
    const struct args *args = call->args;
    const struct opt_list *files = &call->operands;
    struct json_out json;
    CLEANUP(measuring)
    struct measuring m = {.args = args,
                          .root = ctx->root,
                          .n_files = files->n,
                          .json = &json,
                          .table = table_of(MEASURED_COLUMNS),
                          .details = STRBUF(DETAILS_MAX)};
    struct measure_ask ask = {.set = &set,
                              .rule = args->rule,
                              .gpus = args->gpus,
                              .nodes = args->nodes,
                              .batch = args->batch,
                              .propose = GUESTS.proposer ? propose : NULL,
                              .ctx = &m,
                              .makes_format = args->suggest || (args->unit && !args->pattern)};
    struct progress progress;
    int rc = 0;
    if (load_wanted(call->arena, ctx->root, args, &set, err) < 0) {
        return -1;
    }
    ask.guesser = guesser = is_named(args) ? NULL : guesser_new(&set);
    if (args->want_json) {
        jw_begin(&json, call->out, true);
        jw_object(&json, NULL);
        jw_i64(&json, "schema_version", 1);
    }
    if (args->want_json && files->n > 1) {
        jw_array(&json, "files");
    }
    progress_start(&progress, ctx->clock, "measure", "logs", files->n);
    for (size_t idx = 0; rc == 0 && idx < files->n; idx++) {
        rc = measure_one(&m, &ask, files->items[idx], err);
        progress_set(&progress, idx + 1);
    }
    progress_end(&progress);
    if (args->want_json && files->n > 1) {
        jw_end_array(&json);
    }
    if (args->want_json) {
        jw_end_object(&json);
        strbuf_add_char(call->out, '\n');
    } else {
        table_render(&m.table, call->out);
        strbuf_add_str(call->out, strbuf_str(&m.details));
    }
    return rc < 0 ? -1 : m.status;
}

static int check_args(const struct args *args, const struct opt_list *files, struct err *err)
{
    size_t n_stdin = 0;
    for (size_t idx = 0; idx < files->n; idx++) {
        n_stdin += strcmp(files->items[idx], "-") == 0;
    }
    const struct {
        bool is_wrong;
        const char *says;
    } rules[] = {
        {files->n == 0 || n_stdin > 1,
         "measure: expected a FILE or FOLDER of logs, and - only once"},
        {args->results, "measure: --results goes with the checkout of a round"},
        {!GUESTS.proposer && (args->pattern || args->unit || args->suggest),
         "measure: this program has no --pattern, --unit and --suggest"},
        {args->pattern && (!args->unit || args->format || args->suggest),
         "--pattern needs --unit, and goes without --format and --suggest"},
        {args->unit && args->format, "--unit goes without --format: the format has its units"},
        {args->suggest && (args->format || files->n > 1),
         "--suggest takes one log, and goes without --format"},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(rules); idx++) {
        if (rules[idx].is_wrong) {
            return err_set(err, ERR_USAGE, "%s", rules[idx].says);
        }
    }
    return 0;
}

/* Results of MLPerf, to which no option but two applies. */
static int measure_rounds(const struct cmd_ctx *ctx, const struct args *args,
                          const struct opt_list *folders, size_t n_rounds, struct err *err)
{
    const struct folder_args as = {folders, args->results, args->want_json};
    bool has_other = args->format || args->rule || args->pattern || args->unit || args->suggest ||
                     args->gpus || args->nodes || args->batch || args->allows_incomplete;
    if (n_rounds < folders->n || has_other || !GUESTS.measure_folders) {
        return err_set(
            err, ERR_USAGE,
            !GUESTS.measure_folders ? "measure: this program does not score results of MLPerf"
            : has_other ? "measure: folders of MLPerf's results take --results and --json alone"
                        : "measure: folders of MLPerf's results go without other logs");
    }
    return GUESTS.measure_folders(ctx, &as, err);
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct args *args = call->args;
    size_t n_rounds;
    if (log_forms_expand(call->arena, &call->operands, &n_rounds, err) < 0) {
        return -1;
    }
    if (n_rounds > 0) {
        return measure_rounds(ctx, args, &call->operands, n_rounds, err);
    }
    return check_args(args, &call->operands, err) < 0 ? -1 : measure_files(ctx, call, err);
}

const struct cmd CMD_MEASURE =
    CMD("measure", "FILE... | FOLDER...", "read logs of any origin: series, number, parse verdict",
        OPTS, run, CMD_ARGS(struct args));
