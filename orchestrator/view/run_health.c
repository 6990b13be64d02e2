/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/run_health.h"

#include <math.h>

#include "base/table.h"
#include "codec/json_table.h"
#include "judge/verdict.h"
#include "load/load_health.h"
#include "report/each_node.h"

#define FOUND_STATUS 1

/* ---- from a run ---- */

static struct str setting_of(const struct run_view *view, struct str node, const char *name)
{
    for (size_t idx = 0; idx < view->n_settings; idx++) {
        if (str_eq(view->settings[idx].node, node) && str_eq_z(view->settings[idx].name, name)) {
            return view->settings[idx].value;
        }
    }
    return STR_EMPTY;
}

/* The first group that the inventory names, else the processor and the GPU. Their numbers do not count: a node that lost some
   is sick, and no other kind. */
static struct str kind_of(struct arena *arena, const struct run_view *view, struct str name)
{
    const struct inventory *inventory = &view->frozen.inventory;
    for (size_t idx = 0; idx < inventory->n_nodes; idx++) {
        const struct inventory_node *node = &inventory->nodes[idx];
        if (str_eq(node->name, name) && node->n_groups) {
            return node->groups[0];
        }
    }
    return str_printf(arena, "%.*s, %.*s", STR_ARG(setting_of(view, name, "conditions.cpu")),
                      STR_ARG(setting_of(view, name, "conditions.gpu")));
}

static struct health_figure figure_of(struct arena *arena, const struct run_view *view,
                                      const struct cell_result *cell)
{
    const struct report_case *c = cell->of_case;
    struct str *kinds = arena_array(arena, struct str, c->n_on);
    double *values = arena_array(arena, double, cell->n_repeats + 1);
    struct health_figure figure = {.measure = each_node_base(c),
                                   .on = c->on,
                                   .n_on = c->n_on,
                                   .kinds = kinds,
                                   .unit = cell->unit,
                                   .values = values,
                                   .why = cell->why};
    for (size_t idx = 0; idx < c->n_on; idx++) {
        kinds[idx] = kind_of(arena, view, c->on[idx]);
    }
    /* A cell with a repeat that does not count has no value, and is not measured. */
    bool is_measured = cell->verdict != RUN_FAILED && cell->verdict != RUN_NOT_RUN;
    for (size_t idx = 0; is_measured && idx < cell->n_repeats; idx++) {
        values[figure.n++] = cell->repeats[idx].value;
    }
    return figure;
}

