/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <limits.h>
#include <pcre2.h>

#define MESSAGE_BYTES      256
#define SHOWN_MAX          60 /* bytes of the pattern in a message */
#define MATCHES_BEFORE_JIT 12
#define STEPS_OF_START     256 /* uncounted backtracking points for one start, */
#define KNOWN_STEPS_MAX    1000000u
#define STEPS_OF_BYTE      8 /* and for each byte after it */
#define JIT_STACK_START    (32u << 10)
#define JIT_STACK_MAX      (1u << 20)

struct pattern {
    pcre2_code *code;    /* owned */
    pcre2_code *counted; /* owned: the same with a callout at each step; NULL before first use */
    char *source;        /* owned; not ended by a NUL */
    size_t source_len;
    pcre2_match_data *match;      /* owned */
    pcre2_match_context *context; /* owned */
    pcre2_jit_stack *jit_stack;   /* owned; NULL before first use */
    const PCRE2_SIZE *spans;      /* of the last match, in match */
    uint32_t n_spans;
    bool is_ready;      /* its beginnings are known */
    unsigned n_matches; /* until it is compiled by JIT, which takes as long as some */
    bool has_jit;
    bool is_anchored; /* can match at the beginning alone */
    bool has_first;   /* and a match begins with one of these bytes */
    bool is_first[UCHAR_MAX + 1];
    const char *names[PATTERN_GROUPS_MAX]; /* into code's name table */
    int numbers[PATTERN_GROUPS_MAX];
    size_t n_names;
};

static int read_names(struct pattern *pattern, struct err *err)
{
    uint32_t count = 0;
    uint32_t entry_bytes = 0;
    PCRE2_SPTR table = NULL;
    pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMECOUNT, &count);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMEENTRYSIZE, &entry_bytes);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMETABLE, &table);
    if (count > PATTERN_GROUPS_MAX) {
        return err_set(err, ERR_MANIFEST, "pattern: expected at most %d named groups, found %u",
                       PATTERN_GROUPS_MAX, count);
    }
    /* Each entry: the group's number in two bytes, then its name with a NUL. Source: pcre2api(3), PCRE2_INFO_NAMETABLE. */
    for (uint32_t idx = 0; idx < count; idx++) {
        PCRE2_SPTR entry = table + (size_t)idx * entry_bytes;
        pattern->numbers[idx] = entry[0] << 8 | entry[1];
        pattern->names[idx] = (const char *)entry + 2;
    }
    pattern->n_names = count;
    return 0;
}

int pattern_new(struct str source, struct pattern **ret_pattern, struct err *err)
{
    struct pattern *pattern;
    pcre2_code *code;
    int status = 0;
    PCRE2_SIZE place = 0;
    if (source.len == 0 || source.len > PATTERN_LEN_MAX) {
        return err_set(err, ERR_MANIFEST, "pattern: expected 1 to %d characters, found %zu",
                       PATTERN_LEN_MAX, source.len);
    }
    code = pcre2_compile((PCRE2_SPTR)source.ptr, source.len,
                         PCRE2_NEVER_UTF | PCRE2_NEVER_BACKSLASH_C, &status, &place, NULL);
    if (!code) {
        PCRE2_UCHAR text[MESSAGE_BYTES] = "";
        pcre2_get_error_message(status, text, sizeof(text));
        return err_set(err, ERR_MANIFEST, "pattern: character %zu: %s", (size_t)place + 1,
                       (const char *)text);
    }
    pattern = xcalloc(1, sizeof(*pattern));
    pattern->code = code;
    pattern->source = memcpy(xmalloc(source.len), source.ptr, source.len);
    pattern->source_len = source.len;
    if (read_names(pattern, err) < 0) {
        pattern_free(pattern);
        return -1;
    }
    *ret_pattern = pattern;
    return 0;
}

void pattern_free(struct pattern *pattern)
{
    if (!pattern) {
        return;
    }
    pcre2_jit_stack_free(pattern->jit_stack);
    pcre2_match_context_free(pattern->context);
    pcre2_match_data_free(pattern->match);
    pcre2_code_free(pattern->code);
    pcre2_code_free(pattern->counted);
    free(pattern->source);
    free(pattern);
}

