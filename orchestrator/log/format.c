/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "log/format.h"

#include "codec/json_table.h"
#include "log/launcher.h"
#include "report/report.h"
#include "report/vocabulary.h"

/* As of a series that does not say it: a rate, a time of steps or a score, by its unit. */
#define QUANTITY_BY_UNIT ((enum quantity)(QTY_PROGRESS + 1))

static int find_literal(const struct format *format, struct str literal)
{
    for (size_t idx = 0; idx < format->n_literals; idx++) {
        if (str_eq(format->literals[idx], literal)) {
            return (int)idx;
        }
    }
    return -1;
}

/* Gives the literal its bit. */
static int add_literal(const struct json *root, struct format *format, struct probe *probe,
                       struct err *err)
{
    int idx = find_literal(format, probe->literal);
    if (!probe->literal.len) {
        probe->bit = NO_LITERAL;
        return 0;
    }
    if (idx < 0) {
        if (format->n_literals == LITERALS_MAX) {
            return json_fail(root, err, "more than %d different literals", LITERALS_MAX);
        }
        idx = (int)format->n_literals++;
        format->literals[idx] = probe->literal;
    }
    probe->bit = (uint8_t)idx;
    return 0;
}

static int check_literal(const struct json *at, struct str literal, struct err *err)
{
    if (literal.len < LITERAL_LEN_MIN) {
        return json_fail(at, err, "expected a literal of at least %d bytes, found \"%s\"",
                         LITERAL_LEN_MIN, literal.ptr);
    }
    return memchr(literal.ptr, '\n', literal.len) || memchr(literal.ptr, '\r', literal.len)
               ? json_fail(at, err, "a literal holds no line break")
               : 0;
}

static int get_pattern(const struct json *at, struct arena *arena, void *out, struct err *err)
{
    struct err why = {0};
    struct str source;
    if (json_str(at, arena, &source, err) < 0) {
        return -1;
    }
    return pattern_new(source, out, &why) < 0 ? json_fail(at->parent, err, "%s", why.msg) : 0;
}
#define ROW_PATTERN(name, T, member, ...) ROW_GET(name, T, member, get_pattern, __VA_ARGS__)

static int check_probe(const struct json *at, struct arena *arena UNUSED, void *out,
                       struct err *err)
{
    const struct probe *probe = out;
    return check_literal(at, probe->literal, err);
}

static const struct json_field PROBE_ROWS[] = {
    ROW("literal", struct probe, literal, JSON_REQUIRED),
    ROW_PATTERN("pattern", struct probe, pattern, JSON_REQUIRED),
};
#define ROW_PROBE(name, T, member)                                                                 \
    ROW_OBJECT(name, T, member, PROBE_ROWS, JSON_NULLABLE, .check = check_probe)

/* ---- its facts ---- */

static const struct json_field FACT_SPEC_ROWS[] = {
    ROW("name", struct fact_spec, name, JSON_REQUIRED),
    ROW("literal", struct fact_spec, line.literal, 0),
    ROW_PATTERN("pattern", struct fact_spec, line.pattern, 0),
    ROW("says", struct fact_spec, says, 0),
    ROW("list", struct fact_spec, is_list, 0),
    ROW("last", struct fact_spec, is_last, 0),
    ROW("grouped", struct fact_spec, is_grouped, 0),
    ROW("in_sample", struct fact_spec, is_in_sample, 0),
    ROW("absent", struct fact_spec, is_absent, 0),
    ROW("why", struct fact_spec, why, 0),
};

static int check_fact(const struct json *at, struct arena *arena UNUSED, void *out, struct err *err)
{
    struct fact_spec *fact = out;
    if (!vocabulary_has_condition(vocabulary_of(at), fact->name) && !fact_is_of_row(fact->name)) {
        return json_fail(at, err, "\"%.60s\" is not in the list of conditions", fact->name.ptr);
    }
    if (fact->is_absent) {
        return fact->line.literal.ptr || fact->line.pattern || fact->says.ptr || fact->is_list ||
                       fact->is_last || fact->is_grouped || fact->is_in_sample || !fact->why.len
                   ? json_fail(at, err, "an absent fact has a name and \"why\" only")
                   : 0;
    }
    if (fact->why.ptr || !fact->line.literal.ptr || !fact->line.pattern) {
        return json_fail(at, err, "a fact has a literal and a pattern, or is absent");
    }
    fact->value = pattern_group(fact->line.pattern, "value");
    return (fact->value < 0) != (fact->says.len > 0)
               ? json_fail(at, err, "expected a group \"value\" in the fact's pattern, or \"says\"")
               : check_literal(at, fact->line.literal, err);
}

