/* SPDX-License-Identifier: Apache-2.0 */
/* Reading printed shell commands for lint: words, assignments, uses of variables. It follows quotes and line ends, and knows
   nothing of expansion: it is for finding slips in text, not for running it. Views point into the text. Pure. */
#ifndef REPORT_SHELL_TEXT_H
#define REPORT_SHELL_TEXT_H

#include "base/str.h"

#define SHELL_WORDS_MAX 4096

struct shell_word {
    struct str text; /* without quotes around the whole of it */
    bool
        starts; /* first of a simple command (after a line end, ; & | && || do then else or an assignment) */
    size_t at; /* byte offset in the text */
};

struct shell_words {
    struct shell_word *items; /* in the arena */
    size_t n;
};

/* Comments are left out. A word takes a byte of the text or more, so there are as many as the text allows. */
void shell_split(struct arena *arena, struct str text, struct shell_words *ret_words);

/* NAME=VALUE: true, and both parts, the value without quotes around it. */
bool shell_assignment(struct str word, struct str *ret_name, struct str *ret_value);

/* The next $NAME or ${NAME...} at or after *at, which moves behind it. has_default: ${NAME:-x} and the like. */
bool shell_next_use(struct str text, size_t *at, struct str *ret_name, bool *ret_has_default);

/* --flag VALUE or --flag=VALUE (flag with its dashes): false where absent. */
bool shell_option(const struct shell_words *words, const char *flag, struct str *ret_value);

bool is_identifier(struct str s);
struct str path_base(struct str path);

/* Insertions, deletions and replacements from a to b; at most 64 bytes each, else 64. */
size_t edit_distance(struct str a, struct str b);

#endif
