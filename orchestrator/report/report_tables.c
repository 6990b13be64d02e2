/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation. The document is walked once, in order, but for the cases, which come last because they need the stacks and
   environments. Each item of a list, or each row of a table in its place, is first collected: its members, those that the
   whole table shares below those of the row. Then it is written. */
#include "base/base.h"

#include "report/report_tables.h"

#include "base/vec.h"
#include "codec/json_override.h"
#include "codec/json_table.h"
#include "report/report.h"

struct member {
    const char *key;
    struct json at;
};
struct members {
    VEC(struct member);
};

struct stack_name {
    struct str id, framework;
};

struct place_name { /* an environment */
    struct str id;
    int64_t nodes, gpus_per_node;
};

struct spelling {
    struct arena *arena;
    const struct json *root;
    struct json_out out;
    struct err *err;
    struct members members, conditions, source; /* of the item at hand */
    VEC(struct stack_name) stacks;
    VEC(struct place_name) environments;
};

/* ---- what an item has ---- */

static const struct json *find(const struct members *members, const char *key)
{
    for (size_t idx = 0; idx < members->n; idx++) {
        if (strcmp(members->items[idx].key, key) == 0) {
            return &members->items[idx].at;
        }
    }
    return NULL;
}

static void set(struct members *members, const char *key, const struct json *at)
{
    for (size_t idx = 0; idx < members->n; idx++) {
        if (strcmp(members->items[idx].key, key) == 0) {
            members->items[idx].at = *at;
            return;
        }
    }
    VEC_PUSH(members, (struct member){key, *at});
}

/* Of "conditions.gpu" the members that it is one of, and "gpu". */
static struct members *place_of(struct spelling *s, const char **key)
{
    static const char CONDITIONS[] = "conditions.", SOURCE[] = "source.";
    if (strncmp(*key, CONDITIONS, sizeof(CONDITIONS) - 1) == 0) {
        *key += sizeof(CONDITIONS) - 1;
        return &s->conditions;
    }
    if (strncmp(*key, SOURCE, sizeof(SOURCE) - 1) == 0) {
        *key += sizeof(SOURCE) - 1;
        return &s->source;
    }
    return &s->members;
}

static void take_inside(struct members *members, const struct json *object)
{
    struct json item;
    for (bool more = json_first(object, &item); more; more = json_next(&item)) {
        set(members, item.key, &item);
    }
}

/* The report's: an environment and the logs have it, but for what they say themselves. */
static void take_source(struct spelling *s)
{
    struct json source;
    s->source.n = 0;
    if (json_find(s->root, "source", &source)) {
        take_inside(&s->source, &source);
    }
}

