/* SPDX-License-Identifier: Apache-2.0 */
/* Loads, stores and atomic additions, with a shadow that records the last accesses: it finds an access outside any allocation, a misaligned
   one, and two that are unordered. Accesses are ordered by a barrier, a warp's barrier, or (between blocks) a fence and an atomic addition to
   one address. */
#include "base/base.h"

#include "tests/cuda_emu/emu.h"
#include "tests/ptx/ptx.h"

/* One access; `run` is the launch of global memory's, the block's of shared memory's. */
struct seen {
    uint32_t run, block;
    uint16_t thread, barriers, meetings;
};
/* Of two bytes of global memory, of one byte of shared memory. */
struct cell {
    struct seen writer, reader, other_reader;
};
#define GLOBAL_GRAIN 2 /* accesses of one byte are not checked for races */
#define RANGES_MAX   4

struct release {
    uint64_t at;
    uint32_t block;
};
static VEC(struct ptx_range) own; /* the modules' variables */
static struct ptx_range recent[RANGES_MAX];
static uint32_t n_recent;
static VEC(struct release) releases;
static uint32_t *known; /* by block: the block that has seen its release, + 1 */
static uint32_t n_known;
static struct cell *shared_cells;
static uint32_t n_shared_cells, shared_run;

void ptx_add_global(struct ptx_range range)
{
    VEC_PUSH(&own, range);
}

void ptx_memory_begin_launch(uint32_t n_blocks)
{
    n_recent = 0;
    releases.n = 0;
    if (n_blocks > n_known) {
        known = xrealloc(known, n_blocks * sizeof(*known));
        n_known = n_blocks;
    }
    memset(known, 0, n_blocks * sizeof(*known));
}

void ptx_memory_begin_block(void)
{
    shared_run++;
    if (ptx_block.shared_bytes > n_shared_cells) {
        free(shared_cells);
        n_shared_cells = ptx_block.shared_bytes;
        shared_cells = xcalloc(n_shared_cells, sizeof(*shared_cells));
    }
}

/* --- races ------------------------------------------------------------------------------------------ */
static bool is_before(const struct seen *seen, const struct ptx_thread *t)
{
    return seen->thread == t->idx || seen->barriers < t->barriers ||
           (seen->barriers == t->barriers && seen->thread / PTX_WARP == t->idx / PTX_WARP &&
            seen->meetings < t->meetings);
}

static bool races(const struct seen *seen, uint32_t run, const struct ptx_thread *t)
{
    if (seen->run != run) {
        return false;
    }
    return seen->block != ptx_block.idx ? known[seen->block] != ptx_block.idx + 1
                                        : !is_before(seen, t);
}

static void see(struct cell *cell, uint32_t run, const struct ptx_thread *t,
                const struct ptx_insn *insn, bool is_write)
{
    const struct seen now = {run, ptx_block.idx, (uint16_t)t->idx, t->barriers, t->meetings};
    if (races(&cell->writer, run, t)) {
        ptx_found(insn, is_write ? "race: two writes" : "race: read after write");
    }
    if (is_write) {
        if (races(&cell->reader, run, t) || races(&cell->other_reader, run, t)) {
            ptx_found(insn, "race: write after read");
        }
        cell->writer = now;
        cell->reader.run = cell->other_reader.run = 0;
    } else if (!races(&cell->reader, run, t)) { /* a later read represents the earlier ones */
        cell->reader = now;
    } else {
        cell->other_reader = now;
    }
}

bool ptx_see_shared(const struct ptx_thread *t, const struct ptx_insn *insn, uint64_t at,
                    uint32_t bytes, bool is_write)
{
    if (at > ptx_block.shared_bytes || bytes > ptx_block.shared_bytes - at) {
        ptx_found(insn, "shared memory out of bounds");
        return false;
    }
    for (uint64_t i = at; i < at + bytes; i++) {
        see(&shared_cells[i], shared_run, t, insn, is_write);
    }
    return true;
}

/* --- global memory ------------------------------------------------------------------------------------------ */
static bool is_inside(const struct ptx_range *range, uint64_t at, uint32_t bytes)
{
    uint64_t from = (uint64_t)(uintptr_t)range->ptr;
    return at >= from && at - from <= range->bytes && bytes <= range->bytes - (at - from);
}

static const struct ptx_range *find(uint64_t at, uint32_t bytes)
{
    for (uint32_t i = 0; i < RANGES_MAX && i < n_recent; i++) {
        if (is_inside(&recent[i], at, bytes)) {
            return &recent[i];
        }
    }
    struct ptx_range *place = &recent[n_recent % RANGES_MAX];
    const struct ptx_range *found = NULL;
    for (size_t i = 0; i < own.n && found == NULL; i++) {
        found = is_inside(&own.items[i], at, bytes) ? &own.items[i] : NULL;
    }
    struct ptx_range device = {0};
    if (found == NULL &&
        emu_memory_range((const void *)(uintptr_t)at, (void **)&device.ptr, &device.bytes,
                         &device.shadow) &&
        is_inside(&device, at, bytes)) {
        found = &device;
    }
    if (found == NULL) {
        return NULL;
    }
    if (*found->shadow == NULL) {
        *found->shadow = xcalloc(found->bytes / GLOBAL_GRAIN + 1, sizeof(struct cell));
    }
    n_recent++;
    *place = *found;
    return place;
}

