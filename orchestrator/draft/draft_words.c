/* SPDX-License-Identifier: Apache-2.0 */
/* What the words of a table, a heading or a path mean. */
#include "base/base.h"

#include "draft/draft_impl.h"

#include "log/logtime.h"
#include "log/records.h"

#define COUNT_MAX      100000
#define BATCH_MAX      10000000
#define NAME_BYTES     64
#define SLUG_BYTES_MAX 64 /* of a report's names */

#define FREE_BEFORE "(?i)(?<![a-z0-9])"
#define NUMBER_OF   "(?i)^(?:#|no\\.?|number of|num|n|total)?[ _-]*"
#define COUNTED     "(?:[ _](?:num|count|number))?(?:\\(s\\))?$"
#define RATIO       "speed-?up|\xe5\x8a\xa0\xe9\x80\x9f|ratio|scaling|scale|efficiency|%"
static const char SHAPE_GRID[] = FREE_BEFORE "n(\\d{1,4})[cg](\\d{1,3})(?![a-z0-9])";
static const char SHAPE_GRID_AFTER[] =
    FREE_BEFORE "(\\d{1,4})n[_ x]?(\\d{1,3})[gc](?:pus?)?(?![a-z0-9])";
static const char SHAPE_GPUS[] =
    FREE_BEFORE "(?:n?gpus?|cards?|num_gpus|world[ _]size)\\s?[=:_]?\\s?(\\d{1,5})(?!\\d|\\.\\d)";
static const char SHAPE_GPUS_AFTER[] = "(?i)(?<![a-z0-9.])(\\d{1,5})[ _-]?(?:x "
                                       ")?(?:gpus?(?![a-z])|cards?(?![a-z])|\xe5\x8d\xa1)";
static const char SHAPE_TIMES[] = "(?i)(?<![a-z0-9.])(\\d{1,4}) ?(?:x|\xc3\x97) ?(?:nvidia |tesla "
                                  ")?[avhptlb]\\d{1,3}(?!\\d)";
static const char SHAPE_BATCH[] =
    "(?i)(?<![a-z0-9])(?<!global[ _-])(?<!total[ _-])(?:bsz?|batch[ _-]?size|batch)"
    "\\s?[=:_]?\\s?(\\d{1,7})(?!\\d|\\.\\d)";
static const char SHAPE_BATCH_AFTER[] = "(?i)(?<![a-z0-9.])(\\d{1,7})bsz?(?![a-z0-9])";
static const char SHAPE_PRECISION[] =
    FREE_BEFORE "(fp32|tf32|fp16|bf16|fp8|int8|amp|float32|float16|bfloat16|mixed "
                "precision)(?![a-z0-9])";
const char SHAPE_FRAMEWORK[] =
    "(?i)(paddle|pytorch|torch|tensorflow|mxnet|jax|oneflow|mindspore|keras)";
const char SHAPE_HARDWARE[] = FREE_BEFORE
    "([ahbp]\\d00|v100|h20|a10g?|a[34]0|t4|l4|l40s?|k[48]0|p4|[pm]40|gh200|gb[23]00|"
    "[rg]tx[ _-]?(?:titan|a?\\d{4})|[rgq]?tx[ _-]?\\d{4}|(?:10|20|30|40|50)[5-9]0(?: ?ti)?|"
    "titan[ _-]?(?:v|xp?|rtx)|radeon[ _-]?(?:pro[ _-]?vii|vii|rx[ _-]?\\d{3,4})|mi\\d{2,3}x?|"
    "tpu[ _-]?v\\d|ascend[ _-]?910[ab]?)(?![a-z0-9])";
const char SHAPE_RATE[] = "(?i)through?t?put|speed(?![ _-]?up)|training "
                          "performance|\xe5\x90\x9e\xe5\x90\x90|ips(?![a-z])|fps";
static const char SHAPE_PER_SECOND[] =
    "(?i)(images?|imgs?|samples?|sequences?|sentences?|tokens?|words?) "
    "?(?:per|/) ?sec";
const char SHAPE_PER_GPU[] =
    "(?i)(?:s|sec|second)\\s?(?:/|per)\\s?(?:gpu|device|card|chip|core)(?![a-z])";
