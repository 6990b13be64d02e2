/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/nearest.h"
#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "cmd/guests.h"
#include "cmd/nodes.h"

#define EXPECTED_MAX 1024

static const struct opt NO_OPTS[] = {OPT_END};
static const struct cmd CMD_DATA = {
    "data", "VERB",
    "datasets, images and sources in the store: fetch, verify, repair, lock, pack, bundle, ...",
    .opts = NO_OPTS};
static const struct cmd CMD_STORE = {
    "store", "VERB", "list, check and extend what was fetched, drop what nothing references",
    .opts = NO_OPTS};
static const struct cmd CMD_NODES = {
    "nodes", "VERB", "work on the nodes of an inventory, without a report", .opts = NO_OPTS};

/* One a line. */
/* clang-format off */
static const struct cmd *const DATA_VERBS[] = {
    &CMD_FETCH,
    &DATA_VERIFY,
    &CMD_REPAIR,
    &DATA_NEW,
    &CMD_LOCK,
    &CMD_PACK,
    &CMD_BUNDLE,
    &CMD_IMPORT,
    &CMD_IMAGE,
    &CMD_TREE,
    &CMD_UNPACK,
    &DATA_LS,
    &DATA_GC,
    &DATA_ADD,
    &DATA_DROP,
    NULL,
};

static const struct cmd *const NODES_VERBS[] = {
    &NODES_CLEAN,
    &NODES_COPY,
    &NODES_DOCTOR,
    &NODES_EXEC,
    &NODES_LIST,
    &NODES_PROVISION,
    NULL,
};

const char *const CMD_GROUPS[] = {"Numbers", "Logs", "Runs", "Data", "Nodes", "Evidence", "Shell", NULL};

/* In the order of `reperf --help`. */
static const struct cmd_row ROWS[] = {
    {&CMD_LIST, "Numbers", NULL},
    {&CMD_AUDIT, "Numbers", NULL},
    {&CMD_EXPLAIN, "Numbers", NULL},
    {&CMD_REPORT, "Numbers", NULL},
    {&CMD_MEASURE, "Logs", NULL},
    {&CMD_COMPARE, "Logs", NULL},
    {&CMD_PLAN, "Runs", NULL},
    {&CMD_RUN, "Runs", NULL},
    {&CMD_STATUS, "Runs", NULL},
    {&CMD_RESUME, "Runs", NULL},
    {&CMD_CANCEL, "Runs", NULL},
    {&CMD_HISTORY, "Runs", NULL},
    {&CMD_PUBLISH, "Runs", NULL},
    {&CMD_DATA, "Data", NULL},
    {&CMD_NODES, "Nodes", NULL},
    {&CMD_SEAL, "Evidence", NULL},
    {&CMD_VERIFY, "Evidence", NULL},
    {&CMD_KEYGEN, "Evidence", NULL},
    {&CMD_COMPLETION, "Shell", NULL},
    {&CMD_BUNDLE, NULL, "data bundle"},
    {&CMD_FETCH, NULL, "data fetch"},
    {&CMD_IMAGE, NULL, "data image"},
    {&CMD_IMPORT, NULL, "data import"},
    {&CMD_LOCK, NULL, "data lock"},
    {&CMD_PACK, NULL, "data pack"},
    {&CMD_REPAIR, NULL, "data repair"},
    {&CMD_REPLAY, NULL, "verify"},
    {&CMD_STORE, NULL, "data"},
    {&CMD_TREE, NULL, "data tree"},
    {&CMD_UNPACK, NULL, "data unpack"},
};
/* clang-format on */

const struct cmd_row *cmd_at(size_t idx)
{
    const struct cmd_row *guest = GUESTS.cmds;
    if (idx < ARRAY_LEN(ROWS)) {
        return &ROWS[idx];
    }
    for (idx -= ARRAY_LEN(ROWS); guest->cmd && idx > 0; idx--) {
        guest++;
    }
    return guest->cmd ? guest : NULL;
}

const struct cmd_row *cmd_find(const char *name)
{
    const struct cmd_row *row;
    for (size_t idx = 0; (row = cmd_at(idx)) && strcmp(row->cmd->name, name) != 0; idx++) {
    }
    return row;
}

const struct cmd *const *cmd_verbs(const struct cmd *c)
{
    return c == &CMD_DATA || c == &CMD_STORE ? DATA_VERBS : c == &CMD_NODES ? NODES_VERBS : NULL;
}

static int fail_verb(const char *of, const struct cmd *const *verbs, const char *found,
                     struct err *err)
{
    CLEANUP(strbuf) struct strbuf names = STRBUF(EXPECTED_MAX);
    struct nearest nearest = nearest_to(found ? found : "");
    char text[NEAREST_TEXT_MAX];
    for (const struct cmd *const *verb = verbs; *verb; verb++) {
        strbuf_printf(&names, "%s%s", verb == verbs ? "" : verb[1] ? ", " : " or ", (*verb)->name);
        nearest_offer(&nearest, (*verb)->name);
    }
    return found ? err_set(err, ERR_USAGE, "%s: expected %s, found \"%.100s\"%s", of, names.ptr,
                           found, nearest_text(&nearest, text))
                 : err_set(err, ERR_USAGE, "%s: expected %s", of, names.ptr);
}

static int run_verb(const char *of, const struct cmd *const *verbs, const struct cmd_ctx *ctx,
                    int argc, char **argv, struct err *err)
{
    for (const struct cmd *const *verb = verbs; argc > 0 && *verb; verb++) {
        if (strcmp((*verb)->name, argv[0]) == 0) {
            return cmd_call(*verb, ctx, argc - 1, argv + 1, err);
        }
    }
    return fail_verb(of, verbs, argc > 0 ? argv[0] : NULL, err);
}

int cmd_run(const struct cmd *c, const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    const struct cmd *const *verbs = cmd_verbs(c);
    return verbs ? run_verb(verbs == NODES_VERBS ? "nodes" : "data", verbs, ctx, argc, argv, err)
                 : cmd_call(c, ctx, argc, argv, err);
}
