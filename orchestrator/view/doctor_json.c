/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/doctor_out.h"

#include "base/clock.h"
#include "codec/json_document.h"

static double ms(int64_t ns)
{
    int64_t us = ns / 1000;
    return (double)us / 1000;
}

static void put_facts(struct json_out *out, const struct node_facts *facts)
{
    jw_object(out, "facts");
    for (size_t idx = 0; idx < facts->n; idx++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        const struct node_fact *fact = &facts->items[idx];
        if (fact->value.ptr) {
            jw_str(out, str_z(&arena, fact->key), fact->value);
        }
    }
    jw_end_object(out);
    jw_object(out, "not_known");
    for (size_t idx = 0; idx < facts->n; idx++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        const struct node_fact *fact = &facts->items[idx];
        if (!fact->value.ptr) {
            jw_str(out, str_z(&arena, fact->key), fact->why);
        }
    }
    jw_end_object(out);
}

static void put_ms(struct json_out *out, const char *key, bool is_known, int64_t ns)
{
    if (is_known) {
        jw_f64(out, key, ms(ns));
    } else {
        jw_null(out, key);
    }
}

static void put_probe(struct json_out *out, const struct node_probe *probe)
{
    bool is_reached = probe->is_reached;
    jw_object(out, NULL);
    jw_str(out, "name", probe->spec->name);
    jw_str(out, "address", probe->spec->address);
    jw_bool(out, "reached", is_reached);
    jw_str(out, "error", is_reached ? STR_EMPTY : probe->error);
    put_ms(out, "connect_ms", is_reached, probe->connect_ns);
    put_ms(out, "round_trip_ms", is_reached, probe->round_trip_ns);
    put_ms(out, "clock_offset_min_ms", is_reached && probe->has_clock, probe->clock_low_ns);
    put_ms(out, "clock_offset_max_ms", is_reached && probe->has_clock, probe->clock_high_ns);
    put_facts(out, &probe->facts);
    jw_end_object(out);
}

static void put_check(struct json_out *out, const struct check *check)
{
    jw_object(out, NULL);
    jw_z(out, "check", check->id);
    jw_str(out, "node", check->node);
    jw_z(out, "level", check_level_name(check->level));
    jw_z(out, "verdict", check_verdict_name(check->verdict));
    jw_str(out, "expected", check->expected);
    jw_str(out, "found", check->found);
    jw_str(out, "advice", check->advice);
    jw_str(out, "asked_by", check->of);
    jw_end_object(out);
}

static void put_difference(struct json_out *out, const struct inventory *inventory,
                           const struct difference *difference)
{
    jw_object(out, NULL);
    jw_z(out, "what", difference->what);
    jw_array(out, "values");
    for (size_t idx = 0; idx < difference->n_values; idx++) {
        const struct difference_value *value = &difference->values[idx];
        jw_object(out, NULL);
        jw_str(out, "value", value->value);
        jw_array(out, "nodes");
        for (size_t at = 0; at < value->n_nodes; at++) {
            jw_str(out, NULL, inventory->nodes[value->nodes[at]].name);
        }
        jw_end_array(out);
        jw_end_object(out);
    }
    jw_end_array(out);
    jw_end_object(out);
}

void doctor_out_json(const struct doctor_view *view, struct strbuf *text)
{
    const struct doctor_result *result = view->result;
    struct json_out out;
    jw_document(&out, text);
    jw_str(&out, "inventory", view->inventory->id);
    jw_str(&out, "report", view->report ? view->report->id : STR_EMPTY);
    jw_array(&out, "cases");
    for (size_t idx = 0; idx < result->n_cases; idx++) {
        jw_str(&out, NULL, result->cases[idx]);
    }
    jw_end_array(&out);
    jw_array(&out, "nodes");
    for (size_t idx = 0; idx < result->probes.n; idx++) {
        put_probe(&out, &result->probes.items[idx]);
    }
    jw_end_array(&out);
    jw_array(&out, "checks");
    for (size_t idx = 0; idx < result->checks.n; idx++) {
        put_check(&out, &result->checks.items[idx]);
    }
    jw_end_array(&out);
    jw_array(&out, "differences");
    for (size_t idx = 0; idx < result->differences.n; idx++) {
        put_difference(&out, view->inventory, &result->differences.items[idx]);
    }
    jw_end_array(&out);
    jw_end_object(&out);
}
