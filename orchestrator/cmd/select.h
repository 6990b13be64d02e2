/* SPDX-License-Identifier: Apache-2.0 */
/* The reports that a command is about, operands or all, and their audit: what audit and report have in common. */
#pragma once

#include "base/command.h"
#include "cmd/outputs.h"
#include "load/load.h"
#include "store/logs_clone.h"
#include "view/audit_out.h"
#include "view/findings_out.h"

/* What audit and report show: of which cases, and how much in text. */
struct shown_args {
    struct opt_list cases;
    bool is_quiet, is_verbose;
};
#define SHOWN_ARGS_OPTS(T, shown)                                                                  \
    OPT(T, shown.cases, "case", "only cases that match; may be repeated; * also matches /",        \
        .value = "GLOB"),                                                                          \
        OPT(T, shown.is_quiet, "quiet", "in text only what is an error, and the summary",          \
            .letter = 'q'),                                                                        \
        OPT(T, shown.is_verbose, "verbose", "in text also the cells' ids, and what lint finds",    \
            .letter = 'v')

/* ERR_USAGE where both are asked for. */
MUST_CHECK int shown_level(const struct shown_args *args, enum text_level *ret_level,
                           struct err *err);

struct audit_ask {
    const char *command; /* for the bar */
    struct opt_list *names;
    bool is_all;
    const char *logs_folder, *series_folder; /* or NULL */
    const struct shown_args *shown;
};
struct audited {
    struct arena *arena; /* borrowed */
    const char *root;
    struct format_set formats;
    struct logs_clone clone;
    struct report_set reports;
    struct report_audit *audits; /* one a report, of the selected cases */
};
/* Opens the addresses, reads the reports, formats and logs, and judges each cell. ERR_USAGE where no case is selected. */
MUST_CHECK int audited_make(struct arena *arena, const struct cmd_ctx *ctx,
                            const struct audit_ask *ask, struct audited *ret, struct err *err);
void audited_cleanup(struct audited *audited);

/* In each form that was requested. ERR_USAGE where a picture is to be of several reports. */
MUST_CHECK int audited_put(const struct audited *audited, const struct audit_text_opts *text,
                           const struct outputs *outputs, struct err *err);
