/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "load/measure.h"

#include "base/fs.h"
#include "codec/digest.h"
#include "judge/survey.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW_BYTES (64u << 10)

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

static int parse_file(struct arena *arena, const struct reading_by *by, const char *path,
                      struct measurement *ret_measurement, struct digest *digest, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    CLEANUP(parser) struct parser *parser = NULL;
    struct measurement m;
    if (open_log(path, &fd, err) < 0 || parser_new(by->format, arena, &parser, err) < 0) {
        return -1;
    }
    parser_judge_by(parser, by->derivation);
    if (by->keeps_lines) {
        parser_keep_lines(parser);
    }
    if (feed_all(fd, path, parser, digest, err) < 0) {
        return -1;
    }
    if (parser_finish(parser, &m, err) < 0) {
        return err_wrap(err, "%s", path);
    }
    *ret_measurement = m;
    return 0;
}

int measure_file(struct arena *arena, const struct format *format, const char *path,
                 struct measurement *ret_measurement, struct str *ret_sha256, struct err *err)
{
    const struct reading_by by = {.format = format, .derivation = DERIVATION_NOW};
    return measure_file_by(arena, &by, path, ret_measurement, ret_sha256, err);
}

int measure_file_by(struct arena *arena, const struct reading_by *by, const char *path,
                    struct measurement *ret_measurement, struct str *ret_sha256, struct err *err)
{
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    struct digest_value value;
    struct stat st;
    char *hex;
    if (!ret_sha256) {
        return parse_file(arena, by, path, ret_measurement, NULL, err);
    }
    /* What a digest stands for can be read again; a pipe cannot, and may never end. */
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        return err_set(err, ERR_IO, "%s: expected a regular file", path);
    }
    if (digest_start(&digest, DIGEST_SHA256, err) < 0 ||
        parse_file(arena, by, path, ret_measurement, &digest, err) < 0 ||
        digest_finish(&digest, &value, err) < 0) {
        return -1;
    }
    hex = arena_array(arena, char, SHA256_HEX_SIZE);
    hex_encode(value.sha256, SHA256_BYTES, hex);
    *ret_sha256 = str_of(hex);
    return 0;
}

int measure_file_rates(struct arena *arena, const struct format *format, const char *path,
                       struct str named, const struct log_head *head,
                       struct measurement *ret_measurement, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    CLEANUP(parser) struct parser *parser = NULL;
    struct measurement m;
    if (parser_new(format, arena, &parser, err) < 0) {
        return -1;
    }
    parser_skip_scores(parser, named);
    if (head && head->is_whole) {
        if (parser_feed(parser, head->ptr, head->len, err) < 0) {
            return err_wrap(err, "%s", path);
        }
    } else if (open_log(path, &fd, err) < 0 || feed_all(fd, path, parser, NULL, err) < 0) {
        return -1;
    }
    if (parser_finish(parser, &m, err) < 0) {
        return err_wrap(err, "%s", path);
    }
    *ret_measurement = m;
    return 0;
}

static void guesser_cleanup(struct guesser **guesser)
{
    guesser_free(*guesser);
}

/* Reads on until the head is full or the log ends. */
static int fill_head(int fd, const char *path, size_t max, struct log_head *head, struct err *err)
{
    size_t len = 1;
    head->len = 0;
    while (len > 0 && head->len < max) {
        if (head->max < head->len + WINDOW_BYTES) {
            head->max = 2 * head->max + WINDOW_BYTES;
            head->ptr = xrealloc(head->ptr, head->max);
        }
        if (read_window(fd, path, head->ptr + head->len, &len, err) < 0) {
            return -1;
        }
        head->len += len;
    }
    head->is_whole = len == 0;
    return 0;
}

/* What comes after the head. */
static int guess_on(int fd, const char *path, size_t n_bytes, struct guesser *guesser,
                    struct err *err)
{
    CLEANUP(free) char *window = xmalloc(WINDOW_BYTES);
    bool fits[FORMATS_MAX];
    for (size_t len = 1; len > 0; n_bytes += len) {
        if (n_bytes >= GUESS_BYTES_MIN && guesser_fits(guesser, fits) > 0) {
            return 0;
        }
        if (read_window(fd, path, window, &len, err) < 0) {
            return -1;
        }
        if (guesser_feed(guesser, window, len, err) < 0) {
            return err_wrap(err, "%s", path);
        }
    }
    return 0;
}

static int guess_all(int fd, const char *path, struct log_head *head, struct guesser *guesser,
                     struct err *err)
{
    struct stat st;
    bool is_regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (fill_head(fd, path, is_regular ? LOG_HEAD_BYTES : LOG_PIPE_BYTES, head, err) < 0) {
        return -1;
    }
    if (!is_regular && !head->is_whole) {
        return err_set(err, ERR_USAGE,
                       "%s: it cannot be read twice and is longer than %u bytes: name its format",
                       path, LOG_PIPE_BYTES);
    }
    if (guesser_feed(guesser, head->ptr, head->len, err) < 0) {
        return err_wrap(err, "%s", path);
    }
    if (!head->is_whole && guess_on(fd, path, head->len, guesser, err) < 0) {
        return -1;
    }
    return guesser_finish(guesser, err) < 0 ? err_wrap(err, "%s", path) : 0;
}

int measure_guess(const struct format_set *set, const char *path, struct log_head *head,
                  struct guess *ret_guess, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    CLEANUP(guesser) struct guesser *guesser = NULL;
    bool fits[FORMATS_MAX] = {false};
    if (open_log(path, &fd, err) < 0 || guesser_new(set, &guesser, err) < 0 ||
        guess_all(fd, path, head, guesser, err) < 0) {
        return -1;
    }
    (void)guesser_fits(guesser, fits);
    ret_guess->n = 0;
    for (size_t idx = 0; idx < set->n; idx++) {
        if (fits[idx]) {
            ret_guess->formats[ret_guess->n++] = set->items[idx];
        }
    }
    return 0;
}

static int survey_all(int fd, const char *path, struct survey *survey, struct err *err)
{
    CLEANUP(free) char *window = xmalloc(WINDOW_BYTES);
    for (size_t n_bytes = 0; n_bytes < SURVEY_BYTES_MAX;) {
        size_t len;
        if (read_window(fd, path, window, &len, err) < 0) {
            return -1;
        }
        if (len == 0) {
            return 0;
        }
        n_bytes += len;
        if (survey_feed(survey, window, len, err) < 0) {
            return err_wrap(err, "%s", path);
        }
    }
    return 0; /* what recurs, recurs by then */
}

int measure_survey(struct survey *survey, const char *path, const struct log_head *head,
                   struct err *err)
{
    CLEANUP(fd) int fd = -1;
    if (head && head->is_whole) {
        if (survey_feed(survey, head->ptr, head->len, err) < 0) {
            return err_wrap(err, "%s", path);
        }
    } else if (open_log(path, &fd, err) < 0 || survey_all(fd, path, survey, err) < 0) {
        return -1;
    }
    return survey_finish(survey, err) < 0 ? err_wrap(err, "%s", path) : 0;
}
