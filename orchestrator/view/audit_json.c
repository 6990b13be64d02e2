/* SPDX-License-Identifier: Apache-2.0 */
/* `audit --json`, which other tools rely on. */
#include "base/base.h"

#include "view/audit_out.h"

#include "codec/json_table.h"
#include "view/findings_out.h"

#define SCHEMA_VERSION 1
#define TEXT           JSON_REQUIRED, .form = &JSON_FILLED
#define NUMBER         JSON_REQUIRED | JSON_NULLABLE

static void put_explains(struct json_out *out, const char *key, const void *of)
{
    jw_bool(out, key, explains(of));
}

#define TRIED struct explanation
static const struct json_field EXPLANATION_ROWS[] = {
    ROW("tried", TRIED, n_tried, JSON_REQUIRED, .min = 1),
    ROW("matching", TRIED, n_matching, JSON_REQUIRED),
    ROW("group", TRIED, n_group, JSON_REQUIRED, .min = 1),
    ROW("best", TRIED, best, JSON_REQUIRED | JSON_NULLABLE, .form = &JSON_FILLED),
    ROW("best_explains", TRIED, best_explains, JSON_REQUIRED),
    ROW_OUT("is_explanation", JSON_BOOL, put_explains, JSON_REQUIRED,
            .about = "the best candidate gives every cell of the group"),
};

/* Facts of the row in one state, each with its reason. */
static void put_identity(const struct cell_audit *a, const char *key, enum identity_state state,
                         struct json_out *out)
{
    jw_array(out, key);
    for (size_t fact = 0; fact < IDENTITY_FACTS; fact++) {
        const struct identity_item *item = &a->identity.items[fact];
        if (item->state == state) {
            jw_object(out, NULL);
            jw_z(out, "fact", IDENTITY_NAMES[(enum identity_fact)fact]);
            jw_str(out, "why", item->why);
            jw_end_object(out);
        }
    }
    jw_end_array(out);
}

static void put_unproven(struct json_out *out, const char *key, const void *of)
{
    put_identity(of, key, ID_UNPROVEN, out);
}

static void put_contradicted(struct json_out *out, const char *key, const void *of)
{
    put_identity(of, key, ID_CONTRADICTED, out);
}

#define FACTS                                                                                      \
    0, .schema =                                                                                   \
           "\"type\": \"array\", \"items\": {\"type\": \"object\", "                               \
           "\"additionalProperties\": false, \"required\": [\"fact\", \"why\"], "                  \
           "\"properties\": {\"fact\": {\"enum\": [\"gpus\", \"nodes\", "                          \
           "\"precision\", \"batch\", \"model\", \"unit\", \"machine\", \"runs\"]}, \"why\": "     \
           "{\"type\": \"string\", \"minLength\": 1}}}"

static void put_published(struct json_out *out, const char *key, const void *of)
{
    const struct cell_audit *a = of;
    if (a->of_case->factor.value > 0) {
        jw_f64(out, key, a->of_case->factor.value);
    }
}

#define AUDITED struct cell_audit
static const struct json_form PRINTED = {.pattern = "^[0-9]+([.][0-9]+)?$"};
static const struct json_form RULE = {.pattern =
                                          "^([a-z0-9-]+/[a-z0-9-]+|derived:(ratio|mean|median))$"};
static const char *const ROUNDINGS[] = {"nearest", "truncate"};
static const struct json_field LOG_ROWS[] = {
    ROW("path", struct log_ref, path, TEXT),
    ROW("sha256", struct log_ref, sha256, NUMBER, .form = &JSON_SHA256),
};
/* None where no rule was chosen. */
static const struct json_field INFERRED_ROWS[] = {
    ROW("gives", AUDITED, n_given, JSON_REQUIRED),
    ROW("of", AUDITED, n_asked, JSON_REQUIRED, .min = 1),
};

static void put_inferred(struct json_out *out, const char *key, const void *of)
{
    const struct cell_audit *a = of;
    if (a->n_asked) {
        json_encode_object(out, key, INFERRED_ROWS, ARRAY_LEN(INFERRED_ROWS), a);
    }
}