/* Those that are absent apart from the others. */
static int get_facts(const struct json *list, struct arena *arena, void *out, struct err *err)
{
    struct format *f = out;
    size_t n = f->n_facts;
    f->absent = arena_array(arena, struct absent_fact, n + 1);
    f->n_facts = 0;
    for (size_t idx = 0; idx < n; idx++) {
        const struct fact_spec fact = f->facts[idx];
        if (fact.is_absent) {
            f->absent[f->n_absent++] = (struct absent_fact){fact.name, fact.why};
        } else {
            f->facts[f->n_facts++] = fact;
        }
    }
    for (size_t idx = 0; idx < f->n_absent; idx++) {
        if (format_reads(f, f->absent[idx].name.ptr)) {
            return json_fail(list, err, "fact \"%.60s\" is both read and absent",
                             f->absent[idx].name.ptr);
        }
    }
    return 0;
}

/* The bits of literals, NULL at the end, that no series has. */
static int add_mask(const struct json *root, struct format *f, const char *const *texts,
                    uint64_t *ret_mask, struct err *err)
{
    for (; *texts; texts++) {
        struct probe probe = {.literal = str_of(*texts)};
        if (add_literal(root, f, &probe, err) < 0) {
            return -1;
        }
        *ret_mask |= 1ull << probe.bit;
    }
    return 0;
}

/* Messages with which any Python or CUDA program says its loss, or breaks off, or with which the kernel, Slurm or mpirun ends it.
   TensorFlow's allocator says "ran out of memory" without failing. */
static int add_crashes(const struct json *root, struct format *f, struct err *err)
{
    static const char *const CRASHES[] = {"Traceback (most recent call last)",
                                          "CUDA out of memory",
                                          "RESOURCE_EXHAUSTED",
                                          "Segmentation fault",
                                          "core dumped",
                                          "terminate called ",
                                          "KeyboardInterrupt",
                                          "Watchdog caught collective",
                                          "NCCL failure",
                                          "closing signal SIGTERM",
                                          "MPI_ABORT was invoked",
                                          "mpirun noticed that process",
                                          "oom-kill",
                                          "fallen off the bus",
                                          ", stopping training",
                                          NULL};
    static const char *const FAILED[] = {"FAIL ]", "FAILED", "failed to meet", NULL};
    /* Of these a pattern decides (parser_line.c). */
    static const char *const BROKEN[] = {"illed", "rror", " code", NULL};
    static const char *const LOSSES[] = {"loss", "Loss", NULL};
    uint64_t ignored = 0; /* such lines are looked at, whatever else they hold */
    return add_mask(root, f, LOSSES, &ignored, err) < 0 ||
                   add_mask(root, f, CRASHES, &f->crash_mask, err) < 0 ||
                   add_mask(root, f, FAILED, &f->failed_mask, err) < 0 ||
                   add_mask(root, f, BROKEN, &f->broken_mask, err) < 0 ||
                   add_mask(root, f, LAUNCHER_LITERALS, &f->launch_mask, err) < 0
               ? -1
               : 0;
}

/* "total_from" and "epochs_from" name facts. */
static int check_from(const struct format *f, const struct json *root, const char *key,
                      struct str name, struct err *err)
{
    return !name.ptr || format_reads(f, name.ptr)
               ? 0
               : json_fail(root, err, "%s: there is no fact \"%.40s\"", key, name.ptr);
}

/* ---- its series ---- */

/* Series are kept in base units: seconds, and rates of items or of steps. */
static bool is_unit_of(const struct vocabulary *v, struct str unit, enum quantity quantity)
{
    const struct word *word = words_find(&v->units, unit);
    bool is_base = word && str_eq(word->name, unit);
    bool is_rate = is_base && word_is_rate(word);
    switch (quantity) {
    case QTY_RATE:
    case QTY_RUNNING_MEAN:
        return is_rate;
    case QTY_STEP_TIME:
        return str_eq_z(unit, "s");
    case QTY_SUMMARY:
        return is_rate || str_eq_z(unit, "s");
    case QTY_CLOCK:
    case QTY_PROGRESS:
        return unit.len == 0;
    case QTY_SCORE:
        return is_base && !unit_is(v, unit, "rate") && !unit_is(v, unit, "step_rate") &&
               !unit_is(v, unit, "time");
    }
    return false;
}