static bool see_global(struct ptx_thread *t, const struct ptx_insn *insn, uint64_t at,
                       uint32_t bytes, bool is_write)
{
    const struct ptx_range *range = find(at, bytes);
    if (range == NULL) {
        ptx_found(insn, "global memory out of bounds");
        return false;
    }
    if (is_write) {
        t->has_unfenced = true;
        t->wrote_at = (uint16_t)(t->barriers + 1);
    }
    if (bytes >= GLOBAL_GRAIN) {
        struct cell *cells = *range->shadow;
        uint64_t from = (at - (uint64_t)(uintptr_t)range->ptr) / GLOBAL_GRAIN;
        for (uint64_t i = from; i < from + bytes / GLOBAL_GRAIN; i++) {
            see(&cells[i], ptx_block.launch_no, t, insn, is_write);
        }
    }
    return true;
}

/* --- instructions ------------------------------------------------------------------------------------------ */
/* Address of the bytes, or NULL where they may not be touched. */
static unsigned char *place_of(struct ptx_thread *t, const struct ptx_insn *insn, uint32_t bytes,
                               bool is_write)
{
    uint64_t at = ptx_get(t, insn->op[0]) + (uint64_t)insn->offset;
    uint64_t shared = (uint64_t)(uintptr_t)ptx_block.shared;
    uint64_t local = (uint64_t)(uintptr_t)t->local;
    const struct ptx_kernel *k = t->kernel;
    int space = insn->space;
    if (space == IN_ANY && at >= shared && at < shared + ptx_block.shared_bytes) {
        space = IN_SHARED;
        at -= shared;
    } else if (space == IN_ANY && at >= local && at < local + k->local_bytes) {
        space = IN_LOCAL;
        at -= local;
    }
    if (at % bytes != 0) {
        ptx_found(insn, "misaligned");
    }
    switch (space) {
    case IN_SHARED:
        at = (uint32_t)at;
        return ptx_see_shared(t, insn, at, bytes, is_write) ? ptx_block.shared + at : NULL;
    case IN_LOCAL:
    case IN_PARAM:
        if (at > (space == IN_LOCAL ? k->local_bytes : k->param_bytes) ||
            bytes > (space == IN_LOCAL ? k->local_bytes : k->param_bytes) - at) {
            ptx_found(insn, "local memory or parameters out of bounds");
            return NULL;
        }
        return (space == IN_LOCAL ? t->local : ptx_block.launch->params) + at;
    default:
        return see_global(t, insn, at, bytes, is_write) ? (unsigned char *)(uintptr_t)at : NULL;
    }
}

void ptx_load(struct ptx_thread *t, const struct ptx_insn *insn)
{
    uint32_t size = (uint32_t)ptx_size(insn->type);
    const unsigned char *from = place_of(t, insn, size * insn->n_many, false);
    for (uint32_t i = 0; i < insn->n_many; i++) {
        uint64_t bits = 0;
        if (from != NULL) {
            memcpy(&bits, from + (size_t)i * size, size);
        }
        if (insn->type >= T_S8 && insn->type <= T_S64) {
            bits = (uint64_t)((int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size));
        }
        t->reg[insn->many[i]] = bits;
    }
}

void ptx_store(struct ptx_thread *t, const struct ptx_insn *insn)
{
    uint32_t size = (uint32_t)ptx_size(insn->type);
    unsigned char *to = place_of(t, insn, size * insn->n_many, true);
    for (uint32_t i = 0; to != NULL && i < insn->n_many; i++) {
        uint64_t bits = ptx_get(t, insn->many[i]);
        memcpy(to + (size_t)i * size, &bits, size);
    }
}

/* All that the block has written so far is fenced, by who wrote it, before a barrier that the thread has passed. */
static bool is_released(const struct ptx_thread *t)
{
    for (uint32_t i = 0; i < ptx_block.n_threads; i++) {
        const struct ptx_thread *one = &ptx_block.threads[i];
        if (one->has_unfenced || (one != t && one->wrote_at > t->barriers)) {
            return false;
        }
    }
    return true;
}

void ptx_atomic_add(struct ptx_thread *t, const struct ptx_insn *insn)
{
    uint64_t at = ptx_get(t, insn->op[1]) + (uint64_t)insn->offset;
    uint32_t value = 0;
    if (at % sizeof(value) != 0 || find(at, sizeof(value)) == NULL) {
        ptx_found(insn, "atomic addition out of bounds or misaligned");
        return;
    }
    unsigned char *place = (unsigned char *)(uintptr_t)at;
    memcpy(&value, place, sizeof(value));
    t->reg[insn->op[0]] = value;
    value += (uint32_t)ptx_get(t, insn->op[2]);
    memcpy(place, &value, sizeof(value));
    for (size_t i = 0; i < releases.n; i++) {
        if (releases.items[i].at == at) {
            known[releases.items[i].block] = ptx_block.idx + 1;
        }
    }
    if (is_released(t)) {
        VEC_PUSH(&releases, ((struct release){at, ptx_block.idx}));
    }
}

void ptx_fence(struct ptx_thread *t, const struct ptx_insn *insn UNUSED)
{
    t->has_unfenced = false;
}
