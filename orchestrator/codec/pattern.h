/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of PCRE2 over bytes (no UTF-8 mode, no locale), with named groups. The only home of pcre2.h. A pattern
   is checked when it is made and compiled to machine code when it is first used. A match that would take too many steps or
   too much memory is ERR_PARSE, not an endless wait; the matches of a whole log share one budget. A pattern is used by one
   thread at a time. */
#pragma once

#include "base/str.h"
#include "base/vec.h"

#define PATTERN_LEN_MAX      4096
#define PATTERN_GROUPS_MAX   32
#define PATTERN_STEPS_FREE   16384u /* of one match: not counted below that */
#define PATTERN_HEAP_KIB_MAX 8192u
#define PATTERN_WINDOW       ((size_t)8192)

struct pattern;

/* What is left for further matches, all together. A step is one item of the pattern tried at one place of the subject, or one
   byte that an item consumed. */
struct match_budget {
    uint64_t left;
};

/* ERR_MANIFEST with "character N of the pattern" where it is malformed. */
MUST_CHECK int pattern_new(struct str source, struct pattern **ret_pattern, struct err *err);
void pattern_free(struct pattern *pattern);

/* Number of a named group, or -1 if the pattern has none of that name. */
int pattern_group(const struct pattern *pattern, const char *name);

/* The names, in alphabetical order; idx counts from 0. NULL past the last. */
const char *pattern_group_name(const struct pattern *pattern, size_t idx);

/* First match in subject: sets *ret_found. In a subject of more than two PATTERN_WINDOW an unanchored pattern is tried from each
   place on at least PATTERN_WINDOW bytes, so that the time grows linearly and not with the square of the length. */
MUST_CHECK int pattern_match(struct pattern *pattern, struct str subject,
                             struct match_budget *budget, bool *ret_found, struct err *err);

/* True in *ret_partial where subject ends in the middle of what could have become a match of more than min_len bytes. */
MUST_CHECK int pattern_match_partial(struct pattern *pattern, struct str subject, size_t min_len,
                                     struct match_budget *budget, bool *ret_partial,
                                     struct err *err);

struct str pattern_source(const struct pattern *pattern);
/* A group's text in the last match; ptr NULL if it took no part. group -1 gives that too; 0 is the whole match. */
struct str pattern_text(const struct pattern *pattern, struct str subject, int group);

/* Patterns that are constants of the program, each made where it is first asked for. A text that takes too many steps has no
   match. */
struct patterns {
    VEC(struct pattern_known {
        const char *source;
        struct pattern *pattern;
    });
};
void patterns_release(struct patterns *patterns);
/* ret_groups: the whole match and its groups, n_groups in all; or NULL. */
bool patterns_find(struct patterns *patterns, const char *source, struct str text,
                   struct str *ret_groups, int n_groups);
