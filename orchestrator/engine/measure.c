/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "engine/measure.h"

#include "base/fs.h"
#include "codec/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW_BYTES (256u << 10)

static int open_log(const char *path, int *ret_fd, struct err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_set(err, err_code_of_errno(errno), "%s: %s", path, err_errno_text(errno));
    }
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        return err_set(err, ERR_IO, "%s: expected a file, found a folder", path);
    }
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* only a hint */
    *ret_fd = fd;
    return 0;
}

/* Up to a window's bytes; 0 in *ret_len at the end. */
static int read_window(int fd, const char *path, char *window, size_t *ret_len, struct err *err)
{
    ssize_t len;
    do {
        len = read(fd, window, WINDOW_BYTES);
    } while (len < 0 && errno == EINTR);
    if (len < 0) {
        return err_set(err, ERR_IO, "%s: %s", path, err_errno_text(errno));
    }
    *ret_len = (size_t)len;
    return 0;
}

static void parser_cleanup(struct parser **parser)
{
    parser_free(*parser);
}

static int feed_all(int fd, const char *path, struct parser *parser, struct digest *digest,
                    struct err *err)
{
    CLEANUP(free) char *window = xmalloc(WINDOW_BYTES);
    for (;;) {
        size_t len;
        if (read_window(fd, path, window, &len, err) < 0) {
            return -1;
        }
        if (len == 0) {
            return 0;
        }
        if (digest && digest_update(digest, window, len, err) < 0) {
            return -1;
        }
        if (parser_feed(parser, window, len, err) < 0) {
            return err_wrap(err, "%s", path);
        }
    }
}

int measure_file(struct arena *arena, const struct format *format, const char *path,
                 struct measurement *ret_measurement, struct str *ret_sha256, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    CLEANUP(parser) struct parser *parser = NULL;
    struct digest_value value;
    struct measurement m;
    if (open_log(path, &fd, err) < 0 || parser_new(format, arena, &parser, err) < 0 ||
        (ret_sha256 && digest_start(&digest, DIGEST_SHA256, err) < 0) ||
        feed_all(fd, path, parser, ret_sha256 ? &digest : NULL, err) < 0) {
        return -1;
    }
    if (parser_finish(parser, &m, err) < 0) {
        return err_wrap(err, "%s", path);
    }
    if (ret_sha256) {
        char *hex = arena_array(arena, char, SHA256_HEX_SIZE);
        if (digest_finish(&digest, &value, err) < 0) {
            return -1;
        }
        hex_encode(value.sha256, SHA256_BYTES, hex);
        *ret_sha256 = str_of(hex);
    }
    *ret_measurement = m;
    return 0;
}

struct candidates {
    struct parser *items[FORMATS_MAX]; /* owned */
    size_t n;
    struct arena arena;
};

static void candidates_cleanup(struct candidates *c)
{
    for (size_t idx = 0; idx < c->n; idx++) {
        parser_free(c->items[idx]);
    }
    arena_release(&c->arena);
}

/* Feeds every candidate; *ret_records: what all of them read so far. */
static int feed_candidates(struct candidates *c, const char *window, size_t len,
                           size_t *ret_records, struct err *err)
{
    *ret_records = 0;
    for (size_t idx = 0; idx < c->n; idx++) {
        if (parser_feed(c->items[idx], window, len, err) < 0) {
            return -1;
        }
        *ret_records += parser_records(c->items[idx]);
    }
    return 0;
}

static int finish_candidates(const struct format_set *set, struct candidates *c,
                             struct guess *ret_guess, struct err *err)
{
    ret_guess->n = 0;
    for (size_t idx = 0; idx < c->n; idx++) {
        struct measurement m;
        size_t records;
        if (parser_finish(c->items[idx], &m, err) < 0) {
            return -1;
        }
        records = parser_records(c->items[idx]);
        if (records > 0) {
            ret_guess->formats[ret_guess->n] = set->items[idx];
            ret_guess->records[ret_guess->n++] = records;
        }
    }
    return 0;
}

int measure_guess(const struct format_set *set, const char *path, struct guess *ret_guess,
                  struct err *err)
{
    CLEANUP(fd) int fd = -1;
    CLEANUP(free) char *window = xmalloc(WINDOW_BYTES);
    CLEANUP(candidates) struct candidates c = {.arena = ARENA_EMPTY};
    uint64_t n_bytes = 0;
    size_t records = 0;
    if (open_log(path, &fd, err) < 0) {
        return -1;
    }
    for (; c.n < set->n; c.n++) {
        if (parser_new(set->items[c.n], &c.arena, &c.items[c.n], err) < 0) {
            return -1;
        }
    }
    for (size_t len = 1; len > 0 && (records == 0 || n_bytes < GUESS_BYTES_MIN); n_bytes += len) {
        if (read_window(fd, path, window, &len, err) < 0) {
            return -1;
        }
        if (feed_candidates(&c, window, len, &records, err) < 0) {
            return err_wrap(err, "%s", path);
        }
    }
    return finish_candidates(set, &c, ret_guess, err);
}
