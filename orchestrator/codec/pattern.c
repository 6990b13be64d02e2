/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define MESSAGE_BYTES   256
#define JIT_STACK_START (32u << 10)
#define JIT_STACK_MAX   (1u << 20)

struct pattern {
    pcre2_code *code;             /* owned */
    pcre2_match_data *match;      /* owned */
    pcre2_match_context *context; /* owned */
    pcre2_jit_stack *jit_stack;   /* owned; NULL before first use */
    const PCRE2_SIZE *spans;      /* of the last match, in match */
    uint32_t n_spans;
    bool is_ready; /* compiled by JIT, or found to be impossible */
    bool has_jit;
    bool is_anchored;                      /* can match at the beginning alone */
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

/* Where the machine has no JIT the interpreter does the same work under the same limits. */
static void make_ready(struct pattern *pattern)
{
    uint32_t options = 0;
    if (pattern->is_ready) {
        return;
    }
    pattern->has_jit = pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE) == 0;
    pattern->match = pcre2_match_data_create_from_pattern(pattern->code, NULL);
    pattern->context = pcre2_match_context_create(NULL);
    pattern->jit_stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_MAX, NULL);
    ASSERT(pattern->match);
    ASSERT(pattern->context);
    pcre2_set_match_limit(pattern->context, PATTERN_STEPS_MAX);
    pcre2_set_heap_limit(pattern->context, PATTERN_HEAP_KIB_MAX);
    pcre2_jit_stack_assign(pattern->context, NULL, pattern->jit_stack);
    pattern->spans = pcre2_get_ovector_pointer(pattern->match);
    pattern->n_spans = pcre2_get_ovector_count(pattern->match);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_ALLOPTIONS, &options);
    pattern->is_anchored = (options & PCRE2_ANCHORED) != 0;
    pattern->is_ready = true;
}

static int match_error(int status, struct str subject, struct err *err)
{
    PCRE2_UCHAR text[MESSAGE_BYTES] = "";
    pcre2_get_error_message(status, text, sizeof(text));
    return err_set(err, ERR_PARSE, "pattern on a line of %zu bytes: %s", subject.len,
                   (const char *)text);
}

static PCRE2_SPTR subject_ptr(struct str subject)
{
    return (PCRE2_SPTR)(subject.ptr ? subject.ptr : "");
}

/* The match limit counts anew from each place that a match may begin at, so a line that begins it over and over would cost the square
   of its length. A long one is gone through in steps, each of which sees so much of the line behind it. */
static int match_by_windows(struct pattern *pattern, struct str subject, bool *ret_found,
                            struct err *err)
{
    for (size_t from = 0; from == 0 || from + PATTERN_WINDOW < subject.len;
         from += PATTERN_WINDOW) {
        size_t end = from + 2 * PATTERN_WINDOW;
        bool is_last = end >= subject.len;
        int status =
            pcre2_match(pattern->code, subject_ptr(subject), is_last ? subject.len : end, from,
                        is_last ? 0 : PCRE2_NOTEOL, pattern->match, pattern->context);
        if (status < 0 && status != PCRE2_ERROR_NOMATCH) {
            return match_error(status, subject, err);
        }
        /* What begins in the second half is seen whole by the next step. */
        *ret_found = status >= 0 && (is_last || pattern->spans[0] < from + PATTERN_WINDOW);
        if (*ret_found) {
            return 0;
        }
    }
    return 0;
}

int pattern_match(struct pattern *pattern, struct str subject, bool *ret_found, struct err *err)
{
    int status;
    make_ready(pattern);
    if (subject.len > 2 * PATTERN_WINDOW && !pattern->is_anchored) {
        return match_by_windows(pattern, subject, ret_found, err);
    }
    status = (pattern->has_jit ? pcre2_jit_match : pcre2_match)(
        pattern->code, subject_ptr(subject), subject.len, 0, 0, pattern->match, pattern->context);
    if (status < 0 && status != PCRE2_ERROR_NOMATCH) {
        return match_error(status, subject, err);
    }
    *ret_found = status >= 0;
    return 0;
}

int pattern_match_partial(struct pattern *pattern, struct str subject, size_t min_len,
                          bool *ret_partial, struct err *err)
{
    int status;
    make_ready(pattern);
    status = pcre2_match(pattern->code, subject_ptr(subject), subject.len, 0,
                         PCRE2_PARTIAL_HARD | PCRE2_NO_JIT, pattern->match, pattern->context);
    if (status < 0 && status != PCRE2_ERROR_NOMATCH && status != PCRE2_ERROR_PARTIAL) {
        return match_error(status, subject, err);
    }
    *ret_partial = false;
    if (status == PCRE2_ERROR_PARTIAL) {
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(pattern->match);
        *ret_partial = span[1] - span[0] > min_len;
    }
    return 0;
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
