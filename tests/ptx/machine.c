/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks one after another, in random order; a block's threads, in random order, each until it waits for others. */
#include "base/base.h"

#include "base/rng.h"
#include "core/half.h"
#include "tests/ptx/ptx.h"

struct ptx_block ptx_block;
static struct rng rng;
static struct ptx_thread threads[PTX_THREADS_MAX];
static uint64_t *frames;
static size_t n_frames;
static unsigned char *locals;
static size_t n_locals;
static unsigned char *shared;
static size_t n_shared;

void ptx_seed(uint64_t seed)
{
    rng_init(&rng, seed);
}

static const struct ptx_insn *at(const struct ptx_thread *t)
{
    return &t->kernel->code.items[t->pc];
}

/* --- a thread ------------------------------------------------------------------------------------------ */
static uint32_t mask_of(const struct ptx_thread *t, const struct ptx_insn *insn)
{
    switch (insn->kind) {
    case SHUFFLE: /* result, value, lane, clamp, mask */
        return (uint32_t)ptx_get(t, insn->op[4]);
    case BALLOT:
        return (uint32_t)ptx_get(t, insn->op[2]);
    case SYNC_WARP:
        return (uint32_t)ptx_get(t, insn->op[0]);
    default:
        return UINT32_MAX;
    }
}

static uint64_t run(struct ptx_thread *t)
{
    const struct ptx_insn *code = t->kernel->code.items;
    for (uint64_t n = 1;; n++) {
        const struct ptx_insn *insn = &code[t->pc];
        if (insn->guard >= 0 && (t->reg[insn->guard] & 1) == insn->guard_is_inverted) {
            t->pc++;
        } else if (insn->kind == RUN) {
            insn->run(t, insn);
            t->pc++;
        } else if (insn->kind == BRANCH) {
            t->pc = insn->target;
        } else if (insn->kind == EXIT) {
            t->state = GONE;
            return n;
        } else {
            t->state = insn->kind >= BARRIER ? AT_BLOCK : AT_WARP;
            t->mask = mask_of(t, insn);
            return n;
        }
    }
}

/* --- a warp ------------------------------------------------------------------------------------------ */
static void shuffle(struct ptx_thread *warp, uint32_t mask)
{
    uint64_t value[PTX_WARP];
    for (uint32_t lane = 0; lane < PTX_WARP; lane++) {
        if ((mask >> lane & 1) != 0) {
            value[lane] = ptx_get(&warp[lane], at(&warp[lane])->op[1]);
        }
    }
    for (uint32_t lane = 0; lane < PTX_WARP; lane++) {
        if ((mask >> lane & 1) == 0) {
            continue;
        }
        struct ptx_thread *t = &warp[lane];
        const struct ptx_insn *insn = at(t);
        uint32_t clamp = (uint32_t)ptx_get(t, insn->op[3]);
        uint32_t segment = clamp >> 8 & 31;
        uint32_t most = (lane & segment) | (clamp & 31 & ~segment);
        uint32_t from = lane ^ ((uint32_t)ptx_get(t, insn->op[2]) & 31);
        bool is_there = from <= most;
        from = is_there ? from : lane;
        if ((mask >> from & 1) == 0) {
            ptx_found(insn, "a shuffle reads a lane that is not in its mask");
            continue;
        }
        t->reg[insn->op[0]] = value[from];
        if (insn->second >= 0) {
            t->reg[insn->second] = is_there;
        }
    }
}

static void ballot(struct ptx_thread *warp, uint32_t mask)
{
    uint32_t votes = 0;
    for (uint32_t lane = 0; lane < PTX_WARP; lane++) {
        if ((mask >> lane & 1) != 0) {
            votes |= (uint32_t)(ptx_get(&warp[lane], at(&warp[lane])->op[1]) & 1) << lane;
        }
    }
    for (uint32_t lane = 0; lane < PTX_WARP; lane++) {
        if ((mask >> lane & 1) != 0) {
            warp[lane].reg[at(&warp[lane])->op[0]] = votes;
        }
    }
}

