/* SPDX-License-Identifier: Apache-2.0 */
/* reperf measure: logs of any origin to series, a number and a parse verdict. */
#include "base/base.h"

#include "cmd/cmd.h"
#include "cmd/guests.h"
#include "cmd/measure_parts.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/strbuf.h"
#include "base/table.h"
#include "judge/identity.h"
#include "load/load.h"
#include "load/measure.h"
#include "log/survey.h"
#include "store/dataset_store.h"

#include <math.h>

#define TEXT_BYTES_MAX (64u << 20)
#define WHY_BYTES      512
#define SURVEYED_BYTES (1u << 20)

struct args {
    const char *format;
    const char *rule;
    const char *pattern, *unit, *suggest;
    const char *results, *dataset;
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
    OPT(struct args, dataset, "dataset",
        "dataset that an epoch goes through: its steps times the job's batch are its samples",
        .value = "DATASET"),
    OPT(struct args, results, "results",
        "with a checkout of an MLPerf round: the table of its results", .value = "CSV"),
    OPT(struct args, allows_incomplete, "allow-incomplete", "an incomplete log is not a failure"),
    OPT(struct args, want_json, "json", "one JSON document instead of a table"),
    OPT_END,
};

/* The log's own number counts, else the one given. */
static struct rule_case case_of(const struct args *args, const struct finding_of_log *f)
{
    return (struct rule_case){.gpus = f->counts.gpus > 0 ? f->counts.gpus : args->gpus,
                              .nodes = f->counts.nodes > 0 ? f->counts.nodes : args->nodes,
                              .batch_per_gpu = f->counts.batch_per_gpu > 0 ? f->counts.batch_per_gpu
                                                                           : args->batch};
}

/* A given number must not contradict the one that the log states. */
static int check_asked(const struct args *args, const struct finding_of_log *f, struct err *err)
{
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
    return 0;
}

static void judge(struct arena *arena, const struct args *args, const struct format *format,
                  struct finding_of_log *f)
{
    const struct rule_case of = case_of(args, f);
    struct made_number number;
    f->rule = args->rule ? f->rule : number_rule(format, f->series, &of);
    const struct judgement j = judgement_of(arena, &f->m, f->rule, DEMAND_PART);
    struct err err = {0};
    f->verdict = j.verdict;
    f->why = j.why;
    f->m.causes = j.causes;
    if (!j.gives) {
        return;
    }
    if (number_make(&f->m, f->series, f->rule, &of, &number, &err) < 0) {
        if (!f->rule && number_has_rows(f->series)) {
            f->verdict = judgement_undecided();
            f->why = STR_LIT("the table has rows for several GPU counts; --gpus chooses one");
        } else {
            f->why = str_dup(arena, str_of(err.msg));
        }
        return;
    }
    f->has_value = true;
    f->value = number.made;
    f->figure = number.figure;
    f->unit = number.unit;
}

/* With what logs are read. */
struct source {
    const struct args *args;
    const struct format_set *set;
    struct guesser *guesser; /* of these; NULL: one is named */
    struct log_head *head;
    const char *root;
    struct proposal *proposal; /* of the log at hand */
    struct format_set *suggested;
    struct spools *spools; /* of the log at hand */
};

/* What is given and not used would be taken for granted. */
static int check_used(const struct args *args, const struct finding_of_log *f, struct err *err)
{
    const struct rule *rule = f->rule;
    bool takes_batch =
        rule && (rule->scale == SCALE_GLOBAL_BATCH || rule->scale == SCALE_GLOBAL_BATCH_OVER ||
                 rule->statistic == STAT_TIMESTAMPS);
    return args->batch == 0 || args->dataset || takes_batch || f->counts.batch_per_gpu > 0
               ? 0
               : err_set(err, ERR_USAGE,
                         "%s: --batch %" PRId64 " is not used: %s takes no batch; --rule names one "
                         "that does",
                         f->file, args->batch, rule ? "the rule" : "a number without a rule");
}

static bool is_named(const struct args *args)
{
    return args->pattern || (args->format && strcmp(args->format, "auto") != 0);
}

