/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/findings_out.h"

#include "codec/json.h"
#include "view/address.h"

#define SCHEMA_VERSION 1
#define RED            "\033[31m"
#define YELLOW         "\033[33m"
#define PLAIN          "\033[0m"

size_t findings_count(const struct findings *list, enum finding_level level)
{
    size_t n = 0;
    for (size_t idx = 0; idx < list->n; idx++) {
        n += list->items[idx].level == level;
    }
    return n;
}

void findings_out_json(const struct findings *list, const char *key, struct json_out *out)
{
    jw_array(out, key);
    for (size_t idx = 0; idx < list->n; idx++) {
        const struct finding *f = &list->items[idx];
        jw_object(out, NULL);
        jw_z(out, "id", f->id);
        jw_z(out, "level", finding_level_name(f->level));
        jw_str(out, "message", f->message);
        jw_str(out, "where", f->where);
        jw_end_object(out);
    }
    jw_end_array(out);
}

void lint_out_json(const struct report_set *reports, const struct findings *lists,
                   struct strbuf *buf)
{
    struct json_out out;
    jw_begin(&out, buf, false);
    jw_object(&out, NULL);
    jw_i64(&out, "schema_version", SCHEMA_VERSION);
    jw_array(&out, "reports");
    for (size_t idx = 0; idx < reports->n; idx++) {
        jw_object(&out, NULL);
        jw_str(&out, "report", reports->items[idx].id);
        findings_out_json(&lists[idx], "findings", &out);
        jw_end_object(&out);
    }
    jw_end_array(&out);
    jw_end_object(&out);
    strbuf_add_char(buf, '\n');
}

/* --- SARIF --------------------------------------------------------------------------------------- */

static void write_text(struct json_out *out, const char *key, struct str text)
{
    jw_object(out, key);
    jw_str(out, "text", text);
    jw_end_object(out);
}

static void write_rules(struct json_out *out)
{
    jw_array(out, "rules");
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        const struct finding_rule *rule = &FINDING_RULES[idx];
        jw_object(out, NULL);
        jw_z(out, "id", rule->id);
        write_text(out, "shortDescription", str_of(rule->title));
        write_text(out, "help", str_of(rule->help));
        jw_object(out, "defaultConfiguration");
        jw_z(out, "level", finding_level_name(rule->level));
        jw_end_object(out);
        jw_end_object(out);
    }
    jw_end_array(out);
}

static void write_uri(struct json_out *out, struct str path)
{
    CLEANUP(strbuf) struct strbuf uri;
    strbuf_init(&uri, 3 * path.len + 1);
    address_add_path(&uri, path);
    jw_str(out, "uri", strbuf_str(&uri));
}

/* "FILE:$.place", "FILE:CELL", "LOG:LINE" or "LOG". */
static void write_location(struct json_out *out, struct str where)
{
    struct err err = {0};
    int64_t line = 0;
    int64_t colon = str_find(where, STR_LIT(":"));
    struct str path = colon > 0 ? str_sub(where, 0, (size_t)colon) : where;
    struct str rest = colon > 0 ? str_sub(where, (size_t)colon + 1, SIZE_MAX) : STR_EMPTY;
    bool has_line = rest.len && str_to_i64(rest, 1, INT32_MAX, &line, &err) == 0;
    jw_array(out, "locations");
    jw_object(out, NULL);
    jw_object(out, "physicalLocation");
    jw_object(out, "artifactLocation");
    write_uri(out, path);
    jw_end_object(out);
    if (has_line) {
        jw_object(out, "region");
        jw_i64(out, "startLine", line);
        jw_end_object(out);
    }
    jw_end_object(out);
    if (rest.len && !has_line) {
        jw_array(out, "logicalLocations");
        jw_object(out, NULL);
        jw_str(out, "fullyQualifiedName", rest);
        jw_end_object(out);
        jw_end_array(out);
    }
    jw_end_object(out);
    jw_end_array(out);
}

static int64_t rule_index(const char *id)
{
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        if (strcmp(FINDING_RULES[idx].id, id) == 0) {
            return (int64_t)idx;
        }
    }
    return -1;
}

static void write_result(struct json_out *out, const struct finding *f)
{
    jw_object(out, NULL);
    jw_z(out, "ruleId", f->id);
    jw_i64(out, "ruleIndex", rule_index(f->id));
    jw_z(out, "level", finding_level_name(f->level));
    write_text(out, "message", f->message);
    write_location(out, f->where);
    jw_end_object(out);
}

void findings_out_sarif(const struct findings *list, struct strbuf *buf)
{
    struct json_out out;
    jw_begin(&out, buf, false);
    jw_object(&out, NULL);
    jw_z(&out, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    jw_z(&out, "version", "2.1.0");
    jw_array(&out, "runs");
    jw_object(&out, NULL);
    jw_object(&out, "tool");
    jw_object(&out, "driver");
    jw_z(&out, "name", "reperf");
    jw_z(&out, "version", REPERF_VERSION);
    write_rules(&out);
    jw_end_object(&out);
    jw_end_object(&out);
    jw_z(&out, "columnKind", "unicodeCodePoints");
    jw_array(&out, "results");
    for (size_t idx = 0; idx < list->n; idx++) {
        write_result(&out, &list->items[idx]);
    }
    jw_end_array(&out);
    jw_end_object(&out);
    jw_end_array(&out);
    jw_end_object(&out);
    strbuf_add_char(buf, '\n');
}

/* --- text ---------------------------------------------------------------------------------------- */

static bool is_first_of_rule(const struct findings *list, size_t idx)
{
    for (size_t before = 0; before < idx; before++) {
        if (list->items[before].id == list->items[idx].id) {
            return false;
        }
    }
    return true;
}

static void write_block(const struct findings *list, size_t first, bool is_colored,
                        struct strbuf *out)
{
    const struct finding *head = &list->items[first];
    int64_t rule = rule_index(head->id);
    const char *color = head->level == LEVEL_ERROR     ? RED
                        : head->level == LEVEL_WARNING ? YELLOW
                                                       : "";
    strbuf_printf(out, "%s%s%s %s: %s\n", is_colored ? color : "", finding_level_name(head->level),
                  is_colored ? PLAIN : "", head->id, rule >= 0 ? FINDING_RULES[rule].title : "");
    for (size_t idx = first; idx < list->n; idx++) {
        if (list->items[idx].id == head->id) {
            strbuf_add_z(out, "    ");
            strbuf_add_plain(out, list->items[idx].message);
            strbuf_add_z(out, "\n        ");
            strbuf_add_plain(out, list->items[idx].where);
            strbuf_add_char(out, '\n');
        }
    }
}

void findings_out_blocks(const struct findings *list, bool is_colored, struct strbuf *out)
{
    for (int level = LEVEL_ERROR; level >= LEVEL_NOTE; level--) {
        for (size_t idx = 0; idx < list->n; idx++) {
            if ((int)list->items[idx].level == level && is_first_of_rule(list, idx)) {
                write_block(list, idx, is_colored, out);
            }
        }
    }
}

void findings_out_text(const struct findings *list, bool is_colored, struct strbuf *out)
{
    findings_out_blocks(list, is_colored, out);
    strbuf_printf(out, "%zu errors, %zu warnings, %zu notes\n", findings_count(list, LEVEL_ERROR),
                  findings_count(list, LEVEL_WARNING), findings_count(list, LEVEL_NOTE));
}
