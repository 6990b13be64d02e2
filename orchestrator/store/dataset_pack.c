/* SPDX-License-Identifier: Apache-2.0 */
/* What reperf-pack does, the program next to this one that knows JPEG, PNG and HDF5: the archives of a synthetic dataset, a
   dataset made from another one's images, and shards. */
#include "base/base.h"

#include "store/dataset_pack.h"

#include <unistd.h>

#include "base/fs.h"
#include "load/places.h"
#include "sys/child.h"
#include "sys/proc.h"

#define PACK_PROGRAM "reperf-pack"
#define OUTPUT_MAX   (4u << 20)
#define ARGV_MAX     24

struct pack_program {
    const struct store *store;
    const struct net_opts *net;
    const char *self;
};

/* $REPERF_PACK, else reperf-pack next to the program `self`; ERR_WORKLOAD where there is none. */
static int find_program(struct arena *arena, const char *self, const char **ret_path,
                        struct err *err)
{
    *ret_path = places_program(arena, getenv("REPERF_PACK"), self, PACK_PROGRAM);
    return fs_exists(*ret_path)
               ? 0
               : err_set(err, ERR_WORKLOAD,
                         "%s: the program that makes synthetic datasets and shards is not here",
                         *ret_path);
}

/* Its exit statuses are ours. */
static enum err_code code_of_status(int status)
{
    static const enum err_code CODES[] = {ERR_USAGE,    ERR_MANIFEST, ERR_FETCH, ERR_INTEGRITY,
                                          ERR_WORKLOAD, ERR_PARSE,    ERR_DISK};
    for (size_t idx = 0; idx < ARRAY_LEN(CODES); idx++) {
        if (err_exit_status(CODES[idx]) == status) {
            return CODES[idx];
        }
    }
    return ERR_WORKLOAD;
}

/* Its stdout goes to *ret_said, its stderr is relayed, and it is ended with us. A failure carries its own last line and its
   status. argv[0] is left out. */
static int run_program(const struct pack_program *by, const char **argv, struct str *ret_said,
                       struct err *err)
{
    struct arena *arena = by->store->arena;
    CLEANUP(strbuf) struct strbuf out = STRBUF(OUTPUT_MAX);
    size_t n_env = 0;
    const struct child_call call = {.argv = argv,
                                    .env = proc_env_allowed(arena, &n_env),
                                    .tmp_folder = store_path(by->store, "tmp"),
                                    .shows_error = true,
                                    .out = &out};
    struct child_result result;
    if (find_program(arena, by->self, &argv[0], err) < 0 ||
        child_run(arena, by->net->clock, &call, &result, err) < 0) {
        return -1;
    }
    *ret_said = str_dup(arena, str_trim(strbuf_str(&out)));
    return result.exit_status == 0
               ? 0
               : err_set(err, code_of_status(result.exit_status), "%s %s failed with status %d: %s",
                         PACK_PROGRAM, argv[1], result.exit_status,
                         quote_shown(arena, quote_last_line(result.error)));
}

static struct pack_program program_of(const struct dataset_job *job)
{
    return (struct pack_program){job->store, job->net->opts, job->self};
}

/* ---- a synthetic dataset ---- */

/* All that the archives' bytes follow from. */
static int recipe_of(struct arena *arena, const struct dataset_here *here, const char *program,
                     struct dataset_record *record, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1u << 16);
    struct digest_value description;
    struct digest_value maker;
    if (digest_file(fs_join(arena, here->folder, "dataset.json"), DIGEST_SHA256, &description,
                    err) < 0 ||
        digest_file(program, DIGEST_SHA256, &maker, err) < 0) {
        return -1;
    }
    strbuf_printf(&text, "%s synth; dataset.json sha256:%s", PACK_PROGRAM,
                  sha256_hex_of(description.sha256).text);
    strbuf_printf(&text, "; program sha256:%s", sha256_hex_of(maker.sha256).text);
    for (size_t idx = 0; idx < record->n_splits; idx++) {
        strbuf_printf(&text, "; %s=%lld", record->splits[idx].name.ptr,
                      (long long)record->splits[idx].n_samples);
    }
    record->recipe = str_dup(arena, strbuf_str(&text));
    return 0;
}

/* The digests are our own: the program's own statements are not used. */
static int adopt_all(const struct dataset_job *job, const char *folder,
                     struct dataset_fetched *fetched, struct err *err)
{
    struct dataset_record *record = &fetched->record;
    size_t n = 0;
    const struct dataset_file *files = dataset_files_of(job->here, &n);
    for (size_t idx = 0; idx < n; idx++) {
        const char *path = fs_join(job->arena, folder, files[idx].name.ptr);
        struct digest_value value;
        if (digest_file(path, DIGEST_MD5 | DIGEST_SHA256, &value, err) < 0 ||
            store_adopt(job->store, path, &value, err) < 0) {
            return -1;
        }
        const struct lock_item item =
            dataset_file_found(files[idx].name, &value, NULL, record->date);
        record->seen.items[record->seen.n_items++] = item;
        fetched->files[fetched->n_files++] =
            (struct dataset_got){.item = item, .origin = FROM_SYNTH};
    }
    return dataset_ref_write(job->store, job->here->name, record, err);
}

