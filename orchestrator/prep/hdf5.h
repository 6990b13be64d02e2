/* SPDX-License-Identifier: Apache-2.0 */
/* libhdf5's only home: files with BERT's inputs, one row a sample. Debian's library serves one thread at a time, so that
   calls from any thread take turns (sys/pool.h). It is not safe for hostile files: check a file's digest before it is opened
   (`pack --list`). */
#pragma once

#include "prep/bert_tokens.h"

#define HDF5_ROWS_MAX 100000000

struct hdf5_file;

/* Checks that all parts are there, whole numbers, with the shape's sizes and equal numbers of rows. */
MUST_CHECK int hdf5_open(const char *path, const struct tokens_shape *shape,
                         struct hdf5_file **ret_file, struct err *err);
uint32_t hdf5_n_rows(const struct hdf5_file *file);
/* n samples from first on, one after the other. */
MUST_CHECK int hdf5_read(struct hdf5_file *file, uint32_t first, uint32_t n, int32_t *rows,
                         struct err *err);
void hdf5_close(struct hdf5_file *file);
CLEANUP_POINTER(hdf5, struct hdf5_file, hdf5_close);

/* A file in memory, from malloc, with the types and the compression that NVIDIA's preparation uses. */
MUST_CHECK int hdf5_make(const int32_t *rows, uint32_t n, const struct tokens_shape *shape,
                         uint8_t **ret_bytes, size_t *ret_len, struct err *err);

/* For the recipe: "HDF5 1.10.8". */
const char *hdf5_library(void);
