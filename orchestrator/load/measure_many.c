/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread reads two logs in turn, so that both are digested together: one alone would use only half of a core's SHA-256
   rate. The excess of one window over the other waits for the other's next window. */
#include "base/base.h"

#include "load/measure_many.h"

#include <stdatomic.h>

#include "base/sha256_pair.h"
#include "codec/digest.h"
#include "load/load.h"
#include "load/log_reader.h"

#define TURNS 2

struct turn {            /* one log after another */
    struct arena *arena; /* borrowed from the lane */
    struct format_set formats;
    struct log_reader reader;
    struct measure_job *job; /* NULL: none */
    size_t at;               /* bytes of the window that are digested */
    bool is_done;            /* there are no more logs */
    struct sha256_lane digest;
};

struct lane { /* of one thread alone: compiled patterns hold what they match in */
    struct arena arena;
    struct turn turns[TURNS];
};

struct many {
    const struct measure_with *with;
    struct measure_job *jobs;
    size_t n;
    struct lane *each;
    atomic_size_t next;
};

static int find_format(struct many *many, struct turn *turn, struct str id,
                       const struct format **ret_format, struct err *err)
{
    const struct measure_with *with = many->with;
    *ret_format = format_find(with->lanes || !with->formats ? &turn->formats : with->formats, id);
    if (*ret_format) {
        return 0;
    }
    format_set_release(&turn->formats); /* logs of one format stand together */
    if (load_format(turn->arena, with->root, str_z(turn->arena, id), &turn->formats, err) < 0) {
        return -1;
    }
    *ret_format = format_find(&turn->formats, id);
    return *ret_format
               ? 0
               : err_set(err, ERR_MANIFEST, "no format \"%.*s\" in manifests/formats", STR_ARG(id));
}

/* The next job, and how it is to be read; NULL where there are no more. */
static int take_job(struct many *many, struct turn *turn, struct reading *ret_trace,
                    struct measure_job **ret_job, struct err *err)
{
    size_t idx = atomic_fetch_add(&many->next, 1);
    *ret_job = idx < many->n ? &many->jobs[idx] : NULL;
    if (!*ret_job) {
        return 0;
    }
    *ret_trace = (struct reading){.path = (*ret_job)->path, .keeps_lines = (*ret_job)->keeps_lines};
    return find_format(many, turn, (*ret_job)->format, &ret_trace->format, err);
}

/* Whether one log at a time is as good as two. */
static int work_alone(struct many *many, struct turn *turn, struct err *err)
{
    struct measure_job *job;
    struct reading how;
    int result;
    while ((result = take_job(many, turn, &how, &job, err)) == 0 && job) {
        struct measurement *m = arena_new(turn->arena, struct measurement);
        if (measure_file(turn->arena, &how, m, &job->sha256, &job->err) == 0) {
            job->measurement = m;
        }
    }
    return result;
}

/* A log that could not be read has its job's error. */
static void end_job(struct turn *turn)
{
    struct measurement *m = arena_new(turn->arena, struct measurement);
    struct measure_job *job = turn->job;
    uint8_t sha256[SHA256_BYTES];
    if (job->err.code == ERR_NONE && log_reader_finish(&turn->reader, m, &job->err) == 0) {
        char *hex = arena_array(turn->arena, char, SHA256_HEX_SIZE);
        sha256_lane_finish(&turn->digest, sha256);
        hex_encode(sha256, SHA256_BYTES, hex);
        job->sha256 = str_of(hex);
        job->measurement = m;
    }
    log_reader_close(&turn->reader);
    turn->reader.len = turn->at = 0;
    turn->job = NULL;
}

static int begin_job(struct many *many, struct turn *turn, struct err *err)
{
    struct reading how;
    struct measure_job *job;
    if (take_job(many, turn, &how, &job, err) < 0) {
        return -1;
    }
    turn->job = job;
    turn->is_done = !job;
    sha256_lane_start(&turn->digest);
    if (job && (log_must_be_regular(job->path, &job->err) < 0 ||
                log_reader_open(&turn->reader, turn->arena, &how, &job->err) < 0)) {
        end_job(turn);
    }
    return 0;
}

/* Advances a turn until it has bytes to digest, or is done. */
static int go_on(struct many *many, struct turn *turn, struct err *err)
{
    struct log_reader *reader = &turn->reader;
    while (!turn->is_done && turn->at == reader->len) {
        struct err *why = turn->job ? &turn->job->err : NULL;
        if (!turn->job) {
            if (begin_job(many, turn, err) < 0) {
                return -1;
            }
        } else if (log_reader_parse(reader, why) < 0 || log_reader_next(reader, why) < 0 ||
                   reader->len == 0) {
            end_job(turn);
        } else {
            turn->at = 0;
        }
    }
    return 0;
}

/* All that one of them has, and of the other as many whole blocks. */
static void digest_both(struct turn *one, struct turn *other)
{
    size_t one_len = one->reader.len - one->at;
    size_t other_len = other->reader.len - other->at;
    if (one_len < other_len) {
        other_len = one_len - one_len % SHA256_BLOCK;
    } else if (other_len < one_len) {
        one_len = other_len - other_len % SHA256_BLOCK;
    }
    sha256_pair_add(&one->digest, one->reader.window + one->at, one_len, &other->digest,
                    other->reader.window + other->at, other_len);
    one->at += one_len;
    other->at += other_len;
}

static void digest_one(struct turn *turn)
{
    sha256_lane_add(&turn->digest, turn->reader.window + turn->at, turn->reader.len - turn->at);
    turn->at = turn->reader.len;
}

static int work_in_turns(struct many *many, struct turn *one, struct turn *other, struct err *err)
{
    while (!one->is_done || !other->is_done) {
        if (go_on(many, one, err) < 0 || go_on(many, other, err) < 0) {
            return -1;
        }
        if (!one->is_done && !other->is_done) {
            digest_both(one, other);
        } else if (!one->is_done || !other->is_done) {
            digest_one(one->is_done ? other : one);
        }
    }
    return 0;
}

static int work(void *arg, size_t lane_idx, struct err *err)
{
    struct many *many = arg;
    struct turn *turns = many->each[lane_idx].turns;
    if (lane_idx == 0 && many->with->first && many->with->first(many->with->ctx, err) < 0) {
        return -1;
    }
    return sha256_pair_is_there() ? work_in_turns(many, &turns[0], &turns[1], err)
                                  : work_alone(many, &turns[0], err);
}

int measure_many(struct arena *arena, const struct measure_with *with, struct measure_job *jobs,
                 size_t n, struct err *err)
{
    const struct lanes *lanes = with->lanes;
    size_t n_lanes = lanes ? lanes->n : 1;
    CLEANUP(free) struct lane *each = xcalloc(n_lanes, sizeof(*each));
    struct many many = {.with = with, .jobs = jobs, .n = n, .each = each};
    for (size_t idx = 0; idx < n_lanes * TURNS; idx++) {
        struct lane *lane = &each[idx / TURNS];
        lane->turns[idx % TURNS] = (struct turn){.arena = &lane->arena, .reader = LOG_READER_EMPTY};
    }
    int result = lanes ? lanes->run(lanes->ctx, n_lanes, work, &many, err) : work(&many, 0, err);
    for (size_t idx = 0; idx < n_lanes * TURNS; idx++) {
        struct turn *turn = &each[idx / TURNS].turns[idx % TURNS];
        log_reader_cleanup(&turn->reader);
        format_set_release(&turn->formats);
    }
    for (size_t idx = 0; idx < n_lanes; idx++) {
        arena_join(arena, &each[idx].arena);
    }
    return result;
}
