/* SPDX-License-Identifier: Apache-2.0 */
/* Gets what a run's cases lack before they are planned, as far as reperf can: sources and datasets fetched, images locked. */
#ifndef CMD_RUN_GET_H
#define CMD_RUN_GET_H

#include "cmd/run_args.h"

/* For each case the preferred recipe. What could not be fetched is logged, and the plan made afterwards has another recipe, or the
   reason not to run. ERR_FETCH before anything is fetched if something is for registered users only and no login was named: all of
   it in one message. Returns 128 + n after a signal. */
MUST_CHECK int run_get(const struct cmd_ctx *ctx, const struct run_args *args,
                       const struct run_opts *opts, const struct run_prepared *prepared,
                       struct err *err);

#endif