int run_health_of(struct arena *arena, const char *root, const char *limits_path,
                  struct run_view *view, struct err *err)
{
    const struct run_result *result = &view->result;
    struct health_figure *figures = arena_array(arena, struct health_figure, result->n_cells + 1);
    struct health *health = arena_new(arena, struct health);
    struct health_limits limits;
    size_t n = 0;
    if (!view->frozen.plan.is_each_node) {
        return 0;
    }
    if (load_health_limits(arena, root, limits_path, &limits, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        if (result->cells[idx].of_case->n_on) {
            figures[n++] = figure_of(arena, view, &result->cells[idx]);
        }
    }
    health_judge(arena, &limits, figures, n, health);
    view->health = health;
    return 0;
}

int run_health_status(const struct health *health)
{
    return health->n_findings ? FOUND_STATUS : 0;
}

/* ---- the gate ---- */

static bool is_measured(const struct health *health, struct str node)
{
    for (size_t idx = 0; idx < health->n_figures; idx++) {
        const struct health_figure *figure = &health->figures[idx];
        if (figure->n && figure->n_on == 1 && str_eq(figure->on[0], node)) {
            return true;
        }
    }
    return false;
}

/* Whether all its nodes are asked for: a pair with another one is not used. */
static bool is_of(const struct inventory *inventory, const struct health_figure *figure)
{
    for (size_t idx = 0; idx < figure->n_on; idx++) {
        if (!STR_NAMED(inventory->nodes, inventory->n_nodes, name, figure->on[idx])) {
            return false;
        }
    }
    return true;
}

int run_health_admits(const struct run_view *view, const struct inventory *inventory,
                      struct err *err)
{
    const struct health *health = view->health;
    if (!health) {
        return err_set(err, ERR_NODE, "it was not of --each-node");
    }
    if (!str_eq(view->frozen.plan.inventory, inventory->id)) {
        return err_set(err, ERR_NODE, "it measured the nodes of %.*s, not of %.*s",
                       STR_ARG(str_sub(view->frozen.plan.inventory, 0, 100)),
                       STR_ARG(str_sub(inventory->id, 0, 100)));
    }
    for (size_t idx = 0; idx < inventory->n_nodes; idx++) {
        if (!is_measured(health, inventory->nodes[idx].name)) {
            return err_set(err, ERR_NODE, "%.*s: not measured",
                           STR_ARG(inventory->nodes[idx].name));
        }
    }
    for (size_t idx = 0; idx < health->n_findings; idx++) {
        if (is_of(inventory, health->findings[idx].figure)) {
            return err_set(err, ERR_NODE, "%.*s", STR_ARG(health->findings[idx].says));
        }
    }
    for (size_t idx = 0; idx < health->n_figures; idx++) {
        if (health->figures[idx].verdict == HEALTH_WITHIN &&
            is_of(inventory, &health->figures[idx])) {
            return 0;
        }
    }
    return err_set(err, ERR_NODE, "no figure of these nodes could be compared with others'");
}

/* ---- output ---- */

static struct str number_text(struct arena *arena, const struct health_figure *figure, double value)
{
    return isnan(value) ? STR_LIT("-")
                        : str_printf(arena, "%.4g %.*s", value, STR_ARG(figure->unit));
}

void run_health_page(const struct health *health, struct page *page)
{
    CLEANUP(table) struct table table = table_of("nodes|case|>value|>median of its kind|verdict");
    for (size_t idx = 0; idx < health->n_figures; idx++) {
        const struct health_figure *figure = &health->figures[idx];
        bool is_pair = figure->n_on > 1;
        TABLE_ADD(&table,
                  table_text(&table, "%.*s%s%.*s", STR_ARG(figure->on[0]), is_pair ? "+" : "",
                             STR_ARG(is_pair ? figure->on[1] : STR_EMPTY)),
                  figure->measure, number_text(&table.arena, figure, figure->median),
                  number_text(&table.arena, figure, figure->kind_median),
                  str_of(HEALTH_VERDICT_NAMES[figure->verdict]));
    }
    page_table(page, STR_LIT("The nodes beside each other"), &table);
    for (size_t idx = 0; idx < health->n_findings; idx++) {
        page_line(page, 0, health->findings[idx].says, STR_EMPTY);
    }
    if (health->n_alone) {
        page_line(page, 0,
                  text_of(page, "%zu figures could not be compared with others'", health->n_alone),
                  STR_EMPTY);
    }
}

void run_health_text(const struct health *health, struct strbuf *out)
{
    struct page page = {.out = out};
    run_health_page(health, &page);
    page_end(&page);
}

static const struct json_field FIGURE_ROWS[] = {
    ROW("case", struct health_figure, measure, JSON_REQUIRED),
    ROW_STRS("nodes", struct health_figure, on, n_on, JSON_REQUIRED),
    ROW_WORD("verdict", struct health_figure, verdict, HEALTH_VERDICT_NAMES, JSON_REQUIRED),
    ROW("value", struct health_figure, median, JSON_REQUIRED | JSON_NULLABLE),
    ROW("kind_median", struct health_figure, kind_median, JSON_REQUIRED | JSON_NULLABLE),
    ROW("unit", struct health_figure, unit, JSON_REQUIRED | JSON_NULLABLE),
    ROW("why", struct health_figure, why, JSON_REQUIRED | JSON_NULLABLE | JSON_BLANK),
};

static void put_findings(struct json_out *out, const char *key, const void *of)
{
    const struct health *health = of;
    jw_array(out, key);
    for (size_t idx = 0; idx < health->n_findings; idx++) {
        jw_str(out, NULL, health->findings[idx].says);
    }
    jw_end_array(out);
}

static const struct json_field HEALTH_ROWS[] = {
    ROW_LIST("figures", struct health, figures, n_figures, FIGURE_ROWS, JSON_REQUIRED),
    ROW_OUT("findings", JSON_STRS, put_findings, 0),
};

void run_health_encode(const struct health *health, const char *key, struct json_out *out)
{
    if (health) {
        json_encode_object(out, key, HEALTH_ROWS, ARRAY_LEN(HEALTH_ROWS), health);
    }
}