static int decode_groups(const struct json *at, struct series_spec *s, struct err *err)
{
    const struct {
        const char *name;
        int *ret;
    } groups[] = {{"value", &s->value},     {"step", &s->step},     {"total", &s->total},
                  {"epoch", &s->epoch},     {"epochs", &s->epochs}, {"rank", &s->rank},
                  {"inverse", &s->inverse}, {"gpus", &s->gpus},     {"time", &s->time},
                  {"kilo", &s->kilo},       {"mega", &s->mega},     {"milli", &s->milli},
                  {"micro", &s->micro}};
    const char *name;
    for (size_t idx = 0; idx < ARRAY_LEN(groups); idx++) {
        *groups[idx].ret = pattern_group(s->line.pattern, groups[idx].name);
    }
    for (size_t at_name = 0; (name = pattern_group_name(s->line.pattern, at_name)); at_name++) {
        bool is_known = false;
        for (size_t idx = 0; idx < ARRAY_LEN(groups); idx++) {
            is_known = is_known || strcmp(name, groups[idx].name) == 0;
        }
        if (!is_known) {
            return json_fail(at, err,
                             "unknown group \"%s\" in the pattern; manifests/formats/README.md, "
                             "\"Series\", lists those there are",
                             name);
        }
    }
    bool is_bare = s->quantity == QTY_CLOCK || s->quantity == QTY_PROGRESS;
    if (is_bare != (s->value < 0)) {
        return json_fail(
            at, err, "a pattern has a group \"value\" unless its quantity is clock or progress");
    }
    if (s->quantity == QTY_PROGRESS && s->step < 0) {
        return json_fail(at, err, "expected a group \"step\" in the pattern of a progress");
    }
    if (s->epoch_from >= 0 && (s->epoch < 0 || s->step < 0)) {
        return json_fail(at, err, "\"epoch_from\" needs groups epoch and step");
    }
    if (s->quantity == QTY_CLOCK && s->time < 0) {
        return json_fail(at, err, "expected a group \"time\" in a clock's pattern");
    }
    return 0;
}

static enum quantity quantity_of_unit(const struct vocabulary *v, struct str unit)
{
    const struct word *word = words_find(&v->units, unit);
    return word && word_is_rate(word) ? QTY_RATE : str_eq_z(unit, "s") ? QTY_STEP_TIME : QTY_SCORE;
}

static int check_series(const struct json *at, struct arena *arena UNUSED, void *out,
                        struct err *err)
{
    struct series_spec *s = out;
    bool has_literal = s->line.literal.len > 0;
    s->quantity = s->quantity == QUANTITY_BY_UNIT ? quantity_of_unit(vocabulary_of(at), s->unit)
                                                  : s->quantity;
    if (!is_unit_of(vocabulary_of(at), s->unit, s->quantity)) {
        return json_fail(at, err,
                         "unit \"%.40s\" does not fit quantity %s (by its own name, not an alias: "
                         "manifests/vocabulary.json)",
                         s->unit.ptr, QUANTITY_NAMES[s->quantity]);
    }
    if (!(s->factor > 0)) {
        return json_fail(at, err, "expected a factor over 0");
    }
    if (has_literal && check_literal(at, s->line.literal, err) < 0) {
        return -1;
    }
    struct str source = pattern_source(s->line.pattern);
    int64_t word = str_find(source, STR_LIT("oss"));
    s->is_bare = has_literal && (word < 0 || word > str_find(source, STR_LIT("(?<value>")) ||
                                 str_find(source, STR_LIT("nan")) >= 0);
    if (s->like && !has_literal) {
        return json_fail(at, err, "\"like\" is for lines that hold the literal, but there is none");
    }
    if (s->until && !s->after.pattern) {
        return json_fail(at, err,
                         "\"until\" closes what \"after\" opens, but there is no \"after\"");
    }
    return decode_groups(at, s, err);
}

static int check_all_series(const struct json *list, struct arena *arena UNUSED, void *out,
                            struct err *err)
{
    const struct format *f = out;
    size_t n_primary = 0;
    for (size_t at = 0; at < f->n_series; at++) {
        const struct series_spec *s = &f->series[at];
        n_primary += s->is_primary;
        for (size_t idx = 0; idx < at; idx++) {
            if (str_eq(f->series[idx].name, s->name)) {
                return json_fail(list, err, "two series named \"%.60s\"", s->name.ptr);
            }
        }
    }
    if (n_primary == 0 && f->n_series > 0) {
        f->series[0].is_primary = true;
        n_primary = 1;
    }
    return n_primary == 1
               ? 0
               : json_fail(list, err, "expected one primary series, found %zu", n_primary);
}

static const struct series_spec SERIES_BLANK = {.factor = 1,
                                                .is_on_grid = true,
                                                .step_from = 1,
                                                .scope = SCOPE_UNKNOWN,
                                                .quantity = QUANTITY_BY_UNIT};