const char SHAPE_ANY_PER_SECOND[] = "(?i)(?<![a-z])[a-z]{1,16} ?/ ?s(?:ec(?:ond)?)?(?![a-z])";
static const char SHAPE_TRAINING[] = "(?i)train";
static const char SHAPE_INFERENCE[] = "(?i)infer(?:ence|ring)?(?![a-z])";
static const char SHAPE_SCALED[] = FREE_BEFORE
    "(?:[kmg]|kilo|(?:thousand|million)s?(?: of)?|(?:x ?)?10\\^[36]|1e[36])[ -]?(?:images?|imgs?|"
    "samples?|seqs?|sequences?|sentences?|tokens?|toks?|words?) ?(?:/|per) ?s";
static const char SHAPE_FPS[] = "(?i)(?<![a-z])fps(?![a-z])";
const char SHAPE_RATIO[] = "(?i)" RATIO;
static const char SHAPE_OTHER[] =
    "(?i)accuracy|top-?[15]|\\bacc\\b|\\bm?ap\\b|miou|param|flops|loss|latency|"
    "mem|size|epoch|\\blr\\b|" RATIO
    "|time|hours?|mins?\\b|version|date|seq|^#$|\\bid\\b|_num\\b|watt|power|price|"
    "cost|\\bssd\\b|layers?|hidden|heads?|vocab|classes|\\bsteps?\\b|"
    "\\b(?:number|no\\.|count) of\\b";
const char SHAPE_GENERAL[] = "(?i)result|performance|benchmark|train|inference|table|readme|speed|"
                             "through|overview|summary|comparison|^\\d";
/* "8B Q4_K_M", "3D-UNet": a name. */
const char SHAPE_SIZED[] = "(?i)^\\d+(?:\\.\\d+)?(?:[bm](?![a-z])|d[ -])";
const char SHAPE_STATISTIC[] =
    "(?i)^(?:mean|median|average|avg|min(?:imum)?|max(?:imum)?|std|stdev|"
    "p\\d{1,2}|\\d{1,2}(?:th|%)? ?(?:percentile)?)$";
const char SHAPE_SETTING[] = "(?i)chunk|window|length|interval|time-?out|budget|period|limit";
const char SHAPE_TIME[] = "(?i)time|latency|duration|forward|backward";
static const char SHAPE_TIME_UNIT[] =
    "(?i)(?<![a-z0-9/])(ms|msec|milliseconds?|us|microseconds?|s|secs?|"
    "seconds?|min|mins|minutes?|h|hrs?|hours?)(?![a-z])";
const char SHAPE_WHOLE_TIME[] = "(?i)train|record|total|wall|converge|time[ _-]to|epochs?";
const char SHAPE_LATENCY[] = "(?i)latency|infer|eval|forward|predict|delay";
const char SHAPE_ACCURACY[] =
    "(?i)^(?:(?:val(?:idation)?|test|eval|best|final)[ _-]*)?(?:top-?1|acc(?:uracy)?|miou)"
    "(?:[ _-]*(?:top-?1|acc(?:uracy)?))?[ _]*\\(?%?\\)?$";
static const char SHAPE_COLUMN_GPUS[] =
    NUMBER_OF "(?:of )?(?:n?gpus?|cards?|devices?|accelerators?|world[ _]size|ranks?|gpu "
              "num|\xe5\x8d\xa1\xe6\x95\xb0)" COUNTED;
static const char SHAPE_COLUMN_PER_NODE[] =
    "(?i)(?:gpus?|cards?|devices?)(?:[ _]num)?[ _]?(?:per|/)[ "
    "_]?(?:node|machine|server|host)";
static const char SHAPE_COLUMN_NODES[] = NUMBER_OF "(?:nodes?|machines?|servers?|hosts?)" COUNTED;
static const char SHAPE_COLUMN_BATCH[] =
    "(?i)^(?!.*(?:global|total|max))(?:.*batch[ _-]?size.*|bsz?|batch|mbs|micro[ _-]?batch)$";
static const char SHAPE_COLUMN_PRECISION[] =
    "(?i)^(?:precision|dtype|data ?type|\xe7\xb2\xbe\xe5\xba\xa6)$";
static const char SHAPE_COLUMN_MODEL[] =
    "(?i)^(?:models?|networks?|methods?|backbones?|arch(?:itecture)?s?|"
    "benchmarks?|workloads?|model[ _]names?|names?|\xe6\xa8\xa1\xe5\x9e\x8b"
    "(?:\xe5\x90\x8d\xe7\xa7\xb0)?)$";
static const char SHAPE_COLUMN_FRAMEWORK[] =
    "(?i)^(?:frameworks?|\xe6\xa1\x86\xe6\x9e\xb6|library|backend)$";

