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

struct list_args {
    bool want_json;
    bool want_ids;
};

static const struct opt OPTS[] = {
    OPT(struct list_args, want_ids, "ids", "only the ids, one a line"),
    OPT(struct list_args, want_json, "json", "one JSON document"),
    OPT_END,
};

/* Rows in the making: the table's first column is the id. */
struct rows {
    struct arena *arena;
    const char *root;
    const char *state;
    const char *store;
    const char *report; /* of list cases REPORT, or NULL */
    struct table *table;
};

static void add_count(struct rows *rows, size_t n)
{
    table_addf(rows->table, "%zu", n);
}

static const struct table_column REPORT_COLUMNS[] = {
    {"report", false}, {"cases", true}, {"cells", true}, {"date", false}, {"title", false}};

static int list_reports(struct rows *rows, struct err *err)
{
    struct report_set set;
    if (load_all_reports(rows->arena, rows->root, &set, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < set.n; idx++) {
        const struct report *r = &set.items[idx];
        size_t n_cells = 0;
        for (size_t at = 0; at < r->n_cases; at++) {
            n_cells += r->cases[at].n_cells;
        }
        table_add(rows->table, r->id);
        add_count(rows, r->n_cases);
        add_count(rows, n_cells);
        table_add(rows->table, r->source.date);
        table_add(rows->table, r->title);
    }
    return 0;
}

static const struct table_column CASE_COLUMNS[] = {{"case", false},      {"report", false},
                                                   {"framework", false}, {"published", true},
                                                   {"unit", false},      {"logs", true}};

static void add_case(struct rows *rows, const struct report *r, const struct report_case *c)
{
    const struct cell *shown = NULL;
    for (size_t idx = 0; idx < c->n_cells && !shown; idx++) {
        shown = c->cells[idx].metric == METRIC_THROUGHPUT ? &c->cells[idx] : NULL;
    }
    table_add(rows->table, c->id);
    table_add(rows->table, r->id);
    table_add(rows->table, c->stack->label);
    table_add(rows->table, shown ? shown->printed : STR_EMPTY);
    table_add(rows->table, shown ? shown->unit : STR_EMPTY);
    add_count(rows, c->n_logs);
}

static int list_cases(struct rows *rows, struct err *err)
{
    struct report_set set = {0};
    struct report one;
    if (rows->report) {
        if (load_report(rows->arena, rows->root, rows->report, &one, err) < 0) {
            return -1;
        }
        set = (struct report_set){&one, 1};
    } else if (load_all_reports(rows->arena, rows->root, &set, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < set.n; idx++) {
        for (size_t at = 0; at < set.items[idx].n_cases; at++) {
            add_case(rows, &set.items[idx], &set.items[idx].cases[at]);
        }
    }
    return 0;
}

static const struct table_column FORMAT_COLUMNS[] = {
    {"format", false}, {"framework", false}, {"rules", true}, {"title", false}};

static int list_formats(struct rows *rows, struct err *err)
{
    CLEANUP(format_set) struct format_set set = {0};
    if (load_formats(rows->arena, rows->root, &set, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < set.n; idx++) {
        const struct rule *rules;
        table_add(rows->table, format_id(set.items[idx]));
        table_add(rows->table, format_framework(set.items[idx]));
        add_count(rows, format_rules(set.items[idx], &rules));
        table_add(rows->table, format_title(set.items[idx]));
    }
    return 0;
}

static const struct table_column RULE_COLUMNS[] = {
    {"rule", false}, {"origin", false}, {"what it does", false}};

static int list_rules(struct rows *rows, struct err *err)
{
    CLEANUP(format_set) struct format_set set = {0};
    CLEANUP(strbuf) struct strbuf text = STRBUF(LIST_BYTES_MAX);
    if (load_formats(rows->arena, rows->root, &set, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < set.n; idx++) {
        const struct rule *rules;
        size_t n_rules = format_rules(set.items[idx], &rules);
        for (size_t at = 0; at < n_rules; at++) {
            strbuf_clear(&text);
            rule_describe(&rules[at], &text);
            table_add(rows->table, rules[at].id);
            table_add(rows->table, rules[at].origin);
            table_add(rows->table, strbuf_str(&text));
        }
    }
    return 0;
}

static const struct table_column FINDING_COLUMNS[] = {
    {"finding", false}, {"level", false}, {"title", false}};

static int list_findings(struct rows *rows, struct err *err UNUSED)
{
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        table_add(rows->table, str_of(FINDING_RULES[idx].id));
        table_add(rows->table, str_of(finding_level_name(FINDING_RULES[idx].level)));
        table_add(rows->table, str_of(FINDING_RULES[idx].title));
    }
    return 0;
}

/* A kind that lives in folders: ROOT/FOLDER/ID/FILE, and the members of FILE that the columns after the id show. */
static int list_folders(struct rows *rows, const char *folder, const char *file,
                        const char *const *keys, size_t n_keys, struct err *err)
{
    struct fs_names names;
    if (places_names(rows->arena, rows->root, folder, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        CLEANUP(json_doc) struct json_doc doc = {0};
        const char *path = places_path(rows->arena, rows->root, folder,
                                       fs_join(rows->arena, names.items[idx], file));
        if (!fs_exists(path)) {
            continue;
        }
        if (json_read_file(path, &doc, err) < 0) {
            return -1;
        }
        struct json root = json_root(&doc);
        table_add(rows->table, str_of(names.items[idx]));
        for (size_t key = 0; key < n_keys; key++) {
            struct json member;
            struct str text = STR_EMPTY;
            if (json_member(&root, keys[key], &member, err) < 0 ||
                (!json_is_null(&member) && json_str(&member, rows->arena, &text, err) < 0)) {
                return -1;
            }
            table_add(rows->table, text);
        }
    }
    return 0;
}

static const struct table_column DATASET_COLUMNS[] = {{"dataset", false},
                                                      {"store", false},
                                                      {"synthetic", false},
                                                      {"title", false},
                                                      {"licence", false}};

/* How far it is in the store: "absent", "partial", "archives", "tree"; "-" for what has no such thing. */
static int add_dataset_state(struct rows *rows, const struct store *store, const char *id,
                             bool is_synthetic, struct err *err)
{
    struct dataset_here here;
    struct err none = {0};
    if (dataset_load(rows->arena, &(struct dataset_which){rows->root, NULL, id, is_synthetic},
                     &here, &none) < 0) {
        if (is_synthetic && none.code == ERR_USAGE) {
            table_add(rows->table, STR_LIT("-"));
            return 0;
        }
        *err = none;
        return -1;
    }
    table_add(rows->table,
              str_of(here.dataset.is_synthetic ? "-"
                     : store ? dataset_state_name(dataset_state(rows->arena, store, &here))
                             : dataset_state_name(DATASET_ABSENT)));
    return 0;
}

static int list_datasets(struct rows *rows, struct err *err)
{
    CLEANUP(store) struct store store = STORE_EMPTY;
    bool has_store = fs_is_dir(fs_join(rows->arena, rows->store, "blobs/sha256"));
    struct fs_names names;
    if (places_names(rows->arena, rows->root, "datasets", &names, err) < 0 ||
        (has_store && store_open(rows->arena, rows->store, &store, err) < 0)) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        const char *id = names.items[idx];
        struct dataset_here here;
        if (!fs_exists(places_path(rows->arena, rows->root, "datasets",
                                   fs_join(rows->arena, id, "dataset.json")))) {
            continue;
        }
        table_add(rows->table, str_of(id));
        if (add_dataset_state(rows, has_store ? &store : NULL, id, false, err) < 0 ||
            add_dataset_state(rows, has_store ? &store : NULL, id, true, err) < 0 ||
            dataset_load(rows->arena, &(struct dataset_which){rows->root, NULL, id, false}, &here,
                         err) < 0) {
            return -1;
        }
        table_add(rows->table, here.dataset.title);
        table_add(rows->table, here.dataset.licence);
    }
    return 0;
}

static const struct table_column IMAGE_COLUMNS[] = {
    {"image", false}, {"name", false}, {"tag", false}, {"digest", false}, {"status", false}};

static int list_images(struct rows *rows, struct err *err)
{
    static const char *const KEYS[] = {"name", "tag", "digest", "status"};
    return list_folders(rows, "images", "image.json", KEYS, ARRAY_LEN(KEYS), err);
}

static const struct table_column INVENTORY_COLUMNS[] = {{"inventory", false}, {"nodes", true},
                                                        {"gpus", true},       {"runtime", false},
                                                        {"launcher", false},  {"title", false}};

static int list_inventories(struct rows *rows, struct err *err)
{
    struct inventory_set set;
    if (inventory_load_all(rows->arena, rows->root, &set, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < set.n; idx++) {
        const struct inventory *inventory = &set.items[idx];
        int64_t n_gpus = 0;
        for (size_t at = 0; at < inventory->n_nodes; at++) {
            n_gpus += inventory->nodes[at].gpus;
        }
        table_add(rows->table, inventory->id);
        add_count(rows, inventory->n_nodes);
        add_count(rows, (size_t)n_gpus);
        table_add(rows->table, str_of(runtime_kind_label(inventory->runtime)));
        table_add(rows->table, str_of(launcher_kind_name(inventory->launcher)));
        table_add(rows->table, inventory->title);
    }
    return 0;
}

static const struct table_column RUN_COLUMNS[] = {{"run", false}, {"folder", false}};

static int list_runs(struct rows *rows, struct err *err)
{
    const char *folder = fs_join(rows->arena, rows->state, "runs");
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
            table_add(rows->table, str_of(names.items[idx]));
            table_add(rows->table, str_of(path));
        }
    }
    return 0;
}

static const struct kind {
    const char *name;
    int (*list)(struct rows *rows, struct err *err);
    const struct table_column *columns;
    size_t n_columns;
} KINDS[] = {
    {"reports", list_reports, REPORT_COLUMNS, ARRAY_LEN(REPORT_COLUMNS)},
    {"cases", list_cases, CASE_COLUMNS, ARRAY_LEN(CASE_COLUMNS)},
    {"datasets", list_datasets, DATASET_COLUMNS, ARRAY_LEN(DATASET_COLUMNS)},
    {"images", list_images, IMAGE_COLUMNS, ARRAY_LEN(IMAGE_COLUMNS)},
    {"formats", list_formats, FORMAT_COLUMNS, ARRAY_LEN(FORMAT_COLUMNS)},
    {"rules", list_rules, RULE_COLUMNS, ARRAY_LEN(RULE_COLUMNS)},
    {"findings", list_findings, FINDING_COLUMNS, ARRAY_LEN(FINDING_COLUMNS)},
    {"inventories", list_inventories, INVENTORY_COLUMNS, ARRAY_LEN(INVENTORY_COLUMNS)},
    {"runs", list_runs, RUN_COLUMNS, ARRAY_LEN(RUN_COLUMNS)},
};

/* A column's head as a JSON key: blanks become underscores; the id column is always "id", and a synthetic dataset's "synthetic dataset". */
static const char *json_key(struct arena *arena, const struct kind *kind, size_t column)
{
    if (column && str_eq_z(str_of(kind->columns[column].head), "synthetic")) {
        return "twin";
    }
    char *key = arena_printf(arena, "%s", column ? kind->columns[column].head : "id");
    for (char *c = key; *c; c++) {
        *c = *c == ' ' ? '_' : *c;
    }
    return key;
}

static int add_json(struct rows *rows, const struct kind *kind, struct strbuf *out, struct err *err)
{
    struct json_out json;
    const struct table *table = rows->table;
    jw_document(&json, out);
    jw_array(&json, kind->name);
    for (size_t row = 0; row < table->n_cells; row += kind->n_columns) {
        jw_object(&json, NULL);
        for (size_t column = 0; column < kind->n_columns; column++) {
            struct str text = table->cells[row + column];
            const char *key = json_key(rows->arena, kind, column);
            int64_t count;
            if (text.len == 0) {
                jw_null(&json, key);
            } else if (!kind->columns[column].is_right || str_eq_z(str_of(key), "published")) {
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

static int print_rows(struct rows *rows, const struct kind *kind, const struct list_args *args,
                      struct strbuf *out, struct err *err)
{
    if (args->want_json) {
        return add_json(rows, kind, out, err);
    }
    if (args->want_ids) {
        for (size_t row = 0; row < rows->table->n_cells; row += kind->n_columns) {
            strbuf_add_str(out, rows->table->cells[row]);
            strbuf_add_char(out, '\n');
        }
    } else {
        table_render(rows->table, out);
    }
    return 0;
}

static const struct kind *find_kind(const char *name)
{
    return Z_NAMED(KINDS, ARRAY_LEN(KINDS), name, str_of(name));
}

static int run_list(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    CLEANUP(table) struct table table = {0};
    struct list_args *args = call->args;
    const char *name = call->operands.n ? call->operands.items[0] : "reports";
    const struct kind *kind = find_kind(name);
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
    table_init(&table, kind->columns, kind->n_columns);
    struct rows rows = {call->arena,
                        ctx->root,
                        ctx->state,
                        ctx->store,
                        call->operands.n == 2 ? call->operands.items[1] : NULL,
                        &table};
    return kind->list(&rows, err) < 0 ? -1 : print_rows(&rows, kind, args, call->out, err);
}

const struct cmd CMD_LIST =
    CMD("list", "[reports|cases|datasets|images|formats|rules|findings|inventories|runs] [REPORT]",
        "list reports (default), cases, datasets, images, formats, inventories, runs, ...", OPTS,
        run_list, CMD_ARGS(struct list_args));
