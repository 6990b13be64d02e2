/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/hostlist.h"

#include "base/map.h"
#include "base/vec.h"
#include "report/hostlist_term.h"

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool hostlist_is_name(struct str text)
{
    for (size_t idx = 0; idx < text.len; idx++) {
        char c = text.ptr[idx];
        if (!is_alnum(c) && c != '.' && c != ':' && c != '-' && c != '_') {
            return false;
        }
    }
    return text.len > 0 && text.len <= HOSTLIST_NAME_MAX && is_alnum(text.ptr[0]) &&
           is_alnum(text.ptr[text.len - 1]);
}

/* ---- the set in the making ---- */

struct entry { /* a name seen so far, in the set or not */
    struct str name;
    bool is_in;
    uint64_t round; /* of the term that named it last */
};

struct expansion {
    struct arena *arena;
    struct str whole;
    enum hostlist_syntax syntax;
    const struct hostlist_scope *scope; /* may be NULL */
    struct map scope_names;
    VEC(struct entry) entries;
    struct map by_name; /* to the index of its entry, and 1 more */
    size_t n_in;
    uint64_t round; /* number of the term */
    size_t n_work;
};

static int count_work(struct expansion *e, size_t n, const char *at, struct err *err)
{
    e->n_work += n;
    return e->n_work <= HOSTLIST_WORK_MAX
               ? 0
               : hostlist_fail(e->whole, at, err, "more than %d names in all", HOSTLIST_WORK_MAX);
}

static struct entry *find_entry(struct expansion *e, struct str name)
{
    uintptr_t found = (uintptr_t)map_get(&e->by_name, name);
    if (!found) {
        VEC_PUSH(&e->entries, (struct entry){.name = {str_z(e->arena, name), name.len}});
        found = e->entries.n;
        /* An index stands in for a pointer: entries move when the vector grows. */
        (void)map_add(&e->by_name, e->entries.items[found - 1].name, (void *)found);
    }
    return &e->entries.items[found - 1];
}

/* Applies the operator to one name of the term. */
static int apply(struct expansion *e, char op, struct str name, const char *at, struct err *err)
{
    struct entry *entry = find_entry(e, name);
    bool was_named = entry->round == e->round;
    bool is_in = entry->is_in;
    entry->round = e->round;
    if (op == ',' || (op == '^' && !was_named && !is_in)) {
        entry->is_in = true;
    } else if (op == '!' || (op == '^' && !was_named)) {
        entry->is_in = false;
    }
    e->n_in += (size_t)(entry->is_in && !is_in);
    e->n_in -= (size_t)(!entry->is_in && is_in);
    return e->n_in <= HOSTLIST_NAMES_MAX
               ? 0
               : hostlist_fail(e->whole, at, err, "more than %d names", HOSTLIST_NAMES_MAX);
}

/* After a term: drops what an intersection did not name. */
static int end_term(struct expansion *e, char op, const char *at, struct err *err)
{
    if (op != '&') {
        return 0;
    }
    for (size_t idx = 0; idx < e->entries.n; idx++) {
        struct entry *entry = &e->entries.items[idx];
        if (entry->is_in && entry->round != e->round) {
            entry->is_in = false;
            e->n_in--;
        }
    }
    return count_work(e, e->entries.n, at, err);
}

/* ---- terms ---- */

static bool has_wildcard(struct str text)
{
    return str_find(text, STR_LIT("*")) >= 0 || str_find(text, STR_LIT("?")) >= 0;
}

/* "*" is any bytes, "?" one. If the rest does not match, the last star takes one byte more; only the last one needs
   to. */
static bool glob_matches(struct str glob, struct str name)
{
    size_t g = 0;
    size_t n = 0;
    size_t star = SIZE_MAX;
    size_t star_n = 0;
    while (n < name.len) {
        if (g < glob.len && glob.ptr[g] == '*') {
            star = g++;
            star_n = n;
        } else if (g < glob.len && (glob.ptr[g] == '?' || glob.ptr[g] == name.ptr[n])) {
            g++;
            n++;
        } else if (star != SIZE_MAX) {
            g = star + 1;
            n = ++star_n;
        } else {
            return false;
        }
    }
    while (g < glob.len && glob.ptr[g] == '*') {
        g++;
    }
    return g == glob.len;
}