int pattern_group(const struct pattern *pattern, const char *name)
{
    for (size_t idx = 0; idx < pattern->n_names; idx++) {
        if (strcmp(pattern->names[idx], name) == 0) {
            return pattern->numbers[idx];
        }
    }
    return -1;
}

const char *pattern_group_name(const struct pattern *pattern, size_t idx)
{
    return idx < pattern->n_names ? pattern->names[idx] : NULL;
}

static void find_starts(struct pattern *pattern)
{
    const uint8_t *bitmap = NULL;
    uint32_t options = 0;
    uint32_t kind =
        0; /* 1: one unit, 2: the beginning of a line. Source: pcre2api(3), PCRE2_INFO_FIRSTCODETYPE. */
    uint32_t unit = 0;
    pcre2_pattern_info(pattern->code, PCRE2_INFO_ALLOPTIONS, &options);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_FIRSTCODETYPE, &kind);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_FIRSTCODEUNIT, &unit);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_FIRSTBITMAP, &bitmap);
    pattern->is_anchored = (options & PCRE2_ANCHORED) != 0;
    pattern->has_first = kind == 1 || bitmap;
    for (unsigned c = 0; c <= UCHAR_MAX; c++) {
        /* PCRE2 does not say whether it ignores case. */
        bool is_letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
        bool is_unit = kind == 1 && (c == unit || (is_letter && (c ^ unit) == 0x20));
        pattern->is_first[c] = is_unit || (kind != 1 && bitmap && (bitmap[c / 8] >> c % 8 & 1));
    }
}

/* What a match works in. */
static void make_room(struct pattern *pattern)
{
    if (pattern->match) {
        return;
    }
    pattern->match = pcre2_match_data_create_from_pattern(pattern->code, NULL);
    pattern->context = pcre2_match_context_create(NULL);
    pattern->jit_stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_MAX, NULL);
    ASSERT(pattern->match);
    ASSERT(pattern->context);
    pcre2_set_heap_limit(pattern->context, PATTERN_HEAP_KIB_MAX);
    pcre2_jit_stack_assign(pattern->context, NULL, pattern->jit_stack);
    pattern->spans = pcre2_get_ovector_pointer(pattern->match);
    pattern->n_spans = pcre2_get_ovector_count(pattern->match);
}

/* Where the machine has no JIT the interpreter does the same work under the same limits. */
static void make_ready(struct pattern *pattern)
{
    if (pattern->is_ready) {
        return;
    }
    make_room(pattern);
    find_starts(pattern);
    pattern->is_ready = true;
}

static int match_error(int status, const struct pattern *pattern, struct str subject,
                       struct err *err)
{
    PCRE2_UCHAR text[MESSAGE_BYTES] = "the matching steps for so long a log are used up";
    if (status != PCRE2_ERROR_CALLOUT) {
        pcre2_get_error_message(status, text, sizeof(text));
    }
    return err_set(err, ERR_PARSE, "pattern \"%.*s\" on a line of %zu bytes: %s",
                   pattern->source_len < SHOWN_MAX ? (int)pattern->source_len : SHOWN_MAX,
                   pattern->source, subject.len, (const char *)text);
}

static PCRE2_SPTR subject_ptr(struct str subject)
{
    return (PCRE2_SPTR)(subject.ptr ? subject.ptr : "");
}

/* ---- steps ---- */

struct counter {
    struct match_budget *budget;
    size_t last;
};

static int count_step(pcre2_callout_block *at, void *data)
{
    struct counter *counter = data;
    size_t went = at->current_position > counter->last ? at->current_position - counter->last : 0;
    uint64_t cost = 1 + went;
    counter->last = at->current_position;
    if (cost > counter->budget->left) {
        counter->budget->left = 0;
        return PCRE2_ERROR_CALLOUT;
    }
    counter->budget->left -= cost;
    return 0;
}

