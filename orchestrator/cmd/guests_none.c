/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is linked without guests.c has none. */
#include "base/base.h"

#include "cmd/cmd.h"
#include "cmd/guests.h"

static const struct cmd_row NO_CMDS[] = {{NULL, NULL, NULL}};

const struct guests GUESTS = {.cmds = NO_CMDS};
