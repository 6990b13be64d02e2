/* SPDX-License-Identifier: Apache-2.0 */
/* reperf new: a new report, drafted from a repository. */
#include "base/base.h"

#include "base/command.h"
#include "draft/new_from.h"

#include "base/fs.h"
#include "load/places.h"
#include "report/report.h"

struct new_args {
    const char *from, *repository, *below;
    const char *model, *framework, *precision, *unit;
    int64_t gpus, batch, gpus_per_node;
};

static const struct opt OPTS[] = {
    OPT(struct new_args, from, "from",
        "git repository (bare or not, or its URL) whose tables and logs are read",
        .value = "CLONE"),
    OPT(struct new_args, repository, "repository", "its address (default: its remote origin)",
        .value = "URL"),
    OPT(struct new_args, below, "below", "only documents and logs below this folder of it",
        .value = "FOLDER"),
    OPT(struct new_args, model, "model", "model of rows that do not state it", .value = "NAME"),
    OPT(struct new_args, framework, "framework", "framework of such rows", .value = "NAME"),
    OPT(struct new_args, precision, "precision", "precision of such rows", .value = "P"),
    OPT(struct new_args, unit, "unit", "unit of speeds whose table names none", .value = "U"),
    OPT(struct new_args, gpus, "gpus", "GPUs of such rows", .value = "N", .min = 1, .max = 1000000),
    OPT(struct new_args, batch, "batch", "batch of one GPU of such rows", .value = "N", .min = 1,
        .max = 1000000000),
    OPT(struct new_args, gpus_per_node, "gpus-per-node",
        "GPUs of a node, where only those of a job are stated (default 8)", .value = "N", .min = 1,
        .max = 1024),
    OPT_END,
};

static int begin(const struct cmd_ctx *ctx, const struct new_args *args, const char *name,
                 struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct new_from from = {.id = name,
                            .clone = args->from,
                            .repository = args->repository,
                            .below = args->below,
                            .unit = args->unit,
                            .given = {.gpus = args->gpus,
                                      .batch = args->batch,
                                      .gpus_per_node = args->gpus_per_node,
                                      .precision = str_of(args->precision),
                                      .framework = str_of(args->framework),
                                      .model = str_of(args->model)}};
    return places_to_write(&arena, ctx, &from.folder, err) < 0 ? -1
                                                               : new_from_clone(ctx, &from, err);
}

static int run(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(opt_list) struct opt_list names = {0};
    struct new_args args = {.gpus_per_node = 8};
    if (opt_parse(OPTS, argc, argv, &args, &names, err) < 0) {
        return -1;
    }
    if (names.n != 1 || !args.from || !is_slug(str_of(names.items[0]))) {
        return err_set(err, ERR_USAGE,
                       "new: expected one name (small letters, digits, - and .) and --from CLONE");
    }
    return begin(ctx, &args, names.items[0], err);
}

const struct cmd CMD_NEW = {"new", "REPORT", "draft a report from a repository's tables and logs",
                            OPTS, run};
