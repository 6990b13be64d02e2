/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/fetch_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/progress.h"
#include "base/publish.h"

#define READ_BYTES      (256u << 10) /* stays in the core's own cache between the copy and the digest */
#define WHOLE_MIN_BYTES (4u << 20)
#define WHOLE_MAX_BYTES (32u << 20)
#define N_CONNECTIONS   8
#define CHUNK_MIN_BYTES (256u << 10)
#define CHUNK_MAX_BYTES (64u << 20)

/* --- digests ------------------------------------------------------------------------------------------ */

/* Digests are computed of what lies before the frontier: of each piece, and of the whole once its pieces are good (3). The pool
   reads the file again, from the page cache: the first functions here run in its threads. */

static int add_range(int fd, uint64_t from, uint64_t until, struct digest *digest,
                     const atomic_bool *is_cancelled, struct err *err)
{
    CLEANUP(free) uint8_t *buf = xmalloc(READ_BYTES);
    while (from < until) {
        size_t wanted = until - from < READ_BYTES ? (size_t)(until - from) : READ_BYTES;
        ssize_t got = pread(fd, buf, wanted, (off_t)from);
        if (atomic_load(is_cancelled)) {
            return err_set(err, ERR_INTERRUPTED, "stopped");
        }
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return err_set(err, got < 0 ? err_code_of_errno(errno) : ERR_IO,
                           "read what was fetched at byte %" PRIu64 ": %s", from,
                           got < 0 ? err_errno_text(errno) : "the file became shorter");
        }
        from += (uint64_t)got;
        digest_update(digest, buf, (size_t)got);
    }
    return 0;
}

/* 1: its digest is as expected, 0: it is not. */
static int check_piece(const struct read_job *read, uint64_t until, const atomic_bool *is_cancelled,
                       struct err *err)
{
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    digest_start(&digest, DIGEST_SHA256);
    if (add_range(read->fd, read->pos, until, &digest, is_cancelled, err) < 0) {
        return -1;
    }
    return memcmp(digest_finish(&digest).sha256,
                  read->pieces->sha256[read->pos / read->pieces->piece_bytes], SHA256_BYTES) == 0;
}

static int run_read(void *arg, const atomic_bool *is_cancelled, struct err *err)
{
    struct read_job *read = arg;
    uint64_t from = read->pos;
    while (read->pos < read->until && !read->is_bad) {
        uint64_t end = read->until;
        if (read->pieces && end - read->pos > read->pieces->piece_bytes) {
            end = read->pos + read->pieces->piece_bytes;
        }
        int is_good = read->pieces ? check_piece(read, end, is_cancelled, err) : 1;
        if (is_good < 0 ||
            (is_good && read->digest.kinds &&
             add_range(read->fd, read->pos, end, &read->digest, is_cancelled, err) < 0)) {
            return -1;
        }
        read->is_bad = !is_good;
        read->pos = is_good ? end : read->pos;
    }
    /* Lets the disk start writing what will be synced at the end anyway; if that is not possible, nothing is lost. */
    (void)sync_file_range(read->fd, (off_t)from, (off_t)(read->pos - from), SYNC_FILE_RANGE_WRITE);
    return read->syncs && !read->is_bad ? publish_data(read->fd, "what was fetched", err) : 0;
}

static int drop_piece(struct fetch *fetch, struct err *err)
{
    size_t piece_idx = (size_t)(fetch->whole.pos / fetch->piece_bytes);
    size_t from = piece_idx * blocks_per_piece(fetch);
    size_t end = from + blocks_per_piece(fetch);
    end = end < fetch->n_blocks ? end : fetch->n_blocks;
    fetch->result.n_bad_pieces++;
    fetch->whole.is_bad = false;
    fetch->frontier = from;
    for (size_t idx = from; idx < end; idx++) {
        fetch_mark(fetch, idx, BLOCK_MISSING);
    }
    return ++fetch->n_bad[piece_idx] < PIECE_TRIES_MAX * fetch->n_mirrors
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s: bytes %" PRIu64 " to %" PRIu64
                         " do not have the SHA-256 of piece %zu, after %u tries",
                         fetch->spec->name, block_start(fetch, from), block_end(fetch, end - 1) - 1,
                         piece_idx, fetch->n_bad[piece_idx]);
}

static bool is_all_there(const struct fetch *fetch)
{
    return fetch->is_open_end ? fetch->is_ended : fetch->map && fetch->frontier == fetch->n_blocks;
}

