/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/bench_doc.h"

#include <math.h>

#include "codec/json.h"
#include "judge/bench_judge.h"
#include "report/inventory.h"

#define LIST_MAX   (1u << 24)
#define NODES_MIN  3
#define NEAR       1e-9 /* relative; another machine's arithmetic may differ by less */
#define NAME_SHOWN 100

struct doc_reading {
    struct arena *arena;
    const struct json *root;
    struct bench_doc doc;
    struct bench_limits limits;
    bool has_limit[BENCH_MEASURES];
    struct bench_all all;
    struct bench_figure **stated; /* of each node, as in the document; measure NULL: not listed */
    struct bench_figure *stated_links;
    enum err_code first_error; /* of a node */
};

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

/* null: NAN. */
static int member_f64(const struct json *at, const char *key, double *ret, struct err *err)
{
    struct json member;
    if (json_member(at, key, &member, err) < 0) {
        return -1;
    }
    *ret = (double)NAN;
    return json_is_null(&member) ? 0 : json_f64(&member, ret, err);
}

static int member_i64(const struct json *at, const char *key, int64_t most, int64_t *ret,
                      struct err *err)
{
    struct json member;
    return json_member(at, key, &member, err) < 0 ? -1 : json_i64(&member, 0, most, ret, err);
}

static int member_list(const struct json *at, const char *key, size_t most, struct json *ret,
                       size_t *ret_n, struct err *err)
{
    return json_member(at, key, ret, err) < 0 ? -1 : json_expect_array(ret, most, ret_n, err);
}

static int member_measure(const struct json *at, struct arena *arena,
                          const struct bench_measure **ret, struct err *err)
{
    struct str id;
    if (member_str(at, "measure", arena, &id, err) < 0) {
        return -1;
    }
    *ret = bench_measure_of(id);
    return *ret ? 0
                : json_fail(at, err, "\"%.*s\" is not a measure",
                            STR_ARG(str_sub(id, 0, NAME_SHOWN)));
}

static int read_limit(const struct json *at, struct doc_reading *r, struct err *err)
{
    const struct bench_measure *measure;
    struct bench_limit limit;
    if (member_measure(at, r->arena, &measure, err) < 0 ||
        member_f64(at, "share", &limit.share, err) < 0 ||
        member_f64(at, "amount", &limit.amount, err) < 0 ||
        member_f64(at, "bound", &limit.bound, err) < 0 ||
        member_str(at, "origin", r->arena, &limit.origin, err) < 0) {
        return -1;
    }
    if (r->has_limit[measure - BENCH_MEASURE]) {
        return json_fail(at, err, "duplicate %s", measure->id);
    }
    if (limit.share < 0 || limit.share >= 1 || limit.amount < 0 || limit.bound <= 0 ||
        (!isnan(limit.share) && isnan(limit.amount))) {
        return json_fail(at, err, "expected a share from 0 to 1, an amount, and a bound over 0");
    }
    r->has_limit[measure - BENCH_MEASURE] = true;
    r->limits.of[measure - BENCH_MEASURE] = limit;
    return 0;
}

