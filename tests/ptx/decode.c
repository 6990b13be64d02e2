/* SPDX-License-Identifier: Apache-2.0 */
/* What each opcode does to one thread's registers. Functions that the manual calls approximate are exact to float's rounding here. */
#include "base/base.h"

#include <math.h>

#include "core/half.h"
#include "tests/ptx/ptx.h"

/* --- values ------------------------------------------------------------------------------------------ */
typedef float f32;
typedef double f64;
static inline f64 get_f64(uint64_t bits)
{
    f64 value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}
static inline uint64_t of_f64(f64 value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}
#define get_f32(bits)  ptx_f32(bits)
#define of_f32(value)  ptx_of_f32(value)
#define get_u64(bits)  (bits)
#define of_u64(value)  ((uint64_t)(value))
#define get_s64(bits)  ((int64_t)(bits))
#define of_s64(value)  ((uint64_t)(value))
#define get_u32(bits)  ((uint32_t)(bits))
#define of_u32(value)  ((uint64_t)(uint32_t)(value))
#define get_s32(bits)  ((int32_t)(uint32_t)(bits))
#define of_s32(value)  ((uint64_t)(uint32_t)(value))
#define get_u16(bits)  ((uint16_t)(bits))
#define of_u16(value)  ((uint64_t)(uint16_t)(value))
#define get_s16(bits)  ((int16_t)(uint16_t)(bits))
#define of_s16(value)  ((uint64_t)(uint16_t)(value))
#define get_pred(bits) ((bits)&1)
#define of_pred(value) ((uint64_t)(value)&1)
typedef uint64_t u64;
typedef int64_t s64;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint64_t pred;

/* NAME_TYPE: the result from operands a, b, c of the type. */
#define OP(name, type, expression)                                                                 \
    static void name##_##type(struct ptx_thread *t, const struct ptx_insn *i)                      \
    {                                                                                              \
        type a UNUSED = (type)get_##type(ptx_get(t, i->op[1]));                                    \
        type b UNUSED = (type)get_##type(ptx_get(t, i->op[2]));                                    \
        type c UNUSED = (type)get_##type(ptx_get(t, i->op[3]));                                    \
        t->reg[i->op[0]] = of_##type(expression);                                                  \
    }
/* Shifts count in 32 bits, and further than the type is wide, too. */
#define SHIFT(name, type, expression)                                                              \
    static void name##_##type(struct ptx_thread *t, const struct ptx_insn *i)                      \
    {                                                                                              \
        type a = (type)get_##type(ptx_get(t, i->op[1]));                                           \
        uint32_t n = (uint32_t)ptx_get(t, i->op[2]);                                               \
        uint32_t most = 8 * sizeof(type) - 1;                                                      \
        t->reg[i->op[0]] = of_##type(expression);                                                  \
    }
#define DIVIDE(name, type, operator)                                                               \
    static void name##_##type(struct ptx_thread *t, const struct ptx_insn *i)                      \
    {                                                                                              \
        type a = (type)get_##type(ptx_get(t, i->op[1]));                                           \
        type b = (type)get_##type(ptx_get(t, i->op[2]));                                           \
        if (b == 0) {                                                                              \
            ptx_found(i, "division by zero");                                                      \
        }                                                                                          \
        t->reg[i->op[0]] = b == 0 ? 0 : of_##type(a operator b);                                   \
    }
#define INTEGERS(X) X(u16) X(s16) X(u32) X(s32) X(u64) X(s64)
#define WORDS(X)    X(u16) X(u32) X(u64)

