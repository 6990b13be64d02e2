/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/node_facts.h"

static const char BEGIN[] = "reperf-probe 1 begin";
static const char END[] = "reperf-probe 1 end";

static bool is_key(struct str key)
{
    if (key.len == 0 || key.len > FACT_KEY_MAX) {
        return false;
    }
    for (size_t idx = 0; idx < key.len; idx++) {
        char c = key.ptr[idx];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '_' || c == '-' || c == ':' || c == '@')) {
            return false;
        }
    }
    return true;
}

/* A printable copy: no control characters, cut at the limit. */
static struct str clean(struct arena *arena, struct str text)
{
    struct str cut = str_sub(str_trim(text), 0, FACT_TEXT_MAX);
    char *copy = str_z(arena, cut);
    for (size_t idx = 0; idx < cut.len; idx++) {
        if ((unsigned char)copy[idx] < 0x20 || copy[idx] == 0x7f) {
            copy[idx] = ' ';
        }
    }
    return str_trim((struct str){copy, cut.len});
}

/* ---- find ---- */

/* Index of the key, or of where it belongs. */
static size_t place_of(const struct node_facts *facts, struct str key, bool *ret_is_there)
{
    size_t low = 0;
    size_t high = facts->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (str_cmp(facts->items[mid].key, key) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    *ret_is_there = low < facts->n && str_eq(facts->items[low].key, key);
    return low;
}

const struct node_fact *facts_find(const struct node_facts *facts, const char *key)
{
    bool is_there;
    size_t place = place_of(facts, str_of(key), &is_there);
    return is_there ? &facts->items[place] : NULL;
}

struct str facts_value(const struct node_facts *facts, const char *key)
{
    const struct node_fact *fact = facts_find(facts, key);
    return fact ? fact->value : STR_EMPTY;
}

struct str facts_why(const struct node_facts *facts, const char *key)
{
    const struct node_fact *fact = facts_find(facts, key);
    return fact ? fact->why : STR_LIT("the node did not say");
}

bool facts_i64(const struct node_facts *facts, const char *key, int64_t *ret_value)
{
    struct err ignored = {0};
    struct str value = facts_value(facts, key);
    return value.ptr && str_to_i64(value, 0, INT64_MAX, ret_value, &ignored) == 0;
}

/* ---- read ---- */

int facts_add(struct arena *arena, struct node_facts *facts, struct node_fact fact, struct err *err)
{
    bool is_there;
    size_t place = place_of(facts, fact.key, &is_there);
    if (is_there) {
        return err_set(err, ERR_NODE, "the probe says %.*s twice", STR_ARG(fact.key));
    }
    if (facts->n == FACTS_MAX) {
        return err_set(err, ERR_NODE, "the probe says more than %d facts", FACTS_MAX);
    }
    if (facts->n == facts->n_max) {
        size_t n_max = facts->n_max ? 2 * facts->n_max : 128;
        struct node_fact *items = arena_array(arena, struct node_fact, n_max);
        if (facts->n) {
            memcpy(items, facts->items, facts->n * sizeof(*items));
        }
        facts->items = items;
        facts->n_max = n_max;
    }
    memmove(&facts->items[place + 1], &facts->items[place],
            (facts->n - place) * sizeof(*facts->items));
    facts->items[place] = fact;
    facts->n++;
    return 0;
}

static int parse_line(struct arena *arena, struct node_facts *facts, struct str line,
                      size_t line_no, struct err *err)
{
    struct str rest = str_sub(line, 2, line.len);
    struct node_fact fact = {0};
    bool is_value = str_starts(line, STR_LIT("= "));
    if ((!is_value && !str_starts(line, STR_LIT("? "))) || !str_next(&rest, ' ', &fact.key) ||
        !is_key(fact.key)) {
        return err_set(err, ERR_NODE, "line %zu of the probe: expected '= KEY VALUE', found '%.*s'",
                       line_no, STR_ARG(clean(arena, str_sub(line, 0, 60))));
    }
    fact.key = str_dup(arena, fact.key);
    if (is_value) {
        fact.value = clean(arena, rest.ptr ? rest : STR_LIT(""));
    } else {
        fact.why = clean(arena, rest.ptr && str_trim(rest).len ? rest : STR_LIT("no reason given"));
    }
    return facts_add(arena, facts, fact, err);
}

/* Skips what a login shell printed before the probe's first line, perhaps without a newline. */
static int skip_noise(struct arena *arena, struct str *rest, struct node_facts *facts,
                      struct err *err)
{
    const char *start = rest->ptr;
    struct str line = STR_EMPTY;
    while (str_next(rest, '\n', &line)) {
        struct str trimmed = str_trim(line);
        if (str_ends(trimmed, STR_LIT(BEGIN))) {
            struct str before = str_sub(trimmed, 0, trimmed.len - (sizeof(BEGIN) - 1));
            facts->noise_bytes = (size_t)(before.ptr - start) + before.len;
            facts->noise = facts->noise.len ? facts->noise : clean(arena, before);
            return 0;
        }
        if (facts->noise.len == 0) {
            facts->noise = clean(arena, line);
        }
    }
    return err_set(err, ERR_NODE, "the probe's output does not begin with '%s'; it begins '%.*s'",
                   BEGIN, STR_ARG(str_sub(facts->noise, 0, 80)));
}

int facts_parse(struct arena *arena, struct str text, struct node_facts *ret_facts, struct err *err)
{
    struct node_facts facts = {0};
    struct str rest = text;
    struct str line = STR_EMPTY;
    size_t line_no = 1;
    if (text.len == 0) {
        return err_set(err, ERR_NODE, "the probe printed nothing");
    }
    if (skip_noise(arena, &rest, &facts, err) < 0) {
        return -1;
    }
    while (str_next(&rest, '\n', &line)) {
        line_no++;
        if (str_eq_z(str_trim(line), END)) {
            *ret_facts = facts;
            return 0;
        }
        if (line.len == 0 && !rest.ptr) {
            break; /* after the last newline */
        }
        if (parse_line(arena, &facts, line, line_no, err) < 0) {
            return -1;
        }
    }
    return err_set(err, ERR_NODE, "the probe's output is truncated: no '%s'", END);
}
