/* SPDX-License-Identifier: Apache-2.0 */
/* write_schemas FOLDER: the JSON Schema of each document that is written as a table (codec/json_table.h), as FOLDER/NAME.json. `make schemas` writes
   those of manifests/schema with it, and tests/integration/test_schemas_written.sh compares. */
#include "base/base.h"

#include "base/fs.h"
#include "codec/json_table.h"
#include "evidence/result.h"
#include "judge/health.h"
#include "report/dataset.h"
#include "report/image.h"
#include "report/inventory.h"
#include "report/lock.h"
#include "report/plan.h"
#include "report/report_tables.h"
#include "report/vocabulary.h"
#include "view/audit_out.h"
#include "view/findings_out.h"
#include "view/history.h"

#define SCHEMA_MAX (1u << 20)

static const struct json_document *const DOCUMENTS[] = {
    &AUDIT_DOCUMENT,         &LINT_DOCUMENT,      &VOCABULARY_DOCUMENT, &DATASET_DOCUMENT,
    &IMAGE_DOCUMENT,         &INVENTORY_DOCUMENT, &RESULT_DOCUMENT,     &LOCK_DOCUMENT,
    &PLAN_DOCUMENT,          &REPORT_DOCUMENT,    &HISTORY_DOCUMENT,    &REPORT_TABLES_DOCUMENT,
    &HEALTH_LIMITS_DOCUMENT,
};

int main(int argc, char **argv)
{
    CLEANUP(arena) struct arena vocabulary = ARENA_EMPTY;
    const struct json_vocabulary words = {vocabulary_put, vocabulary_builtin(&vocabulary)};
    if (argc != 2) {
        fprintf(stderr, "usage: write_schemas FOLDER\n");
        return 2;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(DOCUMENTS); idx++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        CLEANUP(strbuf) struct strbuf text = STRBUF(SCHEMA_MAX);
        struct err err = {0};
        json_schema(&text, DOCUMENTS[idx], &words);
        ASSERT(!text.is_full);
        if (fs_write_atomic(fs_join(&arena, argv[1], DOCUMENTS[idx]->file), strbuf_str(&text),
                            &err) < 0) {
            fprintf(stderr, "write_schemas: %s\n", err.msg);
            return 1;
        }
    }
    return 0;
}
