/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/history_nodes.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/table.h"
#include "codec/json.h"
#include "judge/bench_doc.h"
#include "report/inventory.h"

#define OUTPUT_MAX (16u << 20)
#define NAME_END   ".json"

static int read_doc(struct arena *arena, const char *path, struct bench_doc *ret_doc,
                    struct err *err)
{
    struct str text;
    return fs_read(arena, path, BENCH_DOC_BYTES_MAX, &text, err) < 0
               ? -1
               : bench_doc_read(arena, text, path, ret_doc, err);
}

struct kept_row {
    const struct bench_doc *doc;
    const char *path, *archive; /* NULL: not sealed */
};

/* Those that there is something against, in order; NULL after the last. */
static const struct bench_doc_node *next_against(const struct bench_doc *doc, size_t *idx,
                                                 bool is_outlier)
{
    while (*idx < doc->n_nodes) {
        const struct bench_doc_node *node = &doc->nodes[(*idx)++];
        if (node->against.ptr && node->is_outlier == is_outlier) {
            return node;
        }
    }
    return NULL;
}

static struct str against(struct arena *arena, const struct bench_doc *doc, bool is_outlier)
{
    CLEANUP(strbuf) struct strbuf text;
    const struct bench_doc_node *node;
    size_t idx = 0;
    strbuf_init(&text, OUTPUT_MAX);
    while ((node = next_against(doc, &idx, is_outlier))) {
        strbuf_printf(&text, "%s%.*s", text.len ? " " : "", STR_ARG(node->name));
    }
    for (size_t at = 0; is_outlier && at < doc->n_slow_links; at++) {
        strbuf_printf(&text, "%s%.*s->%.*s", text.len ? " " : "", STR_ARG(doc->slow_links[at].from),
                      STR_ARG(doc->slow_links[at].to));
    }
    return str_dup(arena, text.len ? strbuf_str(&text) : STR_LIT("-"));
}

static void put_names(struct json_out *out, const char *key, const struct bench_doc *doc,
                      bool is_outlier)
{
    const struct bench_doc_node *node;
    size_t idx = 0;
    jw_array(out, key);
    while ((node = next_against(doc, &idx, is_outlier))) {
        jw_str(out, NULL, node->name);
    }
    jw_end_array(out);
}

static void put_bench(struct json_out *out, const struct kept_row *row)
{
    const struct bench_doc *doc = row->doc;
    jw_object(out, NULL);
    jw_str(out, "time", doc->time);
    jw_str(out, "inventory", doc->inventory);
    jw_i64(out, "nodes", (int64_t)doc->n_nodes);
    put_names(out, "outliers", doc, true);
    put_names(out, "not_measured", doc, false);
    jw_array(out, "slow_links");
    for (size_t idx = 0; idx < doc->n_slow_links; idx++) {
        jw_str(out, NULL, doc->slow_links[idx].name);
    }
    jw_end_array(out);
    jw_z(out, "file", row->path);
    jw_z(out, "archive", row->archive);
    jw_end_object(out);
}

static void add_row(struct arena *arena, struct table *table, const struct kept_row *row)
{
    const struct bench_doc *doc = row->doc;
    table_add(table, doc->time);
    table_add(table, doc->inventory);
    table_addf(table, "%zu", doc->n_nodes);
    table_add(table, against(arena, doc, true));
    table_add(table, against(arena, doc, false));
    table_add(table, str_of(row->path));
    table_add(table, str_of(row->archive ? strrchr(row->archive, '/') + 1 : "-"));
}

int history_nodes(const struct cmd_ctx *ctx, bool want_json, struct err *err)
{
    static const struct table_column COLUMNS[] = {
        {"time", false},         {"inventory", false}, {"nodes", true},   {"outliers", false},
        {"not measured", false}, {"file", false},      {"archive", false}};
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf text;
    const char *folder = fs_join(&arena, ctx->state, BENCH_HISTORY_FOLDER);
    struct fs_names names = {0};
    struct err first = {0};
    struct table table;
    struct json_out out;
    strbuf_init(&text, OUTPUT_MAX);
    if (fs_is_dir(folder) && fs_list(&arena, folder, &names, err) < 0) {
        return -1;
    }
    table_init(&table, COLUMNS, ARRAY_LEN(COLUMNS));
    jw_begin(&out, &text, false);
    if (want_json) {
        jw_object(&out, NULL);
        jw_i64(&out, "schema_version", 1);
        jw_array(&out, "benches");
    }
    for (size_t idx = 0; idx < names.n; idx++) { /* by name, which is by time */
        CLEANUP(arena) struct arena own = ARENA_EMPTY;
        const char *path = fs_join(&own, folder, names.items[idx]);
        struct str stem = str_sub(str_of(path), 0, strlen(path) - strlen(NAME_END));
        const char *archive = arena_printf(&own, "%.*s.tar.zst", STR_ARG(stem));
        struct bench_doc doc;
        struct kept_row row = {&doc, path, fs_exists(archive) ? archive : NULL};
        struct err why = {0};
        if (!str_ends(str_of(path), str_of(NAME_END))) {
            continue; /* an archive of one */
        }
        if (read_doc(&own, path, &doc, &why) < 0) {
            log_line(LOG_WARN, "%s", why.msg);
            first = first.code == ERR_NONE ? why : first;
        } else if (want_json) {
            put_bench(&out, &row);
        } else {
            add_row(&own, &table, &row);
        }
    }
    if (want_json) {
        jw_end_array(&out);
        jw_end_object(&out);
    } else {
        table_render(&table, &text);
    }
    table_release(&table);
    if (text.is_full) {
        return err_set(err, ERR_INTERNAL, "more than %u bytes to print", OUTPUT_MAX);
    }
    if (cmd_print(strbuf_str(&text), err) < 0) {
        return -1;
    }
    *err = first;
    return first.code == ERR_NONE ? 0 : -1;
}

int history_gate(const char *path, const struct inventory *inventory, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str *names = arena_array(&arena, struct str, inventory->n_nodes + 1);
    struct bench_doc doc;
    for (size_t idx = 0; idx < inventory->n_nodes; idx++) {
        names[idx] = inventory->nodes[idx].name;
    }
    if (read_doc(&arena, path, &doc, err) < 0) {
        return -1;
    }
    if (bench_doc_admits(&doc, inventory->id, names, inventory->n_nodes, err) < 0) {
        return err_wrap(err, "gate %s (%.*s)", path, STR_ARG(doc.time));
    }
    log_line(LOG_INFO, "gate %s: %zu nodes measured at %.*s, nothing against any", path,
             inventory->n_nodes, STR_ARG(doc.time));
    if (doc.n_alone > 0) {
        log_line(LOG_WARN, "gate %s: of %zu nodes some figures could not be compared with others'",
                 path, doc.n_alone);
    }
    return 0;
}