static const struct json_field SERIES_SPEC_ROWS[] = {
    ROW("name", struct series_spec, name, JSON_REQUIRED),
    ROW("literal", struct series_spec, line.literal, JSON_NULLABLE),
    ROW_PATTERN("pattern", struct series_spec, line.pattern, JSON_REQUIRED),
    ROW("unit", struct series_spec, unit, JSON_REQUIRED),
    ROW_WORD("scope", struct series_spec, scope, SCOPE_NAMES, JSON_NULLABLE),
    ROW_WORD("quantity", struct series_spec, quantity, QUANTITY_NAMES, 0),
    ROW("primary", struct series_spec, is_primary, 0),
    ROW("repeats", struct series_spec, repeats, 0),
    ROW("stands_in", struct series_spec, stands_in, 0),
    ROW("grid", struct series_spec, is_on_grid, 0),
    ROW("grouped", struct series_spec, is_grouped, 0),
    ROW("step_from", struct series_spec, step_from, 0, .max = 1),
    ROW("epoch_from", struct series_spec, epoch_from, JSON_MINUS, .max = 1),
    ROW("first_by", struct series_spec, first_by, JSON_MINUS, .max = INT32_MAX),
    ROW("factor", struct series_spec, factor, 0),
    ROW_PROBE("after", struct series_spec, after),
    ROW_PATTERN("like", struct series_spec, like, JSON_NULLABLE),
    ROW_PATTERN("until", struct series_spec, until, JSON_NULLABLE),
};

/* ---- the format ---- */

static int check_end(const struct json *at, struct arena *arena UNUSED, void *out, struct err *err)
{
    const struct format *f = out;
    return check_literal(at, f->end.literal, err);
}

/* A line that precedes the samples of every run; or why no log of the format shows whether its beginning is there. */
static int check_begin(const struct json *at, struct arena *arena UNUSED, void *out,
                       struct err *err)
{
    const struct format *f = out;
    if (f->is_begin_unknown || f->begin_why.ptr) {
        return f->is_begin_unknown && f->begin_why.len && !f->begin.literal.ptr && !f->begin.pattern
                   ? 0
                   : json_fail(at, err, "expected \"unknown\" true and a \"why\"");
    }
    return !f->begin.literal.ptr || !f->begin.pattern
               ? json_fail(at, err, "expected a literal and a pattern")
               : check_literal(at, f->begin.literal, err);
}

static const char *const ROLES[] = {[FORMAT_FIRST] = "first",
                                    [FORMAT_OWN] = "own",
                                    [FORMAT_SIDECAR] = "beside",
                                    [FORMAT_GENERIC] = "generic",
                                    [FORMAT_NAMED] = "named"};
static const char *const RECORDS[] = {
    [RECORD_NONE] = NULL, [RECORD_CSV] = "csv", [RECORD_JSONL] = "jsonl"};
static const char *const PREFIXES[] = {"mpirun", "srun"};
static const struct json_field END_ROWS[] = {
    ROW("literal", struct format, end.literal, JSON_REQUIRED),
    ROW_PATTERN("pattern", struct format, end.pattern, JSON_REQUIRED),
    ROW("required", struct format, needs_end, 0),
};
static const struct json_field BEGIN_ROWS[] = {
    ROW("literal", struct format, begin.literal, 0),
    ROW_PATTERN("pattern", struct format, begin.pattern, 0),
    ROW("unknown", struct format, is_begin_unknown, 0),
    ROW("why", struct format, begin_why, 0),
};
static const struct json_field ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW("id", struct format, id, JSON_REQUIRED),
    ROW("title", struct format, title, JSON_REQUIRED),
    ROW("framework", struct format, framework, 0),
    ROW("source", struct format, source, JSON_REQUIRED),
    ROW_STRS("prefixes", struct format, prefixes, n_prefixes, 0, .max = 8, .names = PREFIXES,
             .n_names = ARRAY_LEN(PREFIXES)),
    ROW_LIST("series", struct format, series, n_series, SERIES_SPEC_ROWS, JSON_REQUIRED,
             .max = FORMAT_SERIES_MAX, .check = check_series, .get = check_all_series,
             .blank = &SERIES_BLANK),
    ROW_PROBE("run_start", struct format, run_start),
    ROW_INSIDE("begin", BEGIN_ROWS, JSON_NULLABLE, .check = check_begin),
    ROW_PROBE("resumed", struct format, resumed),
    ROW_INSIDE("end", END_ROWS, JSON_NULLABLE, .check = check_end),
    ROW_PROBE("fatal", struct format, fatal),
    ROW_PROBE("done", struct format, done),
    ROW("total_from", struct format, total_from, JSON_NULLABLE),
    ROW("epochs_from", struct format, epochs_from, JSON_NULLABLE),
    ROW_WORD("role", struct format, role, ROLES, 0),
    ROW_WORD("records", struct format, records, RECORDS, 0),
    ROW("proposed", struct format, is_proposed, 0),
    ROW_LIST("facts", struct format, facts, n_facts, FACT_SPEC_ROWS, 0, .max = FORMAT_FACTS_MAX,
             .check = check_fact, .get = get_facts),
    ROW_ANY("rules", 0), /* judge/rule.c */
};

