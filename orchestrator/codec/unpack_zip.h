/* SPDX-License-Identifier: Apache-2.0 */
/* The directory at the end of a zip, checked against the entries read before it: tools that read from the end must see exactly the
   same files, so none may be hidden, duplicated, overlap another, or have another type. Source: APPNOTE.TXT 6.3.10, sections 4.3.12
   to 4.3.16 and 4.5.3. */
#ifndef CODEC_UNPACK_ZIP_H
#define CODEC_UNPACK_ZIP_H

#include "base/vec.h"
#include "codec/unpack_source.h"

struct unpack_zip_entry {
    uint64_t offset; /* where its header was expected */
    uint64_t size_bytes;
    uint32_t crc;
    uint32_t name_hash; /* of the name as libarchive gave it */
    bool is_seen;       /* in the directory */
    bool is_folder;
};

struct unpack_zip {
    VEC(struct unpack_zip_entry) entries; /* by offset */
};

void unpack_zip_release(struct unpack_zip *zip);
uint32_t unpack_zip_hash(struct str name);
/* Reads the source to its end. from: just after the last entry's data. */
MUST_CHECK int unpack_zip_check(struct unpack_zip *zip, struct unpack_source *source, uint64_t from,
                                struct err *err);

#endif