/* False if the pattern is too large for it: callouts take room. */
static bool make_counted(struct pattern *pattern)
{
    int status = 0;
    PCRE2_SIZE place = 0;
    if (!pattern->counted) {
        pattern->counted = pcre2_compile(
            (PCRE2_SPTR)pattern->source, pattern->source_len,
            PCRE2_NEVER_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT, &status, &place, NULL);
        if (pattern->counted) {
            (void)pcre2_jit_compile(pattern->counted, PCRE2_JIT_COMPLETE);
        }
    }
    return pattern->counted != NULL;
}

/* Part of a subject. */
struct stretch {
    struct str subject;
    size_t from;
    uint32_t options;
};

static int match_counted(struct pattern *pattern, const struct stretch *s,
                         struct match_budget *budget)
{
    struct counter counter = {budget, s->from};
    if (!make_counted(pattern)) {
        budget->left = 0;
        return PCRE2_ERROR_CALLOUT;
    }
    pcre2_set_callout(pattern->context, count_step, &counter);
    pcre2_set_match_limit(pattern->context, UINT32_MAX);
    int status = pcre2_match(pattern->counted, subject_ptr(s->subject), s->subject.len, s->from,
                             s->options, pattern->match, pattern->context);
    pcre2_set_callout(pattern->context, NULL, NULL);
    return status;
}

/* Number of places at which a match may begin, at most max. */
static size_t count_starts(const struct pattern *pattern, const struct stretch *s, size_t max)
{
    size_t n = 0;
    if (pattern->is_anchored) {
        return 1;
    }
    if (!pattern->has_first) {
        return s->subject.len - s->from + 1;
    }
    for (size_t at = s->from; at < s->subject.len && n < max; at++) {
        n += pattern->is_first[(unsigned char)s->subject.ptr[at]];
    }
    return n > 0 ? n : 1;
}

static int match_within(struct pattern *pattern, const struct stretch *s, size_t limit)
{
    if (pattern->n_matches < MATCHES_BEFORE_JIT && ++pattern->n_matches == MATCHES_BEFORE_JIT) {
        pattern->has_jit = pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE) == 0;
    }
    bool is_plain = pattern->has_jit && s->from == 0 && s->options == 0;
    pcre2_set_match_limit(pattern->context, (uint32_t)limit);
    return (is_plain ? pcre2_jit_match : pcre2_match)(pattern->code, subject_ptr(s->subject),
                                                      s->subject.len, s->from, s->options,
                                                      pattern->match, pattern->context);
}

static bool is_cut_off(int status)
{
    return status == PCRE2_ERROR_MATCHLIMIT || status == PCRE2_ERROR_JIT_STACKLIMIT;
}

/* pcre2's match limit counts backtracking points anew from each place at which a match may begin. If those places are few
   and the subject is short, the match is short too and nothing is counted; otherwise it is matched with its steps counted.
   Most lines need so few steps that they may begin anywhere: then the places are not counted either. */
static int match_stretch(struct pattern *pattern, const struct stretch *s,
                         struct match_budget *budget)
{
    uint32_t len = (uint32_t)(s->subject.len - s->from);
    uint32_t limit = STEPS_OF_START + STEPS_OF_BYTE * len;
    uint32_t most = len > 0 ? PATTERN_STEPS_FREE / len : PATTERN_STEPS_FREE;
    int status = PCRE2_ERROR_MATCHLIMIT;
    if (len <= most || limit * most / len >= STEPS_OF_START) {
        status = match_within(pattern, s, len <= most ? limit : limit * most / len);
    }
    if (len > most && is_cut_off(status) && count_starts(pattern, s, most + 1) <= most) {
        status = match_within(pattern, s, limit);
    }
    return is_cut_off(status) ? match_counted(pattern, s, budget) : status;
}

