/* SPDX-License-Identifier: Apache-2.0 */
/* What a dataset's file says about itself, read without decoding it: sizes, channels, records, and whether it is complete. The
   bytes are the whole file. deep: every checksum inside it too (PNG chunks, TFRecord data) and every byte of a JPEG's scans is
   walked. On a fault: ERR_INTEGRITY, "byte N: expected ..., found ...". No pixel is decoded: a valid header says nothing about
   the picture. */
#pragma once

#include "base/err.h"

struct file_header {
    int64_t width, height; /* -1: it has none */
    int64_t channels;      /* as stored: a palette is 1; -1: it has none */
    int64_t n_records;     /* of a TFRecord; lines of a text; else -1 */
};

/* Source: ITU-T T.81, annex B. */
MUST_CHECK int file_header_jpeg(const uint8_t *ptr, size_t len, bool deep, struct file_header *ret,
                                struct err *err);
/* Source: W3C PNG specification, third edition, sections 5 and 11. */
MUST_CHECK int file_header_png(const uint8_t *ptr, size_t len, bool deep, struct file_header *ret,
                               struct err *err);
/* Signature, and that the file is as long as its superblock says. Source: HDF5 file format specification 3.0, section II.A. */
MUST_CHECK int file_header_hdf5(const uint8_t *ptr, size_t len, bool deep, struct file_header *ret,
                                struct err *err);
/* Lengths and their checksums to the end. Source: tensorflow/core/lib/io/record_writer.h. */
MUST_CHECK int file_header_tfrecord(const uint8_t *ptr, size_t len, bool deep,
                                    struct file_header *ret, struct err *err);
/* No NUL byte; lines, the last one with or without its line feed. */
MUST_CHECK int file_header_text(const uint8_t *ptr, size_t len, bool deep, struct file_header *ret,
                                struct err *err);
