/* SPDX-License-Identifier: Apache-2.0 */
/* The audit as tables for other programs: a row a cell. */
#include "base/base.h"

#include "base/table.h"
#include "view/audit_out.h"

/* Parted by blanks. */
static void add_logs(struct table *table, const struct cell_audit *a)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1u << 20);
    for (size_t idx = 0; idx < a->n_logs; idx++) {
        strbuf_printf(&text, "%s%.*s", idx ? " " : "", STR_ARG(a->logs[idx].path));
    }
    table_add(table, strbuf_str(&text));
}

/* The reasons of a number that does not follow; else what is said of it. */
static void add_note(struct table *table, const struct cell_audit *a)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1u << 20);
    if (a->verdict == AUDIT_DIFFERS) {
        audit_out_reasons(&table->arena, a, "; ", "", &text);
        table_add(table, str_sub(strbuf_str(&text), strlen("; "), SIZE_MAX));
    } else {
        table_add(table, a->note.ptr ? a->note : STR_EMPTY);
    }
}

static void add_row(struct table *table, const struct report *report, const struct cell_audit *a)
{
    const struct report_case *c = a->of_case;
    TABLE_ADD(table, report->id, a->cell->id, c->model, c->stack->label, c->precision,
              table_text(table, "%" PRId64, c->nodes), table_text(table, "%" PRId64, c->gpus),
              table_text(table, "%" PRId64, c->batch_per_gpu), a->cell->metric_name, a->cell->table,
              a->cell->printed, a->cell->unit, table_f64(table, a->recomputed),
              table_f64(table, a->rel_diff), str_of(cell_verdict_words(a)),
              str_of(PROOF_NAMES[a->proof]));
    TABLE_ADD(table, identity_facts(&table->arena, &a->identity, ID_UNPROVEN, " "),
              identity_facts(&table->arena, &a->identity, ID_CONTRADICTED, " "),
              str_of(LOG_STATE_NAMES[a->log_state]),
              a->rule.ptr ? cell_rule_words(&table->arena, a) : STR_EMPTY);
    add_logs(table, a);
    add_note(table, a);
    table_add(table, a->cell->footnote.ptr ? a->cell->footnote : STR_EMPTY);
}

struct said {
    const char *head;
    struct str text;
};

/* A row of the columns that it has. */
static void add_said(struct table *table, const struct said *said, size_t n_said)
{
    for (size_t column = 0; column < table->n_columns; column++) {
        struct str text = STR_EMPTY;
        for (size_t idx = 0; idx < n_said; idx++) {
            text = str_eq_z(table->columns[column].head, said[idx].head) ? said[idx].text : text;
        }
        table_add(table, text);
    }
}

static void add_not_printed(struct table *table, const struct report *report,
                            const struct not_printed *at)
{
    const struct said said[] = {{"report", report->id}, {"framework", at->column},
                                {"table", at->table},   {"printed", at->printed},
                                {"note", at->row},      {"verdict", STR_LIT("not_printed")}};
    add_said(table, said, ARRAY_LEN(said));
}

static void add_finding(struct table *table, const struct report *report,
                        const struct finding *finding)
{
    const char *note =
        arena_printf(&table->arena, "%s %s: %.*s", FINDING_LEVEL_NAMES[finding->level], finding->id,
                     STR_ARG(finding->message));
    const struct said said[] = {{"report", report->id},
                                {"verdict", STR_LIT("finding")},
                                {"note", str_of(note)},
                                {"logs", finding->where}};
    add_said(table, said, ARRAY_LEN(said));
}

void audit_out_csv(const struct audit_set *set, struct strbuf *out)
{
    CLEANUP(table)
    struct table table = table_of(
        "report|cell|model|framework|precision|>nodes|>gpus|>batch_per_gpu|metric|table|>printed|"
        "unit|>recomputed|>rel_diff|verdict|proof|not_proven|contradicted|log_state|rule|logs|note|"
        "footnote");
    for (size_t idx = 0; idx < set->n; idx++) {
        for (size_t cell = 0; cell < set->items[idx].n_cells; cell++) {
            add_row(&table, set->items[idx].report, &set->items[idx].cells[cell]);
        }
        const struct report *report = set->items[idx].report;
        for (size_t at = 0; at < report->n_not_printed; at++) {
            add_not_printed(&table, report, &report->not_printed[at]);
        }
        for (size_t at = 0; at < set->items[idx].findings.n; at++) {
            add_finding(&table, report, &set->items[idx].findings.items[at]);
        }
    }
    table_render_csv(&table, out);
}
