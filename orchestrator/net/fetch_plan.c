/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/fetch_parts.h"

#include "base/vec.h"

#define TICK_NS      (250 * NS_PER_MS)
#define CHUNK_SPAN_S 4.0 /* duration of a request, so that the gaps between requests are small */
#define GAIN_MIN_S   0.3 /* less is not worth a new connection */
#define SLOW_FACTOR  8.0 /* a mirror slower than another by this factor is dropped */
#define SLOW_SPAN_NS (3 * NS_PER_S)
#define ALIKE        0.75 /* mirrors of about the same speed share the work */
#define REGROW_NS    (5 * NS_PER_S)

void plan_take(struct fetch *fetch, size_t first_block, size_t end_block)
{
    for (size_t idx = first_block; idx < end_block; idx++) {
        if (fetch->blocks[idx].state == BLOCK_MISSING) {
            fetch->blocks[idx].state = BLOCK_TAKEN;
            fetch->missing_bytes -= block_end(fetch, idx) - block_start(fetch, idx);
        }
    }
}

void plan_missing(struct fetch *fetch, size_t block_idx)
{
    struct block *block = &fetch->blocks[block_idx];
    uint64_t n_bytes = block_end(fetch, block_idx) - block_start(fetch, block_idx);
    ASSERT(block->state != BLOCK_MISSING && block->state != BLOCK_GOOD);
    if (block->state >= BLOCK_CLAIMED) {
        disk_record(fetch, block_idx, 0, STATE_NO_MIRROR);
        fetch->done_bytes -= n_bytes;
        if (fetch->piece_bytes) {
            fetch->pieces[piece_of(fetch, block_idx)].n_missing++;
        }
    }
    block->state = BLOCK_MISSING;
    fetch->missing_bytes += n_bytes;
    if (block_idx < fetch->first_missing) {
        fetch->first_missing = block_idx;
    }
}

void plan_orphan(struct fetch *fetch, struct fetch_span span)
{
    VEC_PUSH(&fetch->orphans, span);
}

/* --- mirrors ------------------------------------------------------------------------------------------ */

static bool is_usable(const struct mirror *mirror)
{
    return !mirror->is_dead && !mirror->is_off;
}

static bool has_ranged(const struct fetch *fetch)
{
    for (size_t idx = 0; idx < fetch->n_mirrors; idx++) {
        if (is_usable(&fetch->mirrors[idx]) && !fetch->mirrors[idx].no_ranges) {
            return true;
        }
    }
    return false;
}

static double best_rate(const struct fetch *fetch)
{
    double best = 0;
    for (size_t idx = 0; idx < fetch->n_mirrors; idx++) {
        if (is_usable(&fetch->mirrors[idx]) && fetch->mirrors[idx].rate > best) {
            best = fetch->mirrors[idx].rate;
        }
    }
    return best;
}

/* A mirror that has not been measured yet counts as much as the best. */
static double worth(const struct fetch *fetch, const struct mirror *mirror)
{
    double best = best_rate(fetch);
    return mirror->rate > 0 ? mirror->rate : best > 0 ? best : 1.0;
}

static bool is_better(const struct fetch *fetch, const struct mirror *a, const struct mirror *b)
{
    double worth_a = worth(fetch, a);
    double worth_b = worth(fetch, b);
    if (worth_a < ALIKE * worth_b || worth_b < ALIKE * worth_a) {
        return worth_a > worth_b;
    }
    return a->n_active < b->n_active;
}

/* Mirrors not to ask for the block: those that contributed to a bad copy of its piece. If all did, the copy may have mixed good and
   bad ones: then each is asked for the whole piece in turn. */
static unsigned bad_mirrors(const struct fetch *fetch, size_t block_idx)
{
    const struct piece *piece;
    unsigned usable = 0;
    size_t n_usable = 0;
    if (!fetch->piece_bytes || !fetch->blocks) {
        return 0;
    }
    piece = &fetch->pieces[piece_of(fetch, block_idx)];
    for (size_t idx = 0; idx < fetch->n_mirrors; idx++) {
        bool counts = is_usable(&fetch->mirrors[idx]);
        usable |= counts ? 1u << idx : 0;
        n_usable += counts;
    }
    if (!piece->bad_from || !n_usable || (usable & ~piece->bad_from)) {
        return piece->bad_from;
    }
    for (size_t idx = 0, nth = 0; idx < fetch->n_mirrors; idx++) {
        if (usable >> idx & 1 && nth++ == piece->n_bad % n_usable) {
            return usable & ~(1u << idx);
        }
    }
    return 0;
}

