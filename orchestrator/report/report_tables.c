/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation. The document is walked once, in order, but for the cases, which come last because they need the stacks and
   environments. Each item of a list, or each row of a table in its place, is first collected: its members, those that the
   whole table shares below those of the row, and what stands inside of conditions and source under its whole name. Then it is
   written. */
#include "base/base.h"

#include "report/report_tables.h"

#include "base/vec.h"
#include "codec/json_override.h"
#include "codec/json_table.h"
#include "codec/pattern.h"
#include "report/report.h"

#define CONDITIONS "conditions."
#define SOURCE     "source."

struct member {
    const char *key; /* "model", "conditions.gpu" */
    struct json at;
};

struct spelled_name { /* a stack or an environment */
    struct str id, framework;
    int64_t nodes, gpus_per_node;
};
typedef VEC(struct spelled_name) named_vec;

struct spelling {
    struct arena *arena;
    const struct json *root;
    struct json_out out;
    struct err *err;
    VEC(struct member) members; /* of the item at hand */
    named_vec stacks, environments;
};

/* ---- what an item has ---- */

static const struct json *find(const struct spelling *s, const char *key)
{
    const struct member *member = Z_NAMED(s->members.items, s->members.n, key, str_of(key));
    return member ? &member->at : NULL;
}

static void set(struct spelling *s, const char *key, const struct json *at)
{
    struct member *member = Z_NAMED(s->members.items, s->members.n, key, str_of(key));
    if (member) {
        member->at = *at;
    } else {
        VEC_PUSH(&s->members, (struct member){key, *at});
    }
}

static void take_inside(struct spelling *s, const char *prefix, const struct json *object)
{
    struct json member;
    for (bool more = json_first(object, &member); more; more = json_next(&member)) {
        set(s, arena_printf(s->arena, "%s%s", prefix, member.key), &member);
    }
}

/* The report's source is an environment's and the logs', but for what they say themselves. */
static void take_source(struct spelling *s)
{
    struct json source;
    s->members.n = 0;
    if (json_find(s->root, "source", &source)) {
        take_inside(s, SOURCE, &source);
    }
}

static void take_item(struct spelling *s, const struct json *item, bool is_table)
{
    struct json member;
    take_source(s);
    for (bool more = json_first(item, &member); more; more = json_next(&member)) {
        struct str key = str_of(member.key);
        if (is_table && is_word_of(key, "columns rows")) {
            continue;
        }
        if (json_is_object(&member) && is_word_of(key, "conditions source")) {
            take_inside(s, key.ptr[0] == 'c' ? CONDITIONS : SOURCE, &member);
        } else {
            set(s, member.key, &member);
        }
    }
}

static int take_row(struct spelling *s, const struct str *columns, size_t n, const struct json *row)
{
    struct json value;
    size_t n_values = 0, idx = 0;
    if (json_expect_array(row, SIZE_MAX, &n_values, s->err) < 0) {
        return -1;
    }
    if (n_values != n) {
        return json_fail(row, s->err, "expected %zu values, as columns has, found %zu", n,
                         n_values);
    }
    for (bool more = json_first(row, &value); more; more = json_next(&value)) {
        set(s, columns[idx++].ptr, &value);
    }
    return 0;
}

/* ---- what an item becomes ---- */

static bool is_of_source(const char *key)
{
    return str_starts(str_of(key), STR_LIT(SOURCE));
}

/* Those of "conditions." or "source."; or of neither, as the members of the object that is open. */
static void put_members(struct spelling *s, const char *prefix)
{
    for (size_t idx = 0; idx < s->members.n; idx++) {
        struct str key = str_of(s->members.items[idx].key);
        bool is_inner = str_starts(key, STR_LIT(CONDITIONS)) || is_of_source(key.ptr);
        if (prefix ? str_starts(key, str_of(prefix)) : !is_inner) {
            jw_json(&s->out, key.ptr + (prefix ? strlen(prefix) : 0), &s->members.items[idx].at);
        }
    }
}

static void put_inside(struct spelling *s, const char *key, const char *prefix)
{
    jw_object(&s->out, key);
    put_members(s, prefix);
    jw_end_object(&s->out);
}

/* The member, or else that text if there is one. */
static void put_or(struct spelling *s, const char *key, struct str other)
{
    const struct json *at = find(s, key);
    if (at) {
        jw_json(&s->out, key, at);
    } else if (other.ptr) {
        jw_str(&s->out, key, other);
    }
}

