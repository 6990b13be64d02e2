/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a document with tables: within the limits, cells are plain text, lines are those of the document; a draft takes from them only
   numbers above 0 with a unit and metric of the vocabulary, each with an id of its own; its manifest is a valid report. */
#include "tests/fuzz/fuzz.h"

#include "draft/draft.h"

#define MANIFEST_BYTES_MAX (64u << 20)

static void write_and_read(struct arena *arena, const struct vocabulary *vocabulary,
                           const struct draft *draft)
{
    const struct draft_source source = {STR_LIT("mine"),
                                        STR_LIT("https://example.org/a.git"),
                                        STR_LIT("0123456789012345678901234567890123456789"),
                                        STR_LIT("2026-11-25"),
                                        &draft->items[0],
                                        STR_EMPTY};
    CLEANUP(strbuf) struct strbuf text = {0};
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct report report;
    struct json root;
    struct err err = {0};
    strbuf_init(&text, MANIFEST_BYTES_MAX);
    draft_write(arena, draft, &source, &text);
    ASSERT(!text.is_full);
    ASSERT(json_parse(strbuf_str(&text), "draft", &doc, &err) == 0);
    doc.root.context = vocabulary;
    root = doc.root;
    if (report_decode(&root, arena, &report, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        abort();
    }
}

static void draft(struct arena *arena, const struct doc_tables *tables)
{
    static const struct draft_attrs GIVEN = {.gpus_per_node = 8};
    static const struct draft_logs NO_LOGS = {0};
    const struct vocabulary *vocabulary = vocabulary_builtin(arena);
    struct draft_reader *reader = draft_reader_new(arena, vocabulary, STR_EMPTY);
    struct draft draft = {0};
    draft_add_tables(reader, STR_LIT("docs/a/README.md"), tables, &draft);
    draft_match(arena, &NO_LOGS, &GIVEN, &draft);
    ASSERT(draft.n <= DRAFT_NUMBERS_MAX);
    for (size_t idx = 0; idx < draft.n; idx++) {
        const struct draft_number *n = &draft.items[idx];
        ASSERT(n->printed.len > 0 && words_find(&vocabulary->units, n->unit));
        ASSERT(words_find(&vocabulary->metrics, n->metric));
        ASSERT(n->state == DRAFT_UNPLACED || n->is_repeated || n->id.len > 0);
        ASSERT(n->state == DRAFT_UNPLACED || n->state == DRAFT_NO_LOG);
    }
    if (draft_has_rows(&draft)) {
        write_and_read(arena, vocabulary, &draft);
    }
    draft_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct doc_tables tables;
    int64_t n_lines = 1;
    if (size == 0) {
        return 0;
    }
    for (size_t idx = 1; idx < size; idx++) {
        n_lines += data[idx] == '\n';
    }
    doc_tables_read(&arena, (struct str){(const char *)data + 1, size - 1},
                    (enum doc_kind)(data[0] % DOC_KINDS), &tables);
    ASSERT(tables.n <= DOC_TABLES_MAX);
    for (size_t t = 0; t < tables.n; t++) {
        const struct doc_table *table = &tables.items[t];
        ASSERT(table->n_rows <= DOC_ROWS_MAX && table->line >= 1 && table->line <= n_lines);
        ASSERT(table->before.len <= DOC_BEFORE_MAX);
        for (size_t row = 0; row < table->n_rows; row++) {
            ASSERT(table->rows[row].n <= DOC_COLS_MAX);
            for (size_t c = 0; c < table->rows[row].n; c++) {
                ASSERT(table->rows[row].cells[c].text.len <= size);
            }
        }
    }
    draft(&arena, &tables);
    return 0;
}