/* How far it can be read: whole pieces, where pieces are known. */
static uint64_t there_bytes(struct fetch *fetch)
{
    if (fetch->is_open_end || !fetch->map) {
        return fetch->is_open_end ? fetch->done_bytes : 0;
    }
    while (fetch->frontier < fetch->n_blocks && is_there(fetch, fetch->frontier)) {
        fetch->frontier++;
    }
    uint64_t there = block_start(fetch, fetch->frontier);
    return fetch->frontier == fetch->n_blocks ? (uint64_t)fetch->size_bytes
           : fetch->piece_bytes               ? there - there % fetch->piece_bytes
                                              : there;
}

static int read_step(struct fetch *fetch, struct err *err)
{
    struct read_job *whole = &fetch->whole;
    if (whole->is_busy) {
        if (!pool_is_done(fetch->run.pool, &whole->job)) {
            return 0;
        }
        whole->is_busy = false;
        if (pool_wait(fetch->run.pool, &whole->job, err) < 0) {
            return -1;
        }
        whole->is_synced = whole->syncs && !whole->is_bad;
        if (whole->is_bad && drop_piece(fetch, err) < 0) {
            return -1;
        }
    }
    uint64_t there = there_bytes(fetch);
    uint64_t most = WHOLE_MAX_BYTES;
    if (fetch->piece_bytes) {
        most = fetch->piece_bytes > most ? fetch->piece_bytes : most - most % fetch->piece_bytes;
    }
    if (is_all_there(fetch) ? whole->is_synced
                            : there - whole->pos < (fetch->piece_bytes ? 1 : WHOLE_MIN_BYTES)) {
        return 0;
    }
    whole->until = there - whole->pos < most ? there : whole->pos + most;
    whole->syncs = is_all_there(fetch) && whole->until == there;
    whole->fd = fetch->data_fd;
    whole->pieces = fetch->piece_bytes ? fetch->spec->pieces : NULL;
    whole->job = (struct pool_job){.fn = run_read, .arg = whole};
    whole->is_busy = true;
    pool_submit(fetch->run.pool, &whole->job);
    return 0;
}

static bool read_is_over(const struct fetch *fetch)
{
    return is_all_there(fetch) && !fetch->whole.is_busy && fetch->whole.is_synced;
}

/* Waits for the job. */
static void read_end(struct fetch *fetch)
{
    if (fetch->whole.is_busy) {
        (void)!pool_wait(fetch->run.pool, &fetch->whole.job, ERR_IGNORED);
        fetch->whole.is_busy = false;
    }
}

static void read_restart(struct fetch *fetch)
{
    read_end(fetch);
    fetch->frontier = 0;
    fetch->whole.pos = 0;
    fetch->whole.is_synced = fetch->whole.is_bad = false;
    if (fetch->kinds) {
        digest_start(&fetch->whole.digest, fetch->kinds);
    }
}

/* --- blocks ------------------------------------------------------------------------------------------- */

bool fetch_has_expectation(const struct fetch *fetch)
{
    return fetch->spec->sha256 || fetch->spec->md5 || fetch->spec->pieces;
}

/* Nothing else changes a block's state once there is a map, so (1) holds. */
void fetch_mark(struct fetch *fetch, size_t block_idx, char state)
{
    char old = fetch->map[block_idx];
    uint64_t n_bytes = block_end(fetch, block_idx) - block_start(fetch, block_idx);
    bool was_there = is_there(fetch, block_idx);
    fetch->map[block_idx] = state;
    fetch->n_missing += (state == BLOCK_MISSING) - (size_t)(old == BLOCK_MISSING);
    fetch->result.kept_bytes += state == BLOCK_KEPT ? n_bytes : 0;
    fetch->result.kept_bytes -= old == BLOCK_KEPT ? n_bytes : 0;
    if (state == BLOCK_MISSING && block_idx < fetch->first_missing) {
        fetch->first_missing = block_idx;
    }
    if (was_there != is_there(fetch, block_idx)) {
        fetch->done_bytes += was_there ? -n_bytes : n_bytes;
        fetch->dirty_from = block_idx < fetch->dirty_from ? block_idx : fetch->dirty_from;
        fetch->dirty_end = block_idx >= fetch->dirty_end ? block_idx + 1 : fetch->dirty_end;
    }
}

