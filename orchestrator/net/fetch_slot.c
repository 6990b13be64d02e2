/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/fetch_impl.h"

#define PROBE_BYTES        (4u << 20)  /* asked for while the size is not known */
#define PROGRESS_BYTES     (64u << 10) /* this much makes a try a success */
#define BACKOFF_NS         (500 * NS_PER_MS)
#define BACKOFF_MAX_NS     (30 * NS_PER_S)
#define BACKOFF_SHIFT_MAX  16
#define RETRY_AFTER_MAX_NS (300 * NS_PER_S)
#define CHANGES_MAX        2

static PRINTF_LIKE(5, 6) int refuse(struct slot *slot, enum why why, enum err_code code,
                                    struct err *err, const char *fmt, ...)
{
    char text[ERR_MSG_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    slot->why = why;
    return err_set(err, code, "%s: %s", slot->mirror->shown, text);
}

/* The disk's errors are the whole fetch's. */
static int fatal(struct slot *slot, struct err *err)
{
    slot->why = WHY_FATAL;
    slot->fatal = *err;
    return -1;
}

/* --- the head ----------------------------------------------------------------------------------------- */

/* True if the validators say that it is not the file to which our blocks belong. If digests will tell, another ETag with the same
   time and size is taken for another server of the same site. */
static bool is_other_file(const struct slot *slot, const struct http_head *head)
{
    const struct mirror *mirror = slot->mirror;
    bool has_times = mirror->last_modified.len && head->last_modified.len;
    bool is_same_time = has_times && str_eq(mirror->last_modified, head->last_modified);
    if (mirror->etag.len && head->etag.len && !str_eq(mirror->etag, head->etag)) {
        return !(is_same_time && fetch_has_expectation(slot->fetch));
    }
    return has_times && !is_same_time;
}

static int check_size(struct slot *slot, int64_t total_bytes, struct err *err)
{
    const struct fetch *fetch = slot->fetch;
    bool is_expected = fetch->spec->size_bytes >= 0;
    if (total_bytes < 0 || fetch->size_bytes < 0 || total_bytes == fetch->size_bytes) {
        return 0;
    }
    return refuse(
        slot, is_expected || (fetch->is_known && !slot->mirror->is_known) ? WHY_DEAD : WHY_CHANGED,
        ERR_INTEGRITY, err, "has %" PRId64 " bytes, expected %" PRId64, total_bytes,
        fetch->size_bytes);
}

static void keep_validators(struct slot *slot, const struct http_head *head)
{
    struct mirror *mirror = slot->mirror;
    if (str_eq(mirror->etag, head->etag) && str_eq(mirror->last_modified, head->last_modified)) {
        return;
    }
    mirror->etag = str_dup(&slot->fetch->arena, head->etag);
    mirror->last_modified = str_dup(&slot->fetch->arena, head->last_modified);
    slot->fetch->has_stale_head = slot->fetch->map != NULL;
}

/* The blocks that the body of a first answer is for. */
static void take_first_span(struct slot *slot)
{
    struct fetch *fetch = slot->fetch;
    uint64_t size_bytes = (uint64_t)fetch->size_bytes;
    slot->end = slot->is_whole_body || slot->asked_end > size_bytes ? size_bytes : slot->asked_end;
    for (size_t idx = 0; idx < state_n_blocks(slot->end, fetch->block_bytes); idx++) {
        fetch_mark(fetch, idx, BLOCK_TAKEN);
    }
    slot->end = slot->end ? block_end(fetch, (size_t)((slot->end - 1) / fetch->block_bytes)) : 0;
}

/* Takes note of an answer with a body of this file. */
static int accept(struct slot *slot, const struct http_head *head, int64_t total_bytes,
                  struct err *err)
{
    struct fetch *fetch = slot->fetch;
    if (head->is_encoded && !fetch_has_expectation(fetch) && fetch->spec->size_bytes < 0) {
        return refuse(slot, WHY_DEAD, ERR_FETCH, err,
                      "is sent with a Content-Encoding that was not asked for");
    }
    if (check_size(slot, total_bytes, err) < 0) {
        return -1;
    }
    if (is_other_file(slot, head)) {
        return refuse(slot, WHY_CHANGED, ERR_FETCH, err, "is another file than before");
    }
    if (!fetch->map && total_bytes >= 0) {
        if (disk_set_size(fetch, (uint64_t)total_bytes, err) < 0) {
            return fatal(slot, err);
        }
        take_first_span(slot);
    }
    keep_validators(slot, head);
    slot->mirror->is_known = fetch->is_known = true;
    fetch->has_many_sources |= fetch->source && fetch->source != slot->mirror;
    fetch->source = fetch->source ? fetch->source : slot->mirror;
    return 0;
}

static int on_part(struct slot *slot, const struct http_head *head, struct err *err)
{
    if (slot->is_whole_body || !head->has_content_range || head->first_byte != slot->pos) {
        return refuse(slot, WHY_NONE, ERR_NET, err,
                      "answers another range than the one from byte %" PRIu64, slot->pos);
    }
    if (head->total_bytes < 0 && slot->fetch->size_bytes < 0) {
        slot->mirror->no_ranges = true;
        return refuse(slot, WHY_NO_RANGES, ERR_NET, err, "does not say its size");
    }
    return accept(slot, head, head->total_bytes, err);
}

static int on_whole(struct slot *slot, const struct http_head *head, struct err *err)
{
    struct fetch *fetch = slot->fetch;
    if (!slot->is_whole_body && head->total_bytes != 0) {
        slot->mirror->no_ranges = true;
        return refuse(slot, WHY_NO_RANGES, ERR_NET, err, "answers a range with the whole file");
    }
    slot->is_whole_body = true;
    if (head->total_bytes < 0 && fetch->size_bytes < 0) {
        if (!head->is_delimited && !fetch_has_expectation(fetch)) {
            return refuse(slot, WHY_DEAD, ERR_INTEGRITY, err,
                          "states no length, and there is nothing to check it against");
        }
        fetch->is_open_end = true;
    }
    return accept(slot, head, head->total_bytes, err);
}

static int enough(struct slot *slot, struct err *err)
{
    slot->why = WHY_ENOUGH;
    return err_set(err, ERR_NET, "enough");
}

static int on_unsatisfiable(struct slot *slot, const struct http_head *head, struct err *err)
{
    if (head->total_bytes == 0 && slot->pos == 0) {
        return accept(slot, head, 0, err) < 0 ? -1 : enough(slot, err);
    }
    if (check_size(slot, head->total_bytes, err) < 0) {
        return -1;
    }
    return refuse(slot, WHY_DEAD, ERR_FETCH, err, "refuses a range inside the file");
}

static int on_head(void *ctx, const struct http_head *head, struct err *err)
{
    struct slot *slot = ctx;
    slot->is_delimited = head->is_delimited;
    switch (head->status) {
    case 200:
        return on_whole(slot, head, err);
    case 206:
        return on_part(slot, head, err);
    case 401:
    case 403:
        return refuse(slot, WHY_DEAD, ERR_AUTH, err, "a login is needed, or does not suffice (%d)",
                      head->status);
    case 404:
    case 410:
        return refuse(slot, WHY_DEAD, ERR_FETCH, err, "gone (%d)", head->status);
    case 416:
        return on_unsatisfiable(slot, head, err);
    case 408:
    case 425:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
        slot->retry_after_ns = head->retry_after_ns;
        return refuse(slot, WHY_BUSY, ERR_NET, err, "does not answer now (%d)", head->status);
    default:
        return refuse(slot, WHY_DEAD, ERR_FETCH, err, "unexpected status %d", head->status);
    }
}

/* --- the body ----------------------------------------------------------------------------------------- */

/* (2): what is marked was written. */
static int take_bytes(struct slot *slot, const uint8_t *ptr, size_t len, struct err *err)
{
    struct fetch *fetch = slot->fetch;
    uint64_t left = slot->end - slot->pos;
    size_t n = len < left ? len : (size_t)left;
    if (disk_write(fetch, slot->pos, ptr, n, err) < 0) {
        return fatal(slot, err);
    }
    for (size_t idx = (size_t)(slot->pos / fetch->block_bytes);
         n && idx < fetch->n_blocks && block_end(fetch, idx) <= slot->pos + n; idx++) {
        fetch_mark(fetch, idx, BLOCK_DONE);
    }
    slot->pos += n;
    if (n < len && slot->is_whole_body) {
        return refuse(slot, WHY_DEAD, ERR_INTEGRITY, err, "sends more than %" PRId64 " bytes",
                      fetch->size_bytes);
    }
    return n < len || (slot->pos == slot->end && slot->asked_end > slot->end) ? enough(slot, err)
                                                                              : 0;
}

/* What a body from the start brings does not count: it may be cut at the same place for ever. */
static bool has_progress(const struct slot *slot)
{
    return !slot->is_whole_body && slot->came_bytes >= PROGRESS_BYTES;
}

static int on_body(void *ctx, const uint8_t *ptr, size_t len, struct err *err)
{
    struct slot *slot = ctx;
    struct fetch *fetch = slot->fetch;
    slot->came_bytes += len;
    slot->mirror->got_bytes += len;
    fetch->result.received_bytes += len;
    if (has_progress(slot)) {
        slot->mirror->n_fails = 0;
    }
    if (!fetch->is_open_end) {
        return take_bytes(slot, ptr, len, err);
    }
    if (disk_write(fetch, slot->pos, ptr, len, err) < 0) {
        return fatal(slot, err);
    }
    slot->pos += len;
    fetch->done_bytes = slot->pos;
    return 0;
}

/* --- a request ------------------------------------------------------------------------------------------ */

/* Gives the unfetched part of the span back for others. */
static void give_back(struct slot *slot)
{
    struct fetch *fetch = slot->fetch;
    for (size_t idx = fetch->map ? (size_t)(slot->pos / fetch->block_bytes) : 0;
         fetch->map && slot->pos < slot->end && idx < state_n_blocks(slot->end, fetch->block_bytes);
         idx++) {
        fetch_mark(fetch, idx, BLOCK_MISSING);
    }
}

/* An invalid URL, an unreadable file: other mirrors may be better. */
static int cannot_start(struct slot *slot, struct err *err)
{
    if (err->code == ERR_INTERNAL) {
        return -1;
    }
    slot->mirror->err = *err;
    slot->mirror->is_dead = true;
    *err = (struct err){0};
    give_back(slot);
    return 0;
}

int slot_start(struct slot *slot, struct mirror *mirror, uint64_t pos, uint64_t end,
               struct err *err)
{
    struct fetch *fetch = slot->fetch;
    struct http_request request = {
        .url = mirror->url, .on_head = on_head, .on_body = on_body, .ctx = slot};
    *slot = (struct slot){
        .fetch = fetch, .mirror = mirror, .pos = pos, .end = end, .retry_after_ns = -1};
    slot->is_whole_body = mirror->no_ranges;
    slot->asked_end = fetch->map ? end : PROBE_BYTES;
    request.has_range = !slot->is_whole_body;
    request.first_byte = pos;
    request.last_byte = slot->asked_end - 1;
    if (http_start(fetch->run.http, &request, &slot->transfer, err) < 0) {
        return cannot_start(slot, err);
    }
    mirror->n_active++;
    return 0;
}

static void end_transfer(struct slot *slot)
{
    http_transfer_free(slot->transfer);
    slot->transfer = NULL;
    slot->mirror->n_active--;
}

void slot_drop(struct slot *slot)
{
    if (slot->transfer) {
        end_transfer(slot);
        give_back(slot);
    }
}

/* Doubles each time, with jitter. */
static int64_t backoff_ns(struct fetch *fetch, int n_fails)
{
    int64_t base_ns = fetch->spec->backoff_ns ? fetch->spec->backoff_ns : BACKOFF_NS;
    int shift = n_fails > BACKOFF_SHIFT_MAX ? BACKOFF_SHIFT_MAX : n_fails - 1;
    int64_t span_ns = base_ns > (BACKOFF_MAX_NS >> shift) ? BACKOFF_MAX_NS : base_ns << shift;
    return (int64_t)((double)span_ns * (0.5 + rng_f64(&fetch->rng)));
}

/* Worth another try: at once after progress, later otherwise. A server that serves other connections of ours limits their
   number. */
static void rest(struct slot *slot, const struct err *failure)
{
    struct fetch *fetch = slot->fetch;
    struct mirror *mirror = slot->mirror;
    int64_t now_ns = fetch_now_ns(fetch);
    int n_retries = fetch->spec->n_retries ? fetch->spec->n_retries : 5;
    mirror->err = *failure;
    if (has_progress(slot)) {
        return;
    }
    if (mirror->is_known && mirror->n_active > 0 && slot->retry_after_ns < 0) {
        mirror->max_active = mirror->n_active;
        return;
    }
    if (now_ns < mirror->rest_until_ns) {
        return; /* one outage is one failure, however many connections it cuts */
    }
    mirror->n_fails++;
    mirror->is_dead = mirror->n_fails > n_retries || slot->retry_after_ns > RETRY_AFTER_MAX_NS;
    mirror->rest_until_ns =
        now_ns +
        (slot->retry_after_ns >= 0 ? slot->retry_after_ns : backoff_ns(fetch, mirror->n_fails));
}

static int restart_changed(struct slot *slot, const struct err *failure, struct err *err)
{
    struct fetch *fetch = slot->fetch;
    if (fetch->n_changed++ >= CHANGES_MAX) {
        return err_set(err, ERR_FETCH, "%s changes while it is fetched: %s", fetch->spec->name,
                       failure->msg);
    }
    return fetch_restart(fetch, err);
}

static int slot_failed(struct slot *slot, const struct err *failure, struct err *err)
{
    struct fetch *fetch = slot->fetch;
    bool is_worth_it = failure->code == ERR_NET || failure->code == ERR_TIMEOUT;
    give_back(slot);
    if (slot->why == WHY_FATAL || failure->code == ERR_INTERNAL) {
        *err = slot->why == WHY_FATAL ? slot->fatal : *failure;
        return -1;
    }
    if (slot->why == WHY_CHANGED) {
        return restart_changed(slot, failure, err);
    }
    if ((slot->why == WHY_NONE && is_worth_it) || slot->why == WHY_BUSY) {
        rest(slot, failure);
    } else if (slot->why != WHY_NO_RANGES) {
        slot->mirror->err = *failure;
        slot->mirror->is_dead = true;
    }
    /* No part of a body that is of no use counts, even if it was long enough. */
    return fetch->is_open_end || (slot->mirror->is_dead && slot->is_whole_body && slot->came_bytes)
               ? fetch_restart(fetch, err)
               : 0;
}

static int slot_succeeded(struct slot *slot, struct err *err)
{
    struct fetch *fetch = slot->fetch;
    struct err failure = {0};
    if (fetch->is_open_end) {
        fetch->is_ended = true;
        fetch->size_bytes = (int64_t)slot->pos;
        return 0;
    }
    if (slot->pos < slot->end && (slot->came_bytes == 0 || slot->is_whole_body)) {
        (void)!err_set(&failure, slot->is_delimited ? ERR_INTEGRITY : ERR_NET,
                       "%s: ends after %" PRIu64 " of %" PRId64 " bytes", slot->mirror->shown,
                       slot->pos, fetch->size_bytes);
        return slot_failed(slot, &failure, err);
    }
    give_back(slot); /* a server may send less of a range than was asked for */
    return 0;
}

int slot_step(struct slot *slot, struct err *err)
{
    struct err failure = {0};
    enum step step = slot->transfer ? http_step(slot->transfer, &failure) : STEP_AGAIN;
    if (step == STEP_AGAIN) {
        return 0;
    }
    end_transfer(slot);
    return step == STEP_DONE || slot->why == WHY_ENOUGH ? slot_succeeded(slot, err)
                                                        : slot_failed(slot, &failure, err);
}