static struct mirror *pick_from(struct fetch *fetch, unsigned avoided, bool *ret_has_other)
{
    int64_t now_ns = loop_now_ns(fetch->loop);
    bool wants_ranges = has_ranged(fetch);
    struct mirror *best = NULL;
    *ret_has_other = false;
    for (size_t idx = 0; idx < fetch->n_mirrors; idx++) {
        struct mirror *mirror = &fetch->mirrors[idx];
        size_t max_active = mirror->no_ranges ? 1 : mirror->max_active;
        if (!is_usable(mirror) || (avoided >> idx & 1) || (wants_ranges && mirror->no_ranges)) {
            continue;
        }
        *ret_has_other = true;
        if (mirror->rest_until_ns <= now_ns && mirror->n_active < max_active &&
            (!best || is_better(fetch, mirror, best))) {
            best = mirror;
        }
    }
    return best;
}

/* NULL: none at the moment. One that gave a bad copy only if there is no other. */
static struct mirror *pick_mirror(struct fetch *fetch, unsigned avoided)
{
    bool has_other;
    struct mirror *mirror = pick_from(fetch, avoided, &has_other);
    return has_other || !avoided ? mirror : pick_from(fetch, 0, &has_other);
}

int plan_no_mirror(const struct fetch *fetch, struct err *err)
{
    const struct err *told = NULL;
    bool is_gone = true;
    size_t n_other = 0;
    for (size_t idx = 0; idx < fetch->n_mirrors; idx++) {
        const struct mirror *mirror = &fetch->mirrors[idx];
        bool is_first = !told;
        if (mirror->is_off || mirror->err.code == ERR_NONE) {
            continue;
        }
        is_gone &= mirror->err.code == ERR_FETCH;
        n_other += !is_first;
        /* Errors that a user can fix come first. */
        if (is_first || (mirror->err.code == ERR_AUTH && told->code != ERR_AUTH)) {
            told = &mirror->err;
        }
    }
    if (!told) {
        return err_set(err, ERR_FETCH, "%s: no mirror is left", fetch->spec->name);
    }
    /* One dead mirror does not make an outage of the others final. */
    for (size_t idx = 0; !is_gone && told->code == ERR_FETCH && idx < fetch->n_mirrors; idx++) {
        if (!fetch->mirrors[idx].is_off && fetch->mirrors[idx].err.code != ERR_NONE &&
            fetch->mirrors[idx].err.code != ERR_FETCH) {
            told = &fetch->mirrors[idx].err;
        }
    }
    *err = *told;
    if (err->code == ERR_TIMEOUT) {
        err->code = ERR_NET; /* the deadline was a connection's, not the caller's */
    }
    return n_other ? err_wrap(err, "%s: none of %zu mirrors %s it", fetch->spec->name, n_other + 1,
                              is_gone ? "has" : "gives")
                   : err_wrap(err, "%s", fetch->spec->name);
}

/* --- spans ---------------------------------------------------------------------------------------------- */

static size_t first_missing(struct fetch *fetch)
{
    while (fetch->first_missing < fetch->n_blocks &&
           fetch->blocks[fetch->first_missing].state != BLOCK_MISSING) {
        fetch->first_missing++;
    }
    return fetch->first_missing;
}

/* Large requests for fast mirrors, smaller ones towards the end, so that all end together. */
static uint64_t chunk_of(const struct fetch *fetch, const struct mirror *mirror)
{
    uint64_t guided = fetch->missing_bytes / (2 * fetch->n_slots);
    double wanted = mirror->rate > 0 ? mirror->rate * CHUNK_SPAN_S : (double)PROBE_BYTES;
    uint64_t chunk = wanted > CHUNK_MAX_BYTES ? CHUNK_MAX_BYTES : (uint64_t)wanted;
    chunk = chunk < guided ? chunk : guided;
    return chunk > CHUNK_MIN_BYTES ? chunk : CHUNK_MIN_BYTES;
}

static struct fetch_span take_chunk(struct fetch *fetch, const struct mirror *mirror)
{
    size_t from = first_missing(fetch);
    uint64_t chunk = chunk_of(fetch, mirror);
    unsigned bad = bad_mirrors(fetch, from);
    size_t to = from;
    while (to < fetch->n_blocks && fetch->blocks[to].state == BLOCK_MISSING &&
           block_start(fetch, to) - block_start(fetch, from) < chunk &&
           bad_mirrors(fetch, to) == bad) {
        to++;
    }
    plan_take(fetch, from, to);
    return (struct fetch_span){block_start(fetch, from), block_end(fetch, to - 1), 0};
}