/* --- life --------------------------------------------------------------------------------------------- */

static int check_spec(const struct fetch_spec *spec, struct err *err)
{
    const struct fetch_pieces *pieces = spec->pieces;
    ASSERT(spec->n_urls > 0 && spec->n_urls <= FETCH_MIRRORS_MAX);
    ASSERT(spec->n_connections <= FETCH_CONNECTIONS_MAX);
    if (pieces && (pieces->piece_bytes == 0 || pieces->piece_bytes > INT64_MAX || pieces->n == 0 ||
                   pieces->n > FETCH_PIECES_MAX)) {
        return err_set(err, ERR_USAGE, "%s: %zu pieces of %" PRIu64 " bytes", spec->name, pieces->n,
                       pieces->piece_bytes);
    }
    return 0;
}

static void set_up(struct fetch *fetch)
{
    const struct fetch_spec *spec = fetch->spec;
    fetch->kinds = spec->kinds | (spec->md5 ? (unsigned)DIGEST_MD5 : 0) |
                   (spec->sha256 ? (unsigned)DIGEST_SHA256 : 0);
    fetch->n_slots = spec->n_connections ? spec->n_connections : N_CONNECTIONS;
    fetch->n_mirrors = spec->n_urls;
    rng_init(&fetch->rng, (uint64_t)fetch_now_ns(fetch));
    for (size_t idx = 0; idx < fetch->n_mirrors; idx++) {
        fetch->mirrors[idx].url = spec->urls[idx];
        fetch->mirrors[idx].shown = http_url_shown(&fetch->arena, spec->urls[idx]);
        fetch->mirrors[idx].max_active = fetch->n_slots;
    }
    for (size_t idx = 0; idx < FETCH_CONNECTIONS_MAX; idx++) {
        fetch->slots[idx].fetch = fetch;
    }
}

/* Everything exists from an earlier process, and there is no digest to tell whether it is still the same file: ask the server
   for the first block again, which shows whether the file has changed. */
static void leave_something_to_ask(struct fetch *fetch)
{
    if (fetch->n_blocks && fetch->n_missing == 0 && !fetch_has_expectation(fetch)) {
        fetch_mark(fetch, 0, BLOCK_MISSING);
    }
}

static int open_all(struct fetch *fetch, struct err *err)
{
    read_restart(fetch);
    if (disk_open(fetch, err) < 0) {
        return -1;
    }
    leave_something_to_ask(fetch);
    return !fetch->map && fetch->spec->size_bytes >= 0
               ? disk_set_size(fetch, (uint64_t)fetch->spec->size_bytes, err)
               : 0;
}

int fetch_new(const struct fetch_run *run, const struct fetch_spec *spec, struct fetch **ret_fetch,
              struct err *err)
{
    CLEANUP(fetch) struct fetch *fetch = NULL;
    if (check_spec(spec, err) < 0) {
        return -1;
    }
    fetch = xcalloc(1, sizeof(*fetch));
    fetch->run = *run;
    fetch->spec = spec;
    fetch->data_fd = fetch->state_fd = fetch->lock_fd = -1;
    fetch->dirty_from = SIZE_MAX;
    set_up(fetch);
    if (open_all(fetch, err) < 0) {
        return -1;
    }
    *ret_fetch = fetch;
    fetch = NULL;
    return 0;
}

void fetch_free(struct fetch *fetch)
{
    if (!fetch) {
        return;
    }
    for (size_t idx = 0; idx < fetch->n_slots; idx++) {
        slot_drop(&fetch->slots[idx]);
    }
    read_end(fetch);
    digest_release(&fetch->whole.digest);
    (void)!disk_flush(fetch, ERR_IGNORED);
    disk_close(fetch);
    arena_release(&fetch->arena);
    free(fetch);
}

int fetch_restart(struct fetch *fetch, struct err *err)
{
    for (size_t idx = 0; idx < fetch->n_slots; idx++) {
        slot_drop(&fetch->slots[idx]);
    }
    fetch->result.kept_bytes = fetch->done_bytes = 0;
    fetch->has_kept = fetch->has_many_sources = false;
    fetch->is_known = fetch->is_open_end = fetch->is_ended = false;
    fetch->source = NULL;
    for (size_t idx = 0; idx < fetch->n_mirrors; idx++) {
        fetch->mirrors[idx].etag = fetch->mirrors[idx].last_modified = STR_EMPTY;
        fetch->mirrors[idx].is_known = false;
    }
    read_restart(fetch);
    if (disk_forget(fetch, err) < 0) {
        return -1;
    }
    fetch->size_bytes = fetch->spec->size_bytes;
    return fetch->size_bytes >= 0 ? disk_set_size(fetch, (uint64_t)fetch->size_bytes, err) : 0;
}

