/* SPDX-License-Identifier: Apache-2.0 */
/* Which reports a command is about: operands (ids or files), or all. */
#ifndef CMD_SELECT_H
#define CMD_SELECT_H

#include "base/opt.h"
#include "load/load.h"
#include "view/audit_out.h"

/* What audit and report show: of which cases, and how much in text. */
struct shown_args {
    struct opt_list cases;
    bool is_quiet, is_verbose;
};
static inline void shown_args_cleanup(struct shown_args *args)
{
    VEC_RELEASE(&args->cases);
}
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
/* The cases of those reports alone; ERR_USAGE where none is selected. */
MUST_CHECK int shown_select(struct arena *arena, const struct shown_args *args,
                            struct report_audit *audits, size_t n, struct err *err);

#endif
