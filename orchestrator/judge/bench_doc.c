/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/bench_doc.h"

#include "codec/json.h"
#include "judge/node_bench.h"
#include "report/inventory.h"

#define NODES_MAX    INVENTORY_NODES_MAX
#define OUTLIERS_MAX ((size_t)NODES_MAX * BENCH_MEASURES)
#define LINKS_MAX    (1u << 24)

/* null: "". */
static int member_str(const struct json *at, const char *key, struct arena *arena, struct str *ret,
                      struct err *err)
{
    struct json member;
    if (json_member(at, key, &member, err) < 0) {
        return -1;
    }
    if (json_is_null(&member)) {
        *ret = STR_EMPTY;
        return 0;
    }
    return json_str(&member, arena, ret, err);
}

/* 1: this figure is an outlier's. */
static int read_figure(const struct json *at, struct arena *arena, struct bench_doc_node *node,
                       struct err *err)
{
    struct str measure, verdict, message;
    if (member_str(at, "measure", arena, &measure, err) < 0 ||
        member_str(at, "verdict", arena, &verdict, err) < 0 ||
        member_str(at, "message", arena, &message, err) < 0) {
        return -1;
    }
    if (!bench_measure_of(measure)) {
        return json_fail(at, err, "\"%.*s\" is no measure", STR_ARG(str_sub(measure, 0, 100)));
    }
    if (str_eq_z(verdict, bench_verdict_name(BENCH_OUTLIER)) && !message.len) {
        return json_fail(at, err, "an outlier without a word why");
    }
    for (int idx = BENCH_WITHIN; idx <= BENCH_NOT_MEASURED; idx++) {
        if (str_eq_z(verdict, bench_verdict_name((enum bench_verdict)idx))) {
            node->n_measured += idx != BENCH_NOT_MEASURED;
            if (idx == BENCH_OUTLIER && !node->is_outlier) {
                node->is_outlier = true;
                node->against = message;
            }
            return idx == BENCH_OUTLIER;
        }
    }
    return json_fail(at, err, "\"%.*s\" is no verdict", STR_ARG(str_sub(verdict, 0, 100)));
}

/* Counts those that are an outlier's. */
static int read_figures(const struct json *list, struct arena *arena, struct bench_doc_node *node,
                        int64_t *n_outliers, struct err *err)
{
    struct json item;
    for (bool more = json_first(list, &item); more; more = json_next(&item)) {
        int is_outlier = read_figure(&item, arena, node, err);
        if (is_outlier < 0) {
            return -1;
        }
        *n_outliers += is_outlier;
    }
    return 0;
}

static int read_node(const struct json *at, struct arena *arena, struct bench_doc_node *node,
                     int64_t *n_outliers, struct err *err)
{
    struct json figures, error;
    size_t n;
    if (member_str(at, "node", arena, &node->name, err) < 0 ||
        json_member(at, "error", &error, err) < 0 ||
        json_member(at, "figures", &figures, err) < 0 ||
        json_expect_array(&figures, BENCH_MEASURES, &n, err) < 0 ||
        read_figures(&figures, arena, node, n_outliers, err) < 0) {
        return -1;
    }
    if (json_is_null(&error)) {
        return 0;
    }
    if (member_str(&error, "message", arena, &node->against, err) < 0) {
        return -1;
    }
    return node->against.len ? 0 : json_fail(&error, err, "an error without a word why");
}

static const struct bench_doc_node *find(const struct bench_doc *doc, struct str name)
{
    for (size_t idx = 0; idx < doc->n_nodes; idx++) {
        if (str_eq(doc->nodes[idx].name, name)) {
            return &doc->nodes[idx];
        }
    }
    return NULL;
}

