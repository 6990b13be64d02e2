/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "load/measure.h"

#include "base/fs.h"
#include "codec/digest.h"
#include "load/log_reader.h"
#include "log/survey.h"

CLEANUP_POINTER(parser, struct parser, parser_free);

/* Window by window: what one holds is digested, and parsed while it is still in the cache. */
static int parse_all(int fd, const char *path, struct parser *parser, struct digest *digest,
                     struct err *err)
{
    CLEANUP(free) char *window = xmalloc(LOG_WINDOW_BYTES);
    size_t len;
    for (;;) {
        if (log_read_window(fd, path, window, &len, err) < 0) {
            return -1;
        }
        if (len == 0) {
            return 0;
        }
        if (digest) {
            digest_update(digest, window, len);
        }
        if (parser_feed(parser, window, len, err) < 0) {
            return err_wrap(err, "%s", path);
        }
    }
}

int measure_file(struct arena *arena, const struct reading *how,
                 struct measurement *ret_measurement, struct str *ret_sha256, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    CLEANUP(parser) struct parser *parser = NULL;
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    struct measurement m;
    if (ret_sha256) {
        digest_start(&digest, DIGEST_SHA256);
    }
    if ((ret_sha256 && log_must_be_regular(how->path, err) < 0) ||
        log_open(how->path, &fd, err) < 0 || parser_new(how->format, arena, &parser, err) < 0) {
        return -1;
    }
    if (how->keeps_lines) {
        parser_keep_lines(parser);
    }
    if (how->is_of_rates) {
        parser_skip_scores(parser, how->named);
    }
    if (parse_all(fd, how->path, parser, ret_sha256 ? &digest : NULL, err) < 0) {
        return -1;
    }
    if (parser_finish(parser, &m, err) < 0) {
        return err_wrap(err, "%s", how->path);
    }
    if (ret_sha256) {
        *ret_sha256 = hex_dup(arena, digest_finish(&digest).sha256, SHA256_BYTES);
    }
    *ret_measurement = m;
    return 0;
}

static int guess_all(int fd, const char *path, struct guesser *guesser, struct err *err)
{
    CLEANUP(free) char *window = xmalloc(LOG_WINDOW_BYTES);
    const struct format *found[FORMATS_MAX];
    size_t n_bytes = 0;
    for (size_t len = 1; len > 0; n_bytes += len) {
        if (n_bytes >= GUESS_BYTES_MIN && guesser_found(guesser, found) > 0) {
            break;
        }
        if (log_read_window(fd, path, window, &len, err) < 0) {
            return -1;
        }
        if (guesser_feed(guesser, window, len, err) < 0) {
            return err_wrap(err, "%s", path);
        }
    }
    return guesser_finish(guesser, err) < 0 ? err_wrap(err, "%s", path) : 0;
}

int measure_guess(struct guesser *guesser, const char *path, struct guess *ret_guess,
                  struct err *err)
{
    CLEANUP(fd) int fd = -1;
    guesser_restart(guesser);
    if (log_open(path, &fd, err) < 0 || guess_all(fd, path, guesser, err) < 0) {
        return -1;
    }
    ret_guess->n = guesser_found(guesser, ret_guess->formats);
    return 0;
}

/* Tables of any program must be read. */
static int guess_tables(const struct format_set *set, struct reading of, struct guess *guess,
                        struct err *err)
{
    for (size_t idx = 0; guess->n == 0 && idx < set->n; idx++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct measurement m;
        if (set->items[idx]->role != FORMAT_GENERIC) {
            continue;
        }
        of.format = set->items[idx];
        if (measure_file(&arena, &of, &m, NULL, err) < 0) {
            return -1;
        }
        if (measurement_primary(&m)->n > 0) {
            guess->formats[guess->n++] = set->items[idx];
        }
    }
    return 0;
}

int measure_choose(struct guesser *guesser, const struct format_set *set, const char *path,
                   struct guess *ret_guess, struct err *err)
{
    static const enum format_role ORDER[] = {FORMAT_FIRST, FORMAT_OWN, FORMAT_SIDECAR,
                                             FORMAT_GENERIC};
    const struct reading of = {.path = path, .is_of_rates = true};
    struct guess all;
    struct guess guess = {.n = 0};
    if (measure_guess(guesser, path, &all, err) < 0 || guess_tables(set, of, &all, err) < 0) {
        return -1;
    }
    for (size_t role = 0; role < ARRAY_LEN(ORDER) && guess.n == 0; role++) {
        for (size_t idx = 0; idx < all.n; idx++) {
            if (all.formats[idx]->role == ORDER[role]) {
                guess.formats[guess.n++] = all.formats[idx];
            }
        }
    }
    for (size_t idx = 0; guess.n == 1 && idx < all.n; idx++) {
        if (all.formats[idx]->role != FORMAT_GENERIC && all.formats[idx] != guess.formats[0]) {
            guess.beside[guess.n_beside++] = all.formats[idx];
        }
    }
    *ret_guess = guess;
    return 0;
}

int measure_survey(struct survey *survey, const char *path, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    CLEANUP(free) char *window = xmalloc(LOG_WINDOW_BYTES);
    size_t len = 1;
    if (log_open(path, &fd, err) < 0) {
        return -1;
    }
    for (size_t n_bytes = 0; len > 0 && n_bytes < MEASURE_BYTES_MAX; n_bytes += len) {
        if (log_read_window(fd, path, window, &len, err) < 0) {
            return -1;
        }
        if (survey_feed(survey, window, len, err) < 0) {
            return err_wrap(err, "%s", path);
        }
    }
    return survey_finish(survey, err) < 0 ? err_wrap(err, "%s", path) : 0;
}