struct draft_reader *draft_reader_new(struct arena *arena, const struct vocabulary *vocabulary,
                                      struct str unit)
{
    struct draft_reader *r = xcalloc(1, sizeof(*r));
    r->arena = arena;
    r->vocabulary = vocabulary;
    r->unit = unit;
    return r;
}

void draft_reader_free(struct draft_reader *reader)
{
    if (reader) {
        patterns_release(&reader->patterns);
        map_release(&reader->tables);
    }
    free(reader);
}

bool draft_finds(struct draft_reader *r, const char *shape, struct str text)
{
    return patterns_find(&r->patterns, shape, text, NULL, 0);
}

/* What its only group is, in small letters; ptr NULL: the text has none. */
static struct str found(struct draft_reader *r, const char *shape, struct str text)
{
    struct str g[2];
    return patterns_find(&r->patterns, shape, text, g, 2) ? draft_lower(r->arena, g[1]) : STR_EMPTY;
}

static bool finds_count(struct draft_reader *r, const char *shape, struct str text, int64_t *ret)
{
    struct err ignored = {0};
    struct str digits = found(r, shape, text);
    return digits.ptr && str_to_i64(digits, 1, BATCH_MAX, ret, &ignored) == 0;
}

struct str draft_lower(struct arena *arena, struct str text)
{
    char *copy = arena_strndup(arena, text.ptr ? text.ptr : "", text.len);
    for (char *c = copy; *c; c++) {
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    }
    return str_of(copy);
}

struct str draft_slug(struct arena *arena, struct str text)
{
    struct str low = draft_lower(arena, str_sub(text, 0, SLUG_BYTES_MAX));
    char *out = arena_strndup(arena, low.ptr, low.len);
    size_t len = 0;
    for (size_t idx = 0; idx < low.len; idx++) {
        char c = low.ptr[idx];
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            out[len++] = c;
        } else if (len && out[len - 1] != '-') {
            out[len++] = '-';
        }
    }
    while (len && out[len - 1] == '-') {
        len--;
    }
    return len ? (struct str){out, len} : STR_EMPTY;
}

static bool take_grid(struct draft_reader *r, const char *shape, struct str text,
                      struct draft_attrs *into)
{
    struct str g[3];
    int64_t nodes, each;
    struct err ignored = {0};
    if (!patterns_find(&r->patterns, shape, text, g, 3) ||
        str_to_i64(g[1], 1, BATCH_MAX, &nodes, &ignored) < 0 ||
        str_to_i64(g[2], 1, COUNT_MAX, &each, &ignored) < 0) {
        return false;
    }
    into->nodes = nodes;
    into->gpus = nodes * each;
    return true;
}

/* Without the separators between its letters and digits: "rtx 3090", "RTX-3090", "RTX_3090". */
static struct str hardware_name(struct arena *arena, struct str text)
{
    struct str low = text;
    char *out = arena_strndup(arena, low.ptr, low.len);
    size_t len = 0;
    for (size_t idx = 0; idx < low.len; idx++) {
        if (!strchr(" -_", low.ptr[idx])) {
            out[len++] = low.ptr[idx];
        }
    }
    low = (struct str){out, len};
    return str_starts(low, STR_LIT("rtx")) || str_starts(low, STR_LIT("gtx"))
               ? str_sub(low, 3, low.len)
               : low;
}

void draft_read_attrs(struct draft_reader *r, struct str text, struct draft_attrs *into)
{
    if (!into->gpus && !take_grid(r, SHAPE_GRID, text, into) &&
        !take_grid(r, SHAPE_GRID_AFTER, text, into) &&
        !finds_count(r, SHAPE_GPUS, text, &into->gpus) &&
        !finds_count(r, SHAPE_GPUS_AFTER, text, &into->gpus)) {
        (void)finds_count(r, SHAPE_TIMES, text, &into->gpus);
    }
    if (!into->batch && !finds_count(r, SHAPE_BATCH, text, &into->batch)) {
        (void)finds_count(r, SHAPE_BATCH_AFTER, text, &into->batch);
    }
    struct str name = into->precision.ptr ? STR_EMPTY : found(r, SHAPE_PRECISION, text);
    if (name.ptr) {
        const struct word *word = words_find(
            &r->vocabulary->precisions, str_starts(name, STR_LIT("mixed")) ? STR_LIT("amp") : name);
        into->precision = word ? word->name : STR_EMPTY;
    }
    name = into->framework.ptr ? STR_EMPTY : found(r, SHAPE_FRAMEWORK, text);
    if (name.ptr) {
        into->framework = str_eq_z(name, "torch") ? STR_LIT("pytorch") : name;
    }
    name = into->hardware.ptr ? STR_EMPTY : found(r, SHAPE_HARDWARE, text);
    if (name.ptr) {
        into->hardware = hardware_name(r->arena, name);
    }
    if (into->purpose == PURPOSE_UNSAID) {
        bool trains = draft_finds(r, SHAPE_TRAINING, text);
        bool infers = draft_finds(r, SHAPE_INFERENCE, text);
        into->purpose = trains == infers ? PURPOSE_UNSAID
                        : trains         ? PURPOSE_TRAINING
                                         : PURPOSE_INFERENCE;
    }
}

