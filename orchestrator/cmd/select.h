/* SPDX-License-Identifier: Apache-2.0 */
/* Which reports a command is about: operands (ids or files), or all. */
#ifndef CMD_SELECT_H
#define CMD_SELECT_H

#include "base/opt.h"
#include "load/load.h"

/* ERR_USAGE where neither or both are given. */
MUST_CHECK int select_reports(struct arena *arena, const char *root, const struct opt_list *names,
                              bool is_all, struct report_set *ret_set, struct err *err);

#endif