/* *ret_format NULL where auto finds none or several: then f says so. */
static int choose_format(struct arena *arena, const struct source *from, struct finding_of_log *f,
                         const struct format **ret_format, struct err *err)
{
    CLEANUP(strbuf) struct strbuf why = STRBUF(WHY_BYTES);
    const struct args *args = from->args;
    struct guess guess;
    if (is_named(args)) {
        *ret_format = from->set->items[0]; /* load_wanted */
        return 0;
    }
    if (measure_choose(from->guesser, from->set, f->path, from->head, &guess, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < guess.n_beside && f->n_sidecars < SIDECARS_MAX; idx++) {
        f->sidecars[f->n_sidecars++].format = guess.beside[idx];
    }
    *ret_format = guess.n == 1 ? guess.formats[0] : NULL;
    if (guess.n == 1) {
        return 0;
    }
    f->verdict = judgement_unread(guess.n);
    f->fits_several = guess.n > 1;
    strbuf_add_z(&why, guess.n ? "several formats fit; --format chooses one:"
                               : measure_why_unread(from->head));
    for (size_t idx = 0; idx < guess.n; idx++) {
        strbuf_printf(&why, "%s %.*s", idx ? "," : "", STR_ARG(format_id(guess.formats[idx])));
    }
    f->why = str_dup(arena, strbuf_str(&why));
    return 0;
}

/* One figure of the whole run, against what else the log says of that run. */
static int check_arithmetic(struct arena *arena, const struct source *from,
                            const struct format *format, struct finding_of_log *f, struct err *err)
{
    CLEANUP(survey) struct survey *own = NULL;
    const struct survey *survey = from->proposal->survey;
    const struct series *s = f->series;
    struct str head = {from->head->ptr, from->head->len};
    bool is_one =
        s->n == 1 || s->quantity == QTY_SUMMARY || (survey && s->quantity == QTY_RUNNING_MEAN);
    if (!s->lines || s->n == 0 || !is_one) {
        return 0;
    }
    if (!survey &&
        !(from->head->is_whole && head.len <= SURVEYED_BYTES && arithmetic_is_likely(head))) {
        return 0;
    }
    if (!survey) {
        survey = own = survey_new(format_vocabulary(format));
        if (measure_survey(own, f->path, from->head, err) < 0) {
            return -1;
        }
    }
    f->arithmetic = arithmetic_check(arena, survey, s->samples[s->n - 1].value, s->lines[s->n - 1]);
    if (f->arithmetic.state == ARITHMETIC_CONTRADICTS) {
        engine_contradict(&f->m, s->lines[s->n - 1], f->arithmetic.said);
    }
    return 0;
}

/* An epoch of fewer steps than the dataset's samples fill went through a part of it, whatever its speed. */
static int check_dataset(struct arena *arena, const struct source *from, struct finding_of_log *f,
                         struct err *err)
{
    const struct rule_case of = case_of(from->args, f);
    struct dataset_here here;
    double batch = (double)of.gpus * (double)of.batch_per_gpu;
    double found = (double)f->m.epoch_steps * batch;
    int64_t samples = -1;
    if (!from->args->dataset) {
        return 0;
    }
    if (dataset_load(arena, &(struct dataset_which){.root = from->root, .id = from->args->dataset},
                     &here, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < here.dataset.n_splits; idx++) {
        const struct dataset_split *split = &here.dataset.splits[idx];
        samples = str_eq_z(split->name, "train") ? split->n_samples : samples;
    }
    if (samples <= 0 || !(found > 0)) {
        return err_set(err, ERR_USAGE, "%s: --dataset %s is not used: %s", f->file,
                       from->args->dataset,
                       samples <= 0            ? "how many samples it has is not known"
                       : f->m.epoch_steps <= 0 ? "the log does not say how many steps an epoch has"
                                               : "it takes --gpus and --batch, too");
    }
    if (fabs(found - (double)samples) >= batch) { /* a last batch may be a part, or left out */
        const char *said = arena_printf(
            arena, "an epoch of %" PRId64 " steps of %.0f samples is of %.0f, and %s has %" PRId64,
            f->m.epoch_steps, batch, found, from->args->dataset, samples);
        engine_contradict(&f->m, 0, str_of(said));
    }
    return 0;
}

/* The series of the rule, if f has one, else the primary one and its rule. */
static int read_by(struct arena *arena, const struct source *from, const struct format *format,
                   struct finding_of_log *f, struct err *err)
{
    const struct reading how = {format, f->path,   true, f->rule ? f->rule->series : STR_EMPTY,
                                true,   from->head};
    f->format = format_id(format);
    if (measure_file(arena, &how, &f->m, NULL, err) < 0) {
        return -1;
    }
    f->series = f->rule ? measurement_series(&f->m, f->rule->series) : measurement_primary(&f->m);
    f->rule = f->rule ? f->rule : format_rule_of(format, f->series->name);
    f->unit = f->series->unit;
    f->counts = identity_counts(format, &f->m, f->rule);
    return 0;
}

/* By a format that was not asked for. */
static int judge_by(struct arena *arena, const struct source *from, const struct format *format,
                    struct finding_of_log *as, struct err *err)
{
    if (read_by(arena, from, format, as, err) < 0) {
        return -1;
    }
    judge(arena, from->args, format, as);
    return 0;
}

static int measure_sidecars(struct arena *arena, const struct source *from,
                            struct finding_of_log *f, struct err *err)
{
    for (size_t idx = 0; idx < f->n_sidecars; idx++) {
        struct sidecar *b = &f->sidecars[idx];
        struct finding_of_log as = {.file = f->file, .path = f->path};
        if (judge_by(arena, from, b->format, &as, err) < 0) {
            return -1;
        }
        b->verdict = as.verdict;
        b->series = as.series;
        b->has_value = as.has_value;
        b->value = as.value.value;
    }
    return 0;
}

/* No format reads it, or one is to be made: what is in it, and with --suggest the format for it. */
static int propose(struct arena *arena, const struct source *from, struct finding_of_log *f,
                   const struct format **ret_format, struct err *err)
{
    struct proposal *proposal = from->proposal;
    const struct proposal_want want = {.root = from->root,
                                       .file = from->args->suggest,
                                       .makes = from->args->suggest != NULL,
                                       .unit = str_of(from->args->unit),
                                       .log = f->file,
                                       .path = f->path,
                                       .head = from->head};
    if (GUESTS.proposer->propose(arena, &want, proposal, from->suggested, err) < 0) {
        return -1;
    }
    if (proposal->why.ptr) {
        f->verdict = proposal->verdict;
        f->why = proposal->why;
    }
    f->proposal = proposal;
    if (from->suggested->n == 1) {
        *ret_format = from->suggested->items[0];
        f->proposal = NULL;
        log_line(LOG_INFO, "%s: written; --format %s reads logs like this one", want.file,
                 want.file);
    } else if (want.file) {
        log_line(LOG_WARN, "%s: not written", want.file);
    }
    return 0;
}

/* A format made from a log's own lines knows less of it than one that is known: what that finds wrong stays wrong. */
static int heed_known(struct arena *arena, const struct source *from, struct finding_of_log *f,
                      struct err *err)
{
    struct finding_of_log known = {.file = f->file, .path = f->path};
    const struct format *format = NULL;
    if (choose_format(arena, from, &known, &format, err) < 0 ||
        (format && judge_by(arena, from, format, &known, err) < 0)) {
        return -1;
    }
    if (format && judgement_objects(known.verdict, f->verdict)) {
        f->verdict = known.verdict;
        f->why = str_of(
            arena_printf(arena, "by format %.*s %.*s", STR_ARG(known.format), STR_ARG(known.why)));
        f->has_value = f->has_value && judgement_is_part(f->verdict);
    }
    return 0;
}

/* Where no format fits: the lines without their common prefix, then the numbers of a JSON document. */
static int try_forms(struct arena *arena, const struct source *from, struct finding_of_log *f,
                     const struct format **ret_format, struct err *err)
{
    const char *path = f->path;
    if (f->fits_several || is_named(from->args)) {
        return 0;
    }
    const char *stripped = measure_strip(from->spools, from->head);
    if (stripped) {
        f->path = stripped;
        if (choose_format(arena, from, f, ret_format, err) < 0) {
            return -1;
        }
    }
    if (!*ret_format) {
        const char *flat = measure_flatten(from->spools, path);
        f->path = flat ? flat : path;
        from->head->is_whole = false; /* it holds another form */
    }
    return 0;
}

static void join_rows(const struct source *from, struct finding_of_log *f,
                      const struct format *format)
{
    const char *joined =
        str_eq_z(format_id(format), "csv") ? measure_join_rows(from->spools, from->head) : NULL;
    if (joined) {
        f->path = joined;
        from->head->is_whole = false;
    }
}

/* By name, by reading, in another form, or proposed; NULL: f says why there is none. */
static int find_format(struct arena *arena, const struct source *from, struct finding_of_log *f,
                       const struct format **ret_format, struct err *err)
{
    const struct args *args = from->args;
    *ret_format = NULL;
    if (args->suggest || (args->unit && !args->pattern)) {
        f->verdict = judgement_unread(0);
        f->why =
            STR_LIT("no number in it is said to be a rate or the time of a step, with its unit");
    } else if (choose_format(arena, from, f, ret_format, err) < 0) {
        return -1;
    }
    if (*ret_format) {
        join_rows(from, f, *ret_format);
    } else if (try_forms(arena, from, f, ret_format, err) < 0) {
        return -1;
    }
    if (!*ret_format && !f->fits_several && GUESTS.proposer &&
        propose(arena, from, f, ret_format, err) < 0) {
        return -1;
    }
    return 0;
}

static int measure_one(struct arena *arena, const struct source *from, struct finding_of_log *f,
                       struct err *err)
{
    const struct args *args = from->args;
    const struct format *format = NULL;
    from->head->is_whole = false;
    const char *unpacked = measure_decompress(from->spools, f->path);
    f->path = unpacked ? unpacked : f->path;
    if (measure_events(from->spools, &f->path, err) < 0 ||
        find_format(arena, from, f, &format, err) < 0) {
        return -1;
    }
    if (!format) {
        return 0;
    }
    f->why = STR_EMPTY;
    f->rule = args->rule ? format_rule(format, str_of(args->rule)) : NULL;
    if (args->rule && !f->rule) {
        return measure_name_rules(format, args->rule, err);
    }
    if (read_by(arena, from, format, f, err) < 0 ||
        check_arithmetic(arena, from, format, f, err) < 0) {
        return -1;
    }
    struct str doubt = identity_counts_doubt(arena, format, &f->m, f->rule);
    if (doubt.len) {
        engine_contradict(&f->m, 0, doubt);
    }
    if (check_asked(args, f, err) < 0 || check_dataset(arena, from, f, err) < 0) {
        return -1;
    }
    judge(arena, args, format, f);
    if (check_used(args, f, err) < 0 || (args->suggest && heed_known(arena, from, f, err) < 0)) {
        return -1;
    }
    f->is_proposed = format_is_proposed(format) && !is_named(args);
    if (f->is_proposed && f->arithmetic.state == ARITHMETIC_CONFIRMS) {
        f->is_proposed = false; /* the log itself says that the number is what its words say */
    }
    if (f->is_proposed && judgement_is_ok(f->verdict)) {
        f->verdict = judgement_proposed(f->verdict);
        f->why = STR_LIT("the format is a proposal, and nothing confirms what it reads");
    }
    return measure_sidecars(arena, from, f, err);
}

/* Where the results go, as the logs are read one after the other. */
struct measure_sink {
    const struct args *args;
    struct strbuf buf;
    struct json_out json;
    struct table table;
    size_t n_files;
    int status; /* of the first log that fails */
};

static void sink_cleanup(struct measure_sink *sink)
{
    strbuf_release(&sink->buf);
    table_release(&sink->table);
}

static int put_result(struct measure_sink *sink, const struct finding_of_log *f, struct err *err)
{
    if (!sink->args->want_json) {
        measure_add_row(&sink->table, f);
        measure_add_details(&sink->buf, f, sink->n_files == 1);
        if (f->why.len) {
            log_line(LOG_WARN, "%s: %.*s", f->file, STR_ARG(f->why));
        }
        return 0;
    }
    if (sink->n_files > 1) {
        jw_object(&sink->json, NULL);
    }
    if (measure_put_log(&sink->json, f, err) < 0) {
        return -1;
    }
    if (sink->n_files > 1) {
        jw_end_object(&sink->json);
    }
    return measure_flush(&sink->buf, FLUSH_BYTES, err);
}

/* An unreadable log is one entry among several; the others still count. */
static void put_error(struct measure_sink *sink, const char *file, const struct err *err)
{
    log_line(LOG_ERROR, "%s", err->msg);
    sink->status = sink->status ? sink->status : err_exit_status(err->code);
    if (sink->args->want_json) {
        jw_object(&sink->json, NULL);
        jw_z(&sink->json, "file", file);
        jw_z(&sink->json, "error", err->msg);
        jw_end_object(&sink->json);
    }
}

/* A log's result, and its effect on the exit status. */
static int take_result(struct measure_sink *sink, const struct finding_of_log *f, struct err *err)
{
    bool is_given =
        f->has_value && (!judgement_is_part(f->verdict) || sink->args->allows_incomplete);
    int status = !is_given ? STATUS_NOT_READ : f->is_proposed ? STATUS_PROPOSED : 0;
    sink->status = sink->status ? sink->status : status;
    return put_result(sink, f, err);
}

static void proposal_cleanup(struct proposal *proposal)
{
    if (GUESTS.proposer) {
        GUESTS.proposer->release(proposal);
    }
}

static int measure_each(const struct cmd_ctx *ctx, const struct format_set *set,
                        const struct opt_list *files, struct measure_sink *sink, struct err *err)
{
    CLEANUP(log_head) struct log_head head = {0};
    CLEANUP(guesser) struct guesser *guesser = is_named(sink->args) ? NULL : guesser_new(set);
    struct progress progress;
    progress_start(&progress, ctx->clock, "measure", "logs", files->n);
    for (size_t idx = 0; idx < files->n; idx++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        CLEANUP(format_set) struct format_set suggested = {0};
        CLEANUP(proposal) struct proposal proposal = {0};
        CLEANUP(spools) struct spools spools = {.arena = &arena};
        const struct source from = {sink->args, set,       guesser,    &head,
                                    ctx->root,  &proposal, &suggested, &spools};
        struct finding_of_log f = {.file = files->items[idx], .path = files->items[idx]};
        struct err why = {0};
        bool is_input = strcmp(f.file, "-") == 0;
        if ((is_input && measure_spool(&spools, &f.path, &why) < 0) ||
            measure_one(&arena, &from, &f, &why) < 0) {
            if (files->n == 1 || why.code == ERR_USAGE) {
                *err = why;
                progress_end(&progress);
                return -1;
            }
            put_error(sink, f.file, &why);
        } else if (take_result(sink, &f, err) < 0) {
            progress_end(&progress);
            return -1;
        }
        progress_set(&progress, idx + 1);
    }
    progress_end(&progress);
    return 0;
}

static int print_end(struct measure_sink *sink, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_BYTES_MAX);
    if (sink->args->want_json) {
        if (sink->n_files > 1) {
            jw_end_array(&sink->json);
        }
        jw_end_object(&sink->json);
        strbuf_add_char(&sink->buf, '\n');
        return measure_flush(&sink->buf, 0, err);
    }
    table_render(&sink->table, &text);
    strbuf_add_str(&text, strbuf_str(&sink->buf));
    return cmd_print(strbuf_str(&text), err);
}

static int load_pattern(struct arena *arena, const char *root, const struct args *args,
                        struct format_set *ret_set, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_BYTES_MAX);
    struct given_format given = {STR_LIT("pattern"), str_of(args->pattern), str_of(args->unit),
                                 NULL};
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

/* The named format alone, or all of them for auto. */
static int load_wanted(struct arena *arena, const char *root, const struct args *args,
                       struct format_set *ret_set, struct err *err)
{
    CLEANUP(format_set) struct format_set all = {0};
    const char *id = args->format;
    if (args->pattern) {
        return load_pattern(arena, root, args, ret_set, err);
    }
    if (id && load_is_format_file(id)) {
        return load_format_file(arena, root, id, ret_set, err);
    }
    if (!id || strcmp(id, "auto") == 0) {
        return load_formats(arena, root, ret_set, err);
    }
    if (load_format(arena, root, id, ret_set, err) < 0 || ret_set->n == 1) {
        return ret_set->n == 1 ? 0 : -1;
    }
    return load_formats(arena, root, &all, err) < 0 ? -1 : measure_name_formats(&all, id, err);
}

static int measure_files(const struct cmd_ctx *ctx, const struct args *args,
                         const struct opt_list *files, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(format_set) struct format_set set = {0};
    CLEANUP(sink) struct measure_sink sink = {.args = args, .n_files = files->n};
    strbuf_init(&sink.buf, TEXT_BYTES_MAX);
    sink.table = table_of("file|format|>records|>steps|scope|>value|unit|>used|verdict");
    if (load_wanted(&arena, ctx->root, args, &set, err) < 0) {
        return -1;
    }
    if (args->want_json) {
        jw_begin(&sink.json, &sink.buf, true);
        jw_object(&sink.json, NULL);
        jw_i64(&sink.json, "schema_version", 1);
        if (files->n > 1) {
            jw_array(&sink.json, "files");
        }
    }
    if (measure_each(ctx, &set, files, &sink, err) < 0 || print_end(&sink, err) < 0) {
        return -1;
    }
    return sink.status;
}

static int check_args(const struct args *args, const struct opt_list *files, struct err *err)
{
    size_t n_stdin = 0;
    for (size_t idx = 0; idx < files->n; idx++) {
        n_stdin += strcmp(files->items[idx], "-") == 0;
    }
    if (files->n == 0 || n_stdin > 1) {
        return err_set(err, ERR_USAGE, "measure: expected at least one log file, and - only once");
    }
    if (args->results) {
        return err_set(err, ERR_USAGE, "measure: --results goes with the checkout of a round");
    }
    if (!GUESTS.proposer && (args->pattern || args->unit || args->suggest)) {
        return err_set(err, ERR_USAGE,
                       "measure: this program has no --pattern, --unit and --suggest");
    }
    if (args->pattern && (!args->unit || args->format || args->suggest)) {
        return err_set(err, ERR_USAGE,
                       "--pattern needs --unit, and goes without --format and --suggest");
    }
    if (args->unit && args->format) {
        return err_set(err, ERR_USAGE, "--unit goes without --format: the format has its units");
    }
    if (args->suggest && (args->format || files->n > 1)) {
        return err_set(err, ERR_USAGE, "--suggest takes one log, and goes without --format");
    }
    return 0;
}

/* Results of MLPerf, to which no option but two applies. */
static int measure_rounds(const struct cmd_ctx *ctx, const struct args *args,
                          const struct opt_list *folders, size_t n_rounds, struct err *err)
{
    const struct folder_args as = {folders, args->results, args->want_json};
    bool has_other = args->format || args->rule || args->dataset || args->pattern || args->unit ||
                     args->suggest || args->gpus || args->nodes || args->batch ||
                     args->allows_incomplete;
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
    int status;
    if (measure_expand(call->arena, &call->operands, &n_rounds, err) < 0) {
        status = -1;
    } else if (n_rounds > 0) {
        status = measure_rounds(ctx, args, &call->operands, n_rounds, err);
    } else {
        status = check_args(args, &call->operands, err) < 0
                     ? -1
                     : measure_files(ctx, args, &call->operands, err);
    }
    VEC_RELEASE(&call->operands);
    return status;
}

const struct cmd CMD_MEASURE =
    CMD("measure", "FILE... | FOLDER...", "read logs of any origin: series, number, parse verdict",
        OPTS, run, CMD_ARGS(struct args));