/* --- the end ------------------------------------------------------------------------------------------- */

static int compare(const struct fetch *fetch, const struct digest_value *value, struct err *err)
{
    const struct fetch_spec *spec = fetch->spec;
    if (spec->sha256 && memcmp(spec->sha256, value->sha256, SHA256_BYTES) != 0) {
        return err_set(err, ERR_INTEGRITY, "%s: expected SHA-256 %s, found %s", spec->name,
                       sha256_hex_of(spec->sha256).text, sha256_hex_of(value->sha256).text);
    }
    if (spec->md5 && memcmp(spec->md5, value->md5, MD5_BYTES) != 0) {
        return err_set(err, ERR_INTEGRITY, "%s: expected MD5 %s, found %s", spec->name,
                       md5_hex_of(spec->md5).text, md5_hex_of(value->md5).text);
    }
    return 0;
}

static int give_result(struct fetch *fetch, const struct digest_value *value)
{
    struct fetch_result *result = &fetch->result;
    const struct mirror *most = &fetch->mirrors[0];
    for (size_t idx = 1; idx < fetch->n_mirrors; idx++) {
        if (fetch->mirrors[idx].got_bytes > most->got_bytes) {
            most = &fetch->mirrors[idx];
        }
    }
    result->value = *value;
    result->data_path = fetch->data_path;
    result->again_bytes =
        result->received_bytes - ((uint64_t)fetch->size_bytes - result->kept_bytes);
    result->url = most->shown;
    fetch->is_done = true;
    return 0;
}

/* The whole is wrong: where it is of one mirror, that one is of no use, else it comes again, from one mirror alone. */
static int try_next(struct fetch *fetch, const struct err *wrong, struct err *err)
{
    struct mirror *source = &fetch->mirrors[fetch->source ? fetch->source - fetch->mirrors : 0];
    if (fetch->source && !fetch->has_kept && !fetch->has_many_sources) {
        source->err = *wrong;
        source->is_dead = true;
    }
    fetch->is_strict = true;
    return fetch_restart(fetch, err);
}

/* 0: it is over, or starts again. */
static int finish(struct fetch *fetch, struct err *err)
{
    struct digest_value value = {.size_bytes = (uint64_t)fetch->size_bytes};
    struct err wrong = {0};
    if (fetch->kinds) {
        value = digest_finish(&fetch->whole.digest);
    }
    ASSERT(value.size_bytes == (uint64_t)fetch->size_bytes);
    if (compare(fetch, &value, &wrong) == 0) {
        return give_result(fetch, &value);
    }
    /* Correct pieces make a correct file, or the digests do not belong together. */
    if (!fetch->spec->pieces) {
        return try_next(fetch, &wrong, err);
    }
    *err = wrong;
    (void)!disk_forget(fetch, &wrong);
    return -1;
}

/* --- mirrors ------------------------------------------------------------------------------------------ */

/* Those that are of use: with ranges, if any has them. */
static size_t find_usable(struct fetch *fetch, struct mirror **ret_usable)
{
    size_t n = 0;
    for (int without_ranges = 0; without_ranges < 2 && n == 0; without_ranges++) {
        for (size_t idx = 0; idx < fetch->n_mirrors; idx++) {
            struct mirror *mirror = &fetch->mirrors[idx];
            if (!mirror->is_dead && mirror->no_ranges == (without_ranges == 1)) {
                ret_usable[n++] = mirror;
            }
        }
    }
    return n;
}

/* (4): must all bytes be of one mirror? */
static bool is_pure(const struct fetch *fetch)
{
    return fetch->is_strict || !fetch_has_expectation(fetch);
}

/* For a piece that was wrong n_bad times. NULL: none at the moment. */
static struct mirror *pick_mirror(struct fetch *fetch, size_t n_bad)
{
    struct mirror *usable[FETCH_MIRRORS_MAX];
    size_t n = find_usable(fetch, usable);
    int64_t now_ns = fetch_now_ns(fetch);
    for (size_t idx = 0; idx < (is_pure(fetch) && n ? 1 : n); idx++) {
        struct mirror *mirror = usable[(idx + n_bad) % n];
        if (mirror->rest_until_ns <= now_ns) {
            return mirror->n_active < (mirror->no_ranges ? 1 : mirror->max_active) ? mirror : NULL;
        }
    }
    return NULL;
}

