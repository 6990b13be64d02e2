/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/discrepancy.h"

#include "codec/json.h"
#include "evidence/result.h"

struct comparing {
    struct arena *arena;
    struct discrepancies *discrepancies;
};

/* Sentences for people. */
static bool is_wording(const char *key)
{
    static const char *const WORDINGS[] = {"why", "also_why_not", "taints", NULL};
    return str_eq_any(str_of(key), WORDINGS);
}

/* Keys that the first programs whose archives are still derived did not write; any other that is missing was taken out. */
static bool is_later(const char *key)
{
    static const char *const LATER[] = {"program_version", "files", "by_node",
                                        "taints",          "also",  NULL};
    return str_eq_any(str_of(key), LATER);
}

/* Keys at the top that earlier programs wrote and today's neither writes nor heeds. */
static bool is_retired(const struct json *member)
{
    return !member->parent->parent && str_eq_z(str_of(member->key), "derivation");
}

static struct str text_of(struct arena *arena, const struct json *at)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(JSON_TEXT_MAX);
    struct json_out out;
    jw_begin(&out, &text, true);
    jw_json(&out, NULL, at);
    return str_dup(arena, str_trim(strbuf_str(&text)));
}

static const char *shown(struct arena *arena, const struct json *at)
{
    double number;
    if (json_is_array(at) || json_is_object(at)) {
        return json_is_array(at) ? "a list" : "an object";
    }
    return json_f64(at, &number, ERR_IGNORED) == 0
               ? arena_printf(arena, "%.12g", number)
               : arena_printf(arena, "%.*s", STR_ARG(str_sub(text_of(arena, at), 0, 200)));
}

static void add(struct comparing *c, bool is_value, const char *text)
{
    struct discrepancies *all = c->discrepancies;
    if (!all->items) {
        all->items = arena_array(c->arena, struct discrepancy, DISCREPANCIES_MAX);
    }
    *(is_value ? &all->n_values : &all->n_wordings) += 1;
    if (all->n < DISCREPANCIES_MAX) {
        all->items[all->n++] = (struct discrepancy){text, is_value};
    } else if (is_value && all->n_values <= DISCREPANCIES_MAX) {
        /* A value matters more than the wordings before it. */
        all->items[all->n_values - 1] = (struct discrepancy){text, true};
    }
}

static void note(struct comparing *c, bool is_value, const struct json *at, const char *what)
{
    struct err text = {0};
    int rc = json_fail(at, &text, "%s", what);
    ASSERT(rc < 0);
    add(c, is_value, arena_printf(c->arena, "%s", text.msg));
}

/* A NULL is an item that one of two lists lacks. */
static void note_values(struct comparing *c, bool is_value, const struct json *kept,
                        const struct json *derived)
{
    note(c, is_value, kept ? kept : derived,
         arena_printf(c->arena, "kept %s, today's rules derive %s",
                      kept ? shown(c->arena, kept) : "nothing",
                      derived ? shown(c->arena, derived) : "nothing"));
}

static void compare(struct comparing *c, const struct json *kept, const struct json *derived,
                    bool is_worded);

static void compare_objects(struct comparing *c, const struct json *kept,
                            const struct json *derived, bool is_worded)
{
    struct json item;
    struct json other;
    for (bool more = json_first(derived, &item); more; more = json_next(&item)) {
        if (json_find(kept, item.key, &other)) {
            compare(c, &other, &item, is_worded || is_wording(item.key));
        } else {
            bool is_new = is_later(item.key);
            note(c, !is_new, &item,
                 is_new ? "a key that today's rules add" : "a key that is missing");
        }
    }
    for (bool more = json_first(kept, &item); more; more = json_next(&item)) {
        if (!json_find(derived, item.key, &other)) {
            bool is_old = is_retired(&item);
            note(c, !is_old, &item,
                 is_old ? "a key of earlier programs, without a meaning today"
                        : "a key that no rule derives");
        }
    }
}

