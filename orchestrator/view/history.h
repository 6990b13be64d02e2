/* SPDX-License-Identifier: Apache-2.0 */
/* Finished runs over time: as a document, as text, and as a page with a curve and the runs of each case. */
#ifndef VIEW_HISTORY_H
#define VIEW_HISTORY_H

#include "codec/json_table.h"
#include "report/plan.h"

struct history_cell { /* of one finished run */
    struct str run, report, case_id, unit, verdict;
    const char *time;   /* of the run, RFC 3339 */
    const char *name;   /* of the run; NULL: none */
    const char *folder; /* of the run */
    enum profile profile;
    bool is_rehearsal;
    double value; /* NAN: none */
};

struct history_damaged { /* a run that cannot be read; of which report it is, is unknown */
    struct str run, why;
    const char *time, *folder;
};

struct history { /* in the order of time */
    struct history_cell *cells;
    size_t n_cells;
    struct history_damaged *damaged;
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
void history_page(const struct history *history, struct strbuf *out);

#endif