/* Signed sums wrap: they are made without a sign. */
#define ADD(type) OP(add, type, (type)((u64)a + (u64)b))
#define SUB(type) OP(sub, type, (type)((u64)a - (u64)b))
#define MUL(type) OP(mul_lo, type, (type)((u64)a * (u64)b))
#define MAD(type) OP(mad_lo, type, (type)((u64)a * (u64)b + (u64)c))
#define MIN(type) OP(min, type, a < b ? a : b)
#define MAX(type) OP(max, type, a > b ? a : b)
#define SHR(type) SHIFT(shr, type, n > most ? (type)(a < 0 ? -1 : 0) : (type)(a >> n))
#define DIV(type) DIVIDE(div, type, /)
#define REM(type) DIVIDE(rem, type, %)
INTEGERS(ADD)
INTEGERS(SUB)
INTEGERS(MUL)
INTEGERS(MAD)
INTEGERS(MIN)
INTEGERS(MAX)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits" /* one text for types with a sign and without */
INTEGERS(SHR)
#pragma GCC diagnostic pop
INTEGERS(DIV)
INTEGERS(REM)
#define SHL(type) SHIFT(shl, type, n > most ? (type)0 : (type)((u64)a << n))
#define AND(type) OP(and, type, a &b)
#define IOR(type) OP(or, type, a | b)
#define XOR(type) OP(xor, type, a ^ b)
#define NOT(type) OP(not, type, ~a)
WORDS(SHL)
WORDS(AND)
WORDS(IOR)
WORDS(XOR)
WORDS(NOT)
AND(pred)
IOR(pred)
XOR(pred)
NOT(pred)
#define NEG(type) OP(neg, type, (type)(0 - (u64)a))
#define ABS(type) OP(abs, type, (type)(a < 0 ? 0 - (u64)a : (u64)a))
NEG(s16)
NEG(s32)
NEG(s64)
ABS(s32)
ABS(s64)

#define WIDE(name, from, type, expression)                                                         \
    static void name##_##from(struct ptx_thread *t, const struct ptx_insn *i)                      \
    {                                                                                              \
        from a = (from)get_##from(ptx_get(t, i->op[1]));                                           \
        from b = (from)get_##from(ptx_get(t, i->op[2]));                                           \
        t->reg[i->op[0]] = of_##type((type)(expression));                                          \
    }
WIDE(mul_wide, u16, u32, (u32)a *b)
WIDE(mul_wide, s16, s32, (s32)a *b)
WIDE(mul_wide, u32, u64, (u64)a *b)
WIDE(mul_wide, s32, s64, (s64)a *b)
WIDE(mul_hi, u32, u32, ((u64)a * b) >> 32)
WIDE(mul_hi, s32, s32, ((s64)a * b) >> 32)
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;
WIDE(mul_hi, u64, u64, ((u128)a * b) >> 64)
WIDE(mul_hi, s64, s64, ((s128)a * b) >> 64)

