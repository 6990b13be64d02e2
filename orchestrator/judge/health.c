/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/health.h"

#include <fnmatch.h>
#include <math.h>

#include "codec/json_table.h"
#include "judge/stats.h"

/* Of a normal distribution: standard deviation over median absolute deviation, and standard error of the median over that of the
   mean. Source: P. J. Rousseeuw, C. Croux, "Alternatives to the Median Absolute Deviation", JASA 88 (1993), section 1. */
#define SIGMA_OF_MAD    1.4826
#define MEDIAN_OVER_SEM 1.2533
#define LEAVE_OUT_MAX   64 /* among more a single node does not matter */

/* ---- limits ---- */

static int check_limit(const struct json *at, struct arena *arena UNUSED, void *out,
                       struct err *err)
{
    const struct health_limit *limit = out;
    return limit->share > 0 && limit->share < 1
               ? 0
               : json_fail(at, err, "share: expected a number between 0 and 1");
}

#define TEXT     JSON_REQUIRED, .form = &JSON_FILLED
#define POSITIVE "\"exclusiveMinimum\": 0"
static const struct json_field LIMIT_ROWS[] = {
    ROW("cases", struct health_limit, cases, TEXT,
        .about = "a GLOB of case ids without their nodes; the first that matches counts"),
    ROW("share", struct health_limit, share, JSON_REQUIRED,
        .schema = POSITIVE ", \"exclusiveMaximum\": 1",
        .about = "of the median: at least this much worse"),
    ROW("origin", struct health_limit, origin, TEXT),
};
static const struct json_field ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW("deviations", struct health_limits, deviations, JSON_REQUIRED, .schema = POSITIVE,
        .about = "robust standard deviations of the others"),
    ROW("deviations_origin", struct health_limits, deviations_origin, TEXT),
    ROW("nodes_min", struct health_limits, nodes_min, JSON_REQUIRED, .min = 3, .max = 64,
        .about = "the fewest of one kind that are compared"),
    ROW("nodes_min_origin", struct health_limits, nodes_min_origin, TEXT),
    ROW_LIST("limits", struct health_limits, items, n, LIMIT_ROWS, JSON_REQUIRED, .min = 1,
             .max = HEALTH_LIMITS_MAX, .check = check_limit),
};
const struct json_document HEALTH_LIMITS_DOCUMENT = {
    JSON_DOCUMENT("node-health.json", "when a node is an outlier among those of its kind", ROWS),
    .about = "manifests/node-health.json, or the file of --limits"};

int health_limits_decode(struct arena *arena, struct str text, const char *name,
                         struct health_limits *ret_limits, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct health_limits limits = {0};
    if (json_parse(text, name, &doc, err) < 0 ||
        json_decode(&doc.root, arena, ROWS, ARRAY_LEN(ROWS), &limits, err) < 0) {
        return -1;
    }
    if (!(limits.deviations > 0)) {
        return json_fail(&doc.root, err, "deviations: expected a number over 0");
    }
    *ret_limits = limits;
    return 0;
}

static const struct health_limit *limit_of(const struct health_limits *limits, struct str measure)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *id = str_z(&arena, measure);
    for (size_t idx = 0; idx < limits->n; idx++) {
        if (fnmatch(str_z(&arena, limits->items[idx].cases), id, 0) == 0) {
            return &limits->items[idx];
        }
    }
    return NULL;
}

/* ---- statistics ---- */

/* Rates vary by factors: they are compared as logarithms, so that a node at a fiftieth of the rate stands out even among noisy
   ones. */

static double median_of(struct arena *arena, const double *values, size_t n)
{
    double *sorted = arena_array(arena, double, n);
    memcpy(sorted, values, n * sizeof(*sorted));
    stats_sort(sorted, n);
    return stats_sorted_median(sorted, n);
}

static double mad_of(struct arena *arena, const double *values, size_t n, double median)
{
    double *deviations = arena_array(arena, double, n);
    for (size_t idx = 0; idx < n; idx++) {
        deviations[idx] = fabs(values[idx] - median);
    }
    return median_of(arena, deviations, n);
}

struct rate { /* of a figure */
    struct health_figure *figure;
    /* How uncertain the logarithm of its median is, by its repeats: a standard deviation. */
    double doubt;
};

static struct rate rate_of(struct arena *arena, struct health_figure *figure)
{
    figure->median = median_of(arena, figure->values, figure->n);
    double mad = mad_of(arena, figure->values, figure->n, figure->median);
    return (struct rate){figure, SIGMA_OF_MAD * MEDIAN_OVER_SEM * mad /
                                     (figure->median * sqrt((double)figure->n))};
}

/* Of all but one, so that a sick node among four does not widen the spread that it is compared with. */
static double sigma_of_others(const struct rate *rates, size_t n, size_t but)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    double *logs = arena_array(&arena, double, n);
    size_t n_others = 0;
    for (size_t idx = 0; idx < n; idx++) {
        if (idx != but) {
            logs[n_others++] = log(rates[idx].figure->median);
        }
    }
    return SIGMA_OF_MAD * mad_of(&arena, logs, n_others, median_of(&arena, logs, n_others));
}

