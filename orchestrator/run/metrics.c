/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.prom. Source of the text format: OpenMetrics 1.0 (prometheus.io/docs/specs/om/open_metrics_spec): HELP, TYPE, UNIT, a
   family's name ends with its unit, "# EOF" last. */
#include "base/base.h"

#include "base/log.h"
#include "run/run_impl.h"

#define METRICS_MAX (16u << 20)

static void label(struct strbuf *out, const char *name, struct str value)
{
    strbuf_printf(out, "%s=\"", name);
    for (size_t idx = 0; idx < value.len; idx++) {
        char c = value.ptr[idx];
        if (c == '\\' || c == '"') {
            strbuf_add_char(out, '\\');
        }
        if (c == '\n') {
            strbuf_add_z(out, "\\n");
        } else {
            strbuf_add_char(out, c);
        }
    }
    strbuf_add_char(out, '"');
}

static void family(struct strbuf *out, const char *name, const char *type, const char *unit,
                   const char *help)
{
    strbuf_printf(out, "# TYPE %s %s\n", name, type);
    if (unit) {
        strbuf_printf(out, "# UNIT %s %s\n", name, unit);
    }
    strbuf_printf(out, "# HELP %s %s\n", name, help);
}

/* The name and the run's labels; those that are its own may follow. */
static void begin_metric(struct strbuf *out, const char *name, const struct frozen *frozen)
{
    strbuf_printf(out, "%s{", name);
    label(out, "run", frozen->run_id);
    strbuf_add_char(out, ',');
    label(out, "report", frozen->plan.report);
}

static void begin_repeat(struct strbuf *out, const char *name, const struct frozen *frozen,
                         const struct unit *unit)
{
    begin_metric(out, name, frozen);
    strbuf_add_char(out, ',');
    label(out, "case", unit->step->case_id);
    strbuf_printf(out, ",repeat=\"%lld\"} ", (long long)unit->repeat);
}

static void encode_states(struct strbuf *out, const struct frozen *frozen, const struct unit *units,
                          size_t n_units)
{
    static const char *const NAMES[] = {"waiting", "running", "collected", "counted", "failed"};
    size_t counts[ARRAY_LEN(NAMES)] = {0};
    for (size_t idx = 0; idx < n_units; idx++) {
        bool is_failed = units[idx].state == UNIT_PARSED && !units[idx].counts;
        counts[is_failed ? 4 : (size_t)units[idx].state]++;
    }
    family(out, "reperf_repeats", "gauge", NULL, "Repeats of all cases of the run, by state.");
    for (size_t idx = 0; idx < ARRAY_LEN(NAMES); idx++) {
        begin_metric(out, "reperf_repeats", frozen);
        strbuf_printf(out, ",state=\"%s\"} %zu\n", NAMES[idx], counts[idx]);
    }
}

static void encode_repeats(struct strbuf *out, const struct frozen *frozen,
                           const struct unit *units, size_t n_units)
{
    family(out, "reperf_throughput_items_per_second", "gauge", "items_per_second",
           "Items of the whole job per second, of each repeat that counts.");
    for (size_t idx = 0; idx < n_units; idx++) {
        if (units[idx].state == UNIT_PARSED && units[idx].counts) {
            begin_repeat(out, "reperf_throughput_items_per_second", frozen, &units[idx]);
            strbuf_add_f64(out, units[idx].value);
            strbuf_add_char(out, '\n');
        }
    }
    family(out, "reperf_log_size_bytes", "gauge", "bytes", "Size of each collected log.");
    for (size_t idx = 0; idx < n_units; idx++) {
        if (units[idx].state >= UNIT_FINISHED) {
            begin_repeat(out, "reperf_log_size_bytes", frozen, &units[idx]);
            strbuf_printf(out, "%lld\n", (long long)units[idx].log_bytes);
        }
    }
}

/* OpenMetrics text; pure. state: "running", "sealed", ... */
static void metrics_encode(struct strbuf *out, const struct frozen *frozen,
                           const struct unit *units, size_t n_units, const char *state)
{
    family(out, "reperf_run", "info", NULL, "A run of reperf and how far it is.");
    begin_metric(out, "reperf_run_info", frozen);
    strbuf_printf(out, ",profile=\"%s\",state=\"%s\",version=\"%s\"} 1\n",
                  plan_kind_name(frozen->plan.profile, frozen->plan.is_rehearsal), state,
                  REPERF_VERSION);
    encode_states(out, frozen, units, n_units);
    family(out, "reperf_cases_not_run", "gauge", NULL,
           "Cases of the plan that could not be run here.");
    begin_metric(out, "reperf_cases_not_run", frozen);
    strbuf_printf(out, "} %zu\n", frozen->plan.n_steps - plan_runnable(&frozen->plan));
    encode_repeats(out, frozen, units, n_units);
    strbuf_add_z(out, "# EOF\n");
}

void run_write_metrics(struct runner *r, const char *state)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(METRICS_MAX);
    struct err err = {0};
    metrics_encode(&text, &r->frozen, r->units, r->n_units, state);
    if (text.is_full || fs_replace(r->dir.metrics, strbuf_str(&text), &err) < 0) {
        log_line(LOG_DEBUG, "metrics: %s", text.is_full ? "too long" : err.msg);
    }
}
