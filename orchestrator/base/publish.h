/* SPDX-License-Identifier: Apache-2.0 */
/* What vouches is durable after what it vouches for. A mark (a record, a journal's line, a name that is only given to what is
   whole) is written after its files are published here: their bytes are on the disk, then their name, and each folder on the
   way there, for fs_mkdir_p syncs the parent of every folder that it makes. No other file calls fsync or its kin
   (tests/lint/names.sh). */
#pragma once

#include "base/err.h"

/* The bytes of an open file, or the names in an open folder. */
MUST_CHECK int publish_data(int fd, const char *name, struct err *err);
/* The names in a folder. */
MUST_CHECK int publish_folder(const char *path, struct err *err);
/* The folder that holds the path. */
MUST_CHECK int publish_parent(const char *path, struct err *err);
/* Everything on the file system of an open folder: for trees of files, where a sync of each would take hours. */
MUST_CHECK int publish_all(int fd, const char *name, struct err *err);
/* What is on the disk already gets its name. */
MUST_CHECK int publish_name(const char *temp, const char *path, struct err *err);
/* The file's bytes, then its name: path is the old file or the whole new one, and stays so after a power cut. */
MUST_CHECK int publish_file(int fd, const char *temp, const char *path, struct err *err);
/* A finished folder gets its name, which nothing has. */
MUST_CHECK int publish_tree(const char *made, const char *path, struct err *err);
