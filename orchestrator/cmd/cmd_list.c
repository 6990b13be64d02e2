/* SPDX-License-Identifier: Apache-2.0 */
/* Things that can be named on a command line. Each kind fills rows of text; one printer makes a table, plain ids or JSON of
   them. */

#include "base/base.h"
#include "base/fs.h"
#include "base/nearest.h"
#include "base/table.h"
#include "cmd/cmd.h"
#include "codec/json.h"
#include "codec/json_document.h"
#include "judge/finding.h"
#include "load/load.h"
#include "load/load_inventory.h"
#include "load/places.h"
#include "store/dataset_store.h"

#define LIST_BYTES_MAX (8u << 20)

struct args {
    bool want_json;
    bool want_ids;
};

static const struct opt OPTS[] = {
    OPT(struct args, want_ids, "ids", "only the ids, one a line"),
    OPT(struct args, want_json, "json", "one JSON document"),
    OPT_END,
};

/* Rows in the making: the table's first column is the id. */
struct rows {
    const struct cmd_ctx *ctx;
    struct arena *arena;
    const struct opt_list *reports; /* of list cases REPORT, or none */
    struct table *table;
};

static struct str count(struct rows *rows, size_t n)
{
    return table_text(rows->table, "%zu", n);
}

static int list_reports(struct rows *rows, struct err *err)
{
    struct report_set set;
    if (load_all_reports(rows->arena, rows->ctx->root, &set, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < set.n; idx++) {
        const struct report *r = &set.items[idx];
        size_t n_cells = 0;
        for (size_t at = 0; at < r->n_cases; at++) {
            n_cells += r->cases[at].n_cells;
        }
        TABLE_ADD(rows->table, r->id, count(rows, r->n_cases), count(rows, n_cells), r->source.date,
                  r->title);
    }
    return 0;
}

static void add_case(struct rows *rows, const struct report *r, const struct report_case *c)
{
    const struct cell *shown = NULL;
    for (size_t idx = 0; idx < c->n_cells && !shown; idx++) {
        shown = c->cells[idx].metric == METRIC_THROUGHPUT ? &c->cells[idx] : NULL;
    }
    TABLE_ADD(rows->table, c->id, r->id, c->stack->label, shown ? shown->printed : STR_EMPTY,
              shown ? shown->unit : STR_EMPTY, count(rows, c->n_logs));
}

static int list_cases(struct rows *rows, struct err *err)
{
    struct report_set set;
    if (load_reports_of(rows->arena, rows->ctx->root, rows->reports, rows->reports->n == 0, &set,
                        err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < set.n; idx++) {
        for (size_t at = 0; at < set.items[idx].n_cases; at++) {
            add_case(rows, &set.items[idx], &set.items[idx].cases[at]);
        }
    }
    return 0;
}

static int list_formats(struct rows *rows, struct err *err)
{
    CLEANUP(format_set) struct format_set set = {0};
    if (load_formats(rows->arena, rows->ctx->root, &set, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < set.n; idx++) {
        TABLE_ADD(rows->table, set.items[idx]->id, set.items[idx]->framework,
                  count(rows, set.items[idx]->n_rules), set.items[idx]->title);
    }
    return 0;
}

static int list_rules(struct rows *rows, struct err *err)
{
    CLEANUP(format_set) struct format_set set = {0};
    CLEANUP(strbuf) struct strbuf text = STRBUF(LIST_BYTES_MAX);
    if (load_formats(rows->arena, rows->ctx->root, &set, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < set.n; idx++) {
        const struct rule *rules = set.items[idx]->rules;
        for (size_t at = 0; at < set.items[idx]->n_rules; at++) {
            strbuf_clear(&text);
            rule_describe(&rules[at], &text);
            TABLE_ADD(rows->table, rules[at].id, rules[at].origin, strbuf_str(&text));
        }
    }
    return 0;
}

static int list_findings(struct rows *rows, struct err *err UNUSED)
{
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        TABLE_ADD(rows->table, str_of(FINDING_RULES[idx].id),
                  str_of(FINDING_LEVEL_NAMES[FINDING_RULES[idx].level]),
                  str_of(FINDING_RULES[idx].title));
    }
    return 0;
}

static int list_images(struct rows *rows, struct err *err)
{
    static const char *const KEYS[] = {"name", "tag", "digest", "status"};
    struct fs_names names;
    if (places_names(rows->arena, rows->ctx->root, "images", &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        CLEANUP(json_doc) struct json_doc doc = {0};
        const char *path = places_path(rows->arena, rows->ctx->root, "images",
                                       fs_join(rows->arena, names.items[idx], "image.json"));
        if (!fs_exists(path)) {
            continue;
        }
        if (json_read_file(path, &doc, err) < 0) {
            return -1;
        }
        table_add(rows->table, str_of(names.items[idx]));
        for (size_t key = 0; key < ARRAY_LEN(KEYS); key++) {
            struct json member;
            struct str text = STR_EMPTY;
            if (json_member(&doc.root, KEYS[key], &member, err) < 0 ||
                (!json_is_null(&member) && json_str(&member, rows->arena, &text, err) < 0)) {
                return -1;
            }
            table_add(rows->table, text);
        }
    }
    return 0;
}

/* How far it is in the store: "absent", "partial", "archives", "tree"; "-" for what has no such thing. */
static struct str dataset_text(const struct rows *rows, const struct store *store,
                               const struct dataset_here *here)
{
    return str_of(here->dataset.is_synthetic ? "-"
                  : store ? DATASET_STATE_NAMES[dataset_state(rows->arena, store, here)]
                          : DATASET_STATE_NAMES[DATASET_ABSENT]);
}

static int add_dataset(struct rows *rows, const struct store *store, const char *id,
                       struct err *err)
{
    struct dataset_which which = {.root = rows->ctx->root, .id = id};
    struct dataset_here here, twin;
    struct err none = {0};
    if (dataset_load(rows->arena, &which, &here, err) < 0) {
        return -1;
    }
    which.is_synthetic = true;
    bool has_twin = dataset_load(rows->arena, &which, &twin, &none) == 0;
    if (!has_twin && none.code != ERR_USAGE) {
        return err_pass(err, &none);
    }
    TABLE_ADD(rows->table, str_of(id), dataset_text(rows, store, &here),
              has_twin ? dataset_text(rows, store, &twin) : STR_LIT("-"), here.dataset.title,
              here.dataset.licence);
    return 0;
}

static int list_datasets(struct rows *rows, struct err *err)
{
    CLEANUP(store) struct store store = STORE_EMPTY;
    bool has_store = fs_is_dir(fs_join(rows->arena, rows->ctx->store, "blobs/sha256"));
    struct fs_names names;
    if (places_names(rows->arena, rows->ctx->root, "datasets", &names, err) < 0 ||
        (has_store && store_open(rows->arena, rows->ctx->store, &store, err) < 0)) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        if (fs_exists(places_path(rows->arena, rows->ctx->root, "datasets",
                                  fs_join(rows->arena, names.items[idx], "dataset.json"))) &&
            add_dataset(rows, has_store ? &store : NULL, names.items[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int list_inventories(struct rows *rows, struct err *err)
{
    struct inventory_set set;
    if (inventory_load_all(rows->arena, rows->ctx->root, &set, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < set.n; idx++) {
        const struct inventory *inventory = &set.items[idx];
        int64_t n_gpus = 0;
        for (size_t at = 0; at < inventory->n_nodes; at++) {
            n_gpus += inventory->nodes[at].gpus;
        }
        TABLE_ADD(rows->table, inventory->id, count(rows, inventory->n_nodes),
                  count(rows, (size_t)n_gpus), str_of(runtime_kind_label(inventory->runtime)),
                  str_of(LAUNCHER_KIND_NAMES[inventory->launcher]), inventory->title);
    }
    return 0;
}

static int list_runs(struct rows *rows, struct err *err)
{
    const char *folder = fs_join(rows->arena, rows->ctx->state, "runs");
    struct fs_names names;
    if (!fs_is_dir(folder)) {
        return 0;
    }
    if (fs_list(rows->arena, folder, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        const char *path = fs_join(rows->arena, folder, names.items[idx]);
        if (fs_is_dir(path)) {
            TABLE_ADD(rows->table, str_of(names.items[idx]), str_of(path));
        }
    }
    return 0;
}

static const struct kind {
    const char *name;
    int (*list)(struct rows *rows, struct err *err);
    const char *columns;
} KINDS[] = {
    {"reports", list_reports, "report|>cases|>cells|date|title"},
    {"cases", list_cases, "case|report|framework|>published|unit|>logs"},
    {"datasets", list_datasets, "dataset|store|synthetic|title|licence"},
    {"images", list_images, "image|name|tag|digest|status"},
    {"formats", list_formats, "format|framework|>rules|title"},
    {"rules", list_rules, "rule|origin|what it does"},
    {"findings", list_findings, "finding|level|title"},
    {"inventories", list_inventories, "inventory|>nodes|>gpus|runtime|launcher|title"},
    {"runs", list_runs, "run|folder"},
};

/* A column's head as a JSON key: blanks become underscores; the id column is always "id", and a synthetic dataset's "twin". */
static const char *json_key(struct arena *arena, struct str head, bool is_id)
{
    char *key = arena_printf(arena, "%.*s", STR_ARG(head));
    for (char *c = key; *c; c++) {
        *c = *c == ' ' ? '_' : *c;
    }
    return is_id ? "id" : str_eq_z(head, "synthetic") ? "twin" : key;
}

static int add_json(struct rows *rows, const struct kind *kind, struct strbuf *out, struct err *err)
{
    struct json_out json;
    const struct table *table = rows->table;
    jw_document(&json, out);
    jw_array(&json, kind->name);
    for (size_t row = 0; row < table->n_cells; row += table->n_columns) {
        jw_object(&json, NULL);
        for (size_t column = 0; column < table->n_columns; column++) {
            struct str head = table->columns[column].head;
            struct str text = table->cells[row + column];
            const char *key = json_key(rows->arena, head, column == 0);
            int64_t count;
            if (text.len == 0) {
                jw_null(&json, key);
            } else if (!table->columns[column].is_right || str_eq_z(head, "published")) {
                jw_str(&json, key, text);
            } else if (str_to_i64(text, 0, INT64_MAX, &count, err) < 0) {
                return -1;
            } else {
                jw_i64(&json, key, count);
            }
        }
        jw_end_object(&json);
    }
    jw_end_array(&json);
    jw_end_object(&json);
    strbuf_add_char(out, '\n');
    return 0;
}

static int print_rows(struct rows *rows, const struct kind *kind, const struct args *args,
                      struct strbuf *out, struct err *err)
{
    if (args->want_json) {
        return add_json(rows, kind, out, err);
    }
    if (args->want_ids) {
        for (size_t row = 0; row < rows->table->n_cells; row += rows->table->n_columns) {
            strbuf_add_str(out, rows->table->cells[row]);
            strbuf_add_char(out, '\n');
        }
    } else {
        table_render(rows->table, out);
    }
    return 0;
}

static int run_list(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    CLEANUP(table) struct table table = {0};
    struct args *args = call->args;
    const char *name = call->operands.n ? call->operands.items[0] : "reports";
    const struct kind *kind = Z_NAMED(KINDS, ARRAY_LEN(KINDS), name, str_of(name));
    if (!kind) {
        struct nearest nearest = nearest_to(name);
        char text[NEAREST_TEXT_MAX];
        for (size_t idx = 0; idx < ARRAY_LEN(KINDS); idx++) {
            nearest_offer(&nearest, KINDS[idx].name);
        }
        return err_set(err, ERR_USAGE,
                       "list: expected reports, cases, datasets, images, formats, rules, findings, "
                       "inventories or runs, found \"%.60s\"%s",
                       name, nearest_text(&nearest, text));
    }
    if (call->operands.n > 2 || (call->operands.n == 2 && kind->list != list_cases)) {
        return err_set(err, ERR_USAGE, "list %s: unexpected operand \"%.60s\"", kind->name,
                       call->operands.items[call->operands.n - 1]);
    }
    if (args->want_ids && args->want_json) {
        return err_set(err, ERR_USAGE, "list: --ids and --json exclude each other");
    }
    table = table_of(kind->columns);
    struct opt_list reports = {.items = call->operands.n > 1 ? call->operands.items + 1 : NULL,
                               .n = call->operands.n > 1 ? call->operands.n - 1 : 0};
    struct rows rows = {ctx, call->arena, &reports, &table};
    return kind->list(&rows, err) < 0 ? -1 : print_rows(&rows, kind, args, call->out, err);
}

const struct cmd CMD_LIST =
    CMD("list", "[reports|cases|datasets|images|formats|rules|findings|inventories|runs] [REPORT]",
        "list reports (default), cases, datasets, images, formats, inventories, runs, ...", OPTS,
        run_list, CMD_ARGS(struct args));