/* What a user can fix comes first; then an outage, which one dead mirror does not make final. */
static int weight_of(enum err_code code)
{
    return code == ERR_NONE ? 0 : code == ERR_FETCH ? 1 : code == ERR_AUTH ? 3 : 2;
}

static int no_mirror(const struct fetch *fetch, struct err *err)
{
    const struct err *told = &fetch->mirrors[0].err;
    bool is_gone = true;
    size_t n = 0;
    for (size_t idx = 0; idx < fetch->n_mirrors; idx++) {
        const struct err *own = &fetch->mirrors[idx].err;
        told = weight_of(own->code) > weight_of(told->code) ? own : told;
        is_gone &= weight_of(own->code) < 2;
        n += own->code != ERR_NONE;
    }
    if (n == 0) {
        return err_set(err, ERR_FETCH, "%s: no mirror is left", fetch->spec->name);
    }
    *err = *told;
    if (err->code == ERR_TIMEOUT) {
        err->code = ERR_NET; /* the deadline was a connection's, not the caller's */
    }
    return n > 1 ? err_wrap(err, "%s: none of %zu mirrors %s it", fetch->spec->name, n,
                            is_gone ? "has" : "gives")
                 : err_wrap(err, "%s", fetch->spec->name);
}

/* --- spans -------------------------------------------------------------------------------------------- */

static size_t first_missing(struct fetch *fetch)
{
    while (fetch->map[fetch->first_missing] != BLOCK_MISSING) {
        fetch->first_missing++;
    }
    return fetch->first_missing;
}

static size_t n_bad_of(const struct fetch *fetch, size_t block_idx)
{
    return fetch->piece_bytes ? fetch->n_bad[block_idx / blocks_per_piece(fetch)] : 0;
}

/* Large requests at first, smaller ones towards the end, so that all end together. */
static int start_chunk(struct fetch *fetch, struct slot *slot, struct mirror *mirror,
                       struct err *err)
{
    uint64_t chunk = fetch->n_missing * fetch->block_bytes / (2 * fetch->n_slots);
    size_t from = first_missing(fetch);
    size_t end = from;
    chunk = chunk < CHUNK_MIN_BYTES ? CHUNK_MIN_BYTES
                                    : (chunk > CHUNK_MAX_BYTES ? CHUNK_MAX_BYTES : chunk);
    while (end < fetch->n_blocks && fetch->map[end] == BLOCK_MISSING &&
           (end - from) * fetch->block_bytes < chunk &&
           n_bad_of(fetch, end) == n_bad_of(fetch, from)) {
        fetch_mark(fetch, end++, BLOCK_TAKEN);
    }
    return slot_start(slot, mirror, block_start(fetch, from), block_end(fetch, end - 1), err);
}

/* From a server without ranges, in one body: what was there is written again. */
static int start_whole(struct fetch *fetch, struct slot *slot, struct mirror *mirror,
                       struct err *err)
{
    read_restart(fetch);
    for (size_t idx = 0; idx < fetch->n_blocks; idx++) {
        fetch_mark(fetch, idx, BLOCK_TAKEN);
    }
    return slot_start(slot, mirror, 0, (uint64_t)fetch->size_bytes, err);
}

/* --- who does what ------------------------------------------------------------------------------------ */

static size_t count_running(const struct fetch *fetch)
{
    size_t n = 0;
    for (size_t idx = 0; idx < fetch->n_slots; idx++) {
        n += fetch->slots[idx].transfer != NULL;
    }
    return n;
}

static bool has_work(const struct fetch *fetch)
{
    return fetch->map ? fetch->n_missing > 0 : !fetch->is_ended;
}

static int employ(struct fetch *fetch, struct slot *slot, struct err *err)
{
    struct mirror *mirror =
        has_work(fetch) ? pick_mirror(fetch, fetch->map ? n_bad_of(fetch, first_missing(fetch)) : 0)
                        : NULL;
    if (!mirror) {
        return 0;
    }
    if (is_pure(fetch) && fetch->source && fetch->source != mirror) {
        return fetch_restart(fetch, err);
    }
    if (!fetch->map) {
        return slot_start(slot, mirror, 0, UINT64_MAX, err);
    }
    return mirror->no_ranges ? start_whole(fetch, slot, mirror, err)
                             : start_chunk(fetch, slot, mirror, err);
}

