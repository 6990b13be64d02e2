/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/plan_book.h"

#include "base/arena.h"

struct plan_note {
    struct plan_note *next; /* owned */
    char call[PLAN_CALL_MAX];
    struct plan_choice choice;
};

void plan_book_open(struct plan_book *book, const char *folder, const char *about)
{
    *book = (struct plan_book){.folder = folder ? xstrdup(folder) : NULL};
    (void)snprintf(book->about, sizeof(book->about), "%s", about);
}

void plan_book_close(struct plan_book *book)
{
    while (book->notes) {
        struct plan_note *note = book->notes;
        book->notes = note->next;
        free(note);
    }
    free(book->folder);
    *book = (struct plan_book){0};
}

static void make_key(const struct plan_book *book, const char *call, char key[PLAN_KEY_MAX])
{
    int len = snprintf(key, PLAN_KEY_MAX, "%s; %s", book->about, call);
    ASSERT(len > 0 && len < PLAN_KEY_MAX);
}

static struct plan_note *note_of(const struct plan_book *book, const char *call)
{
    struct plan_note *note = book->notes;
    while (note && strcmp(note->call, call) != 0) {
        note = note->next;
    }
    return note;
}

static void add_note(struct plan_book *book, const char *call, const struct plan_choice *choice)
{
    struct plan_note *note = note_of(book, call);
    if (!note) {
        note = xcalloc(1, sizeof(*note));
        int len = snprintf(note->call, sizeof(note->call), "%s", call);
        ASSERT(len > 0 && len < (int)sizeof(note->call));
        note->next = book->notes;
        book->notes = note;
    }
    note->choice = *choice;
}

bool plan_book_find(struct plan_book *book, const char *call, struct plan_choice *ret_choice)
{
    char key[PLAN_KEY_MAX];
    const struct plan_note *note = note_of(book, call);
    if (note) {
        *ret_choice = note->choice;
        return true;
    }
    make_key(book, call, key);
    if (!book->folder || !plan_cache_find(book->folder, key, ret_choice)) {
        return false;
    }
    add_note(book, call, ret_choice);
    return true;
}

void plan_book_put(struct plan_book *book, const char *call, const struct plan_choice *choice)
{
    char key[PLAN_KEY_MAX];
    add_note(book, call, choice);
    make_key(book, call, key);
    if (book->folder) {
        plan_cache_put(book->folder, key, choice);
    }
}

/* ---- as text ---- */

void plan_book_write(const struct plan_book *book, struct strbuf *text)
{
    for (const struct plan_note *note = book->notes; note; note = note->next) {
        strbuf_printf(text, "%" PRId64 "\t%s\t%s\n", note->choice.time_ns, note->choice.plan,
                      note->call);
    }
}

static bool copy_word(struct str word, char *to, size_t size)
{
    for (size_t i = 0; i < word.len; i++) {
        if (word.ptr[i] < ' ' || word.ptr[i] > '~') {
            return false;
        }
    }
    if (word.len == 0 || word.len >= size) {
        return false;
    }
    memcpy(to, word.ptr, word.len);
    to[word.len] = '\0';
    return true;
}

int plan_book_read(struct plan_book *book, struct str text, struct err *err)
{
    struct str line;
    while (text.len > 0 && str_next(&text, '\n', &line)) {
        struct plan_choice choice = {0};
        char call[PLAN_CALL_MAX];
        struct str time;
        struct str plan;
        if (!str_next(&line, '\t', &time) || !str_next(&line, '\t', &plan) ||
            str_to_i64(time, 0, PLAN_TIME_MAX_NS, &choice.time_ns, err) < 0 ||
            !copy_word(plan, choice.plan, sizeof(choice.plan)) ||
            !copy_word(line, call, sizeof(call))) {
            return err->code != ERR_NONE
                       ? err_wrap(err, "a choice of plan")
                       : err_set(err, ERR_PARSE,
                                 "a choice of plan: expected a time, a plan and a call");
        }
        add_note(book, call, &choice);
    }
    return 0;
}
