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

#define ARG(member) offsetof(struct new_args, member)
static const struct opt OPTS[] = {
    {"from", 0, OPT_TEXT, "CLONE",
     "git repository (bare or not, or its URL) whose tables and logs are read", ARG(from), 0, 0},
    {"repository", 0, OPT_TEXT, "URL", "its address (default: its remote origin)", ARG(repository),
     0, 0},
    {"below", 0, OPT_TEXT, "FOLDER", "only documents and logs below this folder of it", ARG(below),
     0, 0},
    {"model", 0, OPT_TEXT, "NAME", "model of rows that do not state it", ARG(model), 0, 0},
    {"framework", 0, OPT_TEXT, "NAME", "framework of such rows", ARG(framework), 0, 0},
    {"precision", 0, OPT_TEXT, "P", "precision of such rows", ARG(precision), 0, 0},
    {"unit", 0, OPT_TEXT, "U", "unit of speeds whose table names none", ARG(unit), 0, 0},
    {"gpus", 0, OPT_I64, "N", "GPUs of such rows", ARG(gpus), 1, 1000000},
    {"batch", 0, OPT_I64, "N", "batch of one GPU of such rows", ARG(batch), 1, 1000000000},
    {"gpus-per-node", 0, OPT_I64, "N",
     "GPUs of a node, where only those of a job are stated (default 8)", ARG(gpus_per_node), 1,
     1024},
    OPT_END,
};

/* The user's first --manifests folder, else the user's data folder. */
static int find_folder(struct arena *arena, const char *root, const char **ret, struct err *err)
{
    struct places places;
    const char *user =
        places_user(arena, getenv("XDG_DATA_HOME"), ".local/share", "reperf/manifests");
    if (places_find(arena, root, &places, err) < 0) {
        return -1;
    }
    if (places.n > 1) {
        *ret = places.items[0];
        return 0;
    }
    if (!user) {
        return err_set(err, ERR_USAGE,
                       "neither XDG_DATA_HOME nor HOME: --manifests DIR says where");
    }
    *ret = user;
    return 0;
}

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
    return find_folder(&arena, ctx->root, &from.folder, err) < 0 ? -1
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

const struct cmd CMD_NEW = {
    .name = "new",
    .operands = "REPORT",
    .summary = "draft a report from a repository's tables and logs",
    .opts = OPTS,
    .run = run,
};