/* A long line is searched in steps, each of which sees enough of the line after it. */
static int match_by_windows(struct pattern *pattern, struct str subject,
                            struct match_budget *budget, bool *ret_found, struct err *err)
{
    for (size_t from = 0; from == 0 || from + PATTERN_WINDOW < subject.len;
         from += PATTERN_WINDOW) {
        size_t end = from + 2 * PATTERN_WINDOW;
        bool is_last = end >= subject.len;
        const struct stretch s = {is_last ? subject : (struct str){subject.ptr, end}, from,
                                  is_last ? 0 : PCRE2_NOTEOL};
        int status = match_stretch(pattern, &s, budget);
        if (status < 0 && status != PCRE2_ERROR_NOMATCH) {
            return match_error(status, pattern, subject, err);
        }
        /* A match that begins in the second half is seen whole by the next step. */
        *ret_found = status >= 0 && (is_last || pattern->spans[0] < from + PATTERN_WINDOW);
        if (*ret_found) {
            return 0;
        }
    }
    return 0;
}

int pattern_match(struct pattern *pattern, struct str subject, struct match_budget *budget,
                  bool *ret_found, struct err *err)
{
    const struct stretch whole = {subject, 0, 0};
    make_ready(pattern);
    if (subject.len > 2 * PATTERN_WINDOW && !pattern->is_anchored) {
        return match_by_windows(pattern, subject, budget, ret_found, err);
    }
    int status = match_stretch(pattern, &whole, budget);
    if (status < 0 && status != PCRE2_ERROR_NOMATCH) {
        return match_error(status, pattern, subject, err);
    }
    *ret_found = status >= 0;
    return 0;
}

int pattern_match_partial(struct pattern *pattern, struct str subject, size_t min_len,
                          struct match_budget *budget, bool *ret_partial, struct err *err)
{
    const struct stretch whole = {subject, 0, PCRE2_PARTIAL_HARD | PCRE2_NO_JIT};
    make_ready(pattern);
    int status = match_counted(pattern, &whole, budget);
    if (status < 0 && status != PCRE2_ERROR_NOMATCH && status != PCRE2_ERROR_PARTIAL) {
        return match_error(status, pattern, subject, err);
    }
    *ret_partial = false;
    if (status == PCRE2_ERROR_PARTIAL) {
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(pattern->match);
        *ret_partial = span[1] - span[0] > min_len;
    }
    return 0;
}

struct str pattern_source(const struct pattern *pattern)
{
    return (struct str){pattern->source, pattern->source_len};
}

struct str pattern_text(const struct pattern *pattern, struct str subject, int group)
{
    const PCRE2_SIZE *span;
    if (group < 0 || (uint32_t)group >= pattern->n_spans) {
        return STR_EMPTY;
    }
    span = pattern->spans + 2 * (size_t)group;
    if (span[0] == PCRE2_UNSET || span[1] < span[0] || span[1] > subject.len) {
        return STR_EMPTY;
    }
    return (struct str){subject.ptr + span[0], span[1] - span[0]};
}

/* ---- patterns of the program ---- */

static struct pattern *known(struct patterns *patterns, const char *source)
{
    struct pattern *pattern = NULL;
    for (size_t idx = 0; idx < patterns->n; idx++) {
        if (patterns->items[idx].source == source) {
            return patterns->items[idx].pattern;
        }
    }
    int status = pattern_new(str_of(source), &pattern, ERR_IGNORED);
    ASSERT(status == 0);
    VEC_PUSH(patterns, (struct pattern_known){source, pattern});
    return pattern;
}

bool patterns_find(struct patterns *patterns, const char *source, struct str text,
                   struct str *ret_groups, int n_groups)
{
    struct pattern *pattern = known(patterns, source);
    struct match_budget budget = {KNOWN_STEPS_MAX};
    bool is_found = false;
    if (!text.len || pattern_match(pattern, text, &budget, &is_found, ERR_IGNORED) < 0 ||
        !is_found) {
        return false;
    }
    for (int group = 0; group < n_groups; group++) {
        ret_groups[group] = pattern_text(pattern, text, group);
    }
    return true;
}

void patterns_release(struct patterns *patterns)
{
    for (size_t idx = 0; idx < patterns->n; idx++) {
        pattern_free(patterns->items[idx].pattern);
    }
    VEC_RELEASE(patterns);
}
