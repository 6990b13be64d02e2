/* SPDX-License-Identifier: Apache-2.0 */
/* Where manifests are looked for: the folders of a list that main.c makes (what --manifests names, those of $REPERF_MANIFESTS,
   ./manifests, the user's own data folder), then the program's. Each may hold reports/, formats/, inventories/, datasets/,
   images/, overlays/ and locks/; the first that has a name has it. */
#pragma once

#include "base/command.h"
#include "base/fs.h"

/* This process's own variable, with one folder a line: a folder's name may hold a colon. */
#define PLACES_LIST "REPERF_PLACES"
#define PLACES_MAX  16

struct places {
    const char *items[PLACES_MAX]; /* the last is the program's own */
    size_t n;
};

/* A folder of the user's: XDG/NAME where that is absolute, else ~/IN_HOME/NAME, where ~ is $HOME or what the system knows of
   the user; NULL where there is no home either. */
const char *places_user(struct arena *arena, const char *xdg, const char *in_home,
                        const char *name);
/* A program of ours: the one that is named, else the one beside this program. */
const char *places_program(struct arena *arena, const char *named, const char *self,
                           const char *name);
/* ERR_USAGE if a named one is not a folder, or there are too many. */
MUST_CHECK int places_find(struct arena *arena, const char *root, struct places *ret,
                           struct err *err);

/* A manifest's file. */
struct placed {
    const char *place;
    const char *path;
    const char *stem; /* its name without .json */
    bool is_own;      /* in a place of the user's */
};
struct placed_list {
    struct placed *items; /* sorted by stem */
    size_t n;
};
/* Every manifest of a kind ("reports"), each name once. ERR_MANIFEST where the program's own folder cannot be read, or there
   are more than max. */
MUST_CHECK int places_list(struct arena *arena, const char *root, const char *kind, size_t max,
                           struct placed_list *ret, struct err *err);
/* The one of this name; NULL where there is none. */
const struct placed *placed_find(const struct placed_list *list, struct str stem);
/* The file or folder NAME of a kind ("formats", "datasets", "images", "overlays"): in the first place that has it, else where
   the program's own would be. */
const char *places_path(struct arena *arena, const char *root, const char *kind, const char *name);
/* The folder of another kind in the place that has this name: "locks" next to one's own dataset; the program's where no place
   of the user's has it. */
const char *places_beside(struct arena *arena, const char *root, const char *kind, const char *name,
                          const char *beside);
/* What lies below a kind's folders, each name once, sorted. */
MUST_CHECK int places_names(struct arena *arena, const char *root, const char *kind,
                            struct fs_names *ret, struct err *err);
/* From here on it is looked in first. */
void places_prefer(struct arena *arena, const char *folder);
/* Where something new of the user's is written: the first folder that is named, else ./manifests, which is made and preferred;
   where that is the program's own, the user's data folder. */
MUST_CHECK int places_to_write(struct arena *arena, const struct cmd_ctx *ctx, const char **ret,
                               struct err *err);
/* "A, B and C", for messages. */
const char *places_said(struct arena *arena, const struct places *places, const char *kind);