/* A matrix of 16 by 16: which thread holds which element is up to the machine. Here lane i / 8 has element i, in its register i % 8 of a
   matrix of floats, in half of its register i % 8 / 2 of one in half precision. */
#define SIDE     16
#define ELEMENTS (SIDE * SIDE)
#define A_LANE   8

static uint64_t matrix_at(const struct ptx_thread *t, uint32_t size)
{
    const struct ptx_insn *insn = at(t);
    uint64_t place = ptx_get(t, insn->op[0]) + (uint64_t)insn->offset;
    if (insn->space == IN_ANY) {
        place -= (uint64_t)(uintptr_t)ptx_block.shared;
        if (place >= ptx_block.shared_bytes) {
            ptx_die("%.*s: a matrix that is not in shared memory: %.*s", STR_ARG(t->kernel->name),
                    STR_ARG(insn->text));
        }
    }
    /* The manual's requirements for the address and the stride. */
    if (place % 32 != 0) {
        ptx_found(insn, "wmma: an address that is no multiple of 32 bytes");
    }
    if ((uint32_t)ptx_get(t, insn->op[1]) * size % 32 != 0) {
        ptx_found(insn, "wmma: a stride that is no multiple of 32 bytes");
    }
    return place;
}

static void wmma_move(struct ptx_thread *warp, bool is_load)
{
    const struct ptx_insn *insn = at(&warp[0]);
    uint32_t size = is_load ? 2 : 4;
    uint64_t base = matrix_at(&warp[0], size);
    uint32_t stride = (uint32_t)ptx_get(&warp[0], insn->op[1]);
    for (uint32_t lane = 1; lane < PTX_WARP; lane++) {
        if (matrix_at(&warp[lane], size) != base ||
            (uint32_t)ptx_get(&warp[lane], insn->op[1]) != stride) {
            ptx_found(insn, "wmma: lanes differ in address or stride");
        }
    }
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        uint32_t row = i / SIDE;
        uint32_t column = i % SIDE;
        uint64_t place =
            base + (uint64_t)size * (insn->mode != 0 ? (uint64_t)column * stride + row
                                                     : (uint64_t)row * stride + column);
        struct ptx_thread *t = &warp[i / A_LANE];
        if (!ptx_see_shared(t, insn, place, size, !is_load)) {
            return;
        }
        if (is_load) {
            uint16_t bits;
            memcpy(&bits, ptx_block.shared + place, sizeof(bits));
            uint64_t *reg = &t->reg[insn->many[i % A_LANE / 2]];
            *reg = i % 2 == 0 ? bits : *reg | (uint64_t)bits << 16;
        } else {
            uint32_t bits = (uint32_t)ptx_get(t, insn->many[i % A_LANE]);
            memcpy(ptx_block.shared + place, &bits, sizeof(bits));
        }
    }
}

/* The registers of an operand: sums, then a, b and what is added, eight each. */
static double factor(const struct ptx_thread *warp, const struct ptx_insn *insn, uint32_t first,
                     uint32_t i)
{
    uint64_t pair = ptx_get(&warp[i / A_LANE], insn->many[first + i % A_LANE / 2]);
    return (double)half_to_float((uint16_t)(pair >> (i % 2 * 16)));
}

static void wmma_multiply(struct ptx_thread *warp)
{
    const struct ptx_insn *insn = at(&warp[0]);
    double a[ELEMENTS];
    double b[ELEMENTS];
    float sum[ELEMENTS];
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        a[i] = factor(warp, insn, 8, i);
        b[i] = factor(warp, insn, 16, i);
    }
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        double s = (double)ptx_f32(ptx_get(&warp[i / A_LANE], insn->many[24 + i % A_LANE]));
        for (uint32_t k = 0; k < SIDE; k++) {
            s += a[i / SIDE * SIDE + k] * b[k * SIDE + i % SIDE];
        }
        sum[i] = (float)s;
    }
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        warp[i / A_LANE].reg[insn->many[i % A_LANE]] = ptx_of_f32(sum[i]);
    }
}

