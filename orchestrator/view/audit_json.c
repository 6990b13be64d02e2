/* SPDX-License-Identifier: Apache-2.0 */
/* `audit --json`: the contract of DESIGN.md section 5 (manifests/schema/audit-output.json). */
#include "base/base.h"

#include "view/audit_out.h"

#include "codec/json.h"
#include "view/findings_out.h"

#define SCHEMA_VERSION 1

static struct str or_empty(struct str s)
{
    return s.ptr ? s : STR_LIT("");
}

static void write_explanation(const struct explanation *e, struct json_out *out)
{
    if (e->n_tried == 0) {
        jw_null(out, "explanation");
        return;
    }
    jw_object(out, "explanation");
    jw_i64(out, "tried", (int64_t)e->n_tried);
    jw_i64(out, "matching", (int64_t)e->n_matching);
    jw_i64(out, "group", (int64_t)e->n_group);
    jw_str(out, "best", e->best);
    jw_i64(out, "best_explains", (int64_t)e->best_explains);
    jw_bool(out, "is_explanation", explains(e));
    jw_end_object(out);
}

/* Facts of the row in one state, each with its reason. */
static void write_identity(const struct cell_audit *a, const char *key, enum identity_state state,
                           struct json_out *out)
{
    jw_array(out, key);
    for (size_t fact = 0; fact < IDENTITY_FACTS; fact++) {
        const struct identity_item *item = &a->identity.items[fact];
        if (item->state == state) {
            jw_object(out, NULL);
            jw_z(out, "fact", identity_name((enum identity_fact)fact));
            jw_str(out, "why", item->why);
            jw_end_object(out);
        }
    }
    jw_end_array(out);
}

static void write_cell(const struct cell_audit *a, struct json_out *out)
{
    const struct report_case *c = a->of_case;
    jw_object(out, NULL);
    jw_str(out, "case", c->id);
    jw_str(out, "cell", a->cell->id);
    jw_str(out, "model", c->model);
    jw_str(out, "framework", c->framework);
    jw_str(out, "framework_label", c->stack->label);
    jw_str(out, "precision", c->precision);
    jw_i64(out, "gpus", c->gpus);
    jw_i64(out, "batch_per_gpu", c->batch_per_gpu);
    jw_str(out, "metric", a->cell->metric_name);
    jw_str(out, "table", a->cell->table);
    jw_f64(out, "published", a->cell->published);
    jw_str(out, "printed", a->cell->printed);
    jw_str(out, "unit", a->cell->unit);
    jw_f64(out, "recomputed", a->recomputed);
    jw_f64(out, "rel_diff", a->rel_diff);
    jw_z(out, "verdict", audit_verdict_name(a->verdict));
    if (a->is_proposed) {
        jw_bool(out, "proposed", true);
    }
    jw_str(out, "digits", a->digits);
    jw_z(out, "proof", proof_name(a->proof));
    write_identity(a, "unproven", ID_UNPROVEN, out);
    write_identity(a, "contradicted", ID_CONTRADICTED, out);
    jw_z(out, "log_state", log_state_name(a->log_state));
    jw_str(out, "rule", a->rule);
    if (a->n_asked) {
        jw_object(out, "inferred");
        jw_i64(out, "gives", (int64_t)a->n_given);
        jw_i64(out, "of", (int64_t)a->n_asked);
        jw_end_object(out);
    }
    jw_str(out, "rounding", a->rounding);
    jw_i64(out, "samples", (int64_t)a->n_used);
    jw_array(out, "logs");
    for (size_t idx = 0; idx < a->n_logs; idx++) {
        jw_object(out, NULL);
        jw_str(out, "path", a->logs[idx].path);
        jw_str(out, "sha256", a->logs[idx].sha256);
        jw_end_object(out);
    }
    jw_end_array(out);
    write_explanation(&a->explanation, out);
    jw_str(out, "note", or_empty(a->note));
    if (c->factor.value > 0) {
        jw_f64(out, "factor", c->factor.value);
    }
    if (c->matched.ptr) {
        jw_str(out, "matched", c->matched);
    }
    jw_end_object(out);
}

static void write_row(const struct like_row *row, struct json_out *out)
{
    jw_object(out, NULL);
    jw_str(out, "a", row->a->cell->id);
    jw_str(out, "b", row->b->cell->id);
    jw_str(out, "rule", row->rule);
    jw_f64(out, "value_a", row->value_a);
    jw_f64(out, "value_b", row->value_b);
    jw_f64(out, "ratio", row->ratio);
    jw_f64(out, "published_ratio", row->published_ratio);
    jw_str(out, "note", or_empty(row->note));
    jw_end_object(out);
}

void audit_out_json(const struct audit_set *set, struct strbuf *buf)
{
    struct json_out out;
    jw_begin(&out, buf, false);
    jw_object(&out, NULL);
    jw_i64(&out, "schema_version", SCHEMA_VERSION);
    jw_array(&out, "reports");
    for (size_t idx = 0; idx < set->n; idx++) {
        const struct report_audit *audit = &set->items[idx];
        jw_object(&out, NULL);
        jw_str(&out, "report", audit->report->id);
        jw_array(&out, "cells");
        for (size_t cell = 0; cell < audit->n_cells; cell++) {
            write_cell(&audit->cells[cell], &out);
        }
        jw_end_array(&out);
        findings_out_json(&audit->findings, "findings", &out);
        jw_array(&out, "like_for_like");
        for (size_t row = 0; row < audit->n_rows; row++) {
            write_row(&audit->rows[row], &out);
        }
        jw_end_array(&out);
        jw_end_object(&out);
    }
    jw_end_array(&out);
    jw_end_object(&out);
    strbuf_add_char(buf, '\n');
}
