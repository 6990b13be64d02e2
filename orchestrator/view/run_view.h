/* SPDX-License-Identifier: Apache-2.0 */
/* A finished run for display: what it froze, its result derived again from its raw logs and checked against its result.json,
   and its machine. Opened by id, folder or archive; an archive is checked (verify_archive) and unpacked first. */
#pragma once

#include "base/clock.h"
#include "evidence/result.h"
#include "judge/audit.h"

#define SETTINGS_MAX 4096

/* One value of environment/NODE.json: "machine.kernel", "software.programs.reperf.sha256". */
struct setting {
    struct str node; /* "local": the machine where the run was started */
    struct str name;
    struct str value; /* NULL: null */
};

struct run_view {
    const char *folder;   /* the evidence */
    struct temp *scratch; /* what was unpacked; NULL: nothing */
    bool is_archive;
    struct frozen frozen;
    struct run_result result;
    struct setting *settings; /* sorted by setting_cmp: those of a node stand together */
    size_t n_settings;
    const struct health *health; /* its nodes compared, of a run with --each-node; or NULL */
    /* An audit of the report as it is here today, by the series kept with it; NULL: none. */
    const struct report_audit *audit;
    /* A sentence that says why there is none, or what it was judged by that the run did not freeze; or NULL. */
    struct str audit_note;
};

/* ERR_NOT_FOUND where there is no such run, ERR_INTEGRITY where result.json does not follow from the logs. */
MUST_CHECK int run_view_open(struct arena *arena, struct clock_src clock, const char *state,
                             const char *name, struct run_view *ret_view, struct err *err);
void run_view_close(struct run_view *view);
/* After a setting was added. */
void run_view_sort(struct run_view *view);
/* What its folder says of the machines, for a view that was made of a run's end. */
MUST_CHECK int run_view_settings(struct arena *arena, struct run_view *view, struct err *err);
CLEANUP_BY(run_view, struct run_view, run_view_close);

/* By node, then by name. */
int setting_cmp(const void *a, const void *b);

/* True if `name` can only be a run: a folder with a result, an archive, the id of a run on this machine. */
bool run_view_is_run(struct arena *arena, const char *state, const char *name);

/* A row a cell, as CSV or Markdown. */
void run_out_table(const struct run_view *view, bool is_csv, struct strbuf *out);
