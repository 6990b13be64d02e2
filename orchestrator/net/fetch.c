/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/fetch_parts.h"

#include "base/vec.h"

#define N_CONNECTIONS 8

bool fetch_has_expectation(const struct fetch *fetch)
{
    return fetch->spec->sha256 || fetch->spec->md5 || fetch->spec->pieces;
}

void fetch_block_good(struct fetch *fetch, size_t block_idx)
{
    struct block *block = &fetch->blocks[block_idx];
    if (block->state == BLOCK_CLAIMED) {
        fetch->result.kept_bytes += block_end(fetch, block_idx) - block_start(fetch, block_idx);
    }
    block->state = BLOCK_GOOD;
    while (fetch->frontier < fetch->n_blocks &&
           fetch->blocks[fetch->frontier].state == BLOCK_GOOD) {
        fetch->frontier++;
    }
}

void fetch_block_came(struct fetch *fetch, size_t block_idx, uint32_t crc, size_t mirror_idx)
{
    struct block *block = &fetch->blocks[block_idx];
    block->crc = crc;
    block->mirror = (uint8_t)mirror_idx;
    block->state = BLOCK_WRITTEN;
    fetch->done_bytes += block_end(fetch, block_idx) - block_start(fetch, block_idx);
    disk_record(fetch, block_idx, crc, (uint32_t)mirror_idx);
    check_came(fetch, block_idx);
    if (!fetch->piece_bytes) {
        fetch_block_good(fetch, block_idx);
    }
}

/* --- life --------------------------------------------------------------------------------------------- */

static int check_spec(const struct fetch_spec *spec, struct err *err)
{
    const struct fetch_pieces *pieces = spec->pieces;
    if (spec->n_urls == 0 || spec->n_urls > FETCH_MIRRORS_MAX) {
        return err_set(err, ERR_USAGE, "%s: %zu URLs, expected 1 to %d", spec->name, spec->n_urls,
                       FETCH_MIRRORS_MAX);
    }
    if (spec->n_headers >= HTTP_HEADERS_MAX || spec->n_connections > FETCH_CONNECTIONS_MAX) {
        return err_set(err, ERR_USAGE, "%s: too many headers or connections", spec->name);
    }
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
    rng_init(&fetch->rng, (uint64_t)loop_now_ns(fetch->loop));
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
    if (fetch->blocks && fetch->missing_bytes == 0 && !fetch_has_expectation(fetch)) {
        plan_missing(fetch, 0);
    }
}

static int open_all(struct fetch *fetch, struct err *err)
{
    if (check_init(fetch, err) < 0 || disk_open(fetch, err) < 0) {
        return -1;
    }
    leave_something_to_ask(fetch);
    if (!fetch->blocks && fetch->spec->size_bytes > 0 &&
        disk_set_size(fetch, (uint64_t)fetch->spec->size_bytes, err) < 0) {
        return -1;
    }
    if (pool_attach(fetch->pool, fetch->loop, err) < 0) {
        return -1;
    }
    fetch->is_attached = true;
    return 0;
}

int fetch_new(struct http *http, struct pool *pool, struct loop *loop,
              const struct fetch_spec *spec, struct fetch **ret_fetch, struct err *err)
{
    CLEANUP(fetch) struct fetch *fetch = NULL;
    if (check_spec(spec, err) < 0) {
        return -1;
    }
    fetch = xcalloc(1, sizeof(*fetch));
    fetch->http = http;
    fetch->pool = pool;
    fetch->loop = loop;
    fetch->spec = spec;
    fetch->data_fd = fetch->state_fd = fetch->lock_fd = -1;
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
    struct err ignored = {0};
    if (!fetch) {
        return;
    }
    for (size_t idx = 0; idx < fetch->n_slots; idx++) {
        slot_drop(&fetch->slots[idx]);
    }
    check_release(fetch);
    (void)!disk_flush(fetch, &ignored);
    disk_close(fetch);
    if (fetch->is_attached) {
        pool_detach(fetch->pool, fetch->loop);
    }
    loop_timer_drop(fetch->loop, fetch->timer);
    VEC_RELEASE(&fetch->orphans);
    arena_release(&fetch->arena);
    free(fetch);
}

int fetch_restart(struct fetch *fetch, struct err *err)
{
    for (size_t idx = 0; idx < fetch->n_slots; idx++) {
        slot_drop(&fetch->slots[idx]);
    }
    fetch->orphans.n = 0;
    fetch->result.n_restarts++;
    fetch->result.kept_bytes = 0;
    fetch->result.again_bytes += fetch->done_bytes;
    fetch->done_bytes = 0;
    fetch->has_kept = false;
    fetch->is_known = fetch->is_open_end = fetch->is_ended = false;
    for (size_t idx = 0; idx < fetch->n_mirrors; idx++) {
        fetch->mirrors[idx].etag = fetch->mirrors[idx].last_modified = STR_EMPTY;
        fetch->mirrors[idx].was_used = fetch->mirrors[idx].is_known = false;
    }
    if (check_restart(fetch, err) < 0 || disk_forget(fetch, err) < 0) {
        return -1;
    }
    fetch->size_bytes = fetch->spec->size_bytes;
    return fetch->size_bytes > 0 ? disk_set_size(fetch, (uint64_t)fetch->size_bytes, err) : 0;
}

/* --- the end ------------------------------------------------------------------------------------------- */