static void meet(struct ptx_thread *warp, uint32_t first)
{
    const struct ptx_insn *insn = at(&warp[first]);
    uint32_t mask = warp[first].mask;
    switch (insn->kind) {
    case SHUFFLE:
        shuffle(warp, mask);
        break;
    case BALLOT:
        ballot(warp, mask);
        break;
    case WMMA_LOAD:
    case WMMA_STORE:
        wmma_move(warp, insn->kind == WMMA_LOAD);
        break;
    case WMMA_MMA:
        wmma_multiply(warp);
        break;
    default:
        break;
    }
    for (uint32_t lane = 0; lane < PTX_WARP; lane++) {
        if ((mask >> lane & 1) != 0) {
            warp[lane].pc++;
            warp[lane].state = READY;
            /* Only the barrier orders memory. */
            warp[lane].meetings =
                (uint16_t)(warp[lane].meetings + (insn->kind == SYNC_WARP && mask == UINT32_MAX));
        }
    }
}

/* All lanes of the mask wait at one instruction. */
static bool is_complete(const struct ptx_thread *warp, uint32_t n_lanes, uint32_t lane)
{
    uint32_t mask = warp[lane].mask;
    if ((mask >> lane & 1) == 0) {
        ptx_die("%.*s: a lane that is not in its own mask: %.*s", STR_ARG(warp->kernel->name),
                STR_ARG(at(&warp[lane])->text));
    }
    for (uint32_t i = 0; i < PTX_WARP; i++) {
        if ((mask >> i & 1) == 0) {
            continue;
        }
        if (i >= n_lanes || warp[i].state == GONE) {
            ptx_die("%.*s: waits for lane %u, which is not there: %.*s",
                    STR_ARG(warp->kernel->name), i, STR_ARG(at(&warp[lane])->text));
        }
        if (warp[i].state != AT_WARP || warp[i].pc != warp[lane].pc || warp[i].mask != mask) {
            return false;
        }
    }
    return true;
}

/* False: no thread could run. */
static bool run_warp(struct ptx_thread *warp, uint32_t n_lanes, uint64_t *n_insns)
{
    bool has_run = false;
    for (bool goes_on = true; goes_on;) {
        goes_on = false;
        uint32_t begin = (uint32_t)rng_below(&rng, PTX_WARP);
        for (uint32_t i = 0; i < PTX_WARP; i++) {
            uint32_t lane = (i * 5 + begin) % PTX_WARP;
            if (lane < n_lanes && warp[lane].state == READY) {
                *n_insns += run(&warp[lane]);
                goes_on = true;
            }
        }
        for (uint32_t lane = 0; lane < n_lanes; lane++) {
            if (warp[lane].state == AT_WARP && is_complete(warp, n_lanes, lane)) {
                meet(warp, lane);
                goes_on = true;
            }
        }
        has_run |= goes_on;
    }
    return has_run;
}

/* --- a block ------------------------------------------------------------------------------------------ */
/* True: threads were released. */
static bool pass_barrier(void)
{
    const struct ptx_thread *first = NULL;
    uint64_t either = 0;
    for (uint32_t i = 0; i < ptx_block.n_threads; i++) {
        const struct ptx_thread *t = &threads[i];
        if (t->state == AT_WARP) {
            ptx_die("%.*s: hangs: thread %u waits for its warp: %.*s", STR_ARG(t->kernel->name), i,
                    STR_ARG(at(t)->text));
        }
        if (t->state != AT_BLOCK) {
            continue;
        }
        first = first != NULL ? first : t;
        if (t->pc != first->pc) {
            ptx_die("%.*s: threads of one block wait at different barriers",
                    STR_ARG(t->kernel->name));
        }
        either |= at(t)->kind == BARRIER_OR ? ptx_get(t, at(t)->op[2]) & 1 : 0;
    }
    if (first == NULL) {
        return false;
    }
    const struct ptx_insn *insn = at(first);
    for (uint32_t i = 0; i < ptx_block.n_threads; i++) {
        struct ptx_thread *t = &threads[i];
        if (t->state != AT_BLOCK) {
            ptx_found(insn, "a barrier that some threads have left the kernel before");
            continue;
        }
        if (insn->kind == BARRIER_OR) {
            t->reg[insn->op[0]] = either;
        }
        t->state = READY;
        t->pc++;
        t->barriers++;
    }
    return true;
}

