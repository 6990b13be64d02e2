/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/fetch_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/vec.h"

#define READ_BYTES      (256u << 10) /* stays in the core's own cache between the copy and the digest */
#define CLAIM_JOB_BYTES (8u << 20)
#define CHAIN_JOB_BYTES (16u << 20)
#define CHAIN_MIN_BYTES (1u << 20)

/* --- in the pool's threads ---------------------------------------------------------------------------- */

static int read_at(int fd, uint8_t *buf, size_t len, uint64_t pos, struct err *err)
{
    while (len) {
        ssize_t got = pread(fd, buf, len, (off_t)pos);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return err_set(err, got < 0 ? err_code_of_errno(errno) : ERR_IO,
                           "read what was fetched at byte %" PRIu64 ": %s", pos,
                           got < 0 ? err_errno_text(errno) : "the file became shorter");
        }
        buf += got;
        pos += (uint64_t)got;
        len -= (size_t)got;
    }
    return 0;
}

/* One block: compares its CRC with the record and adds its bytes to the piece's digest. */
static int check_block(struct check_job *check, size_t idx, struct digest *digest, struct err *err)
{
    uint64_t pos = check->first_byte + idx * check->block_bytes;
    uint64_t job_end = check->first_byte + check->n_bytes;
    uint64_t end = pos + check->block_bytes < job_end ? pos + check->block_bytes : job_end;
    uint32_t crc = 0;
    while (pos < end) {
        size_t len = end - pos < READ_BYTES ? (size_t)(end - pos) : READ_BYTES;
        if (read_at(check->fd, check->buf, len, pos, err) < 0) {
            return -1;
        }
        if (check->has_crc[idx]) {
            crc = crc32c(crc, check->buf, len);
        }
        if (check->wants_sha256 && digest_update(digest, check->buf, len, err) < 0) {
            return -1;
        }
        pos += len;
    }
    check->is_bad[idx] = check->has_crc[idx] && crc != check->crcs[idx];
    return 0;
}

