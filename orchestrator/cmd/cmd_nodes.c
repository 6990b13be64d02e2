/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/nearest.h"
#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "cmd/nodes.h"

#define EXPECTED_MAX 1024

/* One a line. */
/* clang-format off */
const struct cmd *const NODES_VERBS[] = {
    &NODES_CLEAN,
    &NODES_COPY,
    &NODES_DOCTOR,
    &NODES_EXEC,
    &NODES_LIST,
    &NODES_PROVISION,
    NULL,
};
/* clang-format on */

static const struct opt OPTS[] = {OPT_END};

static int fail_verb(const char *found, struct err *err)
{
    CLEANUP(strbuf) struct strbuf names;
    struct nearest nearest = nearest_to(found ? found : "");
    char text[NEAREST_TEXT_MAX];
    strbuf_init(&names, EXPECTED_MAX);
    for (const struct cmd *const *verb = NODES_VERBS; *verb; verb++) {
        strbuf_printf(&names, "%s%s",
                      verb == NODES_VERBS ? ""
                      : verb[1]           ? ", "
                                          : " or ",
                      (*verb)->name);
        nearest_offer(&nearest, (*verb)->name);
    }
    return found ? err_set(err, ERR_USAGE, "nodes: expected %s, found \"%.100s\"%s", names.ptr,
                           found, nearest_text(&nearest, text))
                 : err_set(err, ERR_USAGE, "nodes: expected %s", names.ptr);
}

static int run_nodes(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    for (const struct cmd *const *verb = NODES_VERBS; argc > 0 && *verb; verb++) {
        if (strcmp((*verb)->name, argv[0]) == 0) {
            return (*verb)->run(ctx, argc - 1, argv + 1, err);
        }
    }
    return fail_verb(argc > 0 ? argv[0] : NULL, err);
}

const struct cmd CMD_NODES = {
    "nodes", "VERB", "work on the nodes of an inventory, without a report", OPTS, run_nodes};