static int take_value(struct fetch *fetch, struct digest_value *ret_value, struct err *err)
{
    struct digest_value value = {.size_bytes = (uint64_t)fetch->size_bytes};
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        struct fetch_chain *chain = &fetch->chains[idx];
        struct digest_value part;
        if (!chain->kind) {
            continue;
        }
        if (digest_finish(&chain->digest, &part, err) < 0) {
            return -1;
        }
        ASSERT(part.size_bytes == value.size_bytes);
        if (chain->kind == DIGEST_MD5) {
            memcpy(value.md5, part.md5, MD5_BYTES);
        } else {
            memcpy(value.sha256, part.sha256, SHA256_BYTES);
        }
    }
    *ret_value = value;
    return 0;
}

static int compare(const struct fetch *fetch, const struct digest_value *value, struct err *err)
{
    const struct fetch_spec *spec = fetch->spec;
    char found[SHA256_HEX_SIZE], expected[SHA256_HEX_SIZE];
    if (spec->sha256 && memcmp(spec->sha256, value->sha256, SHA256_BYTES) != 0) {
        hex_encode(spec->sha256, SHA256_BYTES, expected);
        hex_encode(value->sha256, SHA256_BYTES, found);
        return err_set(err, ERR_INTEGRITY, "%s: expected SHA-256 %s, found %s", spec->name,
                       expected, found);
    }
    if (spec->md5 && memcmp(spec->md5, value->md5, MD5_BYTES) != 0) {
        hex_encode(spec->md5, MD5_BYTES, expected);
        hex_encode(value->md5, MD5_BYTES, found);
        return err_set(err, ERR_INTEGRITY, "%s: expected MD5 %s, found %s", spec->name, expected,
                       found);
    }
    return 0;
}

/* The file as a whole is wrong. Chooses a mirror that has not yet been tried alone; false if there is none. */
static bool choose_alone(struct fetch *fetch)
{
    struct mirror *used = NULL;
    struct mirror *next = NULL;
    size_t n_used = 0;
    for (size_t idx = 0; idx < fetch->n_mirrors; idx++) {
        if (fetch->mirrors[idx].was_used) {
            used = &fetch->mirrors[idx];
            n_used++;
        }
    }
    if (n_used == 1 && !fetch->has_kept) {
        used->was_alone = true;
    }
    for (size_t idx = 0; idx < fetch->n_mirrors && !next; idx++) {
        struct mirror *mirror = &fetch->mirrors[idx];
        next = !mirror->is_dead && !mirror->was_alone ? mirror : NULL;
    }
    for (size_t idx = 0; next && idx < fetch->n_mirrors; idx++) {
        fetch->mirrors[idx].is_off = &fetch->mirrors[idx] != next;
    }
    return next != NULL;
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
    result->url = most->shown;
    result->etag = most->etag;
    result->last_modified = most->last_modified;
    if (fetch->piece_bytes && fetch->blocks) {
        result->piece_bytes = fetch->piece_bytes;
        result->piece_sha256 = (const uint8_t(*)[SHA256_BYTES])fetch->piece_sha256;
        result->n_pieces = fetch->n_pieces;
    }
    fetch->is_done = true;
    return 0;
}

/* 0: it is over, or starts again. */
static int finish(struct fetch *fetch, struct err *err)
{
    struct digest_value value;
    struct err wrong = {0};
    if (take_value(fetch, &value, err) < 0) {
        return -1;
    }
    if (compare(fetch, &value, &wrong) == 0) {
        return give_result(fetch, &value);
    }
    /* Correct pieces make a correct file, or the digests do not belong together. */
    if (!fetch->spec->pieces && choose_alone(fetch)) {
        return fetch_restart(fetch, err);
    }
    *err = wrong;
    if (disk_forget(fetch, &wrong) < 0) {
        return -1;
    }
    return -1;
}

static void on_timer(void *ctx)
{
    struct fetch *fetch = ctx;
    fetch->timer = 0;
}

static int set_timer(struct fetch *fetch, struct err *err)
{
    loop_timer_drop(fetch->loop, fetch->timer);
    fetch->timer = 0;
    return loop_timer_add(fetch->loop, plan_next_ns(fetch), on_timer, fetch, &fetch->timer, err);
}

static bool is_running(const struct fetch *fetch)
{
    for (size_t idx = 0; idx < fetch->n_slots; idx++) {
        if (fetch->slots[idx].transfer) {
            return true;
        }
    }
    return false;
}

static int step_all(struct fetch *fetch, struct err *err)
{
    for (size_t idx = 0; idx < fetch->n_slots; idx++) {
        if (slot_step(&fetch->slots[idx], err) < 0) {
            return -1;
        }
    }
    if (check_step(fetch, err) < 0 || plan_work(fetch, err) < 0 || disk_flush(fetch, err) < 0) {
        return -1;
    }
    if (check_is_over(fetch) && !is_running(fetch)) {
        return finish(fetch, err);
    }
    return 0;
}

enum step fetch_step(struct fetch *fetch, struct err *err)
{
    if (fetch->is_done) {
        return STEP_DONE;
    }
    if (step_all(fetch, err) < 0 || (!fetch->is_done && set_timer(fetch, err) < 0)) {
        return STEP_FAIL;
    }
    return fetch->is_done ? STEP_DONE : STEP_AGAIN;
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