static bool is_worse(const struct health_figure *figure, const struct health_limits *limits,
                     double share, double sigma)
{
    return figure->kind_median - figure->median > share * figure->kind_median &&
           log(figure->kind_median) - log(figure->median) > limits->deviations * sigma;
}

/* Rates of one measure and one kind, nodes_min or more. */
static void compare(struct arena *arena, const struct health_limits *limits,
                    const struct health_limit *limit, struct rate *rates, size_t n)
{
    double *medians = arena_array(arena, double, n);
    double *doubts = arena_array(arena, double, n);
    double sigma = 0;
    for (size_t idx = 0; idx < n; idx++) {
        medians[idx] = rates[idx].figure->median;
        doubts[idx] = rates[idx].doubt;
    }
    double median = median_of(arena, medians, n);
    double doubt = median_of(arena, doubts, n); /* a sick node's own noise is not an excuse */
    for (size_t idx = 0; idx < n; idx++) {
        struct health_figure *figure = rates[idx].figure;
        if (n <= LEAVE_OUT_MAX || idx == 0) {
            sigma = sigma_of_others(rates, n, n <= LEAVE_OUT_MAX ? idx : n);
        }
        figure->kind_median = median;
        figure->verdict = is_worse(figure, limits, limit->share, sigma > doubt ? sigma : doubt)
                              ? HEALTH_OUTLIER
                              : HEALTH_WITHIN;
    }
}

/* ---- groups ---- */

struct figures { /* of nodes, or of pairs */
    struct health_figure *items;
    size_t n;
};

static void leave_alone(struct arena *arena, const struct health_limits *limits,
                        const struct health_limit *limit, const struct rate *rates, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        rates[idx].figure->verdict = HEALTH_NOT_COMPARED;
        rates[idx].figure->why =
            limit ? str_printf(arena,
                               "%zu of its kind measured: among fewer than %lld an "
                               "outlier cannot be told",
                               n, (long long)limits->nodes_min)
                  : STR_LIT("no limit is for this case");
    }
}

/* Those of the first's measure and kind that have values and are not judged yet. */
static void judge_group(struct arena *arena, const struct health_limits *limits,
                        struct figures *figures, size_t first, bool *is_done)
{
    const struct health_figure *head = &figures->items[first];
    const struct health_limit *limit = limit_of(limits, head->measure);
    struct rate *rates = arena_array(arena, struct rate, figures->n);
    size_t n = 0;
    for (size_t idx = first; idx < figures->n; idx++) {
        struct health_figure *figure = &figures->items[idx];
        if (!is_done[idx] && figure->n && str_eq(figure->measure, head->measure) &&
            str_eq(figure->kinds[0], head->kinds[0])) {
            is_done[idx] = true;
            rates[n++] = rate_of(arena, figure);
        }
    }
    if (limit && n >= (size_t)limits->nodes_min) {
        compare(arena, limits, limit, rates, n);
    } else {
        leave_alone(arena, limits, limit, rates, n);
    }
}

/* Figures whose verdict is given already are is_done. */
static void judge_all(struct arena *arena, const struct health_limits *limits,
                      struct figures *figures, bool *is_done)
{
    for (size_t idx = 0; idx < figures->n; idx++) {
        if (!is_done[idx] && figures->items[idx].n) {
            judge_group(arena, limits, figures, idx, is_done);
        }
    }
}

/* ---- pairs ---- */

static bool has_node(const struct health_figure *figure, struct str node)
{
    return str_is_in(node, figure->on, figure->n_on);
}

/* A node by its pairs: the better of the middle two, so that one sick neighbour of two does not make a sick node. */
static void add_by_pairs(struct arena *arena, const struct figures *pairs, size_t pair, size_t end,
                         struct figures *nodes)
{
    const struct health_figure *of = &pairs->items[pair];
    struct health_figure node = *of;
    const struct health_figure **found = arena_array(arena, const struct health_figure *, pairs->n);
    size_t n = 0;
    node.on = &of->on[end];
    node.kinds = &of->kinds[end];
    node.n_on = 1;
    for (size_t idx = 0; idx < nodes->n; idx++) {
        if (str_eq(nodes->items[idx].measure, of->measure) &&
            has_node(&nodes->items[idx], of->on[end])) {
            return;
        }
    }
    for (size_t idx = 0; idx < pairs->n; idx++) {
        const struct health_figure *other = &pairs->items[idx];
        if (other->n && str_eq(other->measure, of->measure) && has_node(other, of->on[end])) {
            size_t at = n++;
            for (; at > 0 && found[at - 1]->median > other->median; at--) {
                found[at] = found[at - 1];
            }
            found[at] = other;
        }
    }
    if (n == 0) {
        return;
    }
    node.values = found[n / 2]->values;
    node.n = found[n / 2]->n;
    nodes->items[nodes->n++] = node;
}