static void take_item(struct spelling *s, const struct json *item, bool is_table)
{
    struct json member;
    s->members.n = s->conditions.n = 0;
    take_source(s);
    for (bool more = json_first(item, &member); more; more = json_next(&member)) {
        if (is_table && (strcmp(member.key, "columns") == 0 || strcmp(member.key, "rows") == 0)) {
            continue;
        }
        if (strcmp(member.key, "conditions") == 0 && json_is_object(&member)) {
            take_inside(&s->conditions, &member);
        } else if (strcmp(member.key, "source") == 0 && json_is_object(&member)) {
            take_inside(&s->source, &member);
        } else {
            set(&s->members, member.key, &member);
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
        const char *key = columns[idx++].ptr;
        struct members *place = place_of(s, &key);
        set(place, key, &value);
    }
    return 0;
}

/* ---- what an item becomes ---- */

static void put_members(struct spelling *s, const struct members *members)
{
    for (size_t idx = 0; idx < members->n; idx++) {
        jw_json(&s->out, members->items[idx].key, &members->items[idx].at);
    }
}

static void put_inside(struct spelling *s, const char *key, const struct members *members)
{
    jw_object(&s->out, key);
    put_members(s, members);
    jw_end_object(&s->out);
}

static int str_at(struct spelling *s, const char *key, struct str *ret)
{
    const struct json *at = find(&s->members, key);
    *ret = STR_EMPTY;
    return at && !json_is_null(at) ? json_str(at, s->arena, ret, s->err) : 0;
}

/* ret is as it was where there is none. */
static int count_at(struct spelling *s, const char *key, int64_t *ret)
{
    const struct json *at = find(&s->members, key);
    return at ? json_i64(at, 0, INT32_MAX, ret, s->err) : 0;
}

static int put_environment(struct spelling *s, const struct json *at UNUSED)
{
    struct place_name name = {0};
    if (str_at(s, "id", &name.id) < 0 || count_at(s, "nodes", &name.nodes) < 0 ||
        count_at(s, "gpus_per_node", &name.gpus_per_node) < 0) {
        return -1;
    }
    VEC_PUSH(&s->environments, name);
    jw_object(&s->out, NULL);
    put_members(s, &s->members);
    put_inside(s, "conditions", &s->conditions);
    if (!find(&s->members, "source") && s->source.n) {
        put_inside(s, "source", &s->source);
    }
    jw_end_object(&s->out);
    return 0;
}

static int put_stack(struct spelling *s, const struct json *at UNUSED)
{
    struct stack_name name;
    if (str_at(s, "id", &name.id) < 0 || str_at(s, "framework", &name.framework) < 0) {
        return -1;
    }
    jw_object(&s->out, NULL);
    if (!name.framework.ptr) {
        name.framework = name.id;
        jw_str(&s->out, "framework", name.id);
    }
    VEC_PUSH(&s->stacks, name);
    put_members(s, &s->members);
    put_inside(s, "conditions", &s->conditions);
    jw_end_object(&s->out);
    return 0;
}

static int put_plain(struct spelling *s, const struct json *at UNUSED)
{
    jw_object(&s->out, NULL);
    put_members(s, &s->members);
    jw_end_object(&s->out);
    return 0;
}

/* "run_{0..9}.txt" is ten paths. */
static int put_log(struct spelling *s, const struct json *at)
{
    struct str path;
    int64_t from = 0, to = 0;
    struct err why = {0};
    if (json_str(at, s->arena, &path, s->err) < 0) {
        return -1;
    }
    int64_t open = str_find(path, STR_LIT("{"));
    int64_t close = str_find(path, STR_LIT("}"));
    struct str numbers = open >= 0 && close > open
                             ? str_sub(path, (size_t)open + 1, (size_t)(close - open - 1))
                             : STR_EMPTY;
    int64_t dots = str_find(numbers, STR_LIT(".."));
    if (dots < 0) {
        jw_str(&s->out, NULL, path);
        return 0;
    }
    if (str_to_i64(str_sub(numbers, 0, (size_t)dots), 0, INT32_MAX, &from, &why) < 0 ||
        str_to_i64(str_sub(numbers, (size_t)dots + 2, numbers.len), from, from + LOGS_MAX - 1, &to,
                   &why) < 0) {
        return json_fail(at, s->err, "expected {A..B} with at most %d numbers, found {%.*s}",
                         LOGS_MAX, STR_ARG(numbers));
    }
    for (; from <= to; from++) {
        jw_z(&s->out, NULL,
             arena_printf(s->arena, "%.*s%" PRId64 "%s", (int)open, path.ptr, from,
                          path.ptr + close + 1));
    }
    return 0;
}

static int put_logs(struct spelling *s, const struct json *logs)
{
    struct json log;
    if (json_is_str(logs)) {
        return put_log(s, logs);
    }
    for (bool more = json_first(logs, &log); more; more = json_next(&log)) {
        if (put_log(s, &log) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- cases ---- */

/* These make its id. */
static const char *const ID_PARTS[] = {"id",    "model",         "framework",     "precision",
                                       "nodes", "gpus_per_node", "batch_per_gpu", "variant",
                                       NULL};
/* These are members of form 1. */
static const char *const AS_THEY_ARE[] = {"group",   "format",       "rule",   "baseline",
                                          "matched", "logged_steps", "factor", NULL};
/* These are written in a place of their own; all else is a metric. */
static const char *const PLACED[] = {"stack", "environment", "logs", "cells",
                                     "unit",  "table",       NULL};

static bool is_metric(const char *key)
{
    return !str_eq_any(str_of(key), ID_PARTS) && !str_eq_any(str_of(key), AS_THEY_ARE) &&
           !str_eq_any(str_of(key), PLACED);
}

static bool has_metric(const struct members *members)
{
    for (size_t idx = 0; idx < members->n; idx++) {
        if (is_metric(members->items[idx].key)) {
            return true;
        }
    }
    return false;
}

struct case_of { /* NULL: it names none that is there */
    const struct stack_name *stack;
    const struct place_name *environment;
};

/* The stack and environment that it names, or the only ones. */
static int find_case_of(struct spelling *s, struct case_of *ret)
{
    struct str stack, environment;
    bool says_null = find(&s->members, "environment");
    *ret = (struct case_of){0};
    if (str_at(s, "stack", &stack) < 0 || str_at(s, "environment", &environment) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < s->stacks.n; idx++) {
        const struct stack_name *name = &s->stacks.items[idx];
        if (stack.ptr ? str_eq(name->id, stack) : s->stacks.n == 1) {
            ret->stack = name;
        }
    }
    for (size_t idx = 0; idx < s->environments.n; idx++) {
        const struct place_name *name = &s->environments.items[idx];
        if (environment.ptr ? str_eq(name->id, environment)
                            : s->environments.n == 1 && !says_null && has_metric(&s->members)) {
            ret->environment = name;
        }
    }
    return 0;
}

/* The case's id as it is written, or of its parts; what is not named of these is the stack's and the environment's. */
static int case_id(struct spelling *s, const struct json *at, const struct case_of *of,
                   struct str *ret_id)
{
    struct str model, framework, precision, variant;
    int64_t nodes = of->environment ? of->environment->nodes : 0;
    int64_t gpus = of->environment ? of->environment->gpus_per_node : 0;
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
    if (!framework.ptr && of->stack) {
        framework = of->stack->framework;
    }
    if (!model.ptr || !framework.ptr || !precision.ptr) {
        return json_fail(at, s->err, "expected an id, or model, precision and a stack");
    }
    *ret_id = str_printf(s->arena, "%s/%s/%s/n%" PRId64 "g%" PRId64 "/bs%" PRId64 "%s%s", model.ptr,
                         framework.ptr, precision.ptr, nodes, gpus, batch, variant.ptr ? "/" : "",
                         variant.ptr ? variant.ptr : "");
    return 0;
}

/* What all cells of the case share: a text, or an object that has one for each metric. */
static void put_shared(struct spelling *s, const char *key, struct str metric)
{
    const struct json *at = find(&s->members, key);
    struct json of;
    if (at && json_is_object(at)) {
        at = json_find(at, metric.ptr, &of) ? &of : NULL;
    }
    if (at) {
        jw_json(&s->out, key, at);
    }
}

/* KEY: METRIC, or METRIC.N for one of several; its value is the number as printed, or an object of a cell's members. */
static int put_cell(struct spelling *s, struct str id, const struct member *member)
{
    int64_t dot = str_find(str_of(member->key), STR_LIT("."));
    struct str metric =
        str_of(str_z(s->arena, str_sub(str_of(member->key), 0, dot < 0 ? SIZE_MAX : (size_t)dot)));
    struct members own = {0};
    if (json_is_null(&member->at)) {
        return 0;
    }
    if (!json_is_str(&member->at) && !json_is_object(&member->at)) {
        return json_fail(
            &member->at, s->err,
            "expected the number as it is printed, in quotes, since its digits matter");
    }
    jw_object(&s->out, NULL);
    jw_z(&s->out, "cell", arena_printf(s->arena, "%s#%s", id.ptr, member->key));
    jw_str(&s->out, "metric", metric);
    if (json_is_object(&member->at)) {
        take_inside(&own, &member->at);
        put_members(s, &own);
    } else {
        jw_json(&s->out, "printed", &member->at);
    }
    /* Of form 1's cells only those of throughput fall back to the case's rule. */
    if (!find(&own, "rule") && !find(&own, "derive") && !str_eq_z(metric, "throughput")) {
        put_shared(s, "rule", metric);
    }
    if (!find(&own, "unit")) {
        put_shared(s, "unit", metric);
    }
    if (!find(&own, "table")) {
        put_shared(s, "table", metric);
    }
    jw_end_object(&s->out);
    VEC_RELEASE(&own);
    return 0;
}

static int put_cells(struct spelling *s, struct str id)
{
    for (size_t idx = 0; idx < s->members.n; idx++) {
        if (is_metric(s->members.items[idx].key) && put_cell(s, id, &s->members.items[idx]) < 0) {
            return -1;
        }
    }
    return 0;
}

static int put_case(struct spelling *s, const struct json *at)
{
    struct str id;
    struct case_of of;
    const struct json *logs = find(&s->members, "logs"), *cells = find(&s->members, "cells");
    const struct json *stack = find(&s->members, "stack");
    const struct json *environment = find(&s->members, "environment");
    if (find_case_of(s, &of) < 0 || case_id(s, at, &of, &id) < 0) {
        return -1;
    }
    jw_object(&s->out, NULL);
    jw_str(&s->out, "id", id);
    if (stack) {
        jw_json(&s->out, "stack", stack);
    } else if (of.stack) {
        jw_str(&s->out, "stack", of.stack->id);
    }
    if (environment) {
        jw_json(&s->out, "environment", environment);
    } else if (of.environment) {
        jw_str(&s->out, "environment", of.environment->id);
    }
    for (size_t idx = 0; AS_THEY_ARE[idx]; idx++) {
        const struct json *member = find(&s->members, AS_THEY_ARE[idx]);
        if (member) {
            jw_json(&s->out, AS_THEY_ARE[idx], member);
        }
    }
    put_inside(s, "conditions", &s->conditions);
    jw_array(&s->out, "logs");
    if (logs && put_logs(s, logs) < 0) {
        return -1;
    }
    jw_end_array(&s->out);
    if (cells) {
        jw_json(&s->out, "cells", cells);
    } else {
        jw_array(&s->out, "cells");
        if (put_cells(s, id) < 0) {
            return -1;
        }
        jw_end_array(&s->out);
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

typedef VEC(struct spelled_item) item_vec;

static int put_table(struct spelling *s, const struct list_kind *kind, const struct json *table,
                     item_vec *items)
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
        VEC_PUSH(items, (struct spelled_item){table->idx, (int64_t)row.idx});
    }
    return 0;
}

static int put_list(struct spelling *s, const struct list_kind *kind, struct spelled_list *ret)
{
    struct json list, item, ignored;
    item_vec items = {0};
    size_t n;
    int rc = 0;
    if (!json_find(s->root, kind->key, &list)) {
        return 0;
    }
    if (json_expect_array(&list, CASES_MAX, &n, s->err) < 0) {
        return -1;
    }
    jw_array(&s->out, kind->key);
    for (bool more = json_first(&list, &item); more && rc == 0; more = json_next(&item)) {
        if (json_find(&item, "rows", &ignored) || json_find(&item, "columns", &ignored)) {
            rc = put_table(s, kind, &item, &items);
            continue;
        }
        take_item(s, &item, false);
        rc = kind->put(s, &item);
        VEC_PUSH(&items, (struct spelled_item){item.idx, -1});
    }
    jw_end_array(&s->out);
    *ret = (struct spelled_list){kind->key, arena_array(s->arena, struct spelled_item, items.n + 1),
                                 items.n};
    if (items.n) {
        memcpy(ret->items, items.items, items.n * sizeof(*items.items));
    }
    VEC_RELEASE(&items);
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
            take_inside(&s->source, &member);
            put_inside(s, "logs", &s->source);
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
    struct json root = json_root(&doc);
    s.root = &root;
    jw_begin(&s.out, &buf, false);
    int rc = put_document(&s, ret_spelled);
    VEC_RELEASE(&s.members);
    VEC_RELEASE(&s.conditions);
    VEC_RELEASE(&s.source);
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
