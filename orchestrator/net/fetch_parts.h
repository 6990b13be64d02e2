/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of net/fetch*.c call of each other. All run on the loop's thread. */
#ifndef NET_FETCH_PARTS_H
#define NET_FETCH_PARTS_H

#include "net/fetch_impl.h"

/* fetch_disk.c */
MUST_CHECK int disk_open(struct fetch *fetch, struct err *err);
/* Free space for the file and what comes after. */
MUST_CHECK int disk_check_space(const struct fetch *fetch, struct err *err);
/* Once the size is known: blocks, the file's length, the state. */
MUST_CHECK int disk_set_size(struct fetch *fetch, uint64_t size_bytes, struct err *err);
void disk_record(struct fetch *fetch, size_t block_idx, uint32_t crc, uint32_t mirror);
MUST_CHECK int disk_flush(struct fetch *fetch, struct err *err);
MUST_CHECK int disk_write(struct fetch *fetch, uint64_t pos, const uint8_t *ptr, size_t len,
                          struct err *err);
MUST_CHECK int disk_forget(struct fetch *fetch, struct err *err);
void disk_close(struct fetch *fetch);

/* fetch_slot.c */
MUST_CHECK int slot_start(struct slot *slot, struct mirror *mirror, struct fetch_span span,
                          struct err *err);
/* Checks the state of its transfer and acts on it. -1: the fetch is over. */
MUST_CHECK int slot_step(struct slot *slot, struct err *err);
/* Gives back what it has not fetched. */
void slot_drop(struct slot *slot);

/* fetch_plan.c */
MUST_CHECK int plan_work(struct fetch *fetch, struct err *err);
/* From MISSING to TAKEN, and from anything else to MISSING. */
void plan_take(struct fetch *fetch, size_t first_block, size_t end_block);
void plan_missing(struct fetch *fetch, size_t block_idx);
void plan_orphan(struct fetch *fetch, struct fetch_span span);
void plan_rates(struct fetch *fetch);
/* When the next slot or mirror has rested; 0: none rests. */
int64_t plan_next_ns(const struct fetch *fetch);
/* Fills *err with why no mirror is left. */
int plan_no_mirror(const struct fetch *fetch, struct err *err);

/* fetch_check.c */
/* Notes that a block has arrived: its piece may be ready. */
void check_came(struct fetch *fetch, size_t block_idx);
MUST_CHECK int check_init(struct fetch *fetch, struct err *err);
MUST_CHECK int check_step(struct fetch *fetch, struct err *err);
/* Waits for the jobs; digests start again at the first byte. */
MUST_CHECK int check_restart(struct fetch *fetch, struct err *err);
void check_wait(struct fetch *fetch);
void check_release(struct fetch *fetch);
bool check_is_over(const struct fetch *fetch); /* all digests have seen all bytes */

/* fetch.c */
void fetch_block_came(struct fetch *fetch, size_t block_idx, uint32_t crc, size_t mirror_idx);
void fetch_block_good(struct fetch *fetch, size_t block_idx);
bool fetch_has_expectation(const struct fetch *fetch);
/* Starts again from the first byte. */
MUST_CHECK int fetch_restart(struct fetch *fetch, struct err *err);

static inline uint64_t block_start(const struct fetch *fetch, size_t block_idx)
{
    return (uint64_t)block_idx * fetch->block_bytes;
}

static inline uint64_t block_end(const struct fetch *fetch, size_t block_idx)
{
    uint64_t end = ((uint64_t)block_idx + 1) * fetch->block_bytes;
    return end < (uint64_t)fetch->size_bytes ? end : (uint64_t)fetch->size_bytes;
}

static inline size_t piece_of(const struct fetch *fetch, size_t block_idx)
{
    return (size_t)(block_start(fetch, block_idx) / fetch->piece_bytes);
}

#endif