static int count_links(const struct json *root, struct arena *arena, int64_t *n_outliers,
                       struct err *err)
{
    struct bench_doc_node nobody = {0};
    struct json list;
    size_t n;
    if (json_member(root, "links", &list, err) < 0 ||
        json_expect_array(&list, LINKS_MAX, &n, err) < 0) {
        return -1;
    }
    return read_figures(&list, arena, &nobody, n_outliers, err);
}

static int read_nodes(const struct json *root, struct arena *arena, struct bench_doc *doc,
                      int64_t *n_outliers, struct err *err)
{
    struct json list, item;
    size_t n;
    if (json_member(root, "nodes", &list, err) < 0 ||
        json_expect_array(&list, NODES_MAX, &n, err) < 0) {
        return -1;
    }
    doc->nodes = arena_array(arena, struct bench_doc_node, n + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        struct bench_doc_node *node = &doc->nodes[doc->n_nodes];
        if (read_node(&item, arena, node, n_outliers, err) < 0) {
            return -1;
        }
        if (find(doc, node->name)) {
            return json_fail(&item, err, "two nodes are called %.*s",
                             STR_ARG(str_sub(node->name, 0, 100)));
        }
        doc->n_nodes++;
        doc->n_outliers += node->is_outlier;
        doc->n_failed += node->against.ptr && !node->is_outlier;
    }
    return 0;
}

static int read_doc(const struct json *root, struct arena *arena, struct bench_doc *doc,
                    struct err *err)
{
    struct json member;
    size_t n_listed;
    int64_t version, status, n_outliers = 0;
    if (json_member(root, "schema_version", &member, err) < 0 ||
        json_i64(&member, 1, 1, &version, err) < 0 ||
        member_str(root, "inventory", arena, &doc->inventory, err) < 0 ||
        member_str(root, "time", arena, &doc->time, err) < 0 ||
        json_member(root, "exit_status", &member, err) < 0 ||
        json_i64(&member, 0, 255, &status, err) < 0 ||
        json_member(root, "outliers", &member, err) < 0 ||
        json_expect_array(&member, OUTLIERS_MAX, &n_listed, err) < 0 ||
        read_nodes(root, arena, doc, &n_outliers, err) < 0 ||
        count_links(root, arena, &n_outliers, err) < 0) {
        return -1;
    }
    if (n_outliers != (int64_t)n_listed) {
        return json_fail(&member, err, "%zu outliers, and %lld figures that are one", n_listed,
                         (long long)n_outliers);
    }
    if (status == 0 && (n_outliers || doc->n_failed)) {
        return json_fail(root, err, "exit_status 0, with outliers or nodes that failed");
    }
    return 0;
}

int bench_doc_read(struct arena *arena, struct str text, const char *name,
                   struct bench_doc *ret_doc, struct err *err)
{
    CLEANUP(json_doc) struct json_doc json = {0};
    struct bench_doc doc = {0};
    struct json root;
    if (json_parse(text, name, &json, err) < 0) {
        return -1;
    }
    root = json_root(&json);
    if (read_doc(&root, arena, &doc, err) < 0) {
        return -1;
    }
    *ret_doc = doc;
    return 0;
}

int bench_doc_admits(const struct bench_doc *doc, struct str inventory, const struct str *names,
                     size_t n, struct err *err)
{
    if (!str_eq(doc->inventory, inventory)) {
        return err_set(err, ERR_NODE, "it measured the nodes of %.*s, not of %.*s",
                       STR_ARG(str_sub(doc->inventory, 0, 100)), STR_ARG(inventory));
    }
    for (size_t idx = 0; idx < n; idx++) {
        const struct bench_doc_node *node = find(doc, names[idx]);
        if (!node || (!node->n_measured && !node->against.ptr)) {
            return err_set(err, ERR_NODE, "%.*s: not measured", STR_ARG(names[idx]));
        }
        if (node->against.ptr) {
            return err_set(err, ERR_NODE, "%.*s: %.*s", STR_ARG(names[idx]),
                           STR_ARG(str_sub(node->against, 0, 300)));
        }
    }
    return 0;
}