/* The names of the scope that a group (its "@" cut off) or a wildcard stands for. */
static int apply_scope(struct expansion *e, char op, struct str pattern, bool is_group,
                       const char *at, struct err *err)
{
    const struct hostlist_scope *scope = e->scope;
    bool is_all = str_eq_z(pattern, "*");
    size_t n_found = 0;
    if (pattern.len == 0) {
        return hostlist_fail(e->whole, at, err, "expected the name of a group after @");
    }
    if (!scope) {
        return hostlist_fail(e->whole, at, err,
                             "%s need an inventory before a colon: INVENTORY:%s%.*s",
                             is_group ? "groups" : "wildcards", is_group ? "@" : "",
                             (int)(pattern.len < 60 ? pattern.len : 60), pattern.ptr);
    }
    if (count_work(e, scope->n_names, at, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < scope->n_names; idx++) {
        bool is_meant = is_all || (is_group ? scope->is_in_group(scope->ctx, idx, pattern)
                                            : glob_matches(pattern, scope->names[idx]));
        if (is_meant && apply(e, op, scope->names[idx], at, err) < 0) {
            return -1;
        }
        n_found += is_meant;
    }
    return n_found
               ? 0
               : hostlist_fail(e->whole, at, err, "%s \"%.*s\" %s", is_group ? "group" : "no node",
                               (int)(pattern.len < 60 ? pattern.len : 60), pattern.ptr,
                               is_group ? "has no node" : "matches");
}

static int apply_name(struct expansion *e, char op, struct str name, const char *at,
                      struct err *err)
{
    if (!hostlist_is_name(name)) {
        bool has_user = str_find(name, STR_LIT("@")) > 0;
        return hostlist_fail(e->whole, at, err, "expected a host name, found \"%.*s\"%s",
                             (int)(name.len < 60 ? name.len : 60), name.ptr,
                             has_user ? ": put a user into an inventory or into ~/.ssh/config"
                                      : "");
    }
    if (e->scope && !map_get(&e->scope_names, name)) {
        return hostlist_fail(e->whole, at, err, "the inventory has no node \"%.*s\"",
                             (int)(name.len < 60 ? name.len : 60), name.ptr);
    }
    return apply(e, op, name, at, err);
}

static int apply_term(struct expansion *e, char op, struct str text, struct err *err)
{
    bool is_group = text.ptr[0] == '@';
    char buf[HOSTLIST_NAME_MAX + 1];
    struct term term;
    struct str name;
    e->round++;
    if (e->syntax == HOSTLIST_SLURM && (is_group || has_wildcard(text))) {
        return hostlist_fail(e->whole, text.ptr, err, "expected a host name, found \"%.*s\"",
                             (int)(text.len < 60 ? text.len : 60), text.ptr);
    }
    if (term_parse(e->arena, is_group ? str_sub(text, 1, text.len) : text, e->whole, e->syntax,
                   &term, err) < 0 ||
        count_work(e, term.n_names, text.ptr, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < term.n_names; idx++) {
        if (!term_name(&term, idx, buf, &name)) {
            return hostlist_fail(e->whole, text.ptr, err, "a name longer than %d bytes",
                                 HOSTLIST_NAME_MAX);
        }
        if (is_group || has_wildcard(name) ? apply_scope(e, op, name, is_group, text.ptr, err) < 0
                                           : apply_name(e, op, name, text.ptr, err) < 0) {
            return -1;
        }
    }
    return end_term(e, op, text.ptr, err);
}

/* ---- operators ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_operator(char c)
{
    return c == ',' || c == '!' || c == '&' || c == '^';
}

/* Length of the term that begins the text: up to an operator or blank outside of brackets. */
static size_t term_length(struct str text)
{
    bool is_inside = false;
    for (size_t idx = 0; idx < text.len; idx++) {
        char c = text.ptr[idx];
        if (!is_inside && (is_blank(c) || is_operator(c))) {
            return idx;
        }
        is_inside = c == '[' || (is_inside && c != ']');
    }
    return text.len;
}

static size_t skip_blanks(struct str text, size_t at)
{
    while (at < text.len && is_blank(text.ptr[at])) {
        at++;
    }
    return at;
}

/* The operator before a term, ',' if there is only a blank; *at moves on to the term. */
static int read_operator(const struct expansion *e, size_t *at, char *ret_operator, struct err *err)
{
    struct str text = e->whole;
    char op = ',';
    size_t pos = skip_blanks(text, *at);
    if (pos < text.len && is_operator(text.ptr[pos])) {
        op = text.ptr[pos];
        if (e->round == 0) {
            return hostlist_fail(text, text.ptr + pos, err, "expected a name before \"%c\"", op);
        }
        pos = skip_blanks(text, pos + 1);
        if (op == ',' && pos < text.len && is_operator(text.ptr[pos]) && text.ptr[pos] != ',') {
            op = text.ptr[pos];
            pos = skip_blanks(text, pos + 1);
        }
        if (pos == text.len || is_operator(text.ptr[pos])) {
            return hostlist_fail(text, text.ptr + pos, err, "expected a name after \"%c\"", op);
        }
    }
    if (e->syntax == HOSTLIST_SLURM && op != ',') {
        return hostlist_fail(text, text.ptr + pos, err, "Slurm's lists have only \",\"");
    }
    *at = pos;
    *ret_operator = op;
    return 0;
}

static int expand_all(struct expansion *e, struct err *err)
{
    size_t at = skip_blanks(e->whole, 0);
    while (at < e->whole.len) {
        char op = ',';
        size_t len;
        if (read_operator(e, &at, &op, err) < 0) {
            return -1;
        }
        len = term_length(str_sub(e->whole, at, e->whole.len));
        if (apply_term(e, op, str_sub(e->whole, at, len), err) < 0) {
            return -1;
        }
        at = skip_blanks(e->whole, at + len);
    }
    return 0;
}

static void take_names(const struct expansion *e, struct hostlist *ret_list)
{
    struct hostlist list = {.names = arena_array(e->arena, struct str, e->n_in + 1)};
    for (size_t idx = 0; idx < e->entries.n; idx++) {
        if (e->entries.items[idx].is_in) {
            list.names[list.n++] = e->entries.items[idx].name;
        }
    }
    ASSERT(list.n == e->n_in);
    *ret_list = list;
}

int hostlist_expand(struct arena *arena, struct str text, enum hostlist_syntax syntax,
                    const struct hostlist_scope *scope, struct hostlist *ret_list, struct err *err)
{
    struct expansion e = {.arena = arena, .whole = text, .syntax = syntax, .scope = scope};
    int result;
    if (text.len > HOSTLIST_TEXT_MAX) {
        return err_set(err, ERR_USAGE, "a node set of more than %d bytes", HOSTLIST_TEXT_MAX);
    }
    for (size_t idx = 0; scope && idx < scope->n_names; idx++) {
        (void)map_add(&e.scope_names, scope->names[idx], &e);
    }
    result = expand_all(&e, err);
    if (result == 0) {
        take_names(&e, ret_list);
    }
    map_release(&e.scope_names);
    map_release(&e.by_name);
    VEC_RELEASE(&e.entries);
    return result;
}
