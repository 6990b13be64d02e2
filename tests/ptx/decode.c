/* SPDX-License-Identifier: Apache-2.0 */
/* What each opcode does to one thread's registers. Functions that the manual calls approximate are exact to float's rounding here. */
#include "base/base.h"

#include <tgmath.h>

#include "core/half.h"
#include "tests/ptx/ptx.h"

/* --- values ------------------------------------------------------------------------------------------ */
typedef uint64_t u64;
typedef int64_t s64;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint16_t u16;
typedef int16_t s16;
typedef float f32;
typedef double f64;
typedef uint8_t pred; /* its lowest bit */
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;
/* A register as each type sees it. */
union word {
    u64 bits, u64;
    s64 s64;
    u32 u32;
    s32 s32;
    u16 u16;
    s16 s16;
    f32 f32;
    f64 f64;
    pred pred;
};
#define OPERAND(type, place) (((union word){.bits = ptx_get(t, i->op[place])}).type)

static u64 by_zero(const struct ptx_insn *i)
{
    ptx_found(i, "division by zero");
    return 0;
}

/* A comparison is the set of orderings that satisfy it: less 1, equal 2, greater 4, unordered 8. */
static const char *const COMPARISONS[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ", "neu",
                                          "ltu", "leu", "gtu", "geu", "num", "nan", NULL};
static const uint8_t PASSES[] = {2, 5, 1, 3, 4, 6, 10, 13, 9, 11, 12, 14, 7, 8};
#define HOLDS(a, b, is_unordered)                                                                  \
    ((i->mode & ((is_unordered) ? 8 : (a) < (b) ? 1 : (a) == (b) ? 2 : 4)) != 0)

/* Rounded down: a double holds the product, and the sum except for its last digits, whose sign decides. */
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

static u64 field(u64 bits, u64 from, u64 n)
{
    bits = (from & 0xff) > 63 ? 0 : bits >> (from & 0xff);
    return (n & 0xff) > 63 ? bits : bits & ((1ULL << (n & 0xff)) - 1);
}

/* --- what is computed: name, type, type of the result, and the result from the operands a, b and c -------- */
/* Signed sums wrap: they are computed unsigned. Shifts count in 32 bits, even beyond the type's width. */
#define INTEGER_OPS(X, T)                                                                          \
    X(add, T, T, (u64)a + (u64)b)                                                                  \
    X(sub, T, T, (u64)a - (u64)b)                                                                  \
    X(mul_lo, T, T, (u64)a *(u64)b)                                                                \
    X(mad_lo, T, T, (u64)a *(u64)b + (u64)c)                                                       \
    X(min, T, T, a < b ? a : b)                                                                    \
    X(max, T, T, a > b ? a : b)                                                                    \
    X(shr, T, T, n > most ? a >> most >> 1 : a >> n)                                               \
    X(div, T, T, b == 0 ? (T)by_zero(i) : a / b)                                                   \
    X(rem, T, T, b == 0 ? (T)by_zero(i) : a % b)                                                   \
    X(setp, T, pred, HOLDS(a, b, false))
#define SIGNED_OPS(X, T)                                                                           \
    X(neg, T, T, 0 - (u64)a)                                                                       \
    X(abs, T, T, a < 0 ? 0 - (u64)a : (u64)a)
#define LOGIC_OPS(X, T)                                                                            \
    X(and, T, T, a &b)                                                                             \
    X(or, T, T, a | b)                                                                             \
    X(xor, T, T, a ^ b)                                                                            \
    X(not, T, T, ~a)
#define FLOAT_OPS(X, T)                                                                            \
    X(add, T, T, a + b)                                                                            \
    X(sub, T, T, a - b)                                                                            \
    X(mul, T, T, a *b)                                                                             \
    X(div, T, T, a / b)                                                                            \
    X(fma, T, T, fma(a, b, c))                                                                     \
    X(min, T, T, fmin(a, b))                                                                       \
    X(max, T, T, fmax(a, b))                                                                       \
    X(neg, T, T, -a)                                                                               \
    X(abs, T, T, fabs(a))                                                                          \
    X(rcp, T, T, 1 / a)                                                                            \
    X(sqrt, T, T, sqrt(a))                                                                         \
    X(copysign, T, T, copysign(b, a))                                                              \
    X(setp, T, pred, HOLDS(a, b, isnan(a) || isnan(b)))
#define OTHER_OPS(X)                                                                               \
    X(shl, u16, u16, n > most ? 0 : (u64)a << n)                                                   \
    X(shl, u32, u32, n > most ? 0 : (u64)a << n)                                                   \
    X(shl, u64, u64, n > most ? 0 : a << n)                                                        \
    X(mul_wide, u16, u32, (u32)a *b)                                                               \
    X(mul_wide, s16, s32, (s32)a *b)                                                               \
    X(mul_wide, u32, u64, (u64)a *b)                                                               \
    X(mul_wide, s32, s64, (s64)a *b)                                                               \
    X(mul_hi, u32, u32, (u64)a *b >> 32)                                                           \
    X(mul_hi, s32, s32, (s64)a *b >> 32)                                                           \
    X(mul_hi, u64, u64, (u128)a *b >> 64)                                                          \
    X(mul_hi, s64, s64, (s128)a *b >> 64)                                                          \
    X(bfe, u32, u32, field(a, b, c))                                                               \
    X(bfe, u64, u64, field(a, b, c))                                                               \
    X(popc, u32, u32, __builtin_popcount(a))                                                       \
    X(rsqrt, f32, f32, 1 / sqrt((f64)a))                                                           \
    X(ex2, f32, f32, exp2(a))                                                                      \
    X(lg2, f32, f32, log2(a))                                                                      \
    X(tanh, f32, f32, tanh(a))                                                                     \
    X(pow, f64, f64, pow(a, b))                                                                    \
    X(fma_rm, f32, f32, fma_down(a, b, c))