static int str_at(struct spelling *s, const char *key, struct str *ret)
{
    const struct json *at = find(s, key);
    *ret = STR_EMPTY;
    return at && !json_is_null(at) ? json_str(at, s->arena, ret, s->err) : 0;
}

/* ret is as it was where there is none. */
static int count_at(struct spelling *s, const char *key, int64_t *ret)
{
    const struct json *at = find(s, key);
    return at ? json_i64(at, 0, INT32_MAX, ret, s->err) : 0;
}

static int read_named(struct spelling *s, named_vec *list, struct spelled_name *ret)
{
    *ret = (struct spelled_name){0};
    if (str_at(s, "id", &ret->id) < 0 || str_at(s, "framework", &ret->framework) < 0 ||
        count_at(s, "nodes", &ret->nodes) < 0 ||
        count_at(s, "gpus_per_node", &ret->gpus_per_node) < 0) {
        return -1;
    }
    ret->framework = ret->framework.ptr ? ret->framework : ret->id;
    VEC_PUSH(list, *ret);
    return 0;
}

static bool has(const struct spelling *s, bool (*is_one)(const char *key))
{
    size_t idx = 0;
    while (idx < s->members.n && !is_one(s->members.items[idx].key)) {
        idx++;
    }
    return idx < s->members.n;
}

static int put_environment(struct spelling *s, const struct json *at UNUSED)
{
    struct spelled_name ignored;
    jw_object(&s->out, NULL);
    put_members(s, NULL);
    put_inside(s, "conditions", CONDITIONS);
    if (!find(s, "source") && has(s, is_of_source)) {
        put_inside(s, "source", SOURCE);
    }
    jw_end_object(&s->out);
    return read_named(s, &s->environments, &ignored);
}

static int put_stack(struct spelling *s, const struct json *at UNUSED)
{
    struct spelled_name stack;
    if (read_named(s, &s->stacks, &stack) < 0) {
        return -1;
    }
    jw_object(&s->out, NULL);
    if (!find(s, "framework")) {
        jw_str(&s->out, "framework", stack.id);
    }
    put_members(s, NULL);
    put_inside(s, "conditions", CONDITIONS);
    jw_end_object(&s->out);
    return 0;
}

static int put_plain(struct spelling *s, const struct json *at UNUSED)
{
    put_inside(s, NULL, NULL);
    return 0;
}

/* "run_{0..9}.txt" is ten paths. */
static int put_log(struct spelling *s, const struct json *at)
{
    static const char NUMBERED[] = "^(.*?)\\{([^{}]*?)\\.\\.([^{}]*)\\}(.*)\\z";
    struct str path, g[5];
    int64_t from = 0, to = 0;
    if (json_str(at, s->arena, &path, s->err) < 0) {
        return -1;
    }
    if (!patterns_find(json_patterns(at), NUMBERED, path, g, 5)) {
        jw_str(&s->out, NULL, path);
        return 0;
    }
    if (str_to_i64(g[2], 0, INT32_MAX, &from, ERR_IGNORED) < 0 ||
        str_to_i64(g[3], from, from + LOGS_MAX - 1, &to, ERR_IGNORED) < 0) {
        return json_fail(at, s->err, "expected {A..B} with at most %d numbers, found {%.*s..%.*s}",
                         LOGS_MAX, STR_ARG(g[2]), STR_ARG(g[3]));
    }
    for (; from <= to; from++) {
        jw_str(&s->out, NULL,
               str_printf(s->arena, "%.*s%" PRId64 "%.*s", STR_ARG(g[1]), from, STR_ARG(g[4])));
    }
    return 0;
}

static int put_logs(struct spelling *s, const struct json *logs)
{
    struct json log = {0};
    bool is_list = logs && !json_is_str(logs);
    int rc = 0;
    jw_array(&s->out, "logs");
    if (logs && !is_list) {
        rc = put_log(s, logs);
    }
    for (bool more = is_list && json_first(logs, &log); more && rc == 0; more = json_next(&log)) {
        rc = put_log(s, &log);
    }
    jw_end_array(&s->out);
    return rc;
}

/* ---- cases ---- */

/* These are members of form 1. */
static const char *const AS_THEY_ARE[] = {"group",   "format",       "rule",   "baseline",
                                          "matched", "logged_steps", "factor", NULL};

/* Not what makes its id, is written as it is or in a place of its own: all else is a metric. */
static bool is_metric(const char *key)
{
    static const char OTHERS[] =
        "id model framework precision nodes gpus_per_node batch_per_gpu variant stack environment "
        "logs cells unit table";
    struct str name = str_of(key);
    return !is_word_of(name, OTHERS) && !str_eq_any(name, AS_THEY_ARE) &&
           !str_starts(name, STR_LIT(CONDITIONS)) && !is_of_source(key);
}

