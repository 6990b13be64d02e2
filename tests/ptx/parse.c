/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a PTX file as kernels. Statements, symbols and operands are parsed here; decode.c knows what an opcode means. */
#include "base/base.h"

#include <ctype.h>

#include "tests/ptx/ptx.h"

const char *const PTX_SPECIALS[] = {"%tid.x",    "%tid.y",    "%tid.z",   "%ntid.x",  "%ntid.y",
                                    "%ntid.z",   "%ctaid.x",  "%ctaid.y", "%ctaid.z", "%nctaid.x",
                                    "%nctaid.y", "%nctaid.z", "%laneid",  NULL};

/* The meaning of a name. A register's number and an address are kept as value + 1: a map holds no NULL. */
struct symbol {
    enum { REGISTER, ADDRESS, DYNAMIC, LABEL } kind;
    uint64_t value;
    uint32_t bytes, align;
};
struct parser {
    struct ptx_module *module;
    struct ptx_kernel *kernel;
    struct str rest;
    struct map globals;      /* the file's variables: struct symbol */
    struct map names;        /* the kernel's */
    struct map shared;       /* the file's shared variables, placed in a kernel that names them */
    VEC(struct str) targets; /* by instruction: the label of its branch */
    int32_t pow_args[2];
};

/* --- words ------------------------------------------------------------------------------------------ */
static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static struct str next_word(struct str *rest)
{
    *rest = str_trim(*rest);
    size_t n = 0;
    while (n < rest->len && is_word(rest->ptr[n])) {
        n++;
    }
    struct str word = str_sub(*rest, 0, n);
    *rest = str_sub(*rest, n, rest->len - n);
    return word;
}

/* Up to the comma outside all brackets. */
static struct str next_operand(struct str *rest)
{
    size_t n = 0;
    for (int depth = 0; n < rest->len && (depth > 0 || rest->ptr[n] != ','); n++) {
        depth += strchr("{[(", rest->ptr[n]) != NULL;
        depth -= strchr("}])", rest->ptr[n]) != NULL;
    }
    struct str one = str_trim(str_sub(*rest, 0, n));
    *rest = n < rest->len ? str_sub(*rest, n + 1, rest->len - n - 1) : STR_EMPTY;
    return one;
}

static uint64_t number_of(struct str text)
{
    char copy[64];
    char *end = NULL;
    if (text.len == 0 || text.len >= sizeof(copy)) {
        ptx_die("%.*s: expected a number", STR_ARG(text));
    }
    (void)snprintf(copy, sizeof(copy), "%.*s", STR_ARG(text));
    bool is_bits = copy[0] == '0' && strchr("fFdD", copy[1]) != NULL && copy[1] != '\0';
    const char *from = is_bits ? copy + 2 : copy;
    uint64_t value =
        from[0] == '-' ? 0 - strtoull(from + 1, &end, 0) : strtoull(from, &end, is_bits ? 16 : 0);
    if (end == from || (*end != '\0' && strcmp(end, "U") != 0)) {
        ptx_die("%s: expected a number", copy);
    }
    return value;
}

/* --- symbols ------------------------------------------------------------------------------------------ */
static struct symbol *define(struct map *map, struct str name, struct symbol symbol)
{
    struct symbol *made = map_get(map, name);
    if (made == NULL) {
        made = xmalloc(sizeof(*made));
        if (!map_add(map, name, made)) {
            ptx_die("%.*s: cannot be defined", STR_ARG(name));
        }
    }
    *made = symbol;
    return made;
}

static uint32_t round_up(uint32_t bytes, uint32_t to)
{
    return (bytes + to - 1) / to * to;
}

static uint32_t type_bytes(struct str type)
{
    uint64_t bits = number_of(str_sub(type, 2, type.len - 2)); /* .b8, .u64 */
    return (uint32_t)bits / 8;
}

/* ".align 4 .b8 name[16]", ".u64 .ptr .align 1 name": the space is gone already. */
static struct symbol declared(struct str text, struct str *ret_name)
{
    struct symbol made = {.kind = ADDRESS, .align = 0, .bytes = 0};
    bool is_pointer = false; /* its .align is that of what it points to */
    struct str word;
    while ((word = next_word(&text)).len > 0 && word.ptr[0] == '.') {
        if (str_eq_z(word, ".align")) {
            uint32_t align = (uint32_t)number_of(next_word(&text));
            made.align = is_pointer ? made.align : align;
        } else if (str_eq_z(word, ".ptr")) {
            is_pointer = true;
        } else if (!is_pointer) {
            made.bytes = type_bytes(word);
            made.align = made.align != 0 ? made.align : made.bytes;
        }
    }
    *ret_name = word;
    text = str_trim(text);
    if (text.len > 1 && text.ptr[0] == '[') {
        int64_t end = str_find(text, STR_LIT("]"));
        struct str count = str_sub(text, 1, (size_t)end - 1);
        made.kind = count.len == 0 ? DYNAMIC : ADDRESS;
        made.bytes *= count.len == 0 ? 0 : (uint32_t)number_of(count);
    } else if (text.len > 0) {
        ptx_die("%.*s: variables with values are not known here", STR_ARG(word));
    }
    return made;
}

