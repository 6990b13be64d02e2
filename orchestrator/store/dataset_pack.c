/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/dataset_pack.h"

#include "base/fs.h"
#include "store/pack_program.h"

#define OUTPUT_MAX (4u << 20)
#define ARGV_MAX   24

static bool is_packable(const struct dataset *dataset, struct str split)
{
    return dataset_group_find(dataset, split, ROLE_IMAGE) ||
           dataset_group_find(dataset, split, ROLE_RECORDS);
}

/* Those asked for, else all that can be packed; of a synthetic dataset those that were made. */
static int choose_splits(struct arena *arena, const struct dataset_here *here,
                         const struct dataset_record *tree, const struct dataset_pack_opts *opts,
                         struct dataset_packed_list *ret_packed, struct err *err)
{
    const struct dataset *dataset = &here->dataset;
    struct dataset_packed *splits =
        arena_array(arena, struct dataset_packed, DATASET_SPLITS_MAX + opts->n_splits + 1);
    size_t n = 0;
    for (size_t idx = 0; idx < opts->n_splits; idx++) {
        splits[n].split = str_of(opts->splits[idx]);
        if (!is_packable(dataset, splits[n++].split)) {
            return err_set(err, ERR_USAGE,
                           "--split %.60s: %s has no such split with images or records",
                           opts->splits[idx], here->name);
        }
    }
    for (size_t idx = 0; idx < dataset->n_splits && opts->n_splits == 0; idx++) {
        struct str name = dataset->splits[idx].name;
        bool is_made = !here->is_synthetic;
        for (size_t at = 0; at < tree->n_splits; at++) {
            is_made |= str_eq(tree->splits[at].name, name);
        }
        if (is_made && is_packable(dataset, name)) {
            splits[n++].split = name;
        }
    }
    if (n == 0) {
        return err_set(err, ERR_USAGE, "%s: its description names no files that could be packed",
                       here->name);
    }
    *ret_packed = (struct dataset_packed_list){splits, n};
    return 0;
}

struct splitting {
    const struct store *store;
    const struct dataset_here *here;
    const struct dataset_pack_opts *opts;
    const char *program;
};

static int pack_split(struct arena *arena, const struct splitting *by,
                      struct dataset_packed *packed, struct err *err)
{
    const struct store *store = by->store;
    const struct dataset_here *here = by->here;
    const struct dataset_pack_opts *opts = by->opts;
    CLEANUP(strbuf) struct strbuf out = STRBUF(OUTPUT_MAX);
    const char *tree = dataset_tree_path(store, here->name);
    const char *argv[ARGV_MAX] = {by->program,
                                  "pack",
                                  "--json",
                                  "--dataset",
                                  fs_join(arena, here->folder, "dataset.json"),
                                  "--tree",
                                  tree,
                                  "--list",
                                  fs_join(arena, tree, DATASET_TREE_LIST),
                                  "--split",
                                  str_z(arena, packed->split),
                                  "--out",
                                  packed->folder};
    size_t n = 13;
    if (here->is_synthetic) {
        argv[n++] = "--synthetic";
    }
    if (opts->replaces) {
        argv[n++] = "--force";
    }
    if (opts->n_threads) {
        argv[n++] = "--threads";
        argv[n++] = arena_printf(arena, "%lld", (long long)opts->n_threads);
    }
    if (opts->shard_bytes) {
        argv[n++] = "--shard-bytes";
        argv[n++] = arena_printf(arena, "%lld", (long long)opts->shard_bytes);
    }
    if (fs_mkdir_p(store_path(store, arena_printf(arena, "packed/%s", here->name)), err) < 0 ||
        pack_program_run(arena, store, opts->net, argv, &out, err) < 0) {
        return -1;
    }
    packed->said = str_dup(arena, str_trim(strbuf_str(&out)));
    return 0;
}

int dataset_pack(struct arena *arena, const struct store *store, const struct dataset_here *here,
                 const struct dataset_pack_opts *opts, struct dataset_packed_list *ret_packed,
                 struct err *err)
{
    struct splitting by = {store, here, opts, NULL};
    struct dataset_record tree;
    struct dataset_packed_list packed;
    if (here->dataset.pack.kind == PACK_NONE) {
        return err_set(err, ERR_USAGE, "%s: its description does not say how it is packed",
                       here->name);
    }
    if (dataset_tree_read(arena, store, here->name, &tree, err) < 0) {
        if (err->code == ERR_NOT_FOUND) {
            return dataset_no_tree(arena, store, here, err);
        }
        return -1;
    }
    if (choose_splits(arena, here, &tree, opts, &packed, err) < 0 ||
        pack_program_find(arena, opts->self, &by.program, err) < 0 ||
        dataset_list_holds(store, here->name, &tree, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < packed.n; idx++) {
        struct dataset_packed *one = &packed.items[idx];
        one->folder = store_path(
            store, arena_printf(arena, "packed/%s/%.*s", here->name, STR_ARG(one->split)));
        if (pack_split(arena, &by, one, err) < 0) {
            return err_wrap(err, "%s, split %.*s", here->name, STR_ARG(one->split));
        }
    }
    *ret_packed = packed;
    return 0;
}
