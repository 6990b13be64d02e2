/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary names, all of one pattern: NAME.reperf-tmp-XXXXXX beside the NAME that it is to get, or reperf-tmp-XXXXXX in a
   folder. Whoever makes one holds a lock on it (flock) for as long as it is in use; a killed process loses its locks. What has
   such a name, is ours and is locked by nobody belongs to a dead process, and is removed: beside a NAME by who makes the next
   one there or uses that folder next, and in the places below and the folders of runs by `store gc` too. No other file makes
   one (tests/lint/names.sh). Programs that we start write below STORE/tmp or a scratch folder, under names of their own: those
   go with the folder, or when a store is opened that no other process has open. Two are used again instead: ARCHIVE.partial by
   the next seal, STORE/partial by the next fetch. On nodes, `nodes clean` removes what is left. */
#pragma once

#include <sys/types.h>

#include "base/str.h"

/*        root, folder below it, what has temporary names there */
#define TEMP_PLACES(PLACE)                                                                         \
    PLACE(TEMP_STATE, "", "nodes provision: files on their way to nodes")                          \
    PLACE(TEMP_STATE, "runs", "run: a run that is not frozen yet")                                 \
    PLACE(TEMP_STATE, "addresses", "an archive as an address, while its command runs; a checkout") \
    PLACE(TEMP_STORE, "cache", "digests and series of files")                                      \
    PLACE(TEMP_STORE, "partial", "how far a fetch is")                                             \
    PLACE(TEMP_STORE, "sources", "a repository that is fetched")                                   \
    PLACE(TEMP_STORE, "tmp", "every file and folder on its way into the store; a login")

enum temp_root { TEMP_STATE, TEMP_STORE };

struct temp {
    int fd; /* of a file, for reading and writing; else of the folder. It holds the lock. */
    char path[];
};
/* Beside `name`, or, where that ends with '/', in it. A file has what the umask leaves of the mode, a folder of 0755. -1, with
   errno. */
MUST_CHECK int temp_file(const char *name, mode_t mode, struct temp **ret);
MUST_CHECK int temp_folder(const char *name, struct temp **ret, struct err *err);
/* A folder for nobody else, below $TMPDIR, else /tmp: archives that are looked into, logs of clones. */
MUST_CHECK int temp_scratch(struct temp **ret, struct err *err);
/* A file there that is gone when its descriptor is closed. */
MUST_CHECK int temp_spool(int *ret_fd, struct err *err);
/* Removes what is there still, which is nothing where it has got its name; NULL: nothing to do. */
void temp_free(struct temp *temp);
CLEANUP_POINTER(temp, struct temp, temp_free); /* CLEANUP(temp) struct temp *made = NULL; */

/* It stays until this process ends; whoever makes the next one there removes it. */
void temp_leave(struct temp **temp);

/* NAME of a temporary one, empty where it has none; ptr NULL: it is no such name. */
struct str temp_of(struct str name);
/* What dead processes left in the folder, beside `of` (NULL: all). What cannot be removed is left for the next. */
void temp_sweep(const char *folder, const char *of);
void temp_sweep_root(enum temp_root root, const char *folder);