/* From a server without ranges: all that is missing, in one body. */
static struct fetch_span take_all(struct fetch *fetch)
{
    size_t from;
    for (size_t idx = 0; idx < fetch->orphans.n; idx++) {
        const struct fetch_span *orphan = &fetch->orphans.items[idx];
        fetch->result.again_bytes += orphan->pos % fetch->block_bytes;
        for (size_t block = (size_t)(orphan->pos / fetch->block_bytes);
             block < state_n_blocks(orphan->end, fetch->block_bytes); block++) {
            plan_missing(fetch, block);
        }
    }
    fetch->orphans.n = 0;
    from = first_missing(fetch);
    plan_take(fetch, from, fetch->n_blocks);
    return (struct fetch_span){block_start(fetch, from), (uint64_t)fetch->size_bytes, 0};
}

static int start_on(struct fetch *fetch, struct slot *slot, struct mirror *mirror, struct err *err)
{
    struct fetch_span span = {0};
    if (!fetch->blocks) {
        span.end = fetch->size_bytes == 0 ? 0 : UINT64_MAX;
    } else if (mirror->no_ranges) {
        span = take_all(fetch);
    } else if (fetch->orphans.n) {
        span = fetch->orphans.items[--fetch->orphans.n];
    } else {
        span = take_chunk(fetch, mirror);
    }
    return slot_start(slot, mirror, span, err);
}

/* --- the end of the file: nobody waits for the slowest ------------------------------------------------ */

static double left_s(const struct slot *slot)
{
    return (double)(slot->span.end - slot->span.pos) / (slot->rate > 1 ? slot->rate : 1);
}

static struct slot *slowest(struct fetch *fetch)
{
    struct slot *found = NULL;
    int64_t now_ns = loop_now_ns(fetch->loop);
    for (size_t idx = 0; idx < fetch->n_slots; idx++) {
        struct slot *slot = &fetch->slots[idx];
        if (slot->transfer && !slot->is_whole_body && now_ns - slot->start_ns > NS_PER_S &&
            (!found || left_s(slot) > left_s(found))) {
            found = slot;
        }
    }
    return found;
}

static double best_running_rate(const struct fetch *fetch)
{
    double best = 0;
    for (size_t idx = 0; idx < fetch->n_slots; idx++) {
        if (fetch->slots[idx].transfer && fetch->slots[idx].rate > best) {
            best = fetch->slots[idx].rate;
        }
    }
    return best;
}

/* An idle connection takes over the end of the slowest one's span, in the ratio of their speeds; all of it if that one hardly
   moves. */
static int steal(struct fetch *fetch, struct slot *thief, struct err *err)
{
    struct slot *victim = slowest(fetch);
    struct mirror *mirror;
    double rate, keep;
    uint64_t split;
    if (!victim) {
        return 0;
    }
    mirror =
        pick_mirror(fetch, bad_mirrors(fetch, (size_t)(victim->span.pos / fetch->block_bytes)));
    rate = mirror && mirror->rate > 0 ? mirror->rate : best_running_rate(fetch);
    if (!mirror || mirror->no_ranges || rate <= 0) {
        return 0;
    }
    keep = (double)(victim->span.end - victim->span.pos) * victim->rate / (victim->rate + rate);
    split = victim->span.pos + (uint64_t)keep;
    split = block_end(fetch, (size_t)(split / fetch->block_bytes));
    if (split >= victim->span.end) {
        double alone_s = (double)(victim->span.end - victim->span.pos) / rate;
        if (left_s(victim) > 4 * (alone_s + GAIN_MIN_S)) {
            victim->rest_until_ns = loop_now_ns(fetch->loop) + NS_PER_S;
            slot_drop(victim);
            return start_on(fetch, thief, mirror, err);
        }
        return 0;
    }
    if (left_s(victim) -
            (double)(split - victim->span.pos) / (victim->rate > 1 ? victim->rate : 1) <
        GAIN_MIN_S) {
        return 0;
    }
    struct fetch_span span = {split, victim->span.end, 0};
    victim->span.end = split;
    return slot_start(thief, mirror, span, err);
}

/* --- who does what --------------------------------------------------------------------------------------- */

