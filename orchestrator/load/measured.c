/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "load/measured.h"

#include "base/strbuf.h"
#include "load/log_reader.h"
#include "log/engine.h"

#define WHY_BYTES      512
#define SURVEYED_BYTES (1u << 20)

/* ---- the format ---- */

/* Why no format reads it, with the next step where its first bytes are those of another kind of file. */
static const char *why_unread(struct str text)
{
    static const struct {
        struct str begin;
        const char *why;
    } KINDS[] = {
        {{"PK\3\4", 4},
         "it is a ZIP archive, as .xlsx tables are, and no log: unzip it, or export the sheet as "
         "CSV"},
        {{"\xd0\xcf\x11\xe0", 4}, "it is an old Office document and no log: export it as CSV"},
        {{"%PDF-", 5}, "it is a PDF and no log: copy its text into a file"},
        {{"\x1f\x8b", 2}, "it is compressed: gzip -dc FILE | reperf measure -"},
        {{"\x28\xb5\x2f\xfd", 4}, "it is compressed: zstd -dc FILE | reperf measure -"},
        {{"\xfd\x37zXZ", 5}, "it is compressed: xz -dc FILE | reperf measure -"},
        {{"BZh", 3}, "it is compressed: bzip2 -dc FILE | reperf measure -"},
        {{"\x89HDF", 4}, "it is an HDF5 file and no log"},
        {{"SQLite format 3", 15}, "it is an SQLite database and no log: export the table as CSV"},
        {{":W&B", 4},
         "it is W&B's binary file and no log: export the run's history as CSV or JSON lines"},
        {{"PAR1", 4}, "it is a Parquet table and no log: export it as CSV"},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(KINDS); idx++) {
        if (str_starts(text, KINDS[idx].begin)) {
            return KINDS[idx].why;
        }
    }
    return text.len ? "no known format reads anything in it" : "it is empty";
}

/* f->format stays NULL where none or several are found: then f says so. */
static int choose_format(struct arena *arena, const struct measure_ask *ask, struct measured *f,
                         struct err *err)
{
    CLEANUP(strbuf) struct strbuf why = STRBUF(WHY_BYTES);
    struct guess guess;
    if (!ask->guesser) {
        f->format = ask->set->items[0];
        return 0;
    }
    if (measure_choose(ask->guesser, ask->set, f->path, &guess, err) < 0) {
        return -1;
    }
    f->beside = arena_array(arena, struct measured, guess.n_beside + 1);
    for (f->n_beside = 0; f->n_beside < guess.n_beside; f->n_beside++) {
        f->beside[f->n_beside].format = guess.beside[f->n_beside];
    }
    f->fits_several = guess.n > 1;
    if (guess.n == 1) {
        f->format = guess.formats[0];
        return 0;
    }
    f->verdict = judgement_unread(guess.n);
    strbuf_add_z(&why, guess.n ? "several formats fit; --format chooses one:"
                               : why_unread(log_first(arena, f->path)));
    for (size_t idx = 0; idx < guess.n; idx++) {
        strbuf_printf(&why, "%s %.*s", idx ? "," : "", STR_ARG(guess.formats[idx]->id));
    }
    f->why = str_dup(arena, strbuf_str(&why));
    return 0;
}

/* By name or by reading; where nothing reads it, in another form. */
static int find_known(struct arena *arena, const struct measure_ask *ask, struct log_forms *forms,
                      struct measured *f, struct err *err)
{
    const char *other;
    if (choose_format(arena, ask, f, err) < 0) {
        return -1;
    }
    if (f->format && str_eq_z(f->format->id, "csv") &&
        (other = log_forms_join_rows(forms, f->path))) {
        f->path = other;
    }
    if (f->format || f->fits_several || !(other = log_forms_strip(forms, f->path))) {
        return 0;
    }
    f->path = other;
    return choose_format(arena, ask, f, err);
}

