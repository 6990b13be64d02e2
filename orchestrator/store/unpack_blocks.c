/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/unpack_blocks.h"

#include <errno.h>
#include <unistd.h>

#include "base/arena.h"

static int run_chain(void *arg, const atomic_bool *is_cancelled, struct err *err UNUSED)
{
    struct block_chain *chain = arg;
    for (size_t idx = 0; idx < chain->n_working && !atomic_load(is_cancelled); idx++) {
        digest_update(&chain->digest, chain->working[idx]->ptr, chain->working[idx]->len);
    }
    return 0;
}

void blocks_init(struct blocks *blocks, int fd, const char *name, unsigned kinds, struct pool *pool)
{
    *blocks = (struct blocks){.fd = fd, .name = name, .kinds = kinds, .pool = pool};
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        struct block_chain *chain = &blocks->chains[idx];
        if (kinds & (1u << idx)) {
            digest_start(&chain->digest, 1u << idx);
        }
        chain->is_active = (kinds & (1u << idx)) != 0;
    }
}

void blocks_release(struct blocks *blocks)
{
    struct err ignored = {0};
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        struct block_chain *chain = &blocks->chains[idx];
        if (chain->n_working > 0 && pool_wait(blocks->pool, &chain->job, &ignored) < 0) {
            ignored = (struct err){0};
        }
        digest_release(&chain->digest);
    }
    for (size_t idx = 0; idx < BLOCKS_MAX; idx++) {
        free(blocks->blocks[idx].ptr);
    }
    *blocks = (struct blocks){.fd = -1};
}

struct unpack_block *blocks_find_free(struct blocks *blocks)
{
    for (size_t idx = 0; idx < BLOCKS_MAX; idx++) {
        struct unpack_block *block = &blocks->blocks[idx];
        if (block->n_refs == 0 && block != blocks->current) {
            if (!block->ptr) {
                block->ptr = xmalloc(BLOCK_BYTES);
            }
            return block;
        }
    }
    return NULL;
}

struct unpack_block *blocks_find(struct blocks *blocks, const void *ptr)
{
    struct unpack_block *block = blocks->current;
    uintptr_t at = (uintptr_t)ptr;
    return block && at >= (uintptr_t)block->ptr && at < (uintptr_t)block->ptr + block->len ? block
                                                                                           : NULL;
}

static int end_chain(struct blocks *blocks, struct block_chain *chain, struct err *err)
{
    int result = pool_wait(blocks->pool, &chain->job, err);
    for (size_t idx = 0; idx < chain->n_working; idx++) {
        chain->working[idx]->n_refs--;
    }
    chain->n_working = 0;
    return result;
}

static void start_chain(struct blocks *blocks, struct block_chain *chain)
{
    memcpy(chain->working, chain->waiting, chain->n_waiting * sizeof(chain->waiting[0]));
    chain->n_working = chain->n_waiting;
    chain->n_waiting = 0;
    chain->job = (struct pool_job){.fn = run_chain, .arg = chain};
    pool_submit(blocks->pool, &chain->job);
}

int blocks_step(struct blocks *blocks, bool should_wait, struct err *err)
{
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        struct block_chain *chain = &blocks->chains[idx];
        if (chain->n_working > 0 && (should_wait || pool_is_done(blocks->pool, &chain->job)) &&
            end_chain(blocks, chain, err) < 0) {
            return -1;
        }
        if (chain->n_working == 0 && chain->n_waiting > 0) {
            start_chain(blocks, chain);
        }
    }
    return 0;
}

static int fill(struct blocks *blocks, struct unpack_block *block, struct err *err)
{
    block->len = 0;
    while (block->len < BLOCK_BYTES) {
        ssize_t got = read(blocks->fd, block->ptr + block->len, BLOCK_BYTES - block->len);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return err_set(err, err_code_of_errno(errno), "read %s: %s", blocks->name,
                           err_errno_text(errno));
        }
        if (got == 0) {
            break;
        }
        block->len += (size_t)got;
    }
    blocks->read_bytes += block->len;
    return 0;
}

int blocks_read(struct blocks *blocks, struct unpack_block *block, size_t *ret_len, struct err *err)
{
    if (fill(blocks, block, err) < 0) {
        return -1;
    }
    blocks->current = block;
    *ret_len = block->len;
    for (size_t idx = 0; idx < DIGEST_KINDS && block->len > 0; idx++) {
        struct block_chain *chain = &blocks->chains[idx];
        if (chain->is_active) {
            ASSERT(chain->n_waiting < BLOCKS_MAX);
            chain->waiting[chain->n_waiting++] = block;
            block->n_refs++;
        }
    }
    return blocks_step(blocks, false, err);
}

int blocks_finish(struct blocks *blocks, struct digest_value *ret_value, struct err *err)
{
    struct digest_value value = {.size_bytes = blocks->read_bytes}, one;
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        struct block_chain *chain = &blocks->chains[idx];
        while (chain->n_working > 0 || chain->n_waiting > 0) {
            if (blocks_step(blocks, true, err) < 0) {
                return -1;
            }
        }
        if (!chain->is_active) {
            continue;
        }
        one = digest_finish(&chain->digest);
        ASSERT(one.size_bytes == blocks->read_bytes);
        if ((1u << idx) == DIGEST_MD5) {
            memcpy(value.md5, one.md5, MD5_BYTES);
        } else {
            memcpy(value.sha256, one.sha256, SHA256_BYTES);
        }
    }
    *ret_value = value;
    return 0;
}
