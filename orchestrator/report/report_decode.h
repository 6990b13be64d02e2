/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the report decoder (report.c, report_stack.c). Apart from them only dataset.c and lock.c include it,
   for the checks of text. Every function that fails fills *err with "file:$.path: expected ..., found ...". Memory is the
   arena's. */
#pragma once

#include "base/map.h"
#include "codec/json_table.h"
#include "report/report.h"

#define NODES_MAX         65536
#define GPUS_PER_NODE_MAX 1024
#define BATCH_MAX         (1 << 24)
#define SLUG_BYTES_MAX    64

/* Forms of text. */
extern const struct json_form FORM_SLUG, FORM_LINE, FORM_TEXT, FORM_COMMIT, FORM_URL, FORM_PATH,
    FORM_FILE_PATH, FORM_DATE;

/* Of a struct conditions. */
MUST_CHECK int get_conditions(const struct json *at, struct arena *arena, void *out,
                              struct err *err);
#define CONDITIONS_MAX 128
#define ROW_CONDITIONS(T)                                                                          \
    ROW_PAIRS("conditions", T, conditions.items, conditions.n, JSON_NULLABLE,                      \
              .max = CONDITIONS_MAX, .form = &FORM_LINE, .get = get_conditions,                    \
              .vocabulary = "conditions")
extern const struct json_field ENVIRONMENT_ROWS[6], STACK_ROWS[13];
/* Where a name is absent, it is the id or the framework. */
MUST_CHECK int check_environment(const struct json *at, struct arena *arena, void *out,
                                 struct err *err);
MUST_CHECK int check_stack(const struct json *at, struct arena *arena, void *out, struct err *err);
