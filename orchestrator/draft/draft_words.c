/* SPDX-License-Identifier: Apache-2.0 */
/* What the words of a table, a heading or a path mean. */
#include "base/base.h"

#include "draft/draft_impl.h"

#include "log/logtime.h"
#include "log/records.h"

#define COUNT_MAX       100000
#define BATCH_MAX       10000000
#define NAME_BYTES      64
#define SLUG_BYTES_MAX  64 /* of a report's names */
#define SHAPE_STEPS_MAX 1000000u

#define FREE_BEFORE "(?i)(?<![a-z0-9])"
#define NUMBER_OF   "(?i)^(?:#|no\\.?|number of|num|n|total)?[ _-]*"
#define COUNTED     "(?:[ _](?:num|count|number))?(?:\\(s\\))?$"
#define RATIO       "speed-?up|\xe5\x8a\xa0\xe9\x80\x9f|ratio|scaling|scale|efficiency|%"
static const char *const SHAPE_TEXT[SHAPES] = {
    [SHAPE_GRID] = FREE_BEFORE "n(?<a>\\d{1,4})[cg](?<b>\\d{1,3})(?![a-z0-9])",
    [SHAPE_GRID_AFTER] = FREE_BEFORE "(?<a>\\d{1,4})n[_ x]?(?<b>\\d{1,3})[gc](?:pus?)?(?![a-z0-9])",
    [SHAPE_GPUS] = FREE_BEFORE
    "(?:n?gpus?|cards?|num_gpus|world[ _]size)\\s?[=:_]?\\s?(?<a>\\d{1,5})(?!\\d|\\.\\d)",
    [SHAPE_GPUS_AFTER] = "(?i)(?<![a-z0-9.])(?<a>\\d{1,5})[ _-]?(?:x "
                         ")?(?:gpus?(?![a-z])|cards?(?![a-z])|\xe5\x8d\xa1)",
    [SHAPE_TIMES] = "(?i)(?<![a-z0-9.])(?<a>\\d{1,4}) ?(?:x|\xc3\x97) ?(?:nvidia |tesla "
                    ")?[avhptlb]\\d{1,3}(?!\\d)",
    [SHAPE_BATCH] = "(?i)(?<![a-z0-9])(?<!global[ _-])(?<!total[ _-])(?:bsz?|batch[ _-]?size|batch)"
                    "\\s?[=:_]?\\s?(?<a>\\d{1,7})(?!\\d|\\.\\d)",
    [SHAPE_BATCH_AFTER] = "(?i)(?<![a-z0-9.])(?<a>\\d{1,7})bsz?(?![a-z0-9])",
    [SHAPE_PRECISION] =
        FREE_BEFORE "(?<a>fp32|tf32|fp16|bf16|fp8|int8|amp|float32|float16|bfloat16|mixed "
                    "precision)(?![a-z0-9])",
    [SHAPE_FRAMEWORK] =
        "(?i)(?<a>paddle|pytorch|torch|tensorflow|mxnet|jax|oneflow|mindspore|keras)",
    [SHAPE_HARDWARE] = FREE_BEFORE
    "(?<a>[ahbp]\\d00|v100|h20|a10g?|a[34]0|t4|l4|l40s?|k[48]0|p4|[pm]40|gh200|gb[23]00|"
    "[rg]tx[ _-]?(?:titan|a?\\d{4})|[rgq]?tx[ _-]?\\d{4}|(?:10|20|30|40|50)[5-9]0(?: ?ti)?|"
    "titan[ _-]?(?:v|xp?|rtx)|radeon[ _-]?(?:pro[ _-]?vii|vii|rx[ _-]?\\d{3,4})|mi\\d{2,3}x?|"
    "tpu[ _-]?v\\d|ascend[ _-]?910[ab]?)(?![a-z0-9])",
    [SHAPE_RATE] = "(?i)through?t?put|speed(?![ _-]?up)|training "
                   "performance|\xe5\x90\x9e\xe5\x90\x90|ips(?![a-z])|fps",
    [SHAPE_PER_SECOND] = "(?i)(?<a>images?|imgs?|samples?|sequences?|sentences?|tokens?|words?) "
                         "?(?:per|/) ?sec",
    [SHAPE_PER_GPU] = "(?i)(?:s|sec|second)\\s?(?:/|per)\\s?(?:gpu|device|card|chip|core)(?![a-z])",
    [SHAPE_ANY_PER_SECOND] = "(?i)(?<![a-z])[a-z]{1,16} ?/ ?s(?:ec(?:ond)?)?(?![a-z])",
    [SHAPE_TRAINING] = "(?i)train",
    [SHAPE_INFERENCE] = "(?i)infer(?:ence|ring)?(?![a-z])",
    [SHAPE_SCALED] = FREE_BEFORE
    "(?:[kmg]|kilo|(?:thousand|million)s?(?: of)?|(?:x ?)?10\\^[36]|1e[36])[ -]?(?:images?|imgs?|"
    "samples?|seqs?|sequences?|sentences?|tokens?|toks?|words?) ?(?:/|per) ?s",
    [SHAPE_FPS] = "(?i)(?<![a-z])fps(?![a-z])",
    [SHAPE_RATIO] = "(?i)" RATIO,
    [SHAPE_OTHER] = "(?i)accuracy|top-?[15]|\\bacc\\b|\\bm?ap\\b|miou|param|flops|loss|latency|"
                    "mem|size|epoch|\\blr\\b|" RATIO
                    "|time|hours?|mins?\\b|version|date|seq|^#$|\\bid\\b|_num\\b|watt|power|price|"
                    "cost|\\bssd\\b|layers?|hidden|heads?|vocab|classes|\\bsteps?\\b|"
                    "\\b(?:number|no\\.|count) of\\b",
    [SHAPE_GENERAL] = "(?i)result|performance|benchmark|train|inference|table|readme|speed|"
                      "through|overview|summary|comparison|^\\d",
    /* "8B Q4_K_M", "3D-UNet": a name. */
    [SHAPE_SIZED] = "(?i)^\\d+(?:\\.\\d+)?(?:[bm](?![a-z])|d[ -])",
    [SHAPE_STATISTIC] = "(?i)^(?:mean|median|average|avg|min(?:imum)?|max(?:imum)?|std|stdev|"
                        "p\\d{1,2}|\\d{1,2}(?:th|%)? ?(?:percentile)?)$",
    [SHAPE_SETTING] = "(?i)chunk|window|length|interval|time-?out|budget|period|limit",
    [SHAPE_TIME] = "(?i)time|latency|duration|forward|backward",
    [SHAPE_TIME_UNIT] = "(?i)(?<![a-z0-9/])(?<a>ms|msec|milliseconds?|us|microseconds?|s|secs?|"
                        "seconds?|min|mins|minutes?|h|hrs?|hours?)(?![a-z])",
    [SHAPE_WHOLE_TIME] = "(?i)train|record|total|wall|converge|time[ _-]to|epochs?",
    [SHAPE_LATENCY] = "(?i)latency|infer|eval|forward|predict|delay",
    [SHAPE_ACCURACY] =
        "(?i)^(?:(?:val(?:idation)?|test|eval|best|final)[ _-]*)?(?:top-?1|acc(?:uracy)?|miou)"
        "(?:[ _-]*(?:top-?1|acc(?:uracy)?))?[ _]*\\(?%?\\)?$",
    [SHAPE_COLUMN_GPUS] =
        NUMBER_OF "(?:of )?(?:n?gpus?|cards?|devices?|accelerators?|world[ _]size|ranks?|gpu "
                  "num|\xe5\x8d\xa1\xe6\x95\xb0)" COUNTED,
    [SHAPE_COLUMN_PER_NODE] = "(?i)(?:gpus?|cards?|devices?)(?:[ _]num)?[ _]?(?:per|/)[ "
                              "_]?(?:node|machine|server|host)",
    [SHAPE_COLUMN_NODES] = NUMBER_OF "(?:nodes?|machines?|servers?|hosts?)" COUNTED,
    [SHAPE_COLUMN_BATCH] =
        "(?i)^(?!.*(?:global|total|max))(?:.*batch[ _-]?size.*|bsz?|batch|mbs|micro[ _-]?batch)$",
    [SHAPE_COLUMN_PRECISION] = "(?i)^(?:precision|dtype|data ?type|\xe7\xb2\xbe\xe5\xba\xa6)$",
    [SHAPE_COLUMN_MODEL] = "(?i)^(?:models?|networks?|methods?|backbones?|arch(?:itecture)?s?|"
                           "benchmarks?|workloads?|model[ _]names?|names?|\xe6\xa8\xa1\xe5\x9e\x8b"
                           "(?:\xe5\x90\x8d\xe7\xa7\xb0)?)$",
    [SHAPE_COLUMN_FRAMEWORK] = "(?i)^(?:frameworks?|\xe6\xa1\x86\xe6\x9e\xb6|library|backend)$",
};

