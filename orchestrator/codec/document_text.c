/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/document_text.h"

#include "base/table.h"
#include "codec/json.h"

#define NAME_WIDTH  16
#define INDENT      2
#define COLUMNS_MAX 6

static const char *const UNSAID[] = {"schema_version", "command", "error", NULL};

struct telling {
    struct arena arena;
    struct strbuf *out;
    size_t n_shown;
};

static const char *bytes_text(struct arena *arena, int64_t bytes)
{
    static const char *const UNITS[] = {"kB", "MB", "GB", "TB"};
    double size = (double)bytes / 1000;
    size_t unit = 0;
    /* From 999.95 on one decimal would show 1000.0 of the smaller unit. */
    for (; size >= 999.95 && unit + 1 < ARRAY_LEN(UNITS); size /= 1000) {
        unit++;
    }
    return arena_printf(arena, "%" PRId64 " (%.1f %s)", bytes, size, UNITS[unit]);
}

/* Empty where it is null. */
static struct str scalar_text(struct arena *arena, const struct json *at)
{
    CLEANUP(strbuf) struct strbuf number = STRBUF(64);
    struct json_out out;
    struct err other = {0};
    struct str text = STR_EMPTY;
    int64_t bytes = 0;
    bool is = false;
    if (json_is_null(at) || json_is_str(at)) {
        return json_is_str(at) && json_str(at, arena, &text, &other) < 0 ? STR_EMPTY : text;
    }
    if (json_bool(at, &is, &other) == 0) {
        return is ? STR_LIT("yes") : STR_LIT("no");
    }
    other = (struct err){0};
    if (at->key && str_ends(str_of(at->key), STR_LIT("bytes")) &&
        json_i64(at, 1000, INT64_MAX, &bytes, &other) == 0) {
        return str_of(bytes_text(arena, bytes));
    }
    jw_begin(&out, &number, true);
    jw_json(&out, NULL, at);
    return str_dup(arena, str_trim(strbuf_str(&number)));
}

static bool is_plain(const struct json *at)
{
    return !json_is_object(at) && !json_is_array(at);
}

/* An object of a few plain members, which can be a table's row. */
static bool is_row(const struct json *at)
{
    struct json member;
    size_t n = 0;
    bool is = json_is_object(at);
    for (bool more = is && json_first(at, &member); more; more = json_next(&member)) {
        is = is && is_plain(&member) && ++n <= COLUMNS_MAX;
    }
    return is && n > 0;
}

static const char *name_of(struct arena *arena, const char *key)
{
    char *name = arena_strndup(arena, key, strlen(key));
    for (char *c = strchr(name, '_'); c; c = strchr(c, '_')) {
        *c = ' ';
    }
    return name;
}

static bool has_any(const struct json *list, const char *key)
{
    struct json item, member;
    for (bool more = json_first(list, &item); more; more = json_next(&item)) {
        if (json_find(&item, key, &member) && !json_is_null(&member)) {
            return true;
        }
    }
    return false;
}

/* A column for each member that some item has. */
static void add_table(struct telling *t, const struct json *list)
{
    CLEANUP(table) struct table table = {0};
    const char *keys[COLUMNS_MAX];
    struct json item, member;
    size_t n = 0;
    (void)json_first(list, &item);
    for (bool more = json_first(&item, &member); more; more = json_next(&member)) {
        double ignored;
        if (has_any(list, member.key)) {
            keys[table.n_columns] = member.key;
            table_add_column(&table, str_of(name_of(&t->arena, member.key)),
                             json_f64(&member, &ignored, ERR_IGNORED) == 0);
        }
    }
    for (bool more = true; more && n < t->n_shown; n++) {
        for (size_t idx = 0; idx < table.n_columns; idx++) {
            struct str text =
                json_find(&item, keys[idx], &member) ? scalar_text(&t->arena, &member) : STR_EMPTY;
            table_add(&table, table_or_dash(text));
        }
        more = json_next(&item);
    }
    table_render(&table, t->out);
}

static void add_member(struct telling *t, const struct json *member, int indent);

/* An object in a list begins with what it is called. */
static void add_item(struct telling *t, const struct json *at, int indent)
{
    struct json member = *at;
    bool more = !is_plain(at) && json_first(at, &member);
    while (more && str_eq_any(str_of(member.key), UNSAID)) {
        more = json_next(&member);
    }
    strbuf_printf(t->out, "%s%*s%.*s\n", indent || !t->out->len ? "" : "\n", indent, "",
                  STR_ARG(scalar_text(&t->arena, &member)));
    while (more && json_next(&member)) {
        add_member(t, &member, indent + INDENT);
    }
}

static void add_list(struct telling *t, const struct json *list, bool may_be_table, int indent)
{
    struct json item;
    size_t n = 0;
    bool are_rows = may_be_table;
    for (bool more = json_first(list, &item); more; more = json_next(&item)) {
        are_rows = are_rows && is_row(&item);
        n++;
    }
    if (are_rows) {
        add_table(t, list);
    }
    bool more = !are_rows && json_first(list, &item);
    for (size_t idx = 0; more && idx < t->n_shown; idx++) {
        add_item(t, &item, indent);
        more = json_next(&item);
    }
    if (n > t->n_shown) {
        strbuf_printf(t->out, "%*sand %zu more (--json has all)\n", indent, "", n - t->n_shown);
    }
}

static void add_member(struct telling *t, const struct json *member, int indent)
{
    const char *name = name_of(&t->arena, member->key);
    struct json inner;
    bool more = !is_plain(member) && json_first(member, &inner);
    if (str_eq_any(str_of(member->key), UNSAID) || json_is_null(member)) {
        return;
    }
    if (is_plain(member)) {
        strbuf_printf(t->out, "%*s%-*s %.*s\n", indent, "", NAME_WIDTH, name,
                      STR_ARG(scalar_text(&t->arena, member)));
    } else if (more && strcmp(name, "items") == 0) {
        add_list(t, member, false, indent);
    } else if (more) {
        strbuf_printf(t->out, "%*s%s:\n", indent, "", name);
        if (json_is_array(member)) {
            add_list(t, member, true, indent + INDENT);
            return;
        }
        for (; more; more = json_next(&inner)) {
            add_member(t, &inner, indent + INDENT);
        }
    }
}

void document_to_text(struct strbuf *out, size_t n_shown)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct telling t = {.out = out, .n_shown = n_shown};
    struct json member;
    if (json_parse(strbuf_str(out), "the document", &doc, ERR_IGNORED) < 0) {
        return; /* too large for that: it stays as it is */
    }
    strbuf_clear(out);
    for (bool more = json_first(&doc.root, &member); more; more = json_next(&member)) {
        add_member(&t, &member, 0);
    }
    arena_release(&t.arena);
}