/* The one that it names, or else the only one; without an id: it names none that is there. */
static struct spelled_name named_of(const named_vec *list, struct str id, bool may_be_only)
{
    const struct spelled_name *found = id.ptr ? STR_NAMED(list->items, list->n, id, id)
                                       : may_be_only && list->n == 1 ? list->items
                                                                     : NULL;
    return found ? *found : (struct spelled_name){0};
}

/* The case's id as it is written, or of its parts; what is not named of these is the stack's and the environment's. */
static int case_id(struct spelling *s, const struct json *at, const struct spelled_name *stack,
                   const struct spelled_name *environment, struct str *ret_id)
{
    struct str model, framework, precision, variant;
    int64_t nodes = environment->nodes;
    int64_t gpus = environment->gpus_per_node;
    int64_t batch = 0;
    if (str_at(s, "id", ret_id) < 0 || ret_id->ptr) {
        return ret_id->ptr ? 0 : -1;
    }
    if (str_at(s, "model", &model) < 0 || str_at(s, "framework", &framework) < 0 ||
        str_at(s, "precision", &precision) < 0 || str_at(s, "variant", &variant) < 0 ||
        count_at(s, "nodes", &nodes) < 0 || count_at(s, "gpus_per_node", &gpus) < 0 ||
        count_at(s, "batch_per_gpu", &batch) < 0) {
        return -1;
    }
    framework = framework.ptr ? framework : stack->framework;
    if (!model.ptr || !framework.ptr || !precision.ptr) {
        return json_fail(at, s->err,
                         "expected an id, or model, precision and a stack: %s is not there",
                         !model.ptr       ? "model"
                         : !precision.ptr ? "precision"
                                          : "the stack");
    }
    *ret_id = str_printf(s->arena, "%s/%s/%s/n%" PRId64 "g%" PRId64 "/bs%" PRId64 "%s%s", model.ptr,
                         framework.ptr, precision.ptr, nodes, gpus, batch, variant.ptr ? "/" : "",
                         variant.ptr ? variant.ptr : "");
    return 0;
}

/* What all cells of the case share: a text, or an object that has one for each metric. */
static void put_shared(struct spelling *s, const char *key, const struct json *own,
                       const char *metric)
{
    const struct json *at = find(s, key);
    struct json of;
    if (json_find(own, key, &of)) {
        return;
    }
    if (at && json_is_object(at)) {
        at = json_find(at, metric, &of) ? &of : NULL;
    }
    if (at) {
        jw_json(&s->out, key, at);
    }
}

/* KEY: METRIC, or METRIC.N for one of several; its value is the number as printed, or an object of a cell's members. */
static int put_cell(struct spelling *s, struct str id, const char *key, const struct json *at)
{
    const char *metric = arena_strndup(s->arena, key, strcspn(key, "."));
    struct json member;
    if (json_is_null(at)) {
        return 0;
    }
    if (!json_is_str(at) && !json_is_object(at)) {
        return json_fail(
            at, s->err, "expected the number as it is printed, in quotes, since its digits matter");
    }
    jw_object(&s->out, NULL);
    jw_z(&s->out, "cell", arena_printf(s->arena, "%s#%s", id.ptr, key));
    jw_z(&s->out, "metric", metric);
    if (json_is_str(at)) {
        jw_json(&s->out, "printed", at);
    }
    for (bool more = json_first(at, &member); more; more = json_next(&member)) {
        jw_json(&s->out, member.key, &member);
    }
    /* Of form 1's cells only those of throughput fall back to the case's rule. */
    if (!json_find(at, "derive", &member) && strcmp(metric, "throughput") != 0) {
        put_shared(s, "rule", at, metric);
    }
    put_shared(s, "unit", at, metric);
    put_shared(s, "table", at, metric);
    jw_end_object(&s->out);
    return 0;
}

static int put_cells(struct spelling *s, struct str id)
{
    int rc = 0;
    if (find(s, "cells")) {
        jw_json(&s->out, "cells", find(s, "cells"));
        return 0;
    }
    jw_array(&s->out, "cells");
    for (size_t idx = 0; idx < s->members.n && rc == 0; idx++) {
        const struct member *member = &s->members.items[idx];
        rc = is_metric(member->key) ? put_cell(s, id, member->key, &member->at) : 0;
    }
    jw_end_array(&s->out);
    return rc;
}

