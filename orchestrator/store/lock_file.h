/* SPDX-License-Identifier: Apache-2.0 */
/* Locks on disk: FOLDER/KIND/NAME.json, FOLDER being manifests/locks or one given by the user. NAME is the lock's id with what
   cannot be in a file's name as %XX. */
#pragma once

#include "report/lock.h"

/* The folder of the locks unless another was named: next to one's own dataset or image, else manifests/locks below the data
   folder. */
const char *lock_folder(struct arena *arena, const char *root, const char *named,
                        enum lock_kind kind, const char *id);
MUST_CHECK int lock_path(struct arena *arena, const char *folder, enum lock_kind kind,
                         const char *id, char **ret_path, struct err *err);
/* One without an id: there is none. ERR_MANIFEST where it is another's. */
MUST_CHECK int lock_read(struct arena *arena, const char *folder, enum lock_kind kind,
                         const char *id, struct lock *ret_lock, struct err *err);
/* Compares `found` with an existing lock (ERR_INTEGRITY), else writes it. *ret_is_new: it was written. */
MUST_CHECK int lock_settle(struct arena *arena, const char *folder, const struct lock *found,
                           bool *ret_is_new, struct err *err);