static int read_limits(struct doc_reading *r, struct err *err)
{
    struct json list, item;
    size_t n;
    if (member_f64(r->root, "deviations", &r->limits.deviations, err) < 0 ||
        member_i64(r->root, "nodes_min", INVENTORY_NODES_MAX, &r->limits.nodes_min, err) < 0 ||
        member_list(r->root, "measures", BENCH_MEASURES, &list, &n, err) < 0) {
        return -1;
    }
    if (!(r->limits.deviations > 0) || r->limits.nodes_min < NODES_MIN) {
        return json_fail(r->root, err, "expected deviations over 0, and nodes_min of at least %d",
                         NODES_MIN);
    }
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (read_limit(&item, r, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int read_values(const struct json *at, struct doc_reading *r, struct bench_figure *figure,
                       struct err *err)
{
    bool is_by_factor = figure->measure->kind == BENCH_RATE || figure->measure->kind == BENCH_TIME;
    struct json list, item;
    int64_t repeats;
    size_t n;
    if (member_list(at, "values", LIST_MAX, &list, &n, err) < 0 ||
        member_i64(at, "repeats", LIST_MAX, &repeats, err) < 0) {
        return -1;
    }
    if (repeats != (int64_t)n) {
        return json_fail(at, err, "%lld repeats, but %zu values", (long long)repeats, n);
    }
    figure->values = arena_array(r->arena, double, n + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        double value;
        if (json_f64(&item, &value, err) < 0) {
            return -1;
        }
        if (!(is_by_factor ? value > 0 : value >= 0)) {
            return json_fail(&item, err, "no value of %s", figure->measure->id);
        }
        figure->values[figure->n++] = value;
    }
    return 0;
}

static int read_verdict(const struct json *at, struct doc_reading *r, enum bench_verdict *ret,
                        struct err *err)
{
    struct str verdict;
    if (member_str(at, "verdict", r->arena, &verdict, err) < 0) {
        return -1;
    }
    for (int idx = BENCH_WITHIN; idx <= BENCH_NOT_MEASURED; idx++) {
        if (str_eq_z(verdict, bench_verdict_name((enum bench_verdict)idx))) {
            *ret = (enum bench_verdict)idx;
            return 0;
        }
    }
    return json_fail(at, err, "\"%.*s\" is not a verdict",
                     STR_ARG(str_sub(verdict, 0, NAME_SHOWN)));
}

/* Reads a figure as the document states it. */
static int read_figure(const struct json *at, struct doc_reading *r,
                       struct bench_figure *ret_stated, struct err *err)
{
    struct bench_figure f = {.spread_given = (double)NAN};
    if (member_measure(at, r->arena, &f.measure, err) < 0 || read_values(at, r, &f, err) < 0 ||
        read_verdict(at, r, &f.verdict, err) < 0 || member_f64(at, "value", &f.median, err) < 0 ||
        member_f64(at, "mad", &f.mad, err) < 0 || member_f64(at, "quartile_1", &f.q1, err) < 0 ||
        member_f64(at, "quartile_3", &f.q3, err) < 0 || member_f64(at, "best", &f.best, err) < 0 ||
        member_f64(at, "group_median", &f.group_median, err) < 0 ||
        member_f64(at, "group_spread", &f.group_spread, err) < 0 ||
        member_str(at, "message", r->arena, &f.why, err) < 0) {
        return -1;
    }
    if (!r->has_limit[f.measure - BENCH_MEASURE]) {
        return json_fail(at, err, "there is no limit for %s", f.measure->id);
    }
    *ret_stated = f;
    return 0;
}

/* The figure that follows from the values, except for the spread of a clock's drift, whose times are not kept. */
static struct bench_figure summed(struct doc_reading *r, const struct bench_figure *stated)
{
    struct bench_figure figure = {
        .measure = stated->measure,
        .values = stated->values,
        .n = stated->n,
        .spread_given = stated->measure->kind == BENCH_DRIFT ? stated->mad : (double)NAN,
        .group_median = (double)NAN,
        .group_spread = (double)NAN,
        .verdict = stated->n ? BENCH_NOT_COMPARED : BENCH_NOT_MEASURED};
    if (figure.n) {
        bench_figure_sum(r->arena, &figure);
    }
    return figure;
}

ptrdiff_t bench_doc_find(const struct bench_doc *doc, struct str name)
{
    for (size_t idx = 0; idx < doc->n_nodes; idx++) {
        if (str_eq(doc->nodes[idx].name, name)) {
            return (ptrdiff_t)idx;
        }
    }
    return -1;
}

static int read_error(const struct json *at, struct doc_reading *r, struct bench_doc_node *node,
                      struct err *err)
{
    struct json error;
    struct str code;
    if (json_member(at, "error", &error, err) < 0) {
        return -1;
    }
    if (json_is_null(&error)) {
        return 0;
    }
    if (member_str(&error, "code", r->arena, &code, err) < 0 ||
        member_str(&error, "message", r->arena, &node->against, err) < 0) {
        return -1;
    }
    if (!node->against.len) {
        return json_fail(&error, err, "an error without a reason");
    }
    if (r->first_error == ERR_NONE) {
        bool is_integrity =
            str_eq_z(code, err_code_name(ERR_INTEGRITY)) || str_eq_z(code, err_code_name(ERR_AUTH));
        r->first_error = is_integrity ? ERR_INTEGRITY : ERR_NODE;
    }
    return 0;
}

static int read_node(const struct json *at, struct doc_reading *r, size_t idx, struct err *err)
{
    struct bench_doc_node *node = &r->doc.nodes[idx];
    struct bench_figure *figures = arena_array(r->arena, struct bench_figure, BENCH_MEASURES);
    struct bench_figure *stated = arena_array(r->arena, struct bench_figure, BENCH_MEASURES);
    struct json list, item;
    size_t n;
    r->all.figures[idx] = figures;
    r->stated[idx] = stated;
    for (size_t m = 0; m < BENCH_MEASURES; m++) {
        figures[m] = (struct bench_figure){.measure = &BENCH_MEASURE[m],
                                           .spread_given = (double)NAN,
                                           .verdict = BENCH_NOT_MEASURED};
    }
    if (member_str(at, "node", r->arena, &node->name, err) < 0 ||
        member_str(at, "group", r->arena, &node->group, err) < 0 ||
        member_i64(at, "gpus", INT32_MAX, &node->gpus, err) < 0 ||
        read_error(at, r, node, err) < 0 ||
        member_list(at, "figures", BENCH_MEASURES, &list, &n, err) < 0) {
        return -1;
    }
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        struct bench_figure figure;
        if (read_figure(&item, r, &figure, err) < 0) {
            return -1;
        }
        size_t m = (size_t)(figure.measure - BENCH_MEASURE);
        if (stated[m].measure) {
            return json_fail(&item, err, "duplicate %s", figure.measure->id);
        }
        stated[m] = figure;
        if (figure.measure->what != BENCH_NET && figure.measure->what != BENCH_RING) {
            figures[m] = summed(r, &figure); /* the network's follow from the links */
        }
    }
    return 0;
}

/* What was asked for was asked of all nodes. */
static int check_list(const struct json *at, const struct doc_reading *r, size_t idx,
                      struct err *err)
{
    for (size_t m = 0; m < BENCH_MEASURES; m++) {
        if (!r->stated[idx][m].measure != !r->stated[0][m].measure) {
            return json_fail(at, err, "%s is listed for only one of %.*s and %.*s",
                             BENCH_MEASURE[m].id,
                             STR_ARG(str_sub(r->doc.nodes[0].name, 0, NAME_SHOWN)),
                             STR_ARG(str_sub(r->doc.nodes[idx].name, 0, NAME_SHOWN)));
        }
    }
    return 0;
}

static int read_nodes(struct doc_reading *r, struct err *err)
{
    struct json list, item;
    struct str *groups;
    size_t n;
    if (member_list(r->root, "nodes", INVENTORY_NODES_MAX, &list, &n, err) < 0) {
        return -1;
    }
    r->doc.nodes = arena_array(r->arena, struct bench_doc_node, n + 1);
    r->all.figures = arena_array(r->arena, struct bench_figure *, n + 1);
    r->stated = arena_array(r->arena, struct bench_figure *, n + 1);
    groups = arena_array(r->arena, struct str, n + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        size_t idx = r->doc.n_nodes;
        if (read_node(&item, r, idx, err) < 0 || check_list(&item, r, idx, err) < 0) {
            return -1;
        }
        if (bench_doc_find(&r->doc, r->doc.nodes[idx].name) >= 0) {
            return json_fail(&item, err, "two nodes are called %.*s",
                             STR_ARG(str_sub(r->doc.nodes[idx].name, 0, NAME_SHOWN)));
        }
        groups[idx] = r->doc.nodes[idx].group;
        r->doc.n_nodes++;
    }
    r->all.groups = groups;
    r->all.n_nodes = r->doc.n_nodes;
    return 0;
}

static int read_link(const struct json *at, struct doc_reading *r, size_t idx, struct err *err)
{
    struct bench_link *link = &r->all.links[idx];
    struct bench_figure *stated = &r->stated_links[idx];
    struct str from, to;
    if (member_str(at, "from", r->arena, &from, err) < 0 ||
        member_str(at, "to", r->arena, &to, err) < 0 ||
        member_i64(at, "size_bytes", INT64_C(1) << 40, &link->size_bytes, err) < 0 ||
        read_figure(at, r, stated, err) < 0) {
        return -1;
    }
    ptrdiff_t ends[2] = {bench_doc_find(&r->doc, from), bench_doc_find(&r->doc, to)};
    if (ends[0] < 0 || ends[1] < 0 || ends[0] == ends[1] ||
        (stated->measure->what != BENCH_NET && stated->measure->what != BENCH_RING)) {
        return json_fail(at, err, "expected a measure of the network, from one node to another");
    }
    link->from = (size_t)ends[0];
    link->to = (size_t)ends[1];
    link->figure = summed(r, stated);
    return 0;
}

static int read_links(struct doc_reading *r, struct err *err)
{
    struct json list, item;
    size_t n;
    if (member_list(r->root, "links", LIST_MAX, &list, &n, err) < 0) {
        return -1;
    }
    r->all.links = arena_array(r->arena, struct bench_link, n + 1);
    r->stated_links = arena_array(r->arena, struct bench_figure, n + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (read_link(&item, r, r->all.n_links, err) < 0) {
            return -1;
        }
        r->all.n_links++;
    }
    return 0;
}

/* ---- whether it follows from the values ---- */

static bool is_same(double stated, double derived)
{
    return isnan(stated) || isnan(derived)
               ? isnan(stated) && isnan(derived)
               : fabs(stated - derived) <= NEAR * (fabs(stated) + fabs(derived));
}

/* A figure that was not measured must have no numbers. */
static int check_numbers(const struct doc_reading *r, struct str of,
                         const struct bench_figure *stated, const struct bench_figure *derived,
                         struct err *err)
{
    double nothing = (double)NAN;
    bool has = derived->n > 0;
    const struct {
        const char *name;
        double stated, derived;
    } NUMBERS[] = {
        {"value", stated->median, has ? derived->median : nothing},
        {"mad", stated->mad, has ? derived->mad : nothing},
        {"quartile_1", stated->q1, has ? derived->q1 : nothing},
        {"quartile_3", stated->q3, has ? derived->q3 : nothing},
        {"best", stated->best, has ? derived->best : nothing},
        {"group_median", stated->group_median, has ? derived->group_median : nothing},
        {"group_spread", stated->group_spread, has ? derived->group_spread : nothing},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(NUMBERS); idx++) {
        if (!is_same(NUMBERS[idx].stated, NUMBERS[idx].derived)) {
            return json_fail(r->root, err, "%.*s: %s: %s is %.9g, but %.9g follows from the values",
                             STR_ARG(of), stated->measure->id, NUMBERS[idx].name,
                             NUMBERS[idx].stated, NUMBERS[idx].derived);
        }
    }
    return 0;
}

static int check_figure(struct doc_reading *r, struct str of, const struct bench_figure *stated,
                        const struct bench_figure *derived, struct err *err)
{
    struct str says = bench_says(r->arena, derived);
    bool has_values = stated->n == derived->n;
    for (size_t idx = 0; idx < derived->n && has_values; idx++) {
        has_values = is_same(stated->values[idx], derived->values[idx]);
    }
    if (!has_values) {
        return json_fail(r->root, err, "%.*s: %s: its values are not those of its links",
                         STR_ARG(of), stated->measure->id);
    }
    if (check_numbers(r, of, stated, derived, err) < 0) {
        return -1;
    }
    if (stated->verdict != derived->verdict) {
        return json_fail(r->root, err, "%.*s: %s: %s, but %s follows from the values", STR_ARG(of),
                         stated->measure->id, bench_verdict_name(stated->verdict),
                         bench_verdict_name(derived->verdict));
    }
    if (says.len && !str_eq(says, stated->why)) {
        return json_fail(r->root, err, "%.*s: %s: expected \"%.*s\"", STR_ARG(of),
                         stated->measure->id, STR_ARG(says));
    }
    return 0;
}

/* A figure that was not measured, without an excuse, is an error of the node. */
static int check_node(struct doc_reading *r, size_t idx, struct err *err)
{
    struct bench_doc_node *node = &r->doc.nodes[idx];
    struct str name = str_sub(node->name, 0, NAME_SHOWN);
    bool has_failed = node->against.ptr != NULL;
    for (size_t m = 0; m < BENCH_MEASURES; m++) {
        const struct bench_figure *stated = &r->stated[idx][m];
        const struct bench_figure *derived = &r->all.figures[idx][m];
        if (!stated->measure) {
            continue;
        }
        if (check_figure(r, name, stated, derived, err) < 0) {
            return -1;
        }
        if (!derived->n && !has_failed &&
            !bench_is_excused(&BENCH_MEASURE[m], node->gpus, r->doc.n_nodes)) {
            return json_fail(r->root, err, "%.*s: %s was not measured, and it has no error",
                             STR_ARG(name), stated->measure->id);
        }
        node->n_measured += derived->n > 0;
        node->is_alone = node->is_alone ||
                         (derived->verdict == BENCH_NOT_COMPARED && !isnan(r->limits.of[m].share));
        if (derived->verdict == BENCH_OUTLIER && !node->is_outlier) {
            node->is_outlier = true;
            node->against = stated->why;
        }
    }
    r->doc.n_figures += node->n_measured;
    r->doc.n_alone += node->is_alone;
    r->doc.n_outliers += node->is_outlier;
    r->doc.n_failed += has_failed && !node->is_outlier;
    return 0;
}

static struct str link_name(const struct doc_reading *r, const struct bench_link *link)
{
    return bench_link_words(r->arena, r->doc.nodes[link->from].name, r->doc.nodes[link->to].name);
}

static int check_links(struct doc_reading *r, struct err *err)
{
    r->doc.slow_links = arena_array(r->arena, struct bench_doc_link, r->all.n_links + 1);
    for (size_t idx = 0; idx < r->all.n_links; idx++) {
        const struct bench_link *link = &r->all.links[idx];
        struct str name = link_name(r, link);
        if (link->figure.verdict == BENCH_OUTLIER) {
            r->doc.slow_links[r->doc.n_slow_links++] =
                (struct bench_doc_link){r->doc.nodes[link->from].name, r->doc.nodes[link->to].name,
                                        name, bench_says(r->arena, &link->figure)};
        }
        if (check_figure(r, str_sub(name, 0, NAME_SHOWN), &r->stated_links[idx], &link->figure,
                         err) < 0) {
            return -1;
        }
    }
    return 0;
}

struct outliers {
    struct json list, item;
    bool has_item;
    size_t n;
};

static int check_outlier(struct doc_reading *r, struct str name, const struct bench_figure *figure,
                         struct outliers *listed, struct err *err)
{
    struct str says = bench_says(r->arena, figure), stands = STR_EMPTY, wanted;
    if (!says.len) {
        return 0;
    }
    wanted = str_of(arena_printf(r->arena, "%.*s: %.*s", STR_ARG(name), STR_ARG(says)));
    if (listed->has_item && json_str(&listed->item, r->arena, &stands, err) < 0) {
        return -1;
    }
    if (!str_eq(stands, wanted)) {
        return json_fail(&listed->list, err, "expected \"%.*s\" as outlier %zu",
                         STR_ARG(str_sub(wanted, 0, 256)), listed->n + 1);
    }
    listed->n++;
    listed->has_item = json_next(&listed->item);
    return 0;
}

/* The list of outliers, and the exit status. */
static int check_summary(struct doc_reading *r, struct err *err)
{
    struct outliers listed = {0};
    int64_t status, wanted;
    size_t n_listed;
    if (member_list(r->root, "outliers", LIST_MAX, &listed.list, &n_listed, err) < 0 ||
        member_i64(r->root, "exit_status", UINT8_MAX, &status, err) < 0) {
        return -1;
    }
    listed.has_item = json_first(&listed.list, &listed.item);
    for (size_t idx = 0; idx < r->doc.n_nodes; idx++) {
        for (size_t m = 0; m < BENCH_MEASURES; m++) {
            if (check_outlier(r, r->doc.nodes[idx].name, &r->all.figures[idx][m], &listed, err) <
                0) {
                return -1;
            }
        }
    }
    for (size_t idx = 0; idx < r->all.n_links; idx++) {
        const struct bench_link *link = &r->all.links[idx];
        struct str name = link_name(r, link);
        if (check_outlier(r, name, &link->figure, &listed, err) < 0) {
            return -1;
        }
    }
    if (listed.n != n_listed) {
        return json_fail(&listed.list, err, "%zu outliers, but %zu figures that are outliers",
                         n_listed, listed.n);
    }
    wanted = r->first_error != ERR_NONE ? err_exit_status(r->first_error) : listed.n ? 1 : 0;
    return status == wanted ? 0
                            : json_fail(r->root, err, "exit_status %lld, but %lld follows",
                                        (long long)status, (long long)wanted);
}

static int read_doc(struct doc_reading *r, struct err *err)
{
    int64_t version;
    if (member_i64(r->root, "schema_version", 1, &version, err) < 0 ||
        member_str(r->root, "inventory", r->arena, &r->doc.inventory, err) < 0 ||
        member_str(r->root, "time", r->arena, &r->doc.time, err) < 0 || read_limits(r, err) < 0 ||
        read_nodes(r, err) < 0 || read_links(r, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < r->doc.n_nodes; idx++) {
        for (size_t m = 0; m < BENCH_MEASURES; m++) {
            const struct bench_measure *measure = &BENCH_MEASURE[m];
            if (r->stated[idx][m].measure &&
                (measure->what == BENCH_NET || measure->what == BENCH_RING)) {
                (void)bench_sum_links(r->arena, &r->all, idx, measure);
            }
        }
    }
    bench_judge(r->arena, &r->limits, &r->all);
    for (size_t idx = 0; idx < r->doc.n_nodes; idx++) {
        if (check_node(r, idx, err) < 0) {
            return -1;
        }
    }
    return check_links(r, err) < 0 ? -1 : check_summary(r, err);
}

int bench_doc_read(struct arena *arena, struct str text, const char *name,
                   struct bench_doc *ret_doc, struct err *err)
{
    CLEANUP(json_doc) struct json_doc json = {0};
    struct doc_reading *r = arena_new(arena, struct doc_reading);
    struct json root;
    if (json_parse(text, name, &json, err) < 0) {
        return -1;
    }
    root = json_root(&json);
    *r = (struct doc_reading){.arena = arena, .root = &root};
    if (read_doc(r, err) < 0) {
        return -1;
    }
    *ret_doc = r->doc;
    return 0;
}
