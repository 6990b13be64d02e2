/* SPDX-License-Identifier: Apache-2.0 */
/* How a kept document differs from the one that today's rules derive: key by key, since a message may be worded anew and a key
   added without a change of what was measured. Nothing in the kept document chooses which of its keys count. */
#pragma once

#include "base/arena.h"
#include "codec/json.h"

#define DISCREPANCIES_MAX 100 /* that are listed; all are counted */

struct discrepancy {
    const char *text; /* "result.json:$.cells[0].value: kept 9, today's rules derive 8" */
    bool is_value; /* a value, verdict, state or proof; else a wording, or a key that was added */
};

struct discrepancies {
    /* At most DISCREPANCIES_MAX, in the order in which they were found; in the arena. */
    struct discrepancy *items;
    size_t n;
    size_t n_values, n_wordings; /* of all */
};

/* Adds those of one document. ERR_INTEGRITY where the kept text is no JSON document, or says the same in another form than reperf
   writes. */
MUST_CHECK int discrepancies_find(struct arena *arena, const char *name, struct str kept,
                                  struct str derived, struct discrepancies *discrepancies,
                                  struct err *err);
/* "differences": [{"kind": "value" or "wording", "text"}]. */
void discrepancies_encode(struct json_out *out, const struct discrepancies *discrepancies);
/* Lines for people. */
void discrepancies_print(struct strbuf *out, const struct discrepancies *discrepancies);
/* ERR_INTEGRITY naming the first value that differs. */
MUST_CHECK int discrepancies_refuse(const struct discrepancies *discrepancies, struct err *err);