static int find_format(struct arena *arena, const struct measure_ask *ask, struct log_forms *forms,
                       struct measured *f, struct err *err)
{
    const char *path = f->path;
    if (!ask->makes_format && find_known(arena, ask, forms, f, err) < 0) {
        return -1;
    }
    if (f->format || f->fits_several) {
        return 0;
    }
    const char *other = log_forms_flatten(forms, path);
    f->path = other ? other : path;
    if (ask->makes_format) { /* what holds unless the proposal says otherwise */
        f->verdict = judgement_unread(0);
        f->why =
            STR_LIT("no number in it is said to be a rate or the time of a step, with its unit; a "
                    "known format may read it, without --suggest");
    }
    return ask->propose ? ask->propose(ask, arena, f, err) : 0;
}

/* ---- the measurement ---- */

static int64_t known(int64_t stated, int64_t given)
{
    return stated > 0 ? stated : given;
}

/* The series of the rule, if one was asked for, else the primary one and its rule. That rule only serves to read the counts:
   judge chooses again by them, since a rule may need a batch that is not known. */
static int read_series(struct arena *arena, const struct measure_ask *ask, struct measured *f,
                       struct err *err)
{
    const struct reading how = {f->format, f->path, true, f->rule ? f->rule->series : STR_EMPTY,
                                false};
    if (measure_file(arena, &how, &f->m, NULL, err) < 0) {
        return -1;
    }
    f->series = f->rule ? measurement_series(&f->m, f->rule->series) : measurement_primary(&f->m);
    f->rule = f->rule ? f->rule : format_rule_of(f->format, f->series->name);
    f->number.unit = f->series->unit;
    f->counts = identity_counts(f->format, &f->m, f->rule);
    f->of = (struct rule_case){.gpus = known(f->counts.gpus, ask->gpus),
                               .nodes = known(f->counts.nodes, ask->nodes),
                               .batch_per_gpu = known(f->counts.batch_per_gpu, ask->batch)};
    return 0;
}

/* A format that is named and reads nothing of one JSON document may be of its numbers, each on a line: what --suggest makes of
   it. */
static int read_document(struct arena *arena, const struct measure_ask *ask,
                         struct log_forms *forms, struct measured *f, struct err *err)
{
    const char *other = ask->guesser || f->series->n > 0 ? NULL : log_forms_flatten(forms, f->path);
    if (!other) {
        return 0;
    }
    f->path = other;
    return read_series(arena, ask, f, err);
}

/* ---- what the log holds against its number ---- */

/* One figure of the whole run, against what else the log says of that run. */
static int check_arithmetic(struct arena *arena, struct measured *f, struct err *err)
{
    CLEANUP(survey) struct survey *own = NULL;
    const struct survey *survey = f->survey;
    const struct series *s = f->series;
    bool is_one =
        s->n == 1 || s->quantity == QTY_SUMMARY || (survey && s->quantity == QTY_RUNNING_MEAN);
    if (s->n == 0 || !is_one ||
        (!survey && !arithmetic_is_likely(log_text(arena, f->path, SURVEYED_BYTES)))) {
        return 0;
    }
    if (!survey) {
        survey = own = survey_new(f->format->vocabulary);
        if (measure_survey(own, f->path, err) < 0) {
            return -1;
        }
    }
    f->arithmetic = arithmetic_check(arena, survey, s->samples[s->n - 1].value, s->last_line);
    if (f->arithmetic.state == ARITHMETIC_CONTRADICTS) {
        engine_contradict(&f->m, s->last_line, f->arithmetic.said);
    }
    return 0;
}

static int check_doubts(struct arena *arena, struct measured *f, struct err *err)
{
    if (check_arithmetic(arena, f, err) < 0) {
        return -1;
    }
    struct str doubt = identity_counts_doubt(arena, f->format, &f->m, f->rule);
    if (doubt.len) {
        engine_contradict(&f->m, 0, doubt);
    }
    return 0;
}

/* ---- the number ---- */

