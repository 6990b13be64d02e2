/* SPDX-License-Identifier: Apache-2.0 */
/* A report as a person writes it (form 2, "schema_version": 2; manifests/reports/README.md): tables, and nothing that follows
   from the rest. It is spelled out as form 1, of which alone all others know: that is what is decoded, overridden and frozen with
   a run. */
#pragma once

#include "codec/json_table.h"

struct spelled_item { /* where an item of a list was written */
    size_t item;
    int64_t row; /* of that table; -1: the item is no table */
};
struct spelled_list {
    const char *key;            /* "cases" */
    struct spelled_item *items; /* a VEC, in the arena */
    size_t n, n_max;
};
#define N_LISTS 4
struct spelled {
    struct str text;                    /* form 1 */
    struct spelled_list lists[N_LISTS]; /* n 0: as they were */
};

extern const struct json_document REPORT_TABLES_DOCUMENT;
/* A text that is not of form 2, whatever it is, is given back as it is. ERR_MANIFEST, with the path in form 2. */
MUST_CHECK int report_spell_out(struct arena *arena, struct str text, const char *name,
                                struct spelled *ret_spelled, struct err *err);
/* Where in the text a place of form 1 was written: "$.cases[7].id" in "$.cases[0].rows[7].id". */
const char *report_written_at(struct arena *arena, const struct spelled *spelled, struct str place);
/* So says an error about form 1. Returns -1. */
int report_fail_there(const struct spelled *spelled, struct err *err);