static int put_case(struct spelling *s, const struct json *at)
{
    struct str id, stack_id, environment_id;
    if (str_at(s, "stack", &stack_id) < 0 || str_at(s, "environment", &environment_id) < 0) {
        return -1;
    }
    bool may_be_only = !find(s, "environment") && has(s, is_metric);
    struct spelled_name stack = named_of(&s->stacks, stack_id, true);
    struct spelled_name environment = named_of(&s->environments, environment_id, may_be_only);
    if (case_id(s, at, &stack, &environment, &id) < 0) {
        return -1;
    }
    jw_object(&s->out, NULL);
    jw_str(&s->out, "id", id);
    put_or(s, "stack", stack.id);
    put_or(s, "environment", environment.id);
    for (size_t idx = 0; AS_THEY_ARE[idx]; idx++) {
        put_or(s, AS_THEY_ARE[idx], STR_EMPTY);
    }
    put_inside(s, "conditions", CONDITIONS);
    if (put_logs(s, find(s, "logs")) < 0 || put_cells(s, id) < 0) {
        return -1;
    }
    jw_end_object(&s->out);
    return 0;
}

/* ---- the document ---- */

static const struct list_kind {
    const char *key;
    int (*put)(struct spelling *s, const struct json *at);
} LISTS[] = {{"not_printed", put_plain},
             {"environments", put_environment},
             {"stacks", put_stack},
             {"cases", put_case}};
_Static_assert(sizeof(LISTS) / sizeof(LISTS[0]) == N_LISTS, "one place each");

static void add_item(struct spelling *s, struct spelled_list *list, const struct json *item,
                     int64_t row)
{
    VEC_RESERVE_IN(s->arena, list);
    list->items[list->n++] = (struct spelled_item){item->idx, row};
}

static int put_table(struct spelling *s, const struct list_kind *kind, const struct json *table,
                     struct spelled_list *ret)
{
    struct json at_columns, rows, row;
    struct str *columns;
    size_t n, n_rows;
    if (json_member(table, "columns", &at_columns, s->err) < 0 ||
        json_str_list(&at_columns, s->arena, 64, &columns, &n, s->err) < 0 ||
        json_member(table, "rows", &rows, s->err) < 0 ||
        json_expect_array(&rows, CASES_MAX, &n_rows, s->err) < 0) {
        return -1;
    }
    for (bool more = json_first(&rows, &row); more; more = json_next(&row)) {
        take_item(s, table, true);
        if (take_row(s, columns, n, &row) < 0 || kind->put(s, &row) < 0) {
            return -1;
        }
        add_item(s, ret, table, (int64_t)row.idx);
    }
    return 0;
}

static int put_list(struct spelling *s, const struct list_kind *kind, struct spelled_list *ret)
{
    struct json list, item, ignored;
    size_t n;
    int rc = 0;
    ret->key = kind->key;
    if (!json_find(s->root, kind->key, &list)) {
        return 0;
    }
    if (json_expect_array(&list, CASES_MAX, &n, s->err) < 0) {
        return -1;
    }
    jw_array(&s->out, kind->key);
    for (bool more = json_first(&list, &item); more && rc == 0; more = json_next(&item)) {
        if (json_find(&item, "rows", &ignored) || json_find(&item, "columns", &ignored)) {
            rc = put_table(s, kind, &item, ret);
            continue;
        }
        take_item(s, &item, false);
        rc = kind->put(s, &item);
        add_item(s, ret, &item, -1);
    }
    jw_end_array(&s->out);
    return rc;
}

static bool is_list(const char *key)
{
    return Z_NAMED(LISTS, ARRAY_LEN(LISTS), key, str_of(key)) != NULL;
}

static int put_document(struct spelling *s, struct spelled *ret)
{
    struct json member;
    jw_object(&s->out, NULL);
    jw_i64(&s->out, "schema_version", 1);
    for (bool more = json_first(s->root, &member); more; more = json_next(&member)) {
        if (strcmp(member.key, "logs") == 0 && json_is_object(&member)) {
            take_source(s);
            take_inside(s, SOURCE, &member);
            put_inside(s, "logs", SOURCE);
        } else if (strcmp(member.key, "schema_version") != 0 && !is_list(member.key)) {
            jw_json(&s->out, member.key, &member);
        }
    }
    for (size_t idx = 0; idx < ARRAY_LEN(LISTS); idx++) {
        if (put_list(s, &LISTS[idx], &ret->lists[idx]) < 0) {
            return -1;
        }
    }
    jw_end_object(&s->out);
    return 0;
}

