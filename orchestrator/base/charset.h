/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of characters and of words, as text. */
#ifndef BASE_CHARSET_H
#define BASE_CHARSET_H

#include "base/str.h"

/* Whether it has a byte, and each of its bytes is in the set: "a-z0-9._-", with ranges, and a dash at the end for itself. */
bool str_is_made_of(struct str s, const char *set);

/* The place of a word in a list of words with one blank between, from 0; -1: it is not there. */
int word_at(struct str word, const char *words);
static inline bool is_word_of(struct str word, const char *words)
{
    return word_at(word, words) >= 0;
}
/* The length of the one of them with which the text ends; 0: none. */
size_t ends_with_any(struct str text, const char *words);

#endif