#define FLOATS(type, suffix)                                                                       \
    OP(add, type, a + b)                                                                           \
    OP(sub, type, a - b)                                                                           \
    OP(mul, type, a *b)                                                                            \
    OP(div, type, a / b)                                                                           \
    OP(fma, type, fma##suffix(a, b, c))                                                            \
    OP(min, type, fmin##suffix(a, b))                                                              \
    OP(max, type, fmax##suffix(a, b))                                                              \
    OP(neg, type, -a)                                                                              \
    OP(abs, type, fabs##suffix(a))                                                                 \
    OP(rcp, type, 1 / a)                                                                           \
    OP(sqrt, type, sqrt##suffix(a))                                                                \
    OP(copysign, type, copysign##suffix(b, a))
FLOATS(f32, f)
FLOATS(f64, )
OP(rsqrt, f32, (f32)(1 / sqrt((f64)a)))
OP(ex2, f32, exp2f(a))
OP(lg2, f32, log2f(a))
OP(tanh, f32, tanhf(a))
OP(pow, f64, pow(a, b))

/* Rounded down: a double holds the product, and the sum but for its last digits, whose sign decides. */
static f32 fma_down(f32 a, f32 b, f32 c)
{
    f64 product = (f64)a * (f64)b;
    f64 third = (f64)c;
    f64 sum = product + third;
    f64 rest = fabs(product) > fabs(third) ? third - (sum - product) : product - (sum - third);
    f32 near = (f32)sum;
    bool is_above = (f64)near > sum || ((f64)near >= sum && rest < 0);
    return is_above ? nextafterf(near, -INFINITY) : near;
}
OP(fma_rm, f32, fma_down(a, b, c))

static void bfe_u32(struct ptx_thread *t, const struct ptx_insn *i)
{
    uint64_t from = ptx_get(t, i->op[2]) & 0xff;
    uint64_t n = ptx_get(t, i->op[3]) & 0xff;
    uint64_t bits = from > 31 ? 0 : (uint32_t)ptx_get(t, i->op[1]) >> from;
    t->reg[i->op[0]] = n > 31 ? bits : bits & ((1ULL << n) - 1);
}
static void bfe_u64(struct ptx_thread *t, const struct ptx_insn *i)
{
    uint64_t from = ptx_get(t, i->op[2]) & 0xff;
    uint64_t n = ptx_get(t, i->op[3]) & 0xff;
    uint64_t bits = from > 63 ? 0 : ptx_get(t, i->op[1]) >> from;
    t->reg[i->op[0]] = n > 63 ? bits : bits & ((1ULL << n) - 1);
}
static void popc_u32(struct ptx_thread *t, const struct ptx_insn *i)
{
    t->reg[i->op[0]] = (uint64_t)__builtin_popcount((uint32_t)ptx_get(t, i->op[1]));
}
static void choose(struct ptx_thread *t, const struct ptx_insn *i)
{
    t->reg[i->op[0]] = ptx_get(t, i->op[(ptx_get(t, i->op[3]) & 1) != 0 ? 1 : 2]);
}
/* --- moves ------------------------------------------------------------------------------------------ */
static void move(struct ptx_thread *t, const struct ptx_insn *i)
{
    uint64_t bits = 0;
    if (i->n_many == 0) {
        t->reg[i->op[0]] = ptx_get(t, i->op[1]);
        return;
    }
    int width = 8 * ptx_size(i->type) / i->n_many;
    uint64_t mask = (1ULL << width) - 1;
    for (int n = 0; n < i->n_many; n++) {
        if (i->mode != 0) {
            t->reg[i->many[n]] = ptx_get(t, i->op[1]) >> (n * width) & mask;
        } else {
            bits |= (ptx_get(t, i->many[n]) & mask) << (n * width);
        }
    }
    if (i->mode == 0) {
        t->reg[i->op[0]] = bits;
    }
}

/* A generic address of shared memory is the host's; its offset is what instructions of that space use. */
static void shared_to_generic(struct ptx_thread *t, const struct ptx_insn *i)
{
    t->reg[i->op[0]] = (uint64_t)(uintptr_t)ptx_block.shared + ptx_get(t, i->op[1]);
}
static void local_to_generic(struct ptx_thread *t, const struct ptx_insn *i)
{
    t->reg[i->op[0]] = (uint64_t)(uintptr_t)t->local + ptx_get(t, i->op[1]);
}

/* --- comparisons ------------------------------------------------------------------------------------------ */
static const char *const COMPARISONS[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ", "neu",
                                          "ltu", "leu", "gtu", "geu", "num", "nan", NULL};
/* By the three ways that two numbers can lie, and the fourth that one is none. */
static bool holds(int comparison, bool is_less, bool is_equal, bool is_unordered)
{
    if (comparison >= 12) {
        return is_unordered == (comparison == 13);
    }
    if (is_unordered) {
        return comparison >= 6;
    }
    switch (comparison % 6) {
    case 0:
        return is_equal;
    case 1:
        return !is_equal;
    case 2:
        return is_less;
    case 3:
        return is_less || is_equal;
    case 4:
        return !is_less && !is_equal;
    default:
        return !is_less;
    }
}
#define COMPARE(type, unordered)                                                                   \
    static void setp_##type(struct ptx_thread *t, const struct ptx_insn *i)                        \
    {                                                                                              \
        type a = (type)get_##type(ptx_get(t, i->op[1]));                                           \
        type b = (type)get_##type(ptx_get(t, i->op[2]));                                           \
        t->reg[i->op[0]] = holds(i->mode, a < b, a == b, unordered);                               \
    }
#define COMPARE_INTEGERS(type) COMPARE(type, false)
INTEGERS(COMPARE_INTEGERS)
COMPARE(f32, isnan(a) || isnan(b))
COMPARE(f64, isnan(a) || isnan(b))

/* --- conversions ------------------------------------------------------------------------------------------ */
enum rounding { NEAREST, TO_ZERO, DOWN, UP };
static double rounded(double x, int how)
{
    return how == NEAREST   ? nearbyint(x)
           : how == TO_ZERO ? trunc(x)
           : how == DOWN    ? floor(x)
                            : ceil(x);
}

static bool is_float(int type)
{
    return type == T_F16 || type == T_F32 || type == T_F64;
}
static bool is_signed(int type)
{
    return type >= T_S8 && type <= T_S64;
}

static uint64_t extended(uint64_t bits, int type)
{
    int unused = 64 - 8 * ptx_size((enum ptx_type)type);
    return is_signed(type) ? (uint64_t)((int64_t)(bits << unused) >> unused)
                           : bits << unused >> unused;
}

static uint64_t cut(uint64_t bits, int type)
{
    int unused = 64 - 8 * ptx_size((enum ptx_type)type);
    return bits << unused >> unused;
}

static double double_of(uint64_t bits, int type)
{
    return type == T_F64     ? get_f64(bits)
           : type == T_F32   ? (double)get_f32(bits)
           : type == T_F16   ? (double)half_to_float((uint16_t)bits)
           : is_signed(type) ? (double)(int64_t)extended(bits, type)
                             : (double)extended(bits, type);
}

/* Out of range is the nearest that there is, and no number 0. */
static uint64_t integer_of(double x, int type)
{
    int n = 8 * ptx_size((enum ptx_type)type) - is_signed(type);
    double end = ldexp(1.0, n);
    if (isnan(x)) {
        return 0;
    }
    if (x >= end) {
        return n == 64 ? UINT64_MAX : (1ULL << n) - 1;
    }
    if (is_signed(type)) {
        return cut((uint64_t)(x < -end ? (int64_t)-end : (int64_t)x), type);
    }
    return x < 0 ? 0 : (uint64_t)x;
}

/* A 64-bit number is rounded to float at once: by way of double it would be twice. */
static f32 float_of(uint64_t bits, int type)
{
    return type == T_S64   ? (f32)(int64_t)bits
           : type == T_U64 ? (f32)bits
                           : (f32)double_of(bits, type);
}

static void convert(struct ptx_thread *t, const struct ptx_insn *i)
{
    uint64_t bits = ptx_get(t, i->op[1]);
    uint64_t result;
    if (!is_float(i->type) && !is_float(i->from_type)) {
        result = cut(extended(bits, i->from_type), i->type);
    } else if (is_float(i->type) && !is_float(i->from_type)) {
        result = i->type == T_F64   ? of_f64(double_of(bits, i->from_type))
                 : i->type == T_F32 ? of_f32(float_of(bits, i->from_type))
                                    : half_from_float(float_of(bits, i->from_type));
    } else {
        double x = double_of(bits, i->from_type);
        x = i->is_integral ? rounded(x, i->mode) : x;
        x = !i->is_saturated ? x : isnan(x) || x < 0 ? 0 : x > 1 ? 1 : x;
        result = i->type == T_F64   ? of_f64(x)
                 : i->type == T_F32 ? of_f32((f32)x)
                 : i->type == T_F16 ? half_from_float((f32)x)
                                    : integer_of(x, i->type);
    }
    t->reg[i->op[0]] = result;
}

/* --- names ------------------------------------------------------------------------------------------ */
/* "b" types have no sign: they are looked up as "u". */
#define ROW(name, text, type)                                                                      \
    {                                                                                              \
        text "." #type, name##_##type                                                              \
    }
#define OF_INTEGERS(type)                                                                          \
    ROW(add, "add", type), ROW(sub, "sub", type), ROW(mul_lo, "mul.lo", type),                     \
        ROW(mad_lo, "mad.lo", type), ROW(min, "min", type), ROW(max, "max", type),                 \
        ROW(shr, "shr", type), ROW(div, "div", type), ROW(rem, "rem", type),
#define OF_WORDS(type)                                                                             \
    ROW(shl, "shl", type), ROW(and, "and", type), ROW(or, "or", type), ROW(xor, "xor", type),      \
        ROW(not, "not", type),
#define OF_FLOATS(type)                                                                            \
    ROW(add, "add", type), ROW(sub, "sub", type), ROW(mul, "mul", type), ROW(div, "div", type),    \
        ROW(fma, "fma", type), ROW(min, "min", type), ROW(max, "max", type),                       \
        ROW(neg, "neg", type), ROW(abs, "abs", type), ROW(rcp, "rcp", type),                       \
        ROW(sqrt, "sqrt", type), ROW(copysign, "copysign", type),
static const struct {
    const char *name;
    ptx_run run;
} RUNS[] = {
    INTEGERS(OF_INTEGERS) WORDS(OF_WORDS) OF_FLOATS(f32) OF_FLOATS(f64) ROW(and, "and", pred),
    ROW(or, "or", pred),
    ROW(xor, "xor", pred),
    ROW(not, "not", pred),
    ROW(neg, "neg", s16),
    ROW(neg, "neg", s32),
    ROW(neg, "neg", s64),
    ROW(abs, "abs", s32),
    ROW(abs, "abs", s64),
    ROW(mul_wide, "mul.wide", u16),
    ROW(mul_wide, "mul.wide", s16),
    ROW(mul_wide, "mul.wide", u32),
    ROW(mul_wide, "mul.wide", s32),
    ROW(mul_hi, "mul.hi", u32),
    ROW(mul_hi, "mul.hi", s32),
    ROW(mul_hi, "mul.hi", u64),
    ROW(mul_hi, "mul.hi", s64),
    ROW(rsqrt, "rsqrt", f32),
    ROW(ex2, "ex2", f32),
    ROW(lg2, "lg2", f32),
    ROW(tanh, "tanh", f32),
    ROW(pow, "pow", f64),
    ROW(fma_rm, "fma.rm", f32),
    ROW(bfe, "bfe", u32),
    ROW(bfe, "bfe", u64),
    ROW(popc, "popc", u32),
    {"membar.gl", ptx_fence},
    {"cvta.shared.u64", shared_to_generic},
    {"cvta.local.u64", local_to_generic},
    {"cvta.to.global.u64", move},
    {"atom.global.add.u32", ptx_atomic_add},
};
static const struct {
    const char *name;
    enum ptx_kind kind;
} WAITS[] = {
    {"bra", BRANCH},
    {"ret", EXIT},
    {"exit", EXIT},
    {"bar.sync", BARRIER},
    {"bar.red.or.pred", BARRIER_OR},
    {"shfl.sync.bfly.u32", SHUFFLE},
    {"vote.sync.ballot.u32", BALLOT},
    {"bar.warp.sync", SYNC_WARP},
};
static const char *const TYPES[] = {"u8",  "u16", "u32", "u64", "s8",   "s16", "s32",
                                    "s64", "f16", "f32", "f64", "pred", NULL};
#define PARTS_MAX 12

static int place_of(struct str word, const char *const *list)
{
    for (int i = 0; list[i] != NULL; i++) {
        if (str_eq_z(word, list[i])) {
            return i;
        }
    }
    return -1;
}

static int type_of(struct str word)
{
    static const char *const bits[] = {"b8", "b16", "b32", "b64", NULL};
    int place = place_of(word, bits);
    return place >= 0 ? place : place_of(word, TYPES);
}

static bool decode_cvt(const struct str *parts, int n, struct ptx_insn *insn)
{
    static const char *const integral[] = {"rni", "rzi", "rmi", "rpi", NULL};
    int to = type_of(parts[n - 2]);
    int from = type_of(parts[n - 1]);
    for (int i = 1; i < n - 2; i++) {
        int how = place_of(parts[i], integral);
        insn->is_integral |= how >= 0;
        insn->mode = how >= 0 ? (uint8_t)how : insn->mode;
        insn->is_saturated |= str_eq_z(parts[i], "sat");
        if (how < 0 && !str_eq_z(parts[i], "sat")) {
            return false;
        }
    }
    insn->type = (uint8_t)to;
    insn->from_type = (uint8_t)from;
    insn->run = convert;
    /* Only floats saturate to 0 and 1, and a float becomes a whole number by a rounding that is named. */
    return to >= 0 && from >= 0 && (!insn->is_saturated || is_float(to)) &&
           (!is_float(from) || is_float(to) || insn->is_integral);
}

static bool decode_access(const struct str *parts, int n, struct ptx_insn *insn)
{
    static const char *const spaces[] = {"param", "global", "shared", "local", NULL};
    int at = 1;
    int space = n > 2 ? place_of(parts[1], spaces) : -1;
    insn->space = space >= 0 ? (uint8_t)space : IN_ANY;
    at += space >= 0;
    at += n > at && (str_eq_z(parts[at], "v2") || str_eq_z(parts[at], "v4"));
    int type = at == n - 1 ? type_of(parts[at]) : -1;
    insn->type = (uint8_t)type;
    insn->run = str_eq_z(parts[0], "ld") ? ptx_load : ptx_store;
    return type >= 0;
}

/* m16n16k16 with factors in half precision and sums in float: what this project's kernels use. */
static bool decode_wmma(struct str opcode, const struct str *parts, int n, struct ptx_insn *insn)
{
    bool is_load = n > 2 && str_eq_z(parts[1], "load");
    bool is_store = n > 2 && str_eq_z(parts[1], "store");
    bool is_shaped = str_find(opcode, STR_LIT(".m16n16k16.")) > 0;
    insn->space = str_find(opcode, STR_LIT(".shared.")) > 0 ? IN_SHARED : IN_ANY;
    if (is_load || is_store) {
        insn->kind = is_load ? WMMA_LOAD : WMMA_STORE;
        insn->mode = str_find(opcode, STR_LIT(".col.")) > 0;
        insn->type = is_load ? T_F16 : T_F32;
        return is_shaped && str_ends(opcode, is_load ? STR_LIT(".f16") : STR_LIT(".f32")) &&
               (is_store || !str_eq_z(parts[2], "c"));
    }
    insn->kind = WMMA_MMA;
    return is_shaped && str_starts(opcode, STR_LIT("wmma.mma.sync.aligned.")) &&
           str_ends(opcode, STR_LIT(".m16n16k16.f32.f32"));
}

static bool decode_plain(const struct str *parts, int n, struct ptx_insn *insn)
{
    char name[64];
    size_t len = 0;
    for (int i = 0; i < n; i++) {
        bool is_bits = i == n - 1 && i > 0 && parts[i].len > 1 && parts[i].ptr[0] == 'b' &&
                       type_of(parts[i]) >= 0;
        struct str part = is_bits ? str_of(TYPES[type_of(parts[i])]) : parts[i];
        int more =
            snprintf(name + len, sizeof(name) - len, "%s%.*s", i > 0 ? "." : "", STR_ARG(part));
        len += (size_t)more;
        if (len >= sizeof(name)) {
            return false;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(WAITS); i++) {
        if (strcmp(WAITS[i].name, name) == 0) {
            insn->kind = (uint8_t)WAITS[i].kind;
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(RUNS); i++) {
        if (strcmp(RUNS[i].name, name) == 0) {
            insn->run = RUNS[i].run;
            return true;
        }
    }
    return false;
}

static bool decode_setp(const struct str *parts, int n, struct ptx_insn *insn)
{
    static const ptx_run runs[T_COUNT] = {
        [T_U16] = setp_u16, [T_U32] = setp_u32, [T_U64] = setp_u64, [T_S16] = setp_s16,
        [T_S32] = setp_s32, [T_S64] = setp_s64, [T_F32] = setp_f32, [T_F64] = setp_f64,
    };
    int comparison = n == 3 ? place_of(parts[1], COMPARISONS) : -1;
    int type = n == 3 ? type_of(parts[2]) : -1;
    insn->mode = (uint8_t)comparison;
    insn->run = type >= 0 ? runs[type] : NULL;
    return comparison >= 0 && insn->run != NULL;
}

bool ptx_decode(struct str opcode, struct ptx_insn *insn)
{
    /* To the nearest is what is done; flushing and approximating are left out. */
    static const char *const ignored[] = {"rn", "approx", "ftz", "full", "uni", NULL};
    struct str parts[PARTS_MAX];
    struct str rest = opcode;
    struct str part;
    int n = 0;
    while (n < PARTS_MAX && str_next(&rest, '.', &part)) {
        if (!str_eq_any(part, ignored)) {
            parts[n++] = part;
        }
    }
    insn->kind = RUN;
    if (n == 0) {
        return false;
    }
    if (str_eq_z(parts[0], "cvt")) {
        return n >= 3 && decode_cvt(parts, n, insn);
    }
    if (str_eq_z(parts[0], "ld") || str_eq_z(parts[0], "st")) {
        return n >= 2 && decode_access(parts, n, insn);
    }
    if (str_eq_z(parts[0], "wmma")) {
        return decode_wmma(opcode, parts, n, insn);
    }
    if (str_eq_z(parts[0], "setp")) {
        return decode_setp(parts, n, insn);
    }
    if (n == 2 && (str_eq_z(parts[0], "mov") || str_eq_z(parts[0], "selp")) &&
        type_of(parts[1]) >= 0) {
        insn->type = (uint8_t)type_of(parts[1]);
        insn->run = str_eq_z(parts[0], "mov") ? move : choose;
        return true;
    }
    return decode_plain(parts, n, insn);
}
