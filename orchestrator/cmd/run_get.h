/* SPDX-License-Identifier: Apache-2.0 */
/* What a run's cases lack and reperf can bring, brought before they are planned: sources and datasets fetched, images locked. */
#ifndef CMD_RUN_GET_H
#define CMD_RUN_GET_H

#include "cmd/run_args.h"

/* Of each case the preferred recipe. What could not be got is logged, and another recipe, or the reason not to run, stands in the
   plan that is made then. ERR_FETCH before anything is fetched where something is for registered users only and no login was named:
   all of it in one message. Returns 128 + n after a signal. */
MUST_CHECK int run_get(const struct cmd_ctx *ctx, const struct run_args *args,
                       const struct run_opts *opts, const struct run_prepared *prepared,
                       struct err *err);

#endif
