/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors by name in one file: 8 bytes little-endian header size, JSON header, data.
   Source: https://github.com/huggingface/safetensors, README "Format", read 2026-11.
   Strict: unknown or double keys, double names, offsets that leave a hole, overlap, run past the end or do not fit dtype
   and shape, and anything after the last tensor are errors that name the tensor or the byte. */
#pragma once

#include "core/tensor.h"

#include "base/str.h"
#include "core/sha256.h"

#define ST_PREFIX_BYTES     8 /* the header's size, little-endian */
#define ST_META_MAX         256
#define ST_HEADER_BYTES_MAX (16 << 20)
#define ST_TENSORS_MAX      65536
#define ST_NAME_BYTES_MAX   256
#define ST_FILE_BYTES_MAX   (INT64_C(1) << 35) /* 32 GiB */

struct st_tensor {
    const char *name;
    enum dtype dtype; /* DT_F32, DT_F64 or DT_I64 */
    struct shape shape;
    const void *data; /* borrowed; not aligned when read */
    int64_t bytes;
};

/* A text of "__metadata__". */
struct st_meta {
    const char *key, *value;
};

struct st_file {
    struct st_tensor *tensors; /* in the arena, sorted by name */
    int n_tensors;
    struct st_meta *meta; /* in the arena, in the order of the file, at most ST_META_MAX */
    int n_meta;
};

/* Reads what lies at ptr, which must outlive *ret_file. */
MUST_CHECK int st_parse(struct arena *arena, struct str content, struct st_file *ret_file,
                        struct err *err);

/* The whole file into the arena. */
MUST_CHECK int st_read(struct arena *arena, const char *path, struct st_file *ret_file,
                       struct err *err);

/* NULL if there is none of that name. */
const struct st_tensor *st_find(const struct st_file *file, const char *name);

/* NULL if there is none of that name. */
const char *st_find_meta(const struct st_file *file, const char *key);

const char *st_dtype_text(enum dtype dtype); /* "F32" */

/* In the order given; names must differ, data must have the size of dtype and shape. On success the whole file is there; on
   an error, what was there before. */
MUST_CHECK int st_write(const char *path, const struct st_tensor *tensors, int n_tensors,
                        struct err *err);

/* The same with texts, and with a digest: the first text is then "sha256", the SHA-256 of the file with zeros for these 64 digits. */
struct st_content {
    const struct st_meta *meta;
    int n_meta;
    const struct st_tensor *tensors;
    int n_tensors;
    /* Returns the data of a tensor whose `data` is NULL, valid until the next call. */
    const void *(*fetch)(void *ctx, int tensor);
    void *ctx;
};
MUST_CHECK int st_write_sealed(const char *path, const struct st_content *content,
                               char ret_hex[SHA256_HEX_LEN + 1], struct err *err);

/* A file's content against its digest: ERR_INTEGRITY if the digest is not that of st_write_sealed, or the file begins like one
   and is too short. ERR_PARSE without a digest. */
MUST_CHECK int st_check_seal(struct str content, char ret_hex[SHA256_HEX_LEN + 1], struct err *err);