static int32_t constant(struct parser *p, uint64_t value)
{
    for (size_t i = 0; i < p->kernel->constants.n; i++) {
        if (p->kernel->constants.items[i] == value) {
            return ~(int32_t)i;
        }
    }
    VEC_PUSH(&p->kernel->constants, value);
    return -(int32_t)p->kernel->constants.n;
}

static int32_t register_of(struct parser *p, struct str name)
{
    struct symbol *known = map_get(&p->names, name);
    if (known == NULL) {
        known = define(&p->names, name,
                       (struct symbol){.kind = REGISTER, .value = p->kernel->n_registers++});
    }
    return (int32_t)known->value;
}

static uint64_t address_of(struct parser *p, struct str name)
{
    const struct symbol *symbol = map_get(&p->names, name);
    symbol = symbol != NULL ? symbol : map_get(&p->globals, name);
    struct symbol *shared = symbol == NULL ? map_get(&p->shared, name) : NULL;
    if (shared !=
        NULL) { /* the first use in this kernel gives it its place; symbols without a size follow all others */
        struct symbol placed = *shared;
        p->kernel->shared_bytes = round_up(p->kernel->shared_bytes, placed.align);
        placed.value = p->kernel->shared_bytes;
        p->kernel->shared_bytes += placed.bytes;
        symbol = define(&p->names, name, placed);
    }
    if (symbol == NULL || symbol->kind == REGISTER || symbol->kind == LABEL) {
        ptx_die("%.*s: %.*s is not known", STR_ARG(p->kernel->name), STR_ARG(name));
    }
    return symbol->value;
}

static int32_t operand(struct parser *p, struct str text)
{
    if (text.len == 0) {
        ptx_die("%.*s: an operand is missing", STR_ARG(p->kernel->name));
    }
    /* A variable of inline assembly has no %. */
    const struct symbol *known = map_get(&p->names, text);
    bool is_sink = str_eq_z(text, "_"); /* what goes there is not read */
    if (text.ptr[0] == '%' || is_sink || (known != NULL && known->kind == REGISTER)) {
        return register_of(p, text);
    }
    if (isdigit((unsigned char)text.ptr[0]) || text.ptr[0] == '-') {
        return constant(p, number_of(text));
    }
    return constant(p, address_of(p, text));
}

/* "[%rd1+16]": the offset goes to the instruction. */
static int32_t address(struct parser *p, struct str text, struct ptx_insn *insn)
{
    if (text.len < 3 || text.ptr[0] != '[' || text.ptr[text.len - 1] != ']') {
        ptx_die("%.*s: %.*s: expected an address", STR_ARG(p->kernel->name), STR_ARG(text));
    }
    text = str_sub(text, 1, text.len - 2);
    int64_t plus = str_find(text, STR_LIT("+"));
    if (plus >= 0) {
        insn->offset = (int64_t)number_of(str_trim(str_sub(text, (size_t)plus + 1, text.len)));
        text = str_sub(text, 0, (size_t)plus);
    }
    return operand(p, str_trim(text));
}

/* "{%f1, %f2}" or a single one. */
static void many(struct parser *p, struct str text, struct ptx_insn *insn)
{
    if (text.len > 1 && text.ptr[0] == '{') {
        text = str_sub(text, 1, text.len - 2);
    }
    insn->many = xrealloc(insn->many, (insn->n_many + 8U) * sizeof(*insn->many));
    for (size_t n = 0; text.len > 0; n++) {
        if (n == 8) {
            ptx_die("%.*s: more than 8 registers", STR_ARG(p->kernel->name));
        }
        insn->many[insn->n_many++] = operand(p, next_operand(&text));
    }
}

/* --- statements ------------------------------------------------------------------------------------------ */
static void memory_operands(struct parser *p, struct str rest, struct ptx_insn *insn)
{
    struct str first = next_operand(&rest);
    struct str second = next_operand(&rest);
    bool is_load = first.ptr[0] != '[';
    insn->op[0] = address(p, is_load ? second : first, insn);
    many(p, is_load ? first : second, insn);
    if (insn->kind == WMMA_LOAD || insn->kind == WMMA_STORE) {
        insn->op[1] = operand(p, next_operand(&rest)); /* the stride */
    }
}