static int run_check(void *arg, const atomic_bool *is_cancelled, struct err *err)
{
    struct check_job *check = arg;
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    struct digest_value value;
    if (check->wants_sha256 && digest_start(&digest, DIGEST_SHA256, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < check->n_blocks; idx++) {
        if (atomic_load(is_cancelled)) {
            return err_set(err, ERR_INTERRUPTED, "stopped");
        }
        if (check_block(check, idx, &digest, err) < 0) {
            return -1;
        }
    }
    if (check->wants_sha256) {
        if (digest_finish(&digest, &value, err) < 0) {
            return -1;
        }
        memcpy(check->sha256, value.sha256, SHA256_BYTES);
    }
    return 0;
}

static int run_chain(void *arg, const atomic_bool *is_cancelled, struct err *err)
{
    struct fetch_chain *chain = arg;
    uint64_t from = chain->pos;
    while (chain->pos < chain->until) {
        uint64_t left = chain->until - chain->pos;
        size_t len = left < READ_BYTES ? (size_t)left : READ_BYTES;
        if (atomic_load(is_cancelled)) {
            return err_set(err, ERR_INTERRUPTED, "stopped");
        }
        if (read_at(chain->fd, chain->buf, len, chain->pos, err) < 0 ||
            digest_update(&chain->digest, chain->buf, len, err) < 0) {
            return -1;
        }
        chain->pos += len;
    }
    /* Lets the disk start writing what will be synced at the end anyway; if that is not possible, nothing is lost. */
    (void)sync_file_range(chain->fd, (off_t)from, (off_t)(chain->until - from),
                          SYNC_FILE_RANGE_WRITE);
    return 0;
}

static int run_sync(void *arg, const atomic_bool *is_cancelled UNUSED, struct err *err)
{
    const struct sync_job *sync = arg;
    if (fsync(sync->fd) < 0) {
        return err_set(err, err_code_of_errno(errno), "sync what was fetched: %s",
                       err_errno_text(errno));
    }
    return 0;
}

/* --- checks of blocks --------------------------------------------------------------------------------- */

void check_came(struct fetch *fetch, size_t block_idx)
{
    if (fetch->piece_bytes) {
        size_t piece_idx = piece_of(fetch, block_idx);
        fetch->pieces[piece_idx].n_missing--;
        if (fetch->pieces[piece_idx].n_missing == 0) {
            VEC_PUSH(&fetch->ready, piece_idx);
        }
    }
}

static void start_check(struct fetch *fetch, struct check_job *check, size_t from, size_t to)
{
    size_t n = to - from;
    if (n > check->n_max) {
        check->crcs = xrealloc(check->crcs, n * sizeof(*check->crcs));
        check->has_crc = xrealloc(check->has_crc, n * sizeof(*check->has_crc));
        check->is_bad = xrealloc(check->is_bad, n * sizeof(*check->is_bad));
        check->n_max = n;
    }
    check->fd = fetch->data_fd;
    check->first_block = from;
    check->n_blocks = n;
    check->block_bytes = fetch->block_bytes;
    check->first_byte = block_start(fetch, from);
    check->n_bytes = block_end(fetch, to - 1) - check->first_byte;
    check->wants_sha256 = fetch->piece_bytes != 0;
    for (size_t idx = 0; idx < n; idx++) {
        check->crcs[idx] = fetch->blocks[from + idx].crc;
        check->has_crc[idx] = fetch->blocks[from + idx].state == BLOCK_CLAIMED;
    }
    check->job.fn = run_check;
    check->job.arg = check;
    check->is_busy = true;
    pool_submit(fetch->pool, &check->job);
}

/* Blocks that an earlier process left, where there are no pieces. */
static bool start_claims(struct fetch *fetch, struct check_job *check)
{
    size_t from = fetch->next_claim;
    size_t to;
    while (from < fetch->n_blocks && fetch->blocks[from].state != BLOCK_CLAIMED) {
        from++;
    }
    for (to = from; to < fetch->n_blocks && fetch->blocks[to].state == BLOCK_CLAIMED &&
                    (to - from) * fetch->block_bytes < CLAIM_JOB_BYTES;
         to++) {
        continue;
    }
    fetch->next_claim = to;
    if (from == to) {
        return false;
    }
    start_check(fetch, check, from, to);
    return true;
}

static bool start_piece(struct fetch *fetch, struct check_job *check)
{
    size_t per_piece = (size_t)(fetch->piece_bytes / fetch->block_bytes);
    size_t piece_idx, from, to;
    if (fetch->ready.n == 0) {
        return false;
    }
    piece_idx = fetch->ready.items[--fetch->ready.n];
    if (fetch->pieces[piece_idx].n_missing > 0) {
        return false; /* a block of it was dropped since; it comes again */
    }
    from = piece_idx * per_piece;
    to = from + per_piece < fetch->n_blocks ? from + per_piece : fetch->n_blocks;
    start_check(fetch, check, from, to);
    return true;
}

static void drop_block(struct fetch *fetch, size_t block_idx)
{
    if (fetch->blocks[block_idx].state == BLOCK_CLAIMED) {
        fetch->result.n_bad_blocks++;
    }
    plan_missing(fetch, block_idx);
}

static int drop_piece(struct fetch *fetch, struct check_job *check, size_t piece_idx,
                      struct err *err)
{
    struct piece *piece = &fetch->pieces[piece_idx];
    fetch->result.n_bad_pieces++;
    fetch->result.again_bytes += check->n_bytes;
    piece->n_bad++;
    for (size_t idx = 0; idx < check->n_blocks; idx++) {
        uint8_t mirror = fetch->blocks[check->first_block + idx].mirror;
        piece->bad_from |= (uint16_t)(mirror < FETCH_MIRRORS_MAX ? 1u << mirror : 0);
        plan_missing(fetch, check->first_block + idx);
    }
    if (piece->n_bad >= PIECE_TRIES_MAX * fetch->n_mirrors) {
        return err_set(err, ERR_INTEGRITY,
                       "%s: bytes %" PRIu64 " to %" PRIu64
                       " do not have the SHA-256 of piece %zu, after %u tries",
                       fetch->spec->name, check->first_byte, check->first_byte + check->n_bytes - 1,
                       piece_idx, piece->n_bad);
    }
    return 0;
}

static int end_check(struct fetch *fetch, struct check_job *check, struct err *err)
{
    size_t piece_idx = fetch->piece_bytes ? piece_of(fetch, check->first_block) : 0;
    bool has_bad = false;
    check->is_busy = false;
    if (pool_wait(fetch->pool, &check->job, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < check->n_blocks; idx++) {
        if (check->is_bad[idx]) {
            has_bad = true;
            drop_block(fetch, check->first_block + idx);
        }
    }
    if (fetch->piece_bytes) {
        if (has_bad) {
            return 0; /* checked again when it is complete */
        }
        if (fetch->spec->pieces &&
            memcmp(check->sha256, fetch->spec->pieces->sha256[piece_idx], SHA256_BYTES) != 0) {
            return drop_piece(fetch, check, piece_idx, err);
        }
        memcpy(fetch->piece_sha256[piece_idx], check->sha256, SHA256_BYTES);
    }
    for (size_t idx = 0; idx < check->n_blocks; idx++) {
        if (!check->is_bad[idx]) {
            fetch_block_good(fetch, check->first_block + idx);
        }
    }
    return 0;
}

static int step_checks(struct fetch *fetch, struct err *err)
{
    for (size_t idx = 0; idx < CHECK_JOBS; idx++) {
        struct check_job *check = &fetch->checks[idx];
        if (check->is_busy && pool_is_done(fetch->pool, &check->job) &&
            end_check(fetch, check, err) < 0) {
            return -1;
        }
        if (!check->is_busy && fetch->blocks) {
            (void)(fetch->piece_bytes ? start_piece(fetch, check) : start_claims(fetch, check));
        }
    }
    return 0;
}

/* --- digests of the whole ----------------------------------------------------------------------------- */

static bool is_all_there(const struct fetch *fetch)
{
    return fetch->is_open_end ? fetch->is_ended
                              : fetch->blocks && fetch->frontier == fetch->n_blocks;
}

/* Bytes from the start that are known to be correct. */
static uint64_t sure_bytes(const struct fetch *fetch)
{
    if (fetch->is_open_end) {
        return fetch->done_bytes;
    }
    if (!fetch->blocks) {
        return 0;
    }
    return is_all_there(fetch) ? (uint64_t)fetch->size_bytes : block_start(fetch, fetch->frontier);
}

static int step_chain(struct fetch *fetch, struct fetch_chain *chain, struct err *err)
{
    uint64_t sure = sure_bytes(fetch);
    if (chain->is_busy) {
        if (!pool_is_done(fetch->pool, &chain->job)) {
            return 0;
        }
        chain->is_busy = false;
        if (pool_wait(fetch->pool, &chain->job, err) < 0) {
            return -1;
        }
    }
    if (sure == chain->pos || (sure - chain->pos < CHAIN_MIN_BYTES && !is_all_there(fetch))) {
        return 0;
    }
    chain->until = sure - chain->pos < CHAIN_JOB_BYTES ? sure : chain->pos + CHAIN_JOB_BYTES;
    chain->fd = fetch->data_fd;
    chain->job.fn = run_chain;
    chain->job.arg = chain;
    chain->is_busy = true;
    pool_submit(fetch->pool, &chain->job);
    return 0;
}

static int step_sync(struct fetch *fetch, struct err *err)
{
    struct sync_job *sync = &fetch->sync;
    if (sync->is_busy && pool_is_done(fetch->pool, &sync->job)) {
        sync->is_busy = false;
        fetch->is_synced = true;
        return pool_wait(fetch->pool, &sync->job, err);
    }
    if (!sync->is_busy && !fetch->is_synced && is_all_there(fetch)) {
        sync->fd = fetch->data_fd;
        sync->job.fn = run_sync;
        sync->job.arg = sync;
        sync->is_busy = true;
        pool_submit(fetch->pool, &sync->job);
    }
    return 0;
}

int check_step(struct fetch *fetch, struct err *err)
{
    if (step_checks(fetch, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        if (fetch->chains[idx].kind && step_chain(fetch, &fetch->chains[idx], err) < 0) {
            return -1;
        }
    }
    return step_sync(fetch, err);
}

bool check_is_over(const struct fetch *fetch)
{
    bool is_over = is_all_there(fetch) && fetch->is_synced;
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        const struct fetch_chain *chain = &fetch->chains[idx];
        is_over &= !chain->kind || (!chain->is_busy && chain->pos == (uint64_t)fetch->size_bytes);
    }
    return is_over;
}

void check_wait(struct fetch *fetch)
{
    for (size_t idx = 0; idx < CHECK_JOBS + DIGEST_KINDS + 1; idx++) {
        struct err ignored = {0};
        bool *is_busy = idx < CHECK_JOBS                  ? &fetch->checks[idx].is_busy
                        : idx < CHECK_JOBS + DIGEST_KINDS ? &fetch->chains[idx - CHECK_JOBS].is_busy
                                                          : &fetch->sync.is_busy;
        struct pool_job *job = idx < CHECK_JOBS ? &fetch->checks[idx].job
                               : idx < CHECK_JOBS + DIGEST_KINDS
                                   ? &fetch->chains[idx - CHECK_JOBS].job
                                   : &fetch->sync.job;
        if (*is_busy) {
            (void)!pool_wait(fetch->pool, job, &ignored);
            *is_busy = false;
        }
    }
}

int check_restart(struct fetch *fetch, struct err *err)
{
    check_wait(fetch);
    fetch->is_synced = false;
    fetch->ready.n = 0;
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        fetch->chains[idx].pos = 0;
        if (fetch->chains[idx].kind &&
            digest_start(&fetch->chains[idx].digest, fetch->chains[idx].kind, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int check_init(struct fetch *fetch, struct err *err)
{
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        fetch->chains[idx].kind = fetch->kinds & (1u << idx);
        fetch->chains[idx].buf = xmalloc(READ_BYTES);
    }
    for (size_t idx = 0; idx < CHECK_JOBS; idx++) {
        fetch->checks[idx].buf = xmalloc(READ_BYTES);
    }
    return check_restart(fetch, err);
}

void check_release(struct fetch *fetch)
{
    check_wait(fetch);
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        digest_release(&fetch->chains[idx].digest);
        free(fetch->chains[idx].buf);
    }
    for (size_t idx = 0; idx < CHECK_JOBS; idx++) {
        struct check_job *check = &fetch->checks[idx];
        free(check->crcs);
        free(check->has_crc);
        free(check->is_bad);
        free(check->buf);
    }
    VEC_RELEASE(&fetch->ready);
}
