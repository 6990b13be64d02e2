/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the manifests/ of the data folder. */
#pragma once

#include "base/opt.h"
#include "judge/rule.h"
#include "report/report.h"
#include "report/report_tables.h"

#define VOCABULARY_FILE "manifests/vocabulary.json"
/* Below the data folder; the program's own where there is none. */
MUST_CHECK int load_vocabulary(struct arena *arena, const char *root, const struct vocabulary **ret,
                               struct err *err);

/* Every format of the places (load/places.h); format_set_release at the end. */
MUST_CHECK int load_formats(struct arena *arena, const char *root, struct format_set *ret_set,
                            struct err *err);
/* A set of only that format; an empty set if there is none of that id. */
MUST_CHECK int load_format(struct arena *arena, const char *root, const char *id,
                           struct format_set *ret_set, struct err *err);
/* Of a format that a user names: the path of its file, not its id. */
bool load_is_format_file(const char *named);
/* A set of only that format, named by its id or by its file's path; ERR_USAGE if there is none of that id. */
MUST_CHECK int load_format_named(struct arena *arena, const char *root, const char *named,
                                 struct format_set *ret_set, struct err *err);
/* The rule "FORMAT/NAME" and its format; ERR_MANIFEST if there is none. */
MUST_CHECK int load_rule(struct arena *arena, const char *root, struct str id,
                         struct format_set *ret_set, const struct rule **ret_rule, struct err *err);
/* A set of the one format in this file, whatever its name, or in this text. */
MUST_CHECK int load_format_file(struct arena *arena, const char *root, const char *path,
                                struct format_set *ret_set, struct err *err);
MUST_CHECK int load_format_text(struct arena *arena, const char *root, struct str text,
                                const char *name, struct format_set *ret_set, struct err *err);
void format_set_release(struct format_set *set);
CLEANUP_BY(format_set, struct format_set, format_set_release);

/* One report by id, or by path if the name contains a slash or ends in .json. ERR_MANIFEST if there is none. */
MUST_CHECK int load_report(struct arena *arena, const char *root, const char *name,
                           struct report *ret_report, struct err *err);
/* The same in two steps, for those who change its text in between. */
struct report_file {
    const char *path;
    const char *root;                    /* the data folder, of the vocabulary; borrowed */
    const struct vocabulary *vocabulary; /* it, where it is loaded already */
    struct str id;                       /* that it must have, as it is named; NULL: read by path */
    const char *place; /* of the user's, where it lies; NULL: the program's, or no place */
    struct str text;   /* form 1 of it (report/report_tables.h) */
    struct spelled spelled;
};
MUST_CHECK int load_report_file(struct arena *arena, const char *root, const char *name,
                                struct report_file *ret_file, struct err *err);
MUST_CHECK int load_report_decode(struct arena *arena, const struct report_file *file,
                                  struct report *ret_report, struct err *err);

struct report_set {
    struct report *items; /* sorted by id */
    size_t n;
};
/* Those named, by id or file, or all. ERR_USAGE where neither or both are given. */
MUST_CHECK int load_reports_of(struct arena *arena, const char *root, const struct opt_list *names,
                               bool is_all, struct report_set *ret_set, struct err *err);
MUST_CHECK int load_all_reports(struct arena *arena, const char *root, struct report_set *ret_set,
                                struct err *err);
