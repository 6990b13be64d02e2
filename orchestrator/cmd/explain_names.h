/* SPDX-License-Identifier: Apache-2.0 */
/* What `reperf explain` finds by name among reports and formats. */
#ifndef CMD_EXPLAIN_NAMES_H
#define CMD_EXPLAIN_NAMES_H

#include "base/nearest.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "store/logs_clone.h"
#include "view/explain_out.h"

struct explain_args {
    bool want_json, is_verbose;
    const char *logs_folder;
};

struct cell_of {
    size_t report; /* among those of the explainer */
    const struct report_case *of_case;
    const struct cell *cell;
};

struct explainer {
    struct arena *arena;
    const struct cmd_ctx *ctx;
    const struct explain_args *args;
    struct strbuf *text;   /* unless want_json */
    struct json_out *json; /* the open list of what is explained */
    const struct explained *words;
    size_t n_words;
    struct format_set formats;
    struct report_set reports;
    VEC(struct cell_of) cells;   /* of all of them */
    struct report_audit *audits; /* of the reports; those that were needed */
    bool *is_audited;
    bool is_loaded;
    struct logs_clone clone;
};
static inline void explainer_cleanup(struct explainer *e)
{
    format_set_release(&e->formats);
    logs_clone_cleanup(&e->clone);
}

/* A format, a rule or a cell by items[0], or a cell by a report and items[1]; *ret_n says how many names that took, 0 if there is none:
   then nearest has been offered all names. */
MUST_CHECK int explain_names(struct explainer *e, const char *const *items, size_t n,
                             struct nearest *nearest, size_t *ret_n, struct err *err);

/* A word that commands print, and what it means: `explain WORD`. One word may have several, of different kinds. */
struct explained {
    const char *kind, *name, *level, *title, *text; /* level and title may be NULL */
};

#endif
