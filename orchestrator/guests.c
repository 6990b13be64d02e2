/* SPDX-License-Identifier: Apache-2.0 */
/* The guests of reperf (cmd/guests.h). */
#include "base/base.h"

#include "cmd/cmd.h"
#include "cmd/guests.h"
#include "draft/new_from.h"

static const struct cmd_row CMDS_OF_GUESTS[] = {
    {&CMD_LINT, "Numbers", NULL}, {&CMD_NEW, "Logs", NULL}, {NULL, NULL, NULL}};

static const struct proposer PROPOSER = {
    .propose = propose_format,
    .release = proposal_release,
    .add = proposal_add,
    .put = proposal_put,
    .given = suggest_given,
};

const struct guests GUESTS = {
    .cmds = CMDS_OF_GUESTS,
    .lint = lint_report,
    .proposer = &PROPOSER,
    .measure_folders = measure_folders,
};