static void set_special(struct ptx_thread *t, uint32_t idx)
{
    const struct ptx_launch *l = ptx_block.launch;
    uint32_t b = ptx_block.idx;
    const uint32_t values[] = {idx % l->block.x,
                               idx / l->block.x % l->block.y,
                               idx / l->block.x / l->block.y,
                               l->block.x,
                               l->block.y,
                               l->block.z,
                               b % l->grid.x,
                               b / l->grid.x % l->grid.y,
                               b / l->grid.x / l->grid.y,
                               l->grid.x,
                               l->grid.y,
                               l->grid.z,
                               idx % PTX_WARP};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        if (l->kernel->special[i] >= 0) {
            t->reg[l->kernel->special[i]] = values[i];
        }
    }
}

static void *room(void *old, size_t *n, size_t wanted, size_t size)
{
    if (wanted > *n) {
        free(old);
        *n = wanted;
        return xmalloc(wanted * size);
    }
    return old;
}

/* Unwritten memory: NaN in every floating type. */
#define POISON 0xff

static void begin_block(const struct ptx_launch *launch, uint32_t idx)
{
    const struct ptx_kernel *k = launch->kernel;
    uint32_t n = launch->block.x * launch->block.y * launch->block.z;
    ptx_block.idx = idx;
    locals = room(locals, &n_locals, (size_t)n * k->local_bytes + 1, 1);
    memset(locals, POISON, (size_t)n * k->local_bytes + 1);
    memset(shared, POISON, ptx_block.shared_bytes);
    for (uint32_t i = 0; i < n; i++) {
        threads[i] = (struct ptx_thread){.reg = frames + (size_t)i * k->n_registers,
                                         .kernel = k,
                                         .local = locals + (size_t)i * k->local_bytes,
                                         .idx = i};
        set_special(&threads[i], i);
    }
    ptx_memory_begin_block();
}

static void run_block(uint64_t *n_insns)
{
    uint32_t n_warps = (ptx_block.n_threads + PTX_WARP - 1) / PTX_WARP;
    bool goes_on = true;
    while (goes_on) {
        uint32_t begin = (uint32_t)rng_below(&rng, n_warps);
        goes_on = false;
        for (uint32_t i = 0; i < n_warps; i++) {
            uint32_t warp = (begin + i) % n_warps;
            uint32_t rest = ptx_block.n_threads - warp * PTX_WARP;
            goes_on |= run_warp(&threads[(size_t)warp * PTX_WARP],
                                rest < PTX_WARP ? rest : PTX_WARP, n_insns);
        }
        goes_on |= pass_barrier();
    }
}

void ptx_run_launch(const struct ptx_launch *launch)
{
    uint32_t n_blocks = launch->grid.x * launch->grid.y * launch->grid.z;
    uint32_t *order = xmalloc(n_blocks * sizeof(*order));
    struct ptx_kernel *k = launch->kernel;
    ptx_block.launch = launch;
    ptx_block.threads = threads;
    ptx_block.n_threads = launch->block.x * launch->block.y * launch->block.z;
    ptx_block.launch_no++;
    ptx_block.shared_bytes = k->shared_bytes + launch->dynamic_bytes;
    shared = room(shared, &n_shared, ptx_block.shared_bytes + 1, 1);
    ptx_block.shared = shared;
    frames = room(frames, &n_frames, (size_t)ptx_block.n_threads * k->n_registers, sizeof(*frames));
    memset(frames, POISON, (size_t)ptx_block.n_threads * k->n_registers * sizeof(*frames));
    k->n_launches++;
    ptx_memory_begin_launch(n_blocks);
    for (uint32_t i = 0; i < n_blocks; i++) {
        uint32_t place = (uint32_t)rng_below(&rng, i + 1);
        order[i] = order[place];
        order[place] = i;
    }
    for (uint32_t i = 0; i < n_blocks; i++) {
        begin_block(launch, order[i]);
        run_block(&k->n_insns);
    }
    free(order);
}
