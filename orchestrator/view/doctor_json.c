/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <math.h>

#include "codec/json_table.h"
#include "view/doctor_out.h"

static double ms(int64_t ns, bool is_known)
{
    int64_t us = ns / 1000;
    return is_known ? (double)us / 1000 : (double)NAN;
}

static void put_times(struct json_out *out, const char *key, const void *of)
{
    const struct node_probe *probe = of;
    bool has_clock = probe->is_reached && probe->has_clock;
    jw_f64(out, key, ms(probe->connect_ns, probe->is_reached));
    jw_f64(out, "round_trip_ms", ms(probe->round_trip_ns, probe->is_reached));
    jw_f64(out, "clock_offset_min_ms", ms(probe->clock_low_ns, has_clock));
    jw_f64(out, "clock_offset_max_ms", ms(probe->clock_high_ns, has_clock));
}

/* Those that are known and those that are not, each an object. */
static void put_facts(struct json_out *out, const char *key, const void *of)
{
    const struct node_facts *facts = &((const struct node_probe *)of)->facts;
    for (int known = 1; known >= 0; known--) {
        jw_object(out, known ? key : "not_known");
        for (size_t idx = 0; idx < facts->n; idx++) {
            CLEANUP(arena) struct arena arena = ARENA_EMPTY;
            const struct node_fact *fact = &facts->items[idx];
            if ((fact->value.ptr != NULL) == known) {
                jw_str(out, str_z(&arena, fact->key), known ? fact->value : fact->why);
            }
        }
        jw_end_object(out);
    }
}

/* clang-format off */
#define PROBE struct node_probe
static const struct json_field PROBE_ROWS[] = {
    ROW_VIA("name", PROBE, spec, name, 0),
    ROW_VIA("address", PROBE, spec, address, 0),
    ROW("reached", PROBE, is_reached, 0),
    ROW("error", PROBE, error, 0),
    ROW_OUT("connect_ms", JSON_F64, put_times, 0),
    ROW_OUT("facts", JSON_PAIRS, put_facts, 0),
};
static const struct json_field CHECK_ROWS[] = {
    ROW("check", struct check, id, 0),
    ROW("node", struct check, node, 0),
    ROW_WORD("level", struct check, level, CHECK_LEVEL_NAMES, 0),
    ROW_WORD("verdict", struct check, verdict, CHECK_VERDICT_NAMES, 0),
    ROW("expected", struct check, expected, 0),
    ROW("found", struct check, found, 0),
    ROW("advice", struct check, advice, 0),
    ROW("asked_by", struct check, of, 0),
};
static const struct json_field VALUE_ROWS[] = {
    ROW("value", struct difference_value, value, 0),
    ROW_STRS("nodes", struct difference_value, names, n_nodes, 0),
};
static const struct json_field DIFFERENCE_ROWS[] = {
    ROW("what", struct difference, what, 0),
    ROW_LIST("values", struct difference, values, n_values, VALUE_ROWS, 0),
};
static const struct json_field RESULT_ROWS[] = {
    ROW_STRS("cases", struct doctor_result, cases, n_cases, 0),
    ROW_LIST("nodes", struct doctor_result, probes.items, probes.n, PROBE_ROWS, 0),
    ROW_LIST("checks", struct doctor_result, checks.items, checks.n, CHECK_ROWS, 0),
    ROW_LIST("differences", struct doctor_result, differences.items, differences.n, DIFFERENCE_ROWS, 0),
};
static const struct json_field ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW_VIA("inventory", struct doctor_view, inventory, id, 0),
    ROW_VIA("report", struct doctor_view, report, id, 0),
    ROW_THERE(struct doctor_view, result, RESULT_ROWS),
};
/* clang-format on */

void doctor_out_json(const struct doctor_view *view, struct strbuf *text)
{
    json_encode_document(text, ROWS, ARRAY_LEN(ROWS), view);
}