struct draft_reader *draft_reader_new(struct arena *arena, const struct vocabulary *vocabulary,
                                      struct str unit)
{
    struct draft_reader *r = xcalloc(1, sizeof(*r));
    r->arena = arena;
    r->vocabulary = vocabulary;
    r->unit = unit;
    for (size_t idx = 0; idx < SHAPES; idx++) {
        struct err err = {0};
        int status = pattern_new(str_of(SHAPE_TEXT[idx]), &r->shapes[idx], &err);
        ASSERT(status == 0);
        r->a[idx] = pattern_group(r->shapes[idx], "a");
        r->b[idx] = pattern_group(r->shapes[idx], "b");
    }
    return r;
}

void draft_reader_free(struct draft_reader *reader)
{
    for (size_t idx = 0; reader && idx < SHAPES; idx++) {
        pattern_free(reader->shapes[idx]);
    }
    if (reader) {
        map_release(&reader->tables);
    }
    free(reader);
}

bool draft_finds(struct draft_reader *r, enum draft_shape shape, struct str text)
{
    struct err ignored = {0};
    struct match_budget budget = {SHAPE_STEPS_MAX};
    bool is_hit = false;
    return text.len && pattern_match(r->shapes[shape], text, &budget, &is_hit, &ignored) == 0 &&
           is_hit;
}

