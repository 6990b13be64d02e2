/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors by name in one file: 8 bytes little-endian header size, JSON header, data.
   Source: https://github.com/huggingface/safetensors, README "Format", read 2026-11.
   Strict: unknown or double keys, double names, offsets that leave a hole, overlap, run past the end or do not fit dtype
   and shape, and anything after the last tensor are errors that name the tensor or the byte. */
#ifndef CORE_SAFETENSORS_H
#define CORE_SAFETENSORS_H

#include "core/tensor.h"

#include "base/str.h"

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

struct st_file {
    struct st_tensor *tensors; /* in the arena, sorted by name */
    int n_tensors;
};

/* Reads what lies at ptr, which must outlive *ret_file. */
MUST_CHECK int st_parse(struct arena *arena, struct str content, struct st_file *ret_file,
                        struct err *err);

/* The whole file into the arena. */
MUST_CHECK int st_read(struct arena *arena, const char *path, struct st_file *ret_file,
                       struct err *err);

/* NULL if there is none of that name. */
const struct st_tensor *st_find(const struct st_file *file, const char *name);

/* In the order given; names must differ, data be of the size dtype and shape ask for. Either the whole file is there at the
   end or, on an error, what was there before. */
MUST_CHECK int st_write(const char *path, const struct st_tensor *tensors, int n_tensors,
                        struct err *err);

#endif