/* The condition is one that today's rules know to be the same here as published. */
static bool is_no_difference(struct comparing *c, const struct json *list, const struct json *at)
{
    static const char *const KEYS[] = {"name", "published", "run"};
    struct str said[ARRAY_LEN(KEYS)];
    struct json item;
    size_t n = 0;
    for (bool more = json_is_object(at) && json_first(at, &item); more; more = json_next(&item)) {
        if (n == ARRAY_LEN(KEYS) || strcmp(item.key, KEYS[n]) != 0 ||
            json_str(&item, c->arena, &said[n++], ERR_IGNORED) < 0) {
            return false;
        }
    }
    return n == ARRAY_LEN(KEYS) && list->key && strcmp(list->key, "differs") == 0 &&
           result_same_value(said[1], said[2]);
}

static void compare_lists(struct comparing *c, const struct json *kept, const struct json *derived,
                          bool is_worded)
{
    struct json item;
    struct json other;
    bool has_kept = json_first(kept, &item);
    bool has_derived = json_first(derived, &other);
    while (has_kept && (has_derived || is_no_difference(c, kept, &item))) {
        bool is_same = has_derived && str_eq(text_of(c->arena, &item), text_of(c->arena, &other));
        if (!is_same && is_no_difference(c, kept, &item)) {
            note(c, false, &item, "a difference that is none by today's rules");
        } else {
            compare(c, &item, &other, is_worded);
            has_derived = json_next(&other);
        }
        has_kept = json_next(&item);
    }
    if (has_kept || has_derived) {
        note_values(c, true, has_kept ? &item : NULL, has_derived ? &other : NULL);
    }
}

/* The depth of both is at most JSON_DEPTH_MAX, so this recursion is bounded. */
static void compare(struct comparing *c, const struct json *kept, const struct json *derived,
                    bool is_worded)
{
    if (json_is_object(kept) && json_is_object(derived)) {
        compare_objects(c, kept, derived, is_worded);
    } else if (json_is_array(kept) && json_is_array(derived)) {
        compare_lists(c, kept, derived, is_worded);
    } else if (!str_eq(text_of(c->arena, kept), text_of(c->arena, derived))) {
        note_values(c, !is_worded, kept, derived);
    }
}

int discrepancies_find(struct arena *arena, const char *name, struct str kept, struct str derived,
                       struct discrepancies *discrepancies, struct err *err)
{
    CLEANUP(json_doc) struct json_doc ours = {0};
    CLEANUP(json_doc) struct json_doc theirs = {0};
    struct comparing c = {arena, discrepancies};
    size_t n_before = discrepancies->n_values + discrepancies->n_wordings;
    if (str_eq(kept, derived)) {
        return 0;
    }
    if (json_parse(kept, name, &theirs, err) < 0 || json_parse(derived, name, &ours, err) < 0) {
        err->code = ERR_INTEGRITY;
        return -1;
    }
    compare(&c, &theirs.root, &ours.root, false);
    return discrepancies->n_values + discrepancies->n_wordings > n_before
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: not in the form that reperf writes", name);
}

void discrepancies_encode(struct json_out *out, const struct discrepancies *discrepancies)
{
    jw_array(out, "differences");
    for (size_t idx = 0; idx < discrepancies->n; idx++) {
        jw_object(out, NULL);
        jw_z(out, "kind", discrepancies->items[idx].is_value ? "value" : "wording");
        jw_z(out, "text", discrepancies->items[idx].text);
        jw_end_object(out);
    }
    jw_end_array(out);
}

void discrepancies_print(struct strbuf *out, const struct discrepancies *discrepancies)
{
    if (discrepancies->n) {
        strbuf_printf(out,
                      "  differs from what today's rules derive: %zu value%s, %zu wording%s or "
                      "added keys\n",
                      discrepancies->n_values, discrepancies->n_values == 1 ? "" : "s",
                      discrepancies->n_wordings, discrepancies->n_wordings == 1 ? "" : "s");
    }
    for (size_t idx = 0; idx < discrepancies->n; idx++) {
        strbuf_printf(out, "          %s  %s\n",
                      discrepancies->items[idx].is_value ? "value  " : "wording",
                      discrepancies->items[idx].text);
    }
}

int discrepancies_refuse(const struct discrepancies *discrepancies, struct err *err)
{
    for (size_t idx = 0; idx < discrepancies->n; idx++) {
        if (discrepancies->items[idx].is_value) {
            return err_set(err, ERR_INTEGRITY, "%s", discrepancies->items[idx].text);
        }
    }
    return 0;
}
