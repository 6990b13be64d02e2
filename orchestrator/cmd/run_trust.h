/* SPDX-License-Identifier: Apache-2.0 */
/* A report that was named by its address runs what its authors wrote. It is shown, and asked once; without a terminal, and for whatever
   would run outside a container, `--trust` must name exactly its commit. */
#ifndef CMD_RUN_TRUST_H
#define CMD_RUN_TRUST_H

#include "cmd/run_args.h"
#include "run/run_address.h"

/* ERR_USAGE unless it is trusted. The plan says what would run. */
MUST_CHECK int run_trust(const struct run_args *args, const struct address *address,
                         const struct report *report, const struct plan *plan, struct err *err);

#endif
