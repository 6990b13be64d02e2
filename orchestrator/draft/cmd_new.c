/* SPDX-License-Identifier: Apache-2.0 */
/* reperf new: a new report, drafted from a repository. */
#include "base/base.h"

#include "base/command.h"
#include "draft/new_from.h"

#include "load/places.h"
#include "report/report.h"

static const struct opt OPTS[] = {
    OPT(struct new_from, clone, "from",
        "git repository (bare or not, or its URL) whose tables and logs are read",
        .value = "CLONE"),
    OPT(struct new_from, repository, "repository", "its address (default: its remote origin)",
        .value = "URL"),
    OPT(struct new_from, below, "below", "only documents and logs below this folder of it",
        .value = "FOLDER"),
    OPT(struct new_from, model, "model", "model of rows that do not state it", .value = "NAME"),
    OPT(struct new_from, framework, "framework", "framework of such rows", .value = "NAME"),
    OPT(struct new_from, precision, "precision", "precision of such rows", .value = "P"),
    OPT(struct new_from, unit, "unit", "unit of speeds whose table names none", .value = "U"),
    OPT(struct new_from, gpus, "gpus", "GPUs of such rows", .value = "N", .min = 1, .max = 1000000),
    OPT(struct new_from, batch, "batch", "batch of one GPU of such rows", .value = "N", .min = 1,
        .max = 1000000000),
    OPT(struct new_from, gpus_per_node, "gpus-per-node",
        "GPUs of a node, where only those of a job are stated (default 8)", .value = "N", .min = 1,
        .max = 1024),
    OPT_END,
};

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct new_from *from = call->args;
    if (call->operands.n != 1 || !from->clone || !is_slug(str_of(call->operands.items[0]))) {
        return err_set(err, ERR_USAGE,
                       "new: expected one name (small letters, digits, - and .) and --from CLONE");
    }
    from->id = call->operands.items[0];
    return places_to_write(call->arena, ctx, &from->folder, err) < 0
               ? -1
               : new_from_clone(ctx, from, err);
}

const struct cmd CMD_NEW =
    CMD("new", "REPORT", "draft a report from a repository's tables and logs", OPTS, run,
        CMD_ARGS(struct new_from), .defaults = &(const struct new_from){.gpus_per_node = 8});
