/* SPDX-License-Identifier: Apache-2.0 */
/* A log read window by window: its caller digests what a window holds, and has it parsed while it is still in the cache. */
#pragma once

#include "load/measure.h"
#include "log/format.h"

#define LOG_WINDOW_BYTES (64u << 10)

/* Whether it is compressed as a whole: gzip, zstd, xz, bzip2. */
bool log_is_compressed(const char *path);
/* A descriptor of a file that is no folder; of a compressed one, of what it holds, unless it is damaged. */
MUST_CHECK int log_open(const char *path, int *ret_fd, struct err *err);
/* A digest needs a file that can be read again; a pipe cannot, and may never end. */
MUST_CHECK int log_must_be_regular(const char *path, struct err *err);
/* Up to a window's bytes; 0 in *ret_len at the end. */
MUST_CHECK int log_read_window(int fd, const char *path, char *window, size_t *ret_len,
                               struct err *err);

struct log_reader {
    const char *path; /* borrowed */
    int fd;           /* -1: no log */
    struct parser *parser;
    char *window; /* owned, kept from log to log */
    size_t len;   /* of what it holds; 0: the log has ended, or nothing was read yet */
};
#define LOG_READER_EMPTY ((struct log_reader){.fd = -1})

/* What the parser finds lives in the arena. */
MUST_CHECK int log_reader_open(struct log_reader *reader, struct arena *arena,
                               const struct reading *how, struct err *err);
MUST_CHECK int log_reader_next(struct log_reader *reader, struct err *err);
MUST_CHECK int log_reader_parse(struct log_reader *reader, struct err *err);
MUST_CHECK int log_reader_finish(struct log_reader *reader, struct measurement *ret_measurement,
                                 struct err *err);
void log_reader_close(struct log_reader *reader); /* the window stays */
void log_reader_cleanup(struct log_reader *reader);