/* True where the store has just this synthetic dataset. */
static bool has_it(const struct dataset_job *job, size_t n, struct dataset_fetched *fetched)
{
    struct dataset_record earlier;
    if (dataset_ref_read(job->arena, job->store, job->here->name, &earlier, ERR_IGNORED) < 0 ||
        !str_eq(earlier.recipe, fetched->record.recipe) || earlier.seen.n_items != n) {
        return false;
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (!store_has(job->store, earlier.seen.items[idx].sha256, NULL)) {
            return false;
        }
        fetched->files[idx] =
            (struct dataset_got){.item = earlier.seen.items[idx], .origin = FROM_STORE};
    }
    fetched->n_files = n;
    fetched->record.seen = earlier.seen;
    fetched->record.date = earlier.date;
    return true;
}

static int make_archives(const struct dataset_job *job, const char *folder,
                         struct dataset_fetched *fetched, struct err *err)
{
    const struct pack_program by = program_of(job);
    const char **argv = arena_array(job->arena, const char *, 7 + 2 * job->n_samples);
    struct str ignored; /* see adopt_all */
    size_t n = 1;
    argv[n++] = "synth";
    argv[n++] = "--dataset";
    argv[n++] = fs_join(job->arena, job->here->folder, "dataset.json");
    argv[n++] = "--out";
    argv[n++] = folder;
    for (size_t idx = 0; idx < job->n_samples; idx++) {
        argv[n++] = "--samples";
        argv[n++] = job->samples[idx];
    }
    if (fs_remove_tree(folder, err) < 0 || fs_mkdir_p(folder, err) < 0 ||
        run_program(&by, argv, &ignored, err) < 0) {
        return -1;
    }
    fetched->record.date = dataset_now(job);
    return adopt_all(job, folder, fetched, err);
}

int dataset_synth_files(const struct dataset_job *job, struct dataset_fetched *fetched,
                        struct err *err)
{
    const char *program = NULL;
    const char *folder = store_path(
        job->store, arena_printf(job->arena, "tmp/synth-%s-%d", job->here->name, (int)getpid()));
    size_t n = 0;
    (void)dataset_files_of(job->here, &n);
    fetched->record = dataset_record_new(job, n);
    fetched->record.n_splits = job->here->dataset.synthetic.n_splits;
    fetched->files = arena_array(job->arena, struct dataset_got, n + 1);
    if (find_program(job->arena, job->self, &program, err) < 0 ||
        dataset_synthetic_splits(job->arena, &job->here->dataset, job->samples, job->n_samples,
                                 &fetched->record.splits, err) < 0 ||
        recipe_of(job->arena, job->here, program, &fetched->record, err) < 0) {
        return -1;
    }
    if (has_it(job, n, fetched)) {
        return 0;
    }
    int result = make_archives(job, folder, fetched, err);
    return fs_remove_tree(folder, result < 0 ? ERR_IGNORED : err) < 0 ? -1 : result;
}

/* ---- from another dataset ---- */

int dataset_make_records(const struct dataset_job *job, const char *folder, struct err *err)
{
    const struct dataset_here *here = job->here;
    const struct pack_program by = program_of(job);
    const char *tree = dataset_tree_path(job->store, here->from->name);
    struct str ignored;
    const char *argv[] = {NULL,
                          "records",
                          "--dataset",
                          fs_join(job->arena, here->folder, "dataset.json"),
                          "--source",
                          fs_join(job->arena, here->from->folder, "dataset.json"),
                          "--tree",
                          tree,
                          "--list",
                          fs_join(job->arena, tree, DATASET_TREE_LIST),
                          "--out",
                          folder,
                          here->is_synthetic ? "--synthetic" : NULL,
                          NULL};
    return run_program(&by, argv, &ignored, err);
}

/* ---- shards ---- */

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

static int pack_split(const struct store *store, const struct dataset_here *here,
                      const struct dataset_pack_opts *opts, struct dataset_packed *packed,
                      struct err *err)
{
    struct arena *arena = store->arena;
    const struct pack_program by = {store, opts->net, opts->self};
    const char *tree = dataset_tree_path(store, here->name);
    const char *argv[ARGV_MAX] = {NULL,
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
    return fs_mkdir_p(store_path(store, arena_printf(arena, "packed/%s", here->name)), err) < 0
               ? -1
               : run_program(&by, argv, &packed->said, err);
}

int dataset_pack(struct arena *arena, const struct store *store, const struct dataset_here *here,
                 const struct dataset_pack_opts *opts, struct dataset_packed_list *ret_packed,
                 struct err *err)
{
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
        dataset_list_holds(store, here->name, &tree, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < packed.n; idx++) {
        struct dataset_packed *one = &packed.items[idx];
        one->folder = store_path(
            store, arena_printf(arena, "packed/%s/%.*s", here->name, STR_ARG(one->split)));
        if (pack_split(store, here, opts, one, err) < 0) {
            return err_wrap(err, "%s, split %.*s", here->name, STR_ARG(one->split));
        }
    }
    *ret_packed = packed;
    return 0;
}