bool draft_says_row(const struct draft_attrs *attrs)
{
    return attrs->gpus || attrs->batch || attrs->precision.ptr || attrs->framework.ptr ||
           attrs->hardware.ptr;
}

/* ---- numbers and their units ---- */

/* From a column's name, "train_samples_per_sec", or from "FPS". */
static struct str name_unit(struct draft_reader *r, struct str name)
{
    const struct word *unit;
    struct str metric;
    bool is_named = str_find(name, STR_LIT("per")) >= 0 || str_find(name, STR_LIT("/")) >= 0;
    if (is_named && records_figure(r->vocabulary, name, &metric, &unit) &&
        str_eq_z(unit->dimension, "rate")) {
        return unit->name;
    }
    return draft_finds(r, SHAPE_FPS, name)
               ? words_find(&r->vocabulary->units, STR_LIT("frames/s"))->name
               : STR_EMPTY;
}

static bool is_letter(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* "img/s" anywhere in it. */
static struct str slashed_unit(struct draft_reader *r, struct str text)
{
    struct str found;
    while (patterns_find(&r->patterns, "[A-Za-z]+/[A-Za-z]+", text, &found, 1)) {
        const struct word *word = words_find(&r->vocabulary->units, found);
        word = word ? word : words_find(&r->vocabulary->units, draft_lower(r->arena, found));
        if (word && str_eq_z(word->dimension, "rate")) {
            return word->name;
        }
        size_t slash = (size_t)(found.ptr - text.ptr + str_find(found, STR_LIT("/")));
        text = str_sub(text, slash + 1, SIZE_MAX);
    }
    return STR_EMPTY;
}

struct str draft_unit(struct draft_reader *r, struct str text)
{
    struct str unit = slashed_unit(r, text);
    struct str item = unit.len ? STR_EMPTY : found(r, SHAPE_PER_SECOND, text);
    if (item.ptr) {
        const struct word *word = words_find(
            &r->vocabulary->units, str_of(arena_printf(r->arena, "%.*s/s", STR_ARG(item))));
        unit = word ? word->name : STR_EMPTY;
    }
    return unit.len ? unit : name_unit(r, text);
}

/* "k" and "M tokens/s" after a number: its digits are a thousandth or a millionth of it. */
static bool begins_scaled(struct draft_reader *r, struct str rest)
{
    return draft_finds(r, "^[kKMG](?![A-Za-z0-9])", rest);
}

bool draft_is_scaled(struct draft_reader *r, struct str head, struct str text)
{
    struct str printed, rest;
    return draft_printed_with(r, text, &printed, &rest) &&
           (begins_scaled(r, rest) || draft_finds(r, SHAPE_SCALED, rest) ||
            draft_finds(r, SHAPE_SCALED, head));
}

/* Whether the text after a number is harmless. */
static bool is_harmless(struct draft_reader *r, struct str rest)
{
    struct draft_attrs attrs = {0};
    size_t letters = 0;
    if (begins_scaled(r, rest)) {
        return false;
    }
    if (!rest.len || rest.ptr[0] == '(' || str_starts(rest, STR_LIT("\xc2\xb1")) ||
        str_starts(rest, STR_LIT("+/-"))) {
        return memchr(rest.ptr ? rest.ptr : "", '%', rest.len) == NULL || rest.ptr[0] == '(';
    }
    if (str_eq_z(rest, "/s") || str_eq_z(rest, "/sec")) {
        return true; /* of the text around it, or given by --unit */
    }
    if (draft_unit(r, rest).len) {
        return !draft_finds(r, SHAPE_RATIO, rest);
    }
    draft_read_attrs(r, rest, &attrs);
    for (size_t idx = 0; idx < rest.len; idx++) {
        letters += is_letter(rest.ptr[idx]);
    }
    return (attrs.batch || attrs.precision.ptr) && letters < NAME_BYTES / 4;
}

/* "1h9min" is none. */
bool draft_printed_with(struct draft_reader *r, struct str text, struct str *ret,
                        struct str *ret_rest)
{
    static const char PRINTED[] = "(?s)^([\\d.,]++)(?!\\s*[dhm][A-Za-z]*\\s*\\d)(.*)";
    char buf[NAME_BYTES];
    struct str g[3];
    double value;
    if (!patterns_find(&r->patterns, PRINTED, text, g, 3)) {
        return false;
    }
    struct str digits = lognumber_ungroup(g[1], buf, sizeof(buf));
    digits.len -= digits.len > 1 && digits.ptr[digits.len - 1] == '.'; /* "1463." of a table */
    *ret_rest = str_trim(g[2]);
    if (digits.len == 0 || digits.len > 20 || memchr(digits.ptr, ',', digits.len) ||
        digits.ptr[0] == '.' || digits.ptr[digits.len - 1] == '.') {
        return false;
    }
    *ret = str_dup(r->arena, digits);
    return lognumber_parse(*ret, &value) == NUMBER_OK && value > 0 && value <= DRAFT_PRINTED_MAX;
}

bool draft_is_unusable(struct draft_reader *r, struct str text, struct str *ret_as_if)
{
    /* A sign (the last is U+2212), "nan", "Inf" or digits, and what follows; of two units the first. */
    static const char NONE[] =
        "(?s)^(?:[-+]|\xe2\x88\x92)?(?:(?i:nan|inf(?:inity)?)(?![A-Za-z])|[.,]*\\d[\\d.,]*+)"
        "([dhm][A-Za-z]*(?=\\s*\\d)|.*)";
    struct str g[2], printed, rest;
    if (!patterns_find(&r->patterns, NONE, text, g, 2) ||
        draft_printed_with(r, text, &printed, &rest)) {
        return false;
    }
    *ret_as_if = str_of(arena_printf(r->arena, "50%.*s", STR_ARG(g[1])));
    return true;
}

bool draft_printed(struct draft_reader *r, struct str text, struct str *ret)
{
    struct str rest;
    return draft_printed_with(r, text, ret, &rest) && is_harmless(r, rest);
}

struct str draft_time_unit(struct draft_reader *r, struct str text)
{
    struct str name = found(r, SHAPE_TIME_UNIT, text);
    name = str_starts(name, STR_LIT("hr")) ? STR_LIT("h")
           : str_eq_z(name, "mins")        ? STR_LIT("min")
                                           : name;
    const struct word *word = name.ptr ? words_find(&r->vocabulary->units, name) : NULL;
    return word && str_eq_z(word->dimension, "time") ? word->name : STR_EMPTY;
}

bool draft_count(struct str text, int64_t *ret)
{
    struct err ignored = {0};
    int64_t value;
    if (str_ends(text, STR_LIT(".0"))) {
        text.len -= 2;
    }
    if (str_to_i64(text, 1, BATCH_MAX, &value, &ignored) < 0) {
        return false;
    }
    *ret = value;
    return true;
}

enum draft_column draft_column_of(struct draft_reader *r, struct str head)
{
    static const struct {
        const char *shape;
        enum draft_column column;
    } BY_NAME[] = {
        {SHAPE_COLUMN_PER_NODE, COLUMN_PER_NODE},   {SHAPE_COLUMN_GPUS, COLUMN_GPUS},
        {SHAPE_COLUMN_NODES, COLUMN_NODES},         {SHAPE_COLUMN_BATCH, COLUMN_BATCH},
        {SHAPE_COLUMN_MODEL, COLUMN_MODEL},         {SHAPE_COLUMN_PRECISION, COLUMN_PRECISION},
        {SHAPE_COLUMN_FRAMEWORK, COLUMN_FRAMEWORK},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(BY_NAME); idx++) {
        if (draft_finds(r, BY_NAME[idx].shape, head)) {
            return BY_NAME[idx].column;
        }
    }
    if (draft_unit(r, head).len > 0) {
        return COLUMN_VALUE;
    }
    return draft_finds(r, SHAPE_RATIO, head) ||
                   (draft_finds(r, SHAPE_OTHER, head) && !draft_finds(r, SHAPE_RATE, head))
               ? COLUMN_LABEL
               : COLUMN_VALUE;
}
