/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/bench_out.h"

#include <math.h>

#include "codec/json.h"
#include "view/html.h"

static void put_limit(struct json_out *out, const struct bench_view *view, size_t idx)
{
    const struct bench_measure *measure = &BENCH_MEASURE[idx];
    const struct bench_limit *limit = &view->opts->limits->of[idx];
    jw_object(out, NULL);
    jw_z(out, "measure", measure->id);
    jw_z(out, "unit", measure->unit);
    jw_z(out, "formula", measure->formula);
    jw_z(out, "better", measure->is_higher_better ? "higher" : "lower");
    jw_f64(out, "share", limit->share);
    jw_f64(out, "amount", limit->amount);
    jw_f64(out, "bound", limit->bound);
    jw_str(out, "origin", limit->origin);
    jw_end_object(out);
}

/* What is not measured has no number at all. */
static void put_figure(struct json_out *out, struct arena *arena, const struct bench_figure *figure)
{
    bool has = figure->n > 0;
    double nothing = (double)NAN;
    struct str says = bench_says(arena, figure);
    jw_z(out, "measure", figure->measure->id);
    jw_z(out, "verdict", bench_verdict_name(figure->verdict));
    jw_z(out, "unit", figure->measure->unit);
    jw_f64(out, "value", has ? figure->median : nothing);
    jw_i64(out, "repeats", (int64_t)figure->n);
    jw_f64(out, "mad", has ? figure->mad : nothing);
    jw_f64(out, "quartile_1", has ? figure->q1 : nothing);
    jw_f64(out, "quartile_3", has ? figure->q3 : nothing);
    jw_f64(out, "best", has ? figure->best : nothing);
    jw_f64(out, "group_median", has ? figure->group_median : nothing);
    jw_f64(out, "group_spread", has ? figure->group_spread : nothing);
    jw_str(out, "message", says.len ? says : figure->why.len ? figure->why : STR_EMPTY);
    jw_array(out, "values");
    for (size_t idx = 0; idx < figure->n; idx++) {
        jw_f64(out, NULL, figure->values[idx]);
    }
    jw_end_array(out);
}

static void put_ms(struct json_out *out, const char *key, bool is_known, int64_t ns)
{
    int64_t us = ns / 1000;
    jw_f64(out, key, is_known ? (double)us / 1000 : (double)NAN);
}

static void put_node(struct json_out *out, struct arena *arena, const struct bench_view *view,
                     const struct bench_node *node)
{
    bool has_said = node->cpu_model.ptr != NULL;
    jw_object(out, NULL);
    jw_str(out, "node", node->spec->name);
    jw_str(out, "group", node->group);
    jw_str(out, "cpu_model", node->cpu_model);
    jw_i64(out, "cpus", has_said ? node->cpus : 0);
    jw_i64(out, "gpus", has_said ? node->gpus : 0);
    if (node->err.code == ERR_NONE) {
        jw_null(out, "error");
    } else {
        jw_object(out, "error");
        jw_z(out, "code", err_code_name(node->err.code));
        jw_z(out, "message", node->err.msg);
        jw_end_object(out);
    }
    put_ms(out, "clock_offset_min_ms", node->has_offset, node->offset_low_ns);
    put_ms(out, "clock_offset_max_ms", node->has_offset, node->offset_high_ns);
    jw_array(out, "notes");
    for (size_t idx = 0; idx < node->n_notes; idx++) {
        jw_str(out, NULL, node->notes[idx]);
    }
    jw_end_array(out);
    jw_array(out, "figures");
    for (size_t idx = 0; idx < BENCH_MEASURES; idx++) {
        if (view->opts->wants[BENCH_MEASURE[idx].what]) {
            jw_object(out, NULL);
            put_figure(out, arena, &node->figures[idx]);
            jw_end_object(out);
        }
    }
    jw_end_array(out);
    jw_end_object(out);
}

static void put_links(struct json_out *out, struct arena *arena, const struct bench_view *view)
{
    jw_array(out, "links");
    for (size_t idx = 0; idx < view->result->n_links; idx++) {
        const struct bench_link *link = &view->result->links[idx];
        jw_object(out, NULL);
        jw_str(out, "from", view->inventory->nodes[link->from].name);
        jw_str(out, "to", view->inventory->nodes[link->to].name);
        jw_i64(out, "size_bytes", link->size_bytes);
        put_figure(out, arena, &link->figure);
        jw_end_object(out);
    }
    jw_end_array(out);
}

static void put_outliers(struct json_out *out, struct arena *arena, const struct bench_view *view)
{
    jw_array(out, "outliers");
    for (size_t idx = 0; idx < view->result->n_nodes; idx++) {
        const struct bench_node *node = &view->result->nodes[idx];
        for (size_t at = 0; at < BENCH_MEASURES; at++) {
            struct str says = bench_says(arena, &node->figures[at]);
            if (says.len) {
                jw_str(out, NULL,
                       textf(arena, "%.*s: %.*s", STR_ARG(node->spec->name), STR_ARG(says)));
            }
        }
    }
    for (size_t idx = 0; idx < view->result->n_links; idx++) {
        const struct bench_link *link = &view->result->links[idx];
        struct str says = bench_says(arena, &link->figure);
        if (says.len) {
            jw_str(out, NULL,
                   textf(arena, "%.*s: %.*s", STR_ARG(bench_link_name(arena, view, link)),
                         STR_ARG(says)));
        }
    }
    jw_end_array(out);
}

void bench_out_json(const struct bench_view *view, struct strbuf *text)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const struct bench_limits *limits = view->opts->limits;
    struct json_out out;
    jw_begin(&out, text, false);
    jw_object(&out, NULL);
    jw_i64(&out, "schema_version", 1);
    jw_str(&out, "inventory", view->inventory->id);
    jw_z(&out, "time", view->time);
    jw_i64(&out, "exit_status", bench_exit_status(view->result));
    put_outliers(&out, &arena, view);
    jw_f64(&out, "deviations", limits->deviations);
    jw_str(&out, "deviations_origin", limits->deviations_origin);
    jw_i64(&out, "nodes_min", limits->nodes_min);
    jw_str(&out, "nodes_min_origin", limits->nodes_min_origin);
    jw_array(&out, "measures");
    for (size_t idx = 0; idx < BENCH_MEASURES; idx++) {
        if (view->opts->wants[BENCH_MEASURE[idx].what]) {
            put_limit(&out, view, idx);
        }
    }
    jw_end_array(&out);
    jw_array(&out, "nodes");
    for (size_t idx = 0; idx < view->result->n_nodes; idx++) {
        put_node(&out, &arena, view, &view->result->nodes[idx]);
    }
    jw_end_array(&out);
    put_links(&out, &arena, view);
    jw_end_object(&out);
}