/* The parameters of a call lie in .param variables; the one function that is called is a power in double. */
static bool is_call(struct parser *p, struct str opcode, struct str rest, struct ptx_insn *insn)
{
    struct str at = STR_EMPTY;
    if (str_starts(opcode, STR_LIT("call"))) {
        if (str_find(rest, STR_LIT("__internal_accurate_pow")) < 0) {
            ptx_die("%.*s: calls %.*s", STR_ARG(p->kernel->name), STR_ARG(rest));
        }
        return true;
    }
    bool is_store = str_starts(opcode, STR_LIT("st.param"));
    if (is_store) {
        at = next_operand(&rest);
        p->pow_args[str_starts(at, STR_LIT("[param1"))] = operand(p, next_operand(&rest));
        return true;
    }
    struct str result = next_operand(&rest);
    rest = str_trim(rest);
    if (!str_starts(opcode, STR_LIT("ld.param")) || !str_starts(rest, STR_LIT("[retval")) ||
        !ptx_decode(STR_LIT("pow.f64"), insn)) {
        return false;
    }
    insn->op[0] = operand(p, result);
    insn->op[1] = p->pow_args[0];
    insn->op[2] = p->pow_args[1];
    VEC_PUSH(&p->kernel->code, *insn);
    VEC_PUSH(&p->targets, STR_EMPTY);
    return true;
}

static void plain_operands(struct parser *p, struct str rest, struct ptx_insn *insn)
{
    for (size_t n = 0; rest.len > 0; n++) {
        struct str one = next_operand(&rest);
        if (n == ARRAY_LEN(insn->op)) {
            ptx_die("%.*s: too many operands: %.*s", STR_ARG(p->kernel->name), STR_ARG(insn->text));
        }
        if (one.ptr[0] ==
            '{') { /* packed or unpacked: the vector's side is the one with the brace */
            insn->mode = n == 0;
            many(p, one, insn);
            insn->op[n] = -1;
        } else if (str_find(one, STR_LIT("|")) >
                   0) { /* a second result: whether the lane of a shuffle exists */
            size_t bar = (size_t)str_find(one, STR_LIT("|"));
            insn->second = operand(p, str_sub(one, bar + 1, one.len));
            insn->op[n] = operand(p, str_sub(one, 0, bar));
        } else if (one.ptr[0] == '[') {
            insn->op[n] = address(p, one, insn);
        } else {
            insn->op[n] = operand(p, one);
        }
    }
}

static void instruction(struct parser *p, struct str text)
{
    struct ptx_insn insn = {.text = text, .guard = -1, .second = -1};
    struct str target = STR_EMPTY;
    struct str rest = text;
    if (rest.ptr[0] == '@') {
        insn.guard_is_inverted = rest.ptr[1] == '!';
        rest = str_sub(rest, 1U + insn.guard_is_inverted, rest.len);
        insn.guard = register_of(p, next_word(&rest));
    }
    struct str opcode = next_word(&rest);
    /* "::" is nowhere in the opcodes known here, so that a word ends with the opcode. */
    rest = str_trim(rest);
    if (is_call(p, opcode, rest, &insn)) {
        return;
    }
    if (!ptx_decode(opcode, &insn)) {
        ptx_die("%.*s: not known: %.*s", STR_ARG(p->kernel->name), STR_ARG(text));
    }
    switch (insn.kind) {
    case BRANCH:
        target = rest;
        break;
    case WMMA_LOAD:
    case WMMA_STORE:
        memory_operands(p, rest, &insn);
        break;
    case WMMA_MMA:
        while (rest.len > 0) {
            many(p, next_operand(&rest), &insn);
        }
        break;
    case RUN:
        if (insn.run == ptx_load || insn.run == ptx_store) {
            memory_operands(p, rest, &insn);
            break;
        }
        /* fall through */
    default:
        plain_operands(p, rest, &insn);
        break;
    }
    VEC_PUSH(&p->kernel->code, insn);
    VEC_PUSH(&p->targets, target);
}