static const struct json_field CELL_ROWS[] = {
    ROW_VIA("case", AUDITED, of_case, id, TEXT),
    ROW_VIA("cell", AUDITED, cell, id, TEXT),
    ROW_VIA("model", AUDITED, of_case, model, TEXT),
    ROW_VIA("framework", AUDITED, of_case, framework, TEXT),
    {ROW_AT("framework_label", JSON_STR, struct stack, label), .flags = TEXT,
     .via = {1 + offsetof(AUDITED, of_case), 1 + offsetof(struct report_case, stack)}},
    ROW_VIA("precision", AUDITED, of_case, precision, JSON_REQUIRED, .vocabulary = "precisions"),
    ROW_VIA("gpus", AUDITED, of_case, gpus, JSON_REQUIRED),
    ROW_VIA("batch_per_gpu", AUDITED, of_case, batch_per_gpu, JSON_REQUIRED),
    ROW_VIA("metric", AUDITED, cell, metric_name, JSON_REQUIRED, .vocabulary = "metrics"),
    ROW_VIA("table", AUDITED, cell, table, TEXT),
    ROW_VIA("published", AUDITED, cell, published, JSON_REQUIRED),
    ROW_VIA("printed", AUDITED, cell, printed, JSON_REQUIRED, .form = &PRINTED),
    ROW_VIA("unit", AUDITED, cell, unit, JSON_REQUIRED, .vocabulary = "units"),
    ROW("recomputed", AUDITED, recomputed, NUMBER),
    ROW("rel_diff", AUDITED, rel_diff, NUMBER),
    ROW_WORD("verdict", AUDITED, verdict, AUDIT_VERDICT_NAMES, JSON_REQUIRED),
    ROW("proposed", AUDITED, is_proposed, JSON_OMIT, .schema = "\"const\": true",
        .about = "read by a format that is only proposed"),
    ROW("digits", AUDITED, digits, JSON_NULLABLE, .form = &JSON_FILLED,
        .about = "of a match, or of a slip of one digit: what is printed for what"),
    ROW_WORD("proof", AUDITED, proof, PROOF_NAMES, 0),
    ROW_OUT("unproven", JSON_ANY, put_unproven, FACTS),
    ROW_OUT("contradicted", JSON_ANY, put_contradicted, FACTS),
    ROW_WORD("log_state", AUDITED, log_state, LOG_STATE_NAMES, 0),
    ROW("rule", AUDITED, rule, NUMBER, .form = &RULE),
    ROW_INSIDE("inferred", INFERRED_ROWS, 0, .put = put_inferred,
               .about = "the rule was chosen because it gives so many of the table's numbers whose "
                        "logs are there"),
    ROW("rounding", AUDITED, rounding, NUMBER, .names = ROUNDINGS, .n_names = ARRAY_LEN(ROUNDINGS)),
    ROW("samples", AUDITED, n_used, JSON_REQUIRED),
    ROW_LIST("logs", AUDITED, logs, n_logs, LOG_ROWS, JSON_REQUIRED),
    ROW_OBJECT("explanation", AUDITED, explanation, EXPLANATION_ROWS, NUMBER),
    ROW("note", AUDITED, note, JSON_REQUIRED | JSON_TEXT),
    ROW_OUT("factor", JSON_F64, put_published, 0, .schema = "\"exclusiveMinimum\": 0",
            .about = "published beside the logs; the rule's number times this is what is compared"),
    ROW_VIA("matched", AUDITED, of_case, matched, JSON_OMIT, .form = &JSON_FILLED,
            .about = "how the row's logs were found, where the report does not name them"),
    ROW_VIA("footnote", AUDITED, cell, footnote, JSON_OMIT, .form = &JSON_FILLED,
            .about = "what the report says of this number beside it"),
};
#define CELL_RULES                                                                                 \
    "\"if\": {\"properties\": {\"verdict\": {\"const\": \"no_log\"}}}, \"then\": "                 \
    "{\"properties\": "                                                                            \
    "{\"recomputed\": {\"type\": \"null\"}, \"rel_diff\": {\"type\": \"null\"}, \"note\": "        \
    "{\"minLength\": 1}}}, \"else\": {\"properties\": {\"recomputed\": {\"type\": \"number\"}, "   \
    "\"rel_diff\": {\"type\": \"number\"}, \"rule\": {\"type\": \"string\"}}}"

/* The id of the cell of one side. */
#define ROW_SIDE(side)                                                                             \
    {                                                                                              \
        ROW_AT(#side, JSON_STR, struct cell, id), .flags = TEXT, .via = {                          \
            1 + offsetof(struct like_row, side),                                                   \
            1 + offsetof(AUDITED, cell)                                                            \
        }                                                                                          \
    }
static const struct json_field LIKE_ROWS[] = {
    ROW_SIDE(a),
    ROW_SIDE(b),
    ROW("rule", struct like_row, rule, TEXT),
    ROW("value_a", struct like_row, value_a, NUMBER),
    ROW("value_b", struct like_row, value_b, NUMBER),
    ROW("ratio", struct like_row, ratio, NUMBER),
    ROW("published_ratio", struct like_row, published_ratio, JSON_REQUIRED),
    ROW("note", struct like_row, note, JSON_REQUIRED | JSON_TEXT),
};
static const struct json_field REPORT_OWN_ROWS[] = {
    ROW_LIST("not_printed", struct report, not_printed, n_not_printed, NOT_PRINTED_ROWS, JSON_OMIT,
             .about = "where a table has no number"),
};
#define AUDIT struct report_audit
static const struct json_field REPORT_ROWS[] = {
    ROW_VIA("report", AUDIT, report, id, TEXT),
    ROW_LIST("cells", AUDIT, cells, n_cells, CELL_ROWS, JSON_REQUIRED, .rules = CELL_RULES),
    ROW_THERE(AUDIT, report, REPORT_OWN_ROWS),
    ROW_LIST("findings", AUDIT, findings.items, findings.n, FINDING_ROWS, JSON_REQUIRED),
    ROW_LIST("like_for_like", AUDIT, rows, n_rows, LIKE_ROWS, JSON_REQUIRED),
};
static const struct json_field ROWS[] = {
    ROW_NUMBER("schema_version", SCHEMA_VERSION),
    ROW_LIST("reports", struct audit_set, items, n, REPORT_ROWS, JSON_REQUIRED),
};
const struct json_document AUDIT_DOCUMENT = {
    JSON_DOCUMENT("audit-output.json", "what `reperf audit --json` prints", ROWS)};

void audit_out_json(const struct audit_set *set, struct strbuf *buf)
{
    json_encode_document(buf, ROWS, ARRAY_LEN(ROWS), set);
    strbuf_add_char(buf, '\n');
}
