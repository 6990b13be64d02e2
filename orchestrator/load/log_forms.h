/* SPDX-License-Identifier: Apache-2.0 */
/* What may be named as a log and is no file of lines: standard input, a pipe, a folder, and files that hold lines in another
   form: compressed, TensorBoard's events, one JSON document, a CSV whose fields hold line breaks, lines behind a logger's prefix.
   Each form becomes a file of lines that is gone when its descriptor is closed; all that reads logs sees lines. */
#pragma once

#include "base/opt.h"
#include "load/measure.h"

struct log_forms {       /* of one log */
    struct arena *arena; /* borrowed: of their paths */
    int fds[8];
    size_t n;
};
void log_forms_cleanup(struct log_forms *forms);

/* *path becomes that of the lines in standard input ("-"), in a pipe, in a compressed file or in TensorBoard's events; else it
   stays. */
MUST_CHECK int log_forms_lines(struct log_forms *forms, const char **path, struct err *err);
/* Each returns the path of the other form, or NULL. One JSON document: each of its numbers on a line, behind the names that lead
   to it. */
const char *log_forms_flatten(struct log_forms *forms, const char *path);
/* A CSV whose quoted fields hold line breaks: without those. */
const char *log_forms_join_rows(struct log_forms *forms, const char *path);
/* Without what all of its lines begin with, whatever its numbers; NULL: they begin with nothing alike. */
const char *log_forms_strip(struct log_forms *forms, const char *path);

/* Folders that hold no result of MLPerf become the logs below them, by their names; *ret_n_rounds: folders that do, and stay. The
   paths live in the arena. */
MUST_CHECK int log_forms_expand(struct arena *arena, struct opt_list *files, size_t *ret_n_rounds,
                                struct err *err);