static void directive(struct parser *p, struct str text)
{
    struct str word = next_word(&text);
    struct str name;
    if (str_eq_z(word, ".reg")) { /* of inline assembly: names without % */
        (void)next_word(&text);
        text = str_trim(text);
        if (text.len > 0 && str_find(text, STR_LIT("<")) < 0) {
            (void)register_of(p, str_trim(text));
        }
    } else if (str_eq_z(word, ".shared") || str_eq_z(word, ".local")) {
        uint32_t *used = word.ptr[1] == 's' ? &p->kernel->shared_bytes : &p->kernel->local_bytes;
        struct symbol made = declared(text, &name);
        *used = round_up(*used, made.align);
        made.value = *used;
        *used += made.bytes;
        (void)define(&p->names, name, made);
    } else if (!str_eq_z(word, ".param") && !str_eq_z(word, ".pragma")) {
        ptx_die("%.*s: not known: %.*s", STR_ARG(p->kernel->name), STR_ARG(word));
    }
}

static void statement(struct parser *p, struct str text)
{
    text = str_trim(text);
    if (text.len > 0 && text.ptr[0] == '.') {
        directive(p, text);
    } else if (text.len > 0) {
        instruction(p, text);
    }
}

static bool is_label(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!is_word(text.ptr[i])) {
            return false;
        }
    }
    return text.len > 0;
}

static void body(struct parser *p, struct str text)
{
    size_t begin = 0;
    int depth = 0; /* of braces within a statement; others are scopes */
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (strchr("{};:", c) == NULL) {
            continue;
        }
        struct str so_far = str_trim(str_sub(text, begin, i - begin));
        if (c == ':' && depth == 0 && is_label(so_far)) {
            (void)define(&p->names, so_far,
                         (struct symbol){.kind = LABEL, .value = p->kernel->code.n});
            begin = i + 1;
        } else if (c == ';') {
            statement(p, so_far);
            begin = i + 1;
        } else if (c == '{' || c == '}') {
            bool is_scope = so_far.len == 0 && depth == 0;
            depth += is_scope ? 0 : c == '{' ? 1 : -1;
            begin = is_scope ? i + 1 : begin;
        }
    }
}

static void resolve(struct parser *p)
{
    struct ptx_kernel *k = p->kernel;
    for (size_t i = 0; i < k->code.n; i++) {
        if (k->code.items[i].kind == BRANCH) {
            const struct symbol *label = map_get(&p->names, p->targets.items[i]);
            if (label == NULL || label->kind != LABEL) {
                ptx_die("%.*s: no label %.*s", STR_ARG(k->name), STR_ARG(p->targets.items[i]));
            }
            k->code.items[i].target = (int32_t)label->value;
        }
    }
    VEC_PUSH(&k->code, (struct ptx_insn){.kind = EXIT, .guard = -1, .text = STR_LIT("the end")});
    for (size_t i = 0; PTX_SPECIALS[i] != NULL; i++) {
        const struct symbol *special = map_get(&p->names, str_of(PTX_SPECIALS[i]));
        k->special[i] = special != NULL ? (int32_t)special->value : -1;
    }
    for (size_t i = 0; i < p->names.n;
         i++) { /* one that this machine does not have would read garbage */
        struct str name = p->names.entries[i].key;
        bool is_special = name.ptr[0] == '%' && str_find(name, STR_LIT(".")) > 0;
        if (is_special && !str_eq_any(name, PTX_SPECIALS)) {
            ptx_die("%.*s: no special register %.*s", STR_ARG(k->name), STR_ARG(name));
        }
    }
    /* Dynamic shared memory begins after all other. */
    k->shared_bytes = round_up(k->shared_bytes, 16);
}

/* --- the file ------------------------------------------------------------------------------------------ */
static void parameters(struct parser *p, struct str list)
{
    while (list.len > 0) {
        struct str text = next_operand(&list);
        struct str name;
        (void)next_word(&text); /* .param */
        struct symbol made = declared(text, &name);
        p->kernel->param_bytes = round_up(p->kernel->param_bytes, made.align);
        made.value = p->kernel->param_bytes;
        (void)define(&p->names, name, made);
        VEC_PUSH(&p->kernel->params, ((struct ptx_param){p->kernel->param_bytes, made.bytes}));
        p->kernel->param_bytes += made.bytes;
    }
}

/* From the bracket that opens to the one that closes; both are cut off. */
static struct str bracketed(struct str *rest, char open, char close)
{
    size_t from = 0;
    while (from < rest->len && rest->ptr[from] != open) {
        from++;
    }
    size_t to = from;
    for (int depth = 0; to < rest->len; to++) {
        depth += rest->ptr[to] == open;
        depth -= rest->ptr[to] == close;
        if (depth == 0) {
            break;
        }
    }
    if (to == rest->len) {
        ptx_die("a bracket is not closed");
    }
    struct str inside = str_sub(*rest, from + 1, to - from - 1);
    *rest = str_sub(*rest, to + 1, rest->len);
    return inside;
}

