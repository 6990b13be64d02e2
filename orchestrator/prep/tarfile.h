/* SPDX-License-Identifier: Apache-2.0 */
/* A tar archive being written, plain or through gzip, hashed (MD5, SHA-256) as it goes out. Headers are codec/ustar's. The file
   appears under its name, synced, when it is complete. Members in any order; the caller makes sure that no name comes twice. */
#ifndef PREP_TARFILE_H
#define PREP_TARFILE_H

#include "base/strbuf.h"
#include "codec/digest.h"
#include "prep/deflate.h"

struct tarfile {
    const char *path; /* in the arena */
    const char *temp;
    struct arena arena;
    int fd;
    bool is_gzip;
    struct gzip_writer gzip;
    struct digest digest;
};
#define TARFILE_EMPTY ((struct tarfile){.fd = -1})

MUST_CHECK int tarfile_open(struct tarfile *tar, const char *path, bool is_gzip, struct err *err);
MUST_CHECK int tarfile_add(struct tarfile *tar, struct str name, const void *ptr, size_t len,
                           struct err *err);
MUST_CHECK int tarfile_close(struct tarfile *tar, struct digest_value *ret_value, struct err *err);
/* Before tarfile_close: what was written so far is removed. */
void tarfile_release(struct tarfile *tar);

/* The same into memory, for an archive inside another. The buffer's cap bounds it. */
MUST_CHECK int tarfile_append(struct strbuf *buf, struct str name, const void *ptr, size_t len,
                              struct err *err);
/* Two zero blocks. */
void tarfile_append_end(struct strbuf *buf);

#endif