/* Drops a mirror that turned out far slower than another, even in the middle of a request. */
static void leave_slow(struct fetch *fetch)
{
    int64_t now_ns = loop_now_ns(fetch->loop);
    for (size_t idx = 0; idx < fetch->n_slots; idx++) {
        struct slot *slot = &fetch->slots[idx];
        if (!slot->transfer || slot->is_whole_body || now_ns - slot->start_ns < SLOW_SPAN_NS) {
            continue;
        }
        for (size_t other = 0; other < fetch->n_mirrors; other++) {
            const struct mirror *mirror = &fetch->mirrors[other];
            if (mirror != slot->mirror && is_usable(mirror) && mirror->rest_until_ns <= now_ns &&
                !mirror->no_ranges && mirror->rate > SLOW_FACTOR * slot->rate) {
                slot->mirror->rate = slot->rate;
                slot_drop(slot);
                break;
            }
        }
    }
}

static void regrow(struct fetch *fetch)
{
    int64_t now_ns = loop_now_ns(fetch->loop);
    for (size_t idx = 0; idx < fetch->n_mirrors; idx++) {
        struct mirror *mirror = &fetch->mirrors[idx];
        if (mirror->max_active < fetch->n_slots && now_ns - mirror->failed_ns > REGROW_NS) {
            mirror->max_active++;
            mirror->failed_ns = now_ns;
        }
    }
}

static size_t count_running(const struct fetch *fetch)
{
    size_t n = 0;
    for (size_t idx = 0; idx < fetch->n_slots; idx++) {
        n += fetch->slots[idx].transfer != NULL;
    }
    return n;
}

void plan_rates(struct fetch *fetch)
{
    size_t n = count_running(fetch);
    for (size_t idx = 0; n && fetch->spec->rate_bytes_per_s && idx < fetch->n_slots; idx++) {
        if (fetch->slots[idx].transfer) {
            uint64_t share = fetch->spec->rate_bytes_per_s / n;
            http_set_rate(fetch->slots[idx].transfer, share ? share : 1);
        }
    }
    fetch->n_running = n;
}

static bool has_work(struct fetch *fetch)
{
    if (!fetch->blocks) {
        return !fetch->is_ended;
    }
    return fetch->orphans.n > 0 || first_missing(fetch) < fetch->n_blocks;
}

/* Gives an idle slot something to do, if there is anything. */
static int employ(struct fetch *fetch, struct slot *slot, struct err *err)
{
    struct mirror *mirror;
    if (!has_work(fetch)) {
        return fetch->blocks && !fetch->is_open_end ? steal(fetch, slot, err) : 0;
    }
    mirror = pick_mirror(
        fetch,
        fetch->blocks
            ? bad_mirrors(fetch, fetch->orphans.n
                                     ? (size_t)(fetch->orphans.items[fetch->orphans.n - 1].pos /
                                                fetch->block_bytes)
                                     : first_missing(fetch))
            : 0);
    return mirror ? start_on(fetch, slot, mirror, err) : 0;
}

static bool has_usable(const struct fetch *fetch)
{
    for (size_t idx = 0; idx < fetch->n_mirrors; idx++) {
        if (is_usable(&fetch->mirrors[idx])) {
            return true;
        }
    }
    return false;
}

int plan_work(struct fetch *fetch, struct err *err)
{
    int64_t now_ns = loop_now_ns(fetch->loop);
    if (now_ns - fetch->tick_ns >= TICK_NS) {
        fetch->tick_ns = now_ns;
        leave_slow(fetch);
        regrow(fetch);
    }
    for (size_t idx = 0; idx < fetch->n_slots; idx++) {
        struct slot *slot = &fetch->slots[idx];
        /* The first answer tells how much there is to distribute. */
        if (!fetch->is_known && count_running(fetch) > 0) {
            break;
        }
        if (!slot->transfer && slot->rest_until_ns <= now_ns && employ(fetch, slot, err) < 0) {
            return -1;
        }
    }
    if (count_running(fetch) != fetch->n_running) {
        plan_rates(fetch);
    }
    if (fetch->n_running == 0 && has_work(fetch) && !has_usable(fetch)) {
        return plan_no_mirror(fetch, err);
    }
    return 0;
}

int64_t plan_next_ns(const struct fetch *fetch)
{
    int64_t now_ns = loop_now_ns(fetch->loop);
    int64_t next_ns = now_ns + TICK_NS;
    for (size_t idx = 0; idx < fetch->n_slots; idx++) {
        int64_t rest_ns = fetch->slots[idx].rest_until_ns;
        next_ns = rest_ns > now_ns && rest_ns < next_ns ? rest_ns : next_ns;
    }
    for (size_t idx = 0; idx < fetch->n_mirrors; idx++) {
        int64_t rest_ns = fetch->mirrors[idx].rest_until_ns;
        next_ns = rest_ns > now_ns && rest_ns < next_ns ? rest_ns : next_ns;
    }
    return next_ns;
}