#define OPS(X)                                                                                     \
    INTEGER_OPS(X, u16)                                                                            \
    INTEGER_OPS(X, u32)                                                                            \
    INTEGER_OPS(X, u64)                                                                            \
    INTEGER_OPS(X, s16)                                                                            \
    INTEGER_OPS(X, s32)                                                                            \
    INTEGER_OPS(X, s64)                                                                            \
    SIGNED_OPS(X, s16)                                                                             \
    SIGNED_OPS(X, s32)                                                                             \
    SIGNED_OPS(X, s64)                                                                             \
    LOGIC_OPS(X, u16)                                                                              \
    LOGIC_OPS(X, u32)                                                                              \
    LOGIC_OPS(X, u64)                                                                              \
    LOGIC_OPS(X, pred)                                                                             \
    FLOAT_OPS(X, f32)                                                                              \
    FLOAT_OPS(X, f64)                                                                              \
    OTHER_OPS(X)
#define DEFINE(name, type, result, expression)                                                     \
    static void name##_##type(struct ptx_thread *t, const struct ptx_insn *i)                      \
    {                                                                                              \
        type a UNUSED = OPERAND(type, 1);                                                          \
        type b UNUSED = OPERAND(type, 2);                                                          \
        type c UNUSED = OPERAND(type, 3);                                                          \
        u32 n UNUSED = OPERAND(u32, 2);                                                            \
        const u32 most UNUSED = 8 * sizeof(type) - 1;                                              \
        t->reg[i->op[0]] = ((union word){.result = (result)(expression)}).bits;                    \
    }
OPS(DEFINE)

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

static void choose(struct ptx_thread *t, const struct ptx_insn *i)
{
    t->reg[i->op[0]] = ptx_get(t, i->op[(ptx_get(t, i->op[3]) & 1) != 0 ? 1 : 2]);
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
    return type == T_F64     ? ((union word){.bits = bits}).f64
           : type == T_F32   ? (double)ptx_f32(bits)
           : type == T_F16   ? (double)half_to_float((uint16_t)bits)
           : is_signed(type) ? (double)(int64_t)extended(bits, type)
                             : (double)extended(bits, type);
}

/* Out of range becomes the nearest value, and NaN 0. */
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

/* A 64-bit number is rounded to float directly: through a double it would be rounded twice. */
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
        result = i->type == T_F64   ? ((union word){.f64 = double_of(bits, i->from_type)}).bits
                 : i->type == T_F32 ? ptx_of_f32(float_of(bits, i->from_type))
                                    : half_from_float(float_of(bits, i->from_type));
    } else {
        double x = double_of(bits, i->from_type);
        x = i->is_integral ? rounded(x, i->mode) : x;
        x = !i->is_saturated ? x : isnan(x) || x < 0 ? 0 : x > 1 ? 1 : x;
        result = i->type == T_F64   ? ((union word){.f64 = x}).bits
                 : i->type == T_F32 ? ptx_of_f32((f32)x)
                 : i->type == T_F16 ? half_from_float((f32)x)
                                    : integer_of(x, i->type);
    }
    t->reg[i->op[0]] = result;
}

/* --- names ------------------------------------------------------------------------------------------ */
/* With "_" for "."; "b" types have no sign: they are looked up as "u". */
#define ROW(name, type, result, expression) {#name "_" #type, name##_##type, RUN},
static const struct {
    const char *name;
    ptx_run run;
    enum ptx_kind kind;
} NAMES[] = {
    OPS(ROW){"membar_gl", ptx_fence, RUN},
    {"cvta_shared_u64", shared_to_generic, RUN},
    {"cvta_local_u64", local_to_generic, RUN},
    {"cvta_to_global_u64", move, RUN},
    {"atom_global_add_u32", ptx_atomic_add, RUN},
    {"bra", NULL, BRANCH},
    {"ret", NULL, EXIT},
    {"exit", NULL, EXIT},
    {"bar_sync", NULL, BARRIER},
    {"bar_red_or_pred", NULL, BARRIER_OR},
    {"shfl_sync_bfly_u32", NULL, SHUFFLE},
    {"vote_sync_ballot_u32", NULL, BALLOT},
    {"bar_warp_sync", NULL, SYNC_WARP},
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
    /* Only floats saturate to 0 and 1, and a float becomes a whole number only by an explicit rounding. */
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
            snprintf(name + len, sizeof(name) - len, "%s%.*s", i > 0 ? "_" : "", STR_ARG(part));
        len += (size_t)more;
        if (len >= sizeof(name)) {
            return false;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        if (strcmp(NAMES[i].name, name) == 0) {
            insn->run = NAMES[i].run;
            insn->kind = (uint8_t)NAMES[i].kind;
            return true;
        }
    }
    return false;
}

/* "setp.lt.f32": an opcode of two parts, and the comparison. */
static bool decode_setp(struct str *parts, int n, struct ptx_insn *insn)
{
    int comparison = n == 3 ? place_of(parts[1], COMPARISONS) : -1;
    if (comparison < 0) {
        return false;
    }
    insn->mode = PASSES[comparison];
    parts[1] = parts[2];
    return decode_plain(parts, 2, insn);
}

bool ptx_decode(struct str opcode, struct ptx_insn *insn)
{
    /* Rounding is to nearest; flushing and approximation are ignored. */
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
