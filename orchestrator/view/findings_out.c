/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/findings_out.h"

#include "base/table.h"
#include "view/address.h"

#define SCHEMA_VERSION 1

size_t findings_count(const struct findings *list, enum finding_level level)
{
    size_t n = 0;
    for (size_t idx = 0; idx < list->n; idx++) {
        n += list->items[idx].level == level;
    }
    return n;
}

static const struct json_form RULE_ID = {.pattern = "^[a-z]+(-[a-z]+)*$"};
const struct json_field FINDING_ROWS[4] = {
    ROW("id", struct finding, id, JSON_REQUIRED, .form = &RULE_ID),
    ROW_WORD("level", struct finding, level, FINDING_LEVEL_NAMES, JSON_REQUIRED),
    ROW("message", struct finding, message, JSON_REQUIRED, .form = &JSON_FILLED),
    ROW("where", struct finding, where, JSON_REQUIRED, .form = &JSON_FILLED,
        .about =
            "a log's path with :LINE where it is known, a cell, a case, the authors' page with "
            ": FRAMEWORK where it is about one, or the manifest's place of what runs it"),
};

struct lint_of {
    const struct report *report;
    const struct findings *findings;
};
struct lint_document {
    const struct lint_of *reports;
    size_t n_reports;
};
static const struct json_field LIST_ROWS[] = {
    ROW_LIST("findings", struct findings, items, n, FINDING_ROWS, JSON_REQUIRED)};
static const struct json_field LINT_OF_ROWS[] = {
    ROW_VIA("report", struct lint_of, report, id, JSON_REQUIRED, .form = &JSON_FILLED),
    ROW_THERE(struct lint_of, findings, LIST_ROWS),
};
static const struct json_field LINT_ROWS[] = {
    ROW_NUMBER("schema_version", SCHEMA_VERSION),
    ROW_LIST("reports", struct lint_document, reports, n_reports, LINT_OF_ROWS, JSON_REQUIRED),
};
const struct json_document LINT_DOCUMENT = {
    JSON_DOCUMENT("lint-output.json", "what `reperf lint --json` prints", LINT_ROWS)};

void lint_out_json(const struct report_set *reports, const struct findings *lists,
                   struct strbuf *buf)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct lint_of *items = arena_array(&arena, struct lint_of, reports->n + 1);
    const struct lint_document document = {items, reports->n};
    for (size_t idx = 0; idx < reports->n; idx++) {
        items[idx] = (struct lint_of){&reports->items[idx], &lists[idx]};
    }
    json_encode_document(buf, LINT_ROWS, ARRAY_LEN(LINT_ROWS), &document);
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

static void write_block(struct page *page, const struct findings *list, size_t first)
{
    const struct finding *head = &list->items[first];
    const struct finding_rule *rule = Z_NAMED(FINDING_RULES, N_FINDING_RULES, id, str_of(head->id));
    page_fold(page, FINDING_LEVEL_NAMES[head->level],
              text_of(page, "%s: %s", head->id, rule ? rule->title : ""),
              head->level == LEVEL_ERROR);
    if (rule && page->form == PAGE_HTML) {
        page_line(page, 0, finding_help(rule), STR_EMPTY);
    }
    for (size_t idx = first; idx < list->n; idx++) {
        const struct finding *f = &list->items[idx];
        if (f->id == head->id) {
            page_line(page, 4, f->message, STR_EMPTY);
            page_line(page, 8, f->where, address_of_spot(&page->arena, &f->at));
        }
    }
    page_fold_end(page);
}

/* The next rule's first finding, the worst rules first; SIZE_MAX after the last. */
static size_t next_block(const struct findings *list, size_t *level, size_t from)
{
    for (; *level <= LEVEL_ERROR; (*level)--, from = 0) {
        for (size_t idx = from; idx < list->n; idx++) {
            if (list->items[idx].level == *level && is_first_of_rule(list, idx)) {
                return idx;
            }
        }
    }
    return SIZE_MAX;
}

void findings_out(struct page *page, const struct findings *list)
{
    size_t level = LEVEL_ERROR;
    for (size_t idx = 0; (idx = next_block(list, &level, idx)) != SIZE_MAX; idx++) {
        write_block(page, list, idx);
    }
}

static void add_count(struct strbuf *out, const char *before, size_t n, const char *what)
{
    strbuf_printf(out, "%s%zu %s%s", before, n, what, plural_s(n));
}

void findings_out_levels(const size_t n_of[], struct strbuf *out)
{
    add_count(out, "", n_of[LEVEL_ERROR], "error");
    add_count(out, ", ", n_of[LEVEL_WARNING], "warning");
    add_count(out, ", ", n_of[LEVEL_NOTE], "note");
}

void findings_out_counts(const struct findings *list, struct strbuf *out)
{
    const size_t n_of[] = {[LEVEL_NOTE] = findings_count(list, LEVEL_NOTE),
                           [LEVEL_WARNING] = findings_count(list, LEVEL_WARNING),
                           [LEVEL_ERROR] = findings_count(list, LEVEL_ERROR)};
    findings_out_levels(n_of, out);
}

void findings_out_text(const struct findings *list, bool is_colored, struct strbuf *out)
{
    struct page page = {.out = out, .is_colored = is_colored};
    findings_out(&page, list);
    findings_out_counts(list, out);
    strbuf_add_char(out, '\n');
    page_end(&page);
}
