/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/findings_out.h"

#include "codec/json.h"

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

static const char *title_of(const char *id)
{
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        if (strcmp(FINDING_RULES[idx].id, id) == 0) {
            return FINDING_RULES[idx].title;
        }
    }
    return "";
}

static void write_block(const struct findings *list, size_t first, bool is_colored,
                        struct strbuf *out)
{
    const struct finding *head = &list->items[first];
    const char *color = head->level == LEVEL_ERROR     ? RED
                        : head->level == LEVEL_WARNING ? YELLOW
                                                       : "";
    strbuf_printf(out, "%s%s%s %s: %s\n", is_colored ? color : "", finding_level_name(head->level),
                  is_colored ? PLAIN : "", head->id, title_of(head->id));
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