static bool is_form_2(struct str text)
{
    const struct json_path_part version = {.key = STR_LIT("schema_version")};
    struct json_span at = {0, text.len, false, false};
    return json_place_step(text, &version, &at) && !at.is_absent &&
           str_eq_z(str_trim(str_sub(text, at.from, at.to - at.from)), "2");
}

int report_spell_out(struct arena *arena, struct str text, const char *name,
                     struct spelled *ret_spelled, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    CLEANUP(strbuf) struct strbuf buf = STRBUF(JSON_TEXT_MAX);
    struct spelling s = {.arena = arena, .err = err};
    *ret_spelled = (struct spelled){.text = text};
    if (!is_form_2(text)) {
        return 0;
    }
    if (json_parse(text, name, &doc, err) < 0) {
        return -1;
    }
    s.root = &doc.root;
    jw_begin(&s.out, &buf, false);
    int rc = put_document(&s, ret_spelled);
    VEC_RELEASE(&s.members);
    VEC_RELEASE(&s.stacks);
    VEC_RELEASE(&s.environments);
    if (rc == 0 && buf.is_full) {
        rc =
            err_set(err, ERR_MANIFEST, "%s: spelled out, it is over %u bytes", name, JSON_TEXT_MAX);
    }
    strbuf_add_char(&buf, '\n');
    ret_spelled->text = str_dup(arena, strbuf_str(&buf));
    return rc;
}

const char *report_written_at(struct arena *arena, const struct spelled *spelled, struct str place)
{
    for (size_t list = 0; list < N_LISTS; list++) {
        const struct spelled_list *of = &spelled->lists[list];
        const char *key = of->n ? arena_printf(arena, "$.%s[", of->key) : "";
        char *end;
        if (!of->n || !str_starts(place, str_of(key))) {
            continue;
        }
        unsigned long idx = strtoul(place.ptr + strlen(key), &end, 10);
        if (idx >= of->n || *end != ']') {
            break;
        }
        const struct spelled_item *item = &of->items[idx];
        return item->row < 0 ? arena_printf(arena, "%s%zu%s", key, item->item, end)
                             : arena_printf(arena, "%s%zu].rows[%" PRId64 "%s", key, item->item,
                                            item->row, end);
    }
    return str_z(arena, place);
}

int report_fail_there(const struct spelled *spelled, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const struct err said = *err;
    const char *at = strstr(said.msg, ":$.");
    if (!at) {
        return -1;
    }
    *err = (struct err){0};
    return err_set(err, said.code, "%.*s:%s", (int)(at - said.msg), said.msg,
                   report_written_at(&arena, spelled, str_of(at + 1)));
}

/* ---- its schema: what is the same as in form 1 is checked once it is spelled out ---- */

#define ITEMS_OR_TABLES                                                                            \
    "\"type\": \"array\", \"items\": {\"type\": \"object\", \"dependentRequired\": {\"rows\": "    \
    "[\"columns\"], \"columns\": [\"rows\"]}, \"properties\": {\"columns\": {\"type\": "           \
    "\"array\", "                                                                                  \
    "\"minItems\": 1, \"uniqueItems\": true, \"items\": {\"type\": \"string\"}}, \"rows\": "       \
    "{\"type\": \"array\", \"items\": {\"type\": \"array\"}}}}"
#define LIST(name, flags) ROW_ANY(name, flags, .schema = ITEMS_OR_TABLES)
#define OBJECT_OR_NULL    .schema = "\"type\": [\"object\", \"null\"]"
static const struct json_field FORM_2_ROWS[] = {
    ROW_NUMBER("schema_version", 2),
    ROW_ANY("id", JSON_REQUIRED, .schema = "\"type\": \"string\""),
    ROW_ANY("title", JSON_REQUIRED, .schema = "\"type\": \"string\""),
    ROW_ANY("unpublished", 0, .schema = "\"type\": \"boolean\""),
    ROW_ANY("source", 0, OBJECT_OR_NULL),
    ROW_ANY("logs", 0, OBJECT_OR_NULL),
    ROW_ANY("own_logs", 0, .schema = "\"type\": \"string\""),
    ROW_ANY("rules_inferred", 0, .schema = "\"type\": \"boolean\""),
    LIST("not_printed", 0),
    LIST("environments", 0),
    LIST("stacks", JSON_REQUIRED),
    LIST("cases", JSON_REQUIRED),
};
const struct json_document REPORT_TABLES_DOCUMENT = {
    JSON_DOCUMENT("report-2.json", "a published report, in tables", FORM_2_ROWS),
    .about = "form 2 of manifests/reports/ID.json; manifests/reports/README.md says what follows "
             "from what"};
