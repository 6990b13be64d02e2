/* SPDX-License-Identifier: Apache-2.0 */
/* The devkit's data/meta.mat: the WordNet id of each of ILSVRC 2012's own class numbers. Reads of MATLAB's file format (level 5) what
   that file needs: one struct array `synsets` with the fields ILSVRC2012_ID and WNID, plain or compressed. Source: "MAT-File Format",
   MathWorks, version 5: 1-6 to 1-22. */
#ifndef PREP_META_MAT_H
#define PREP_META_MAT_H

#include "base/str.h"

#define META_BYTES_MAX   (64u << 20)
#define META_SYNSETS_MAX 65536

struct meta_synset {
    int64_t number;
    struct str wnid;
};

struct meta_mat {
    struct meta_synset *synsets; /* in the arena, as they stand there */
    size_t n;
};

MUST_CHECK int meta_mat_parse(struct arena *arena, struct str bytes, struct meta_mat *ret_meta,
                              struct err *err);
/* A file with these, compressed. From malloc. */
MUST_CHECK int meta_mat_make(const struct meta_mat *meta, uint8_t **ret_bytes, size_t *ret_len,
                             struct err *err);

#endif