static bool has_sick_end(const struct figures *nodes, const struct health_figure *pair)
{
    for (size_t idx = 0; idx < nodes->n; idx++) {
        const struct health_figure *node = &nodes->items[idx];
        if (node->verdict == HEALTH_OUTLIER && str_eq(node->measure, pair->measure) &&
            has_node(pair, node->on[0])) {
            return true;
        }
    }
    return false;
}

/* A sick node is named itself, instead of each of its pairs. */
static void judge_pairs(struct arena *arena, const struct health_limits *limits,
                        struct figures *pairs, const struct figures *nodes)
{
    bool *is_done = arena_array(arena, bool, pairs->n + 1);
    for (size_t idx = 0; idx < pairs->n; idx++) {
        struct health_figure *pair = &pairs->items[idx];
        bool is_one_kind = str_eq(pair->kinds[0], pair->kinds[1]);
        is_done[idx] = pair->n && (has_sick_end(nodes, pair) || !is_one_kind);
        if (is_done[idx]) {
            pair->verdict = HEALTH_NOT_COMPARED;
            pair->why = is_one_kind ? STR_LIT("an end is an outlier")
                                    : STR_LIT("between nodes of two kinds");
        }
    }
    judge_all(arena, limits, pairs, is_done);
}

/* ---- the whole ---- */

const char *const HEALTH_VERDICT_NAMES[] = {"within", "outlier", "not_compared", "not_measured"};

/* Whole from `whole` on, below it with two or four digits: 29450, 38.4, 0.13. */
static char *short_number(struct arena *arena, double value, double whole)
{
    return value >= whole ? arena_printf(arena, "%.0f", value)
                          : arena_printf(arena, whole > 100 ? "%.4g" : "%.2g", value);
}

static void find(struct arena *arena, const struct health_figure *figure, struct health *health)
{
    struct health_finding *finding = &health->findings[health->n_findings];
    health->n_alone += figure->verdict == HEALTH_NOT_COMPARED && !isnan(figure->median);
    if (figure->verdict != HEALTH_OUTLIER && figure->verdict != HEALTH_NOT_MEASURED) {
        return;
    }
    health->n_findings++;
    finding->figure = figure;
    finding->who = figure->n_on == 1 ? figure->on[0]
                                     : str_printf(arena, "%.*s+%.*s", STR_ARG(figure->on[0]),
                                                  STR_ARG(figure->on[1]));
    finding->says = str_of(
        figure->verdict == HEALTH_OUTLIER
            ? arena_printf(arena, "%.*s: %.*s: %s %% of the median of its kind (%s of %s %.*s)",
                           STR_ARG(finding->who), STR_ARG(figure->measure),
                           short_number(arena, 100 * figure->median / figure->kind_median, 10),
                           short_number(arena, figure->median, 1000),
                           short_number(arena, figure->kind_median, 1000), STR_ARG(figure->unit))
            : arena_printf(arena, "%.*s: %.*s: not measured: %.*s", STR_ARG(finding->who),
                           STR_ARG(figure->measure), STR_ARG(str_sub(figure->why, 0, 300))));
}

static void split(const struct health_figure *measured, size_t n, struct figures *nodes,
                  struct figures *pairs)
{
    for (size_t idx = 0; idx < n; idx++) {
        struct figures *to = measured[idx].n_on == 1 ? nodes : pairs;
        struct health_figure *figure = &to->items[to->n++];
        *figure = measured[idx];
        figure->median = figure->kind_median = (double)NAN;
        figure->verdict = figure->n ? HEALTH_NOT_COMPARED : HEALTH_NOT_MEASURED;
    }
}

void health_judge(struct arena *arena, const struct health_limits *limits,
                  const struct health_figure *measured, size_t n, struct health *ret_health)
{
    struct figures nodes = {arena_array(arena, struct health_figure, 4 * n + 1), 0};
    struct figures pairs = {arena_array(arena, struct health_figure, n + 1), 0};
    struct health health = {.findings = arena_array(arena, struct health_finding, 4 * n + 1)};
    split(measured, n, &nodes, &pairs);
    for (size_t idx = 0; idx < pairs.n; idx++) {
        if (pairs.items[idx].n) {
            (void)rate_of(arena, &pairs.items[idx]);
        }
    }
    for (size_t idx = 0; idx < pairs.n; idx++) {
        for (size_t end = 0; pairs.items[idx].n && end < 2; end++) {
            add_by_pairs(arena, &pairs, idx, end, &nodes);
        }
    }
    judge_all(arena, limits, &nodes, arena_array(arena, bool, nodes.n + 1));
    judge_pairs(arena, limits, &pairs, &nodes);
    memcpy(nodes.items + nodes.n, pairs.items, pairs.n * sizeof(*pairs.items));
    health.figures = nodes.items;
    health.n_figures = nodes.n + pairs.n;
    for (size_t idx = 0; idx < health.n_figures; idx++) {
        find(arena, &health.figures[idx], &health);
    }
    *ret_health = health;
}
