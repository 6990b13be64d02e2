/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `reperf new --from`: new_files.c (reading the repository) and new_from.c (making the draft). */
#ifndef DRAFT_NEW_PARTS_H
#define DRAFT_NEW_PARTS_H

#include "draft/doc_table.h"
#include "draft/draft.h"
#include "draft/new_from.h"
#include "log/format.h"
#include "store/git.h"

#define NEW_GIT_LIMIT_NS  (60 * NS_PER_S)
#define NEW_DOC_BYTES_MAX (2u << 20)
#define NEW_LOG_FILES_MAX 600
#define NEW_DOC_FILES_MAX 1500

enum new_rank {              /* which files are read first, where there are too many */
                RANK_LINKED, /* a table names it */
                RANK_ROW,    /* it is named as a log, and its path names a row's machine */
                RANK_NAMED,  /* it is named as a log */
                RANK_APART,  /* likewise, but by its path it belongs to no number */
                RANK_TEXT,
                RANK_NONE,
};
struct new_file {
    const char *path, *hash; /* of the blob */
    int64_t size;
    enum new_rank rank;
};
struct new_files {
    struct new_file *items;
    size_t n, n_left_out;
};

struct new_maker {
    const struct cmd_ctx *ctx;
    const struct new_from *from;
    struct arena *arena;
    struct git git;
    const char *git_dir, *tmp;
    struct str commit, date, repository;
    struct new_files all, docs, log_files;
    struct format_set formats; /* the program's and the user's */
    struct guesser *guesser;   /* of these; owned */
    struct format_set made;    /* from unknown logs; owned */
    struct str made_text[8];
    struct draft_logs logs;
    struct draft draft;
    size_t n_unread; /* logs that nothing reads */
    size_t n_sheets; /* spreadsheets, which are not read */
};

/* What git says, in the arena; empty where it fails. */
MUST_CHECK int new_git_line(struct new_maker *m, const char *const *args, struct str *ret,
                            struct err *err);
bool new_doc_kind(struct str path, enum doc_kind *ret_kind);
/* Lists the repository and chooses the documents. */
MUST_CHECK int new_list_files(struct new_maker *m, struct err *err);
/* Once the documents are read: files that they link to come first. */
void new_choose_logs(struct new_maker *m, struct draft_reader *reader);
/* Brings the files to the folder m->tmp, byte for byte. */
MUST_CHECK int new_bring(struct new_maker *m, const struct new_files *files, struct err *err);

#endif