/* Where dynamic shared memory begins is known only when all other is placed: the kernel is parsed twice. */
static void entry(struct parser *p)
{
    struct str name = next_word(&p->rest);
    struct str params = bracketed(&p->rest, '(', ')');
    int64_t brace = str_find(p->rest, STR_LIT("{"));
    struct str limits = str_sub(p->rest, 0, (size_t)brace);
    struct str text = bracketed(&p->rest, '{', '}');
    uint32_t static_bytes = 0;
    for (int pass = 0; pass < 2; pass++) {
        p->kernel = xcalloc(1, sizeof(*p->kernel));
        /* clang names symbols local to one file differently from what nvcc tells the runtime. */
        p->kernel->name = name;
        if (str_starts(name, STR_LIT("_ZL"))) {
            char *plain = xcalloc(1, name.len);
            (void)snprintf(plain, name.len, "_Z%.*s", (int)name.len - 3, name.ptr + 3);
            p->kernel->name = str_of(plain);
        }
        p->kernel->module = p->module;
        map_release(&p->names);
        p->targets.n = 0;
        for (size_t i = 0; i < p->shared.n; i++) {
            struct symbol *symbol = p->shared.entries[i].value;
            if (symbol->kind == DYNAMIC) {
                struct symbol placed = *symbol;
                placed.value = static_bytes;
                (void)define(&p->names, p->shared.entries[i].key, placed);
            }
        }
        parameters(p, params);
        body(p, text);
        resolve(p);
        static_bytes = p->kernel->shared_bytes;
    }
    int64_t most = str_find(limits, STR_LIT(".maxntid"));
    if (most >= 0) {
        limits = str_sub(limits, (size_t)most + 8, limits.len);
        p->kernel->threads_max = (uint32_t)number_of(next_word(&limits));
    }
    if (!map_add(&p->module->kernels, p->kernel->name, p->kernel)) {
        ptx_die("%.*s: twice in one file", STR_ARG(p->kernel->name));
    }
}

static void variable(struct parser *p, bool is_shared)
{
    int64_t end = str_find(p->rest, STR_LIT(";"));
    struct str name;
    struct symbol made = declared(str_sub(p->rest, 0, (size_t)end), &name);
    p->rest = str_sub(p->rest, (size_t)end + 1, p->rest.len);
    if (is_shared) {
        (void)define(&p->shared, name, made);
        return;
    }
    unsigned char *memory = xcalloc(1, made.bytes);
    made.value = (uint64_t)(uintptr_t)memory;
    (void)define(&p->globals, name, made);
    ptx_add_global((struct ptx_range){memory, made.bytes, xcalloc(1, sizeof(void *))});
}

static struct str without_comments(struct str text)
{
    char *copy = xcalloc(1, text.len + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (i + 1 < text.len && text.ptr[i] == '/' && text.ptr[i + 1] == '/') {
            while (i < text.len && text.ptr[i] != '\n') {
                i++;
            }
        }
        copy[n++] = i < text.len ? text.ptr[i] : '\n';
    }
    return (struct str){copy, n};
}

struct ptx_module *ptx_parse(struct str name, struct str text)
{
    struct parser p = {.rest = without_comments(text)};
    p.module = xcalloc(1, sizeof(*p.module));
    p.module->name = name;
    while ((p.rest = str_trim(p.rest)).len > 0) {
        struct str word = next_word(&p.rest);
        if (str_eq_z(word, ".entry")) {
            entry(&p);
        } else if (str_eq_z(word, ".func")) {
            int64_t end = str_find(p.rest, STR_LIT(";"));
            int64_t brace = str_find(p.rest, STR_LIT("{"));
            if (brace >= 0 && brace < end) {
                (void)bracketed(&p.rest, '{', '}');
            } else {
                p.rest = str_sub(p.rest, (size_t)end + 1, p.rest.len);
            }
        } else if (str_eq_z(word, ".global") || str_eq_z(word, ".shared")) {
            variable(&p, str_eq_z(word, ".shared"));
        } else if (str_eq_z(word, ".version") || str_eq_z(word, ".target") ||
                   str_eq_z(word, ".address_size")) {
            int64_t line = str_find(p.rest, STR_LIT("\n"));
            p.rest = str_sub(p.rest, (size_t)line, p.rest.len);
        } else if (!str_eq_z(word, ".visible") && !str_eq_z(word, ".weak") &&
                   !str_eq_z(word, ".extern")) {
            ptx_die("%.*s: not known: %.*s %.20s", STR_ARG(name), STR_ARG(word), p.rest.ptr);
        }
    }
    return p.module;
}
