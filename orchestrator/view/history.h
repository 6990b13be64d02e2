/* SPDX-License-Identifier: Apache-2.0 */
/* Finished runs over time: as a document and as text. */
#pragma once

#include "codec/json_table.h"
#include "run/runs.h"

struct history_cell { /* of one finished run */
    const struct run_info *run;
    const struct run_cell *cell;
};

struct history { /* in the order of time */
    struct history_cell *cells;
    size_t n_cells;
    struct run_info *damaged; /* runs that cannot be read; of which reports they are, is unknown */
    size_t n_damaged;
    size_t n_runs; /* without the damaged ones */
};

extern const struct json_document HISTORY_DOCUMENT;

struct history_text_opts {
    bool is_quiet;     /* only what failed or did not run */
    bool wants_folder; /* where each run is stored */
};
/* The last line is the summary. */
void history_text(const struct history *history, const struct history_text_opts *opts,
                  struct strbuf *out);