static int add_literals(const struct json *root, struct format *f, struct err *err)
{
    struct probe *const marks[] = {&f->run_start, &f->begin, &f->resumed,
                                   &f->end,       &f->fatal, &f->done};
    for (size_t idx = 0; idx < f->n_series; idx++) {
        if (add_literal(root, f, &f->series[idx].after, err) < 0 ||
            add_literal(root, f, &f->series[idx].line, err) < 0) {
            return -1;
        }
    }
    for (size_t idx = 0; idx < ARRAY_LEN(marks); idx++) {
        if (add_literal(root, f, marks[idx], err) < 0) {
            return -1;
        }
    }
    for (size_t idx = 0; idx < f->n_facts; idx++) {
        struct fact_spec *fact = &f->facts[idx];
        if (add_literal(root, f, &fact->line, err) < 0) {
            return -1;
        }
        f->fact_mask[fact->is_in_sample] |= UINT64_C(1) << fact->line.bit;
    }
    return add_crashes(root, f, err);
}

static int settle(const struct json *root, struct format *f, struct err *err)
{
    f->vocabulary = vocabulary_of(root);
    f->framework = f->framework.ptr ? f->framework : STR_LIT("any");
    f->strips_mpirun = str_is_in(STR_LIT("mpirun"), f->prefixes, f->n_prefixes);
    f->strips_srun = str_is_in(STR_LIT("srun"), f->prefixes, f->n_prefixes);
    f->done_step = f->done.pattern ? pattern_group(f->done.pattern, "step") : -1;
    if (f->done.pattern && f->done_step < 0) {
        return json_fail(root, err, "done: its pattern has a group \"step\"");
    }
    return add_literals(root, f, err) < 0 ||
                   check_from(f, root, "total_from", f->total_from, err) < 0
               ? -1
               : check_from(f, root, "epochs_from", f->epochs_from, err);
}

int format_decode(const struct json *root, struct arena *arena, struct format **ret_format,
                  struct err *err)
{
    struct format *f = arena_new(arena, struct format);
    f->search = arena_new(arena, struct literals *);
    f->role = FORMAT_OWN;
    if (json_decode(root, arena, ROWS, ARRAY_LEN(ROWS), f, err) < 0 || settle(root, f, err) < 0) {
        format_release(f);
        return -1;
    }
    *ret_format = f;
    return 0;
}

void format_release(struct format *format)
{
    if (!format) {
        return;
    }
    for (size_t idx = 0; idx < format->n_series; idx++) {
        pattern_free(format->series[idx].line.pattern);
        pattern_free(format->series[idx].after.pattern);
        pattern_free(format->series[idx].until);
        pattern_free(format->series[idx].like);
    }
    for (size_t idx = 0; idx < format->n_facts; idx++) {
        pattern_free(format->facts[idx].line.pattern);
    }
    pattern_free(format->run_start.pattern);
    pattern_free(format->begin.pattern);
    pattern_free(format->resumed.pattern);
    pattern_free(format->end.pattern);
    pattern_free(format->fatal.pattern);
    pattern_free(format->done.pattern);
    if (format->search) {
        literals_free(*format->search);
    }
    *format = (struct format){0};
}

bool format_has_series(const struct format *format, struct str name)
{
    return STR_NAMED(format->series, format->n_series, name, name) != NULL;
}

bool format_reads(const struct format *format, const char *fact)
{
    return STR_NAMED(format->facts, format->n_facts, name, str_of(fact)) != NULL;
}

struct str format_absent(const struct format *format, const char *fact)
{
    const typeof(format->absent[0]) *found =
        STR_NAMED(format->absent, format->n_absent, name, str_of(fact));
    return found ? found->why : STR_EMPTY;
}

const struct format *format_find(const struct format_set *set, struct str id)
{
    for (size_t idx = 0; idx < set->n; idx++) {
        if (str_eq(set->items[idx]->id, id)) {
            return set->items[idx];
        }
    }
    return NULL;
}
