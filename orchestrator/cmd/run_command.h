/* SPDX-License-Identifier: Apache-2.0 */
/* `run -- COMMAND`: the command as a report of one case that nobody has published. From here on it is planned, run, judged and sealed like
   any other; the report's text is frozen with the run. */
#ifndef CMD_RUN_COMMAND_H
#define CMD_RUN_COMMAND_H

#include "cmd/run_args.h"

/* words: of the command. The text and paths live in the arena. */
MUST_CHECK int run_command_report(struct arena *arena, const struct run_args *args,
                                  const char *root, const struct opt_list *words,
                                  struct run_command *ret, struct err *err);

#endif
