/* SPDX-License-Identifier: Apache-2.0 */
/* The choices that one program knows: those made now and those of earlier runs (core/plan_cache.h), by call. What a choice depends on
   beside the call, the book's `about`, begins every key of the folder. As text, one rank's choices serve others with an equal device. */
#pragma once

#include "base/strbuf.h"
#include "core/plan_cache.h"

#define PLAN_ABOUT_MAX     256 /* the device, its driver, the libraries' versions */
#define PLAN_CALL_MAX      (PLAN_KEY_MAX - PLAN_ABOUT_MAX)
#define PLAN_BOOK_TEXT_MAX (8 << 20)

struct plan_note; /* one choice */

struct plan_book {
    char about[PLAN_ABOUT_MAX];
    char *folder;            /* owned; NULL: none */
    struct plan_note *notes; /* owned */
};

void plan_book_open(struct plan_book *book, const char *folder, const char *about);
void plan_book_close(struct plan_book *book);

/* False: there is none. */
bool plan_book_find(struct plan_book *book, const char *call, struct plan_choice *ret_choice);

/* Replaces an earlier choice of the same call. */
void plan_book_put(struct plan_book *book, const char *call, const struct plan_choice *choice);

/* All that were found or put, each as a line: time, plan and call, with tabs between them; and reading it. */
void plan_book_write(const struct plan_book *book, struct strbuf *text);
MUST_CHECK int plan_book_read(struct plan_book *book, struct str text, struct err *err);
