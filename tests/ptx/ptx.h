/* SPDX-License-Identifier: Apache-2.0 */
/* A machine for PTX: nvcc's output for the kernels, decoded from its text and run thread by thread on the CPU. Written from NVIDIA's
   manual "Parallel Thread Execution ISA", version 9.0. One OS thread does everything; nothing is freed before the program ends. */
#pragma once

#include "base/map.h"
#include "base/vec.h"

#define PTX_WARP        32
#define PTX_THREADS_MAX 1024
#define PTX_SHARED_FREE 49152 /* bytes of shared memory that need no opt-in */

enum ptx_type {
    T_U8,
    T_U16,
    T_U32,
    T_U64,
    T_S8,
    T_S16,
    T_S32,
    T_S64,
    T_F16,
    T_F32,
    T_F64,
    T_PRED,
    T_COUNT
};
static inline int ptx_size(enum ptx_type type)
{
    static const uint8_t size[T_COUNT] = {1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 1};
    return size[type];
}

enum ptx_kind {
    RUN, /* insn.run does it */
    BRANCH,
    EXIT,
    /* Where a warp's lanes wait for one another. */
    SHUFFLE,
    BALLOT,
    SYNC_WARP,
    WMMA_LOAD,
    WMMA_STORE,
    WMMA_MMA,
    /* Where a block's threads wait for one another. */
    BARRIER,
    BARRIER_OR,
};
enum ptx_space { IN_PARAM, IN_GLOBAL, IN_SHARED, IN_LOCAL, IN_ANY };

struct ptx_thread;
struct ptx_insn;
typedef void (*ptx_run)(struct ptx_thread *thread, const struct ptx_insn *insn);

/* An operand is a register's number, or ~i of constant i. A register's bits above those of the type read are ignored. */
struct ptx_insn {
    ptx_run run;
    uint8_t kind, type, from_type, space;
    uint8_t mode; /* a comparison, a rounding, whether a matrix lies by columns: see decode.c */
    uint8_t n_many;
    bool is_saturated, is_integral, guard_is_inverted;
    int32_t guard;   /* a predicate, or -1 */
    int32_t target;  /* of a branch */
    int32_t op[5];   /* result, operands */
    int32_t second;  /* of two results, or -1 */
    int32_t *many;   /* a vector's elements, a fragment's registers */
    int64_t offset;  /* offset added to an address */
    struct str text; /* as written in the file */
};

struct ptx_param {
    uint32_t offset, bytes;
};
struct ptx_kernel {
    struct str name; /* mangled, as the runtime is told it */
    struct ptx_module *module;
    VEC(struct ptx_insn) code;
    VEC(uint64_t) constants;
    VEC(struct ptx_param) params;
    uint32_t param_bytes, shared_bytes, local_bytes, n_registers, threads_max;
    int32_t special[16]; /* registers of PTX_SPECIALS, or -1 */
    uint64_t n_launches, n_insns;
};
extern const char *const PTX_SPECIALS[]; /* %tid.x ...; NULL at the end */

struct ptx_range {
    unsigned char *ptr;
    size_t bytes;
    void **shadow;
};
struct ptx_module {
    struct str name;
    struct map kernels; /* struct ptx_kernel by name */
    VEC(struct ptx_range) globals;
};

/* parse.c: the text of a file, borrowed for good; unknown text ends the program. */
struct ptx_module *ptx_parse(struct str name, struct str text);
/* decode.c: one statement's opcode. False: unknown. Sets insn->run and everything that follows from the opcode. */
bool ptx_decode(struct str opcode, struct ptx_insn *insn);

/* --- running ------------------------------------------------------------------------------------- */
struct ptx_dim {
    unsigned x, y, z;
};
struct ptx_launch {
    struct ptx_kernel *kernel;
    struct ptx_dim grid, block;
    uint32_t dynamic_bytes;
    unsigned char *params;
};
enum ptx_state { READY, AT_WARP, AT_BLOCK, GONE };
struct ptx_thread {
    uint64_t *reg;
    const struct ptx_kernel *kernel;
    unsigned char *local;
    uint32_t idx; /* in its block */
    int32_t pc;
    enum ptx_state state;
    uint32_t mask; /* of the lanes it waits for */
    uint16_t barriers,
        meetings;      /* how many of its block's barriers, of its warp's, it has passed */
    uint16_t wrote_at; /* barriers, when it last wrote global memory */
    bool has_unfenced; /* has written global memory since its last fence */
};
static inline uint64_t ptx_get(const struct ptx_thread *t, int32_t operand)
{
    return operand >= 0 ? t->reg[operand] : t->kernel->constants.items[~operand];
}
static inline float ptx_f32(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof(value));
    return value;
}
static inline uint64_t ptx_of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* The block that runs. */
struct ptx_block {
    const struct ptx_launch *launch;
    struct ptx_thread *threads;
    uint32_t n_threads, idx, launch_no;
    unsigned char *shared;
    uint32_t shared_bytes;
};
extern struct ptx_block ptx_block;

/* machine.c: all blocks, in an order of its own. */
void ptx_run_launch(const struct ptx_launch *launch);
void ptx_seed(uint64_t seed);

/* memory.c */
void ptx_load(struct ptx_thread *thread, const struct ptx_insn *insn);
void ptx_store(struct ptx_thread *thread, const struct ptx_insn *insn);
void ptx_atomic_add(struct ptx_thread *thread, const struct ptx_insn *insn);
void ptx_fence(struct ptx_thread *thread, const struct ptx_insn *insn);
/* Checks one access to shared memory; false if it is outside. */
bool ptx_see_shared(const struct ptx_thread *thread, const struct ptx_insn *insn, uint64_t at,
                    uint32_t bytes, bool is_write);
void ptx_memory_begin_launch(uint32_t n_blocks);
void ptx_memory_begin_block(void);
void ptx_add_global(struct ptx_range range); /* a module's own variable */

/* runtime.c: a fault of a kernel, printed once and counted; the program's status is then PTX_STATUS. */
void ptx_found(const struct ptx_insn *insn, const char *what);
_Noreturn void ptx_die(const char *format, ...) PRINTF_LIKE(1, 2);
#define PTX_STATUS 3