static struct str found(const struct draft_reader *r, enum draft_shape shape, struct str text)
{
    return pattern_text(r->shapes[shape], text, r->a[shape]);
}

static bool finds_count(struct draft_reader *r, enum draft_shape shape, struct str text,
                        int64_t *ret)
{
    struct err ignored = {0};
    return draft_finds(r, shape, text) &&
           str_to_i64(found(r, shape, text), 1, BATCH_MAX, ret, &ignored) == 0;
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

static bool take_grid(struct draft_reader *r, enum draft_shape shape, struct str text,
                      struct draft_attrs *into)
{
    int64_t nodes;
    int64_t each;
    struct err ignored = {0};
    if (!finds_count(r, shape, text, &nodes) ||
        str_to_i64(pattern_text(r->shapes[shape], text, r->b[shape]), 1, COUNT_MAX, &each,
                   &ignored) < 0) {
        return false;
    }
    into->nodes = nodes;
    into->gpus = nodes * each;
    return true;
}

/* Without the separators between its letters and digits: "rtx 3090", "RTX-3090", "RTX_3090". */
static struct str hardware_name(struct arena *arena, struct str text)
{
    struct str low = draft_lower(arena, text);
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
    if (!into->precision.ptr && draft_finds(r, SHAPE_PRECISION, text)) {
        struct str name = draft_lower(r->arena, found(r, SHAPE_PRECISION, text));
        const struct word *word = words_find(
            &r->vocabulary->precisions, str_starts(name, STR_LIT("mixed")) ? STR_LIT("amp") : name);
        into->precision = word ? word->name : STR_EMPTY;
    }
    if (!into->framework.ptr && draft_finds(r, SHAPE_FRAMEWORK, text)) {
        struct str name = draft_lower(r->arena, found(r, SHAPE_FRAMEWORK, text));
        into->framework = str_eq_z(name, "torch") ? STR_LIT("pytorch") : name;
    }
    if (!into->hardware.ptr && draft_finds(r, SHAPE_HARDWARE, text)) {
        into->hardware = hardware_name(r->arena, found(r, SHAPE_HARDWARE, text));
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
    for (size_t at = 0; at < text.len;) {
        size_t end = at;
        const struct word *word;
        while (end < text.len && is_letter(text.ptr[end])) {
            end++;
        }
        size_t over = end + 1;
        while (end > at && over < text.len && text.ptr[end] == '/' && is_letter(text.ptr[over])) {
            over++;
        }
        word =
            over > end + 1 ? words_find(&r->vocabulary->units, str_sub(text, at, over - at)) : NULL;
        word = word || over <= end + 1
                   ? word
                   : words_find(&r->vocabulary->units,
                                draft_lower(r->arena, str_sub(text, at, over - at)));
        if (word && str_eq_z(word->dimension, "rate")) {
            return word->name;
        }
        at = end + 1;
    }
    return STR_EMPTY;
}

struct str draft_unit(struct draft_reader *r, struct str text)
{
    struct str unit = slashed_unit(r, text);
    if (!unit.len && draft_finds(r, SHAPE_PER_SECOND, text)) {
        struct str item = draft_lower(r->arena, found(r, SHAPE_PER_SECOND, text));
        const struct word *word = words_find(
            &r->vocabulary->units, str_of(arena_printf(r->arena, "%.*s/s", STR_ARG(item))));
        unit = word ? word->name : STR_EMPTY;
    }
    return unit.len ? unit : name_unit(r, text);
}

/* "k" and "M tokens/s" after a number: its digits are a thousandth or a millionth of it. */
static bool begins_scaled(struct str rest)
{
    return rest.len && strchr("kKMG", rest.ptr[0]) &&
           (rest.len == 1 || !(is_letter(rest.ptr[1]) || is_digit(rest.ptr[1])));
}

bool draft_is_scaled(struct draft_reader *r, struct str head, struct str text)
{
    struct str printed, rest;
    return draft_printed_with(r, text, &printed, &rest) &&
           (begins_scaled(rest) || draft_finds(r, SHAPE_SCALED, rest) ||
            draft_finds(r, SHAPE_SCALED, head));
}

/* Whether the text after a number is harmless. */
static bool is_harmless(struct draft_reader *r, struct str rest)
{
    struct draft_attrs attrs = {0};
    size_t letters = 0;
    if (begins_scaled(rest)) {
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

/* Of the text after a number, the unit that a second number follows: "h" of "h9min"; else 0. */
static size_t first_of_two_units(struct str rest)
{
    size_t len = 0;
    while (len < rest.len && is_letter(rest.ptr[len])) {
        len++;
    }
    struct str second = str_trim(str_sub(rest, len, rest.len));
    bool is_unit = len > 0 && strchr("dhm", rest.ptr[0]) != NULL;
    return is_unit && second.len && is_digit(second.ptr[0]) ? len : 0;
}

bool draft_printed_with(struct draft_reader *r, struct str text, struct str *ret,
                        struct str *ret_rest)
{
    char buf[NAME_BYTES];
    size_t len = 0;
    double value;
    while (len < text.len && ((text.ptr[len] >= '0' && text.ptr[len] <= '9') ||
                              text.ptr[len] == ',' || text.ptr[len] == '.')) {
        len++;
    }
    struct str digits = lognumber_ungroup(str_sub(text, 0, len), buf, sizeof(buf));
    digits.len -= digits.len > 1 && digits.ptr[digits.len - 1] == '.'; /* "1463." of a table */
    *ret_rest = str_trim(str_sub(text, len, text.len));
    if (digits.len == 0 || digits.len > 20 || memchr(digits.ptr, ',', digits.len) ||
        digits.ptr[0] == '.' || digits.ptr[digits.len - 1] == '.' ||
        first_of_two_units(*ret_rest)) {
        return false;
    }
    *ret = str_dup(r->arena, digits);
    return lognumber_parse(*ret, &value) == NUMBER_OK && value > 0 && value <= DRAFT_PRINTED_MAX;
}

/* "nan", "Inf" and the like at the beginning: their length, or 0. */
static size_t name_of_none(struct str text)
{
    static const char *const NAMES[] = {"nan", "infinity", "inf"};
    for (size_t idx = 0; idx < ARRAY_LEN(NAMES); idx++) {
        size_t len = 0;
        while (NAMES[idx][len] && len < text.len && (text.ptr[len] | 0x20) == NAMES[idx][len]) {
            len++;
        }
        if (!NAMES[idx][len] && !(len < text.len && is_letter(text.ptr[len]))) {
            return len;
        }
    }
    return 0;
}

bool draft_is_unusable(struct draft_reader *r, struct str text, struct str *ret_as_if)
{
    static const char *const SIGNS[] = {"-", "+", "\xe2\x88\x92"}; /* the last is U+2212 */
    struct str printed, rest;
    size_t from = 0;
    size_t n_digits = 0;
    for (size_t idx = 0; idx < ARRAY_LEN(SIGNS) && from == 0; idx++) {
        from = str_starts(text, str_of(SIGNS[idx])) ? strlen(SIGNS[idx]) : 0;
    }
    size_t n_named = name_of_none(str_sub(text, from, text.len));
    size_t end = from + n_named;
    while (n_named == 0 && end < text.len &&
           (is_digit(text.ptr[end]) || text.ptr[end] == '.' || text.ptr[end] == ',')) {
        n_digits += is_digit(text.ptr[end]);
        end++;
    }
    if (n_named + n_digits == 0 || draft_printed_with(r, text, &printed, &rest)) {
        return false;
    }
    rest = str_sub(text, end, text.len);
    size_t n_unit = first_of_two_units(rest);
    *ret_as_if = str_of(
        arena_printf(r->arena, "50%.*s", STR_ARG(str_sub(rest, 0, n_unit ? n_unit : rest.len))));
    return true;
}

bool draft_printed(struct draft_reader *r, struct str text, struct str *ret)
{
    struct str rest;
    return draft_printed_with(r, text, ret, &rest) && is_harmless(r, rest);
}

struct str draft_time_unit(struct draft_reader *r, struct str text)
{
    if (!draft_finds(r, SHAPE_TIME_UNIT, text)) {
        return STR_EMPTY;
    }
    struct str name = draft_lower(r->arena, found(r, SHAPE_TIME_UNIT, text));
    name = str_starts(name, STR_LIT("hr")) ? STR_LIT("h")
           : str_eq_z(name, "mins")        ? STR_LIT("min")
                                           : name;
    const struct word *word = words_find(&r->vocabulary->units, name);
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
        enum draft_shape shape;
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