static void judge(struct arena *arena, const struct measure_ask *ask, struct measured *f)
{
    struct err err = {0};
    f->rule = ask->rule ? f->rule : number_rule(f->format, f->series, &f->of);
    const struct judgement j = judgement_of(arena, &f->m, f->rule, DEMAND_PART);
    f->verdict = j.verdict;
    f->why = j.why;
    f->m.causes = j.causes;
    if (!j.gives) {
        return;
    }
    f->has_value = number_make(&f->m, f->series, f->rule, &f->of, &f->number, &err) == 0;
    if (!f->has_value && !f->rule && number_has_rows(f->series)) {
        f->verdict = judgement_undecided();
        f->why = STR_LIT("the table has rows for several GPU counts; --gpus chooses one");
    } else if (!f->has_value) {
        f->why = str_dup(arena, str_of(err.msg));
    }
}

/* By a format that was not asked for. */
static int judge_by(struct arena *arena, const struct measure_ask *ask, struct measured *f,
                    struct err *err)
{
    if (read_series(arena, ask, f, err) < 0) {
        return -1;
    }
    judge(arena, ask, f);
    return 0;
}

/* A format made from a log's own lines knows less of it than one that is known: what that finds wrong stays wrong. */
static int take_objection(struct arena *arena, const struct measure_ask *ask, struct measured *f,
                          struct err *err)
{
    struct measured by = {.file = f->file, .path = f->path};
    if (choose_format(arena, ask, &by, err) < 0 ||
        (by.format && judge_by(arena, ask, &by, err) < 0)) {
        return -1;
    }
    if (by.format && judgement_objects(by.verdict, f->verdict)) {
        f->verdict = by.verdict;
        f->why = str_printf(arena, "by format %.*s %.*s", STR_ARG(by.format->id), STR_ARG(by.why));
        f->has_value = f->has_value && judgement_is_part(f->verdict);
    }
    return 0;
}

static int find_rule(struct arena *arena, const struct measure_ask *ask, struct measured *f,
                     struct err *err)
{
    const struct rule *rules = f->format->rules;
    size_t n = f->format->n_rules;
    const char *there = "";
    f->rule = ask->rule ? format_rule(f->format, str_of(ask->rule)) : NULL;
    if (!ask->rule || f->rule) {
        return 0;
    }
    for (size_t idx = 0; idx < n; idx++) {
        there = arena_printf(arena, "%s%s%.*s", there, idx ? ", " : "", STR_ARG(rules[idx].id));
    }
    return err_set(err, ERR_USAGE, "no rule \"%.60s\" for this format; there are %.400s", ask->rule,
                   there);
}

int measured_log(struct arena *arena, const struct measure_ask *ask, struct log_forms *forms,
                 struct measured *f, struct err *err)
{
    f->path = f->file;
    if (log_forms_lines(forms, &f->path, err) < 0 || find_format(arena, ask, forms, f, err) < 0) {
        return -1;
    }
    if (!f->format) {
        return 0;
    }
    f->why = STR_EMPTY;
    if (find_rule(arena, ask, f, err) < 0 || read_series(arena, ask, f, err) < 0 ||
        read_document(arena, ask, forms, f, err) < 0 || check_doubts(arena, f, err) < 0) {
        return -1;
    }
    judge(arena, ask, f);
    if (ask->makes_format && take_objection(arena, ask, f, err) < 0) {
        return -1;
    }
    f->is_proposed = ask->guesser && f->format->is_proposed &&
                     f->arithmetic.state != ARITHMETIC_CONFIRMS; /* or the log itself says so */
    if (f->is_proposed && judgement_is_ok(f->verdict)) {
        f->verdict = judgement_proposed(f->verdict);
        f->why = STR_LIT("the format is a proposal, and nothing confirms what it reads");
    }
    for (size_t idx = 0; idx < f->n_beside; idx++) {
        f->beside[idx].file = f->file;
        f->beside[idx].path = f->path;
        if (judge_by(arena, ask, &f->beside[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}
