/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a document with tables: within the limits, cells are plain text, lines are of the document. */
#include "base/base.h"

#include "report/doc_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
                    (enum doc_kind)(data[0] % 3), &tables);
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
    return 0;
}
