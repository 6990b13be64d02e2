/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a library's plans was chosen for a call, kept in files from run to run: FOLDER/SHA-256 OF THE KEY.json. The key states
   everything that a choice depends on: library and version, device, call. A file that is damaged, of another form or of another key is
   ignored: a note is logged, and the next choice overwrites it. Files are replaced whole; several processes may share a folder. */
#pragma once

#include "base/str.h"

#define PLAN_KEY_MAX       640
#define PLAN_CHOICE_MAX    160 /* printable ASCII */
#define PLAN_FILE_MAX      4096
#define PLAN_TIME_MAX_NS   (INT64_C(3600) * 1000000000)
#define PLAN_CACHE_VERSION 1

struct plan_choice {
    char plan[PLAN_CHOICE_MAX]; /* in the library's words */
    int64_t time_ns;            /* by which it was chosen; 0: it was not timed */
};

/* $XDG_CACHE_HOME/reperf/plans or ~/.cache/reperf/plans; NULL without both. */
const char *plan_cache_folder(struct arena *arena);

/* False: there is none. */
bool plan_cache_find(const char *folder, const char *key, struct plan_choice *ret_choice);

/* A choice that cannot be kept is only a note: it is made again next time. */
void plan_cache_put(const char *folder, const char *key, const struct plan_choice *choice);

/* The content of a file, for key. */
MUST_CHECK int plan_cache_parse(struct arena *arena, struct str text, const char *key,
                                struct plan_choice *ret_choice, struct err *err);
char *plan_cache_path(struct arena *arena, const char *folder, const char *key);