static void share_rate(struct fetch *fetch)
{
    size_t n = count_running(fetch);
    for (size_t idx = 0; n && fetch->spec->rate_bytes_per_s && idx < fetch->n_slots; idx++) {
        if (fetch->slots[idx].transfer) {
            http_set_rate(fetch->slots[idx].transfer, fetch->spec->rate_bytes_per_s / n + 1);
        }
    }
}

static int plan_work(struct fetch *fetch, struct err *err)
{
    struct mirror *usable[FETCH_MIRRORS_MAX];
    size_t n_before = count_running(fetch);
    for (size_t idx = 0; idx < fetch->n_slots; idx++) {
        /* The first answer tells how much there is to distribute. */
        if (!fetch->is_known && count_running(fetch) > 0) {
            break;
        }
        if (!fetch->slots[idx].transfer && employ(fetch, &fetch->slots[idx], err) < 0) {
            return -1;
        }
    }
    if (count_running(fetch) != n_before || n_before != fetch->n_running) {
        share_rate(fetch);
    }
    fetch->n_running = count_running(fetch);
    return fetch->n_running == 0 && has_work(fetch) && find_usable(fetch, usable) == 0
               ? no_mirror(fetch, err)
               : 0;
}

/* --- steps -------------------------------------------------------------------------------------------- */

static int step_all(struct fetch *fetch, struct err *err)
{
    for (size_t idx = 0; idx < fetch->n_slots; idx++) {
        if (slot_step(&fetch->slots[idx], err) < 0) {
            return -1;
        }
    }
    if (read_step(fetch, err) < 0 || plan_work(fetch, err) < 0 || disk_flush(fetch, err) < 0) {
        return -1;
    }
    if (read_is_over(fetch) && fetch->n_running == 0) {
        return finish(fetch, err);
    }
    return 0;
}

void fetch_progress(const struct fetch *fetch, uint64_t *ret_done_bytes, uint64_t *ret_total_bytes)
{
    *ret_done_bytes = fetch->done_bytes;
    *ret_total_bytes = fetch->size_bytes > 0 ? (uint64_t)fetch->size_bytes : 0;
}

const struct fetch_result *fetch_result(const struct fetch *fetch)
{
    ASSERT(fetch->is_done);
    return &fetch->result;
}

/* --- all of it ------------------------------------------------------------------------------------------ */

#define WAIT_NS (200 * NS_PER_MS)
#define TICK_NS NS_PER_MS /* while nothing but a digest is under way */

/* A mirror may have rested before that. */
static int64_t wait_ns(const struct fetch *fetch)
{
    int64_t now_ns = fetch_now_ns(fetch);
    int64_t span_ns = fetch->whole.is_busy && !fetch->n_running ? TICK_NS : WAIT_NS;
    for (size_t idx = 0; idx < fetch->n_mirrors; idx++) {
        int64_t rest_ns = fetch->mirrors[idx].rest_until_ns - now_ns;
        span_ns = rest_ns > 0 && rest_ns < span_ns ? rest_ns : span_ns;
    }
    return span_ns;
}

static int carry_on(struct fetch *fetch, struct progress *progress, struct err *err)
{
    while (!fetch->is_done) {
        uint64_t done_bytes;
        if (fetch->run.should_stop && fetch->run.should_stop()) {
            return err_set(err, ERR_INTERRUPTED, "stopped; what was fetched is kept");
        }
        if (step_all(fetch, err) < 0) {
            return -1;
        }
        if (progress) {
            fetch_progress(fetch, &done_bytes, &progress->total);
            progress_set(progress, done_bytes);
        }
        if (!fetch->is_done && http_wait(fetch->run.http, wait_ns(fetch), err) < 0) {
            return -1;
        }
    }
    return 0;
}

int fetch_all(struct fetch *fetch, struct err *err)
{
    struct progress progress;
    if (!fetch->run.wants_progress) {
        return carry_on(fetch, NULL, err);
    }
    progress_start(&progress, fetch->run.clock, "fetch", "bytes", 0);
    int result = carry_on(fetch, &progress, err);
    progress_end(&progress);
    return result;
}
