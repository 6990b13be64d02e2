/* SPDX-License-Identifier: Apache-2.0 */
/* The archives of a synthetic dataset, made by reperf-pack, which is a program next to this one. */
#include "base/base.h"

#include "store/dataset_store.h"

#include <unistd.h>

#include "base/fs.h"
#include "store/pack_program.h"

#define OUTPUT_MAX  (1u << 20)
#define SAMPLES_MAX DATASET_IMAGES_MAX

/* The synthetic dataset's splits with what --samples changed. */
static int splits_of(struct arena *arena, const struct dataset_here *here,
                     const struct dataset_fetch_opts *opts, struct dataset_record *record,
                     struct err *err)
{
    const struct dataset_synthetic *synthetic = &here->dataset.synthetic;
    record->n_splits = synthetic->n_splits;
    record->splits = arena_array(arena, struct dataset_synthetic_split, synthetic->n_splits + 1);
    memcpy(record->splits, synthetic->splits, synthetic->n_splits * sizeof(synthetic->splits[0]));
    for (size_t idx = 0; idx < opts->n_samples; idx++) {
        struct str rest = str_of(opts->samples[idx]);
        struct str name = STR_EMPTY;
        struct err ignored = {0};
        size_t at = 0;
        bool has_count = str_next(&rest, '=', &name) && rest.ptr;
        while (at < record->n_splits && !str_eq(record->splits[at].name, name)) {
            at++;
        }
        if (at == record->n_splits || !has_count ||
            str_to_i64(rest, 1, SAMPLES_MAX, &record->splits[at].n_samples, &ignored) < 0) {
            return err_set(
                err, ERR_USAGE,
                "--samples %.100s: expected SPLIT=N with a split of synthetic %s and N from 1",
                opts->samples[idx], here->dataset.id.ptr);
        }
        if (record->splits[at].n_folders > record->splits[at].n_samples) {
            return err_set(err, ERR_USAGE,
                           "--samples %.100s: expected at least one for each of its %lld folders",
                           opts->samples[idx], (long long)record->splits[at].n_folders);
        }
    }
    return 0;
}

/* All that the archives' bytes follow from. */
static int recipe_of(struct arena *arena, const struct dataset_here *here, const char *program,
                     struct dataset_record *record, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = {0};
    struct digest_value description;
    struct digest_value maker;
    char hex[SHA256_HEX_SIZE];
    strbuf_init(&text, 1u << 16);
    if (digest_file(fs_join(arena, here->folder, "dataset.json"), DIGEST_SHA256, &description,
                    err) < 0 ||
        digest_file(program, DIGEST_SHA256, &maker, err) < 0) {
        return -1;
    }
    hex_encode(description.sha256, SHA256_BYTES, hex);
    strbuf_printf(&text, "%s synth; dataset.json sha256:%s", PACK_PROGRAM, hex);
    hex_encode(maker.sha256, SHA256_BYTES, hex);
    strbuf_printf(&text, "; program sha256:%s", hex);
    for (size_t idx = 0; idx < record->n_splits; idx++) {
        strbuf_printf(&text, "; %s=%lld", record->splits[idx].name.ptr,
                      (long long)record->splits[idx].n_samples);
    }
    record->recipe = str_dup(arena, strbuf_str(&text));
    return 0;
}

/* The digests are our own: the program's own statements are not used. */
static int adopt_all(struct arena *arena, struct store *store, const struct dataset_here *here,
                     const char *folder, struct dataset_fetched *fetched, struct err *err)
{
    struct dataset_record *record = &fetched->record;
    size_t n = 0;
    const struct dataset_file *files = dataset_files_of(here, &n);
    for (size_t idx = 0; idx < n; idx++) {
        const char *path = fs_join(arena, folder, files[idx].name.ptr);
        struct digest_value value;
        struct lock_item item = {
            .name = files[idx].name, .has_md5 = true, .has_sha256 = true, .date = record->date};
        if (digest_file(path, DIGEST_MD5 | DIGEST_SHA256, &value, err) < 0 ||
            store_adopt(store, path, &value, err) < 0) {
            return -1;
        }
        item.size_bytes = (int64_t)value.size_bytes;
        memcpy(item.md5, value.md5, MD5_BYTES);
        memcpy(item.sha256, value.sha256, SHA256_BYTES);
        record->seen.items[record->seen.n_items++] = item;
        fetched->files[fetched->n_files++] =
            (struct dataset_got){.item = item, .origin = FROM_SYNTH};
    }
    return dataset_ref_write(store, here->name, record, err);
}

/* True where the store has just this synthetic dataset. */
static bool has_it(struct arena *arena, const struct store *store, const struct dataset_here *here,
                   struct dataset_record *record, struct dataset_fetched *fetched)
{
    struct dataset_record earlier;
    struct err ignored = {0};
    size_t n = 0;
    (void)dataset_files_of(here, &n);
    if (dataset_ref_read(arena, store, here->name, &earlier, &ignored) < 0 ||
        !str_eq(earlier.recipe, record->recipe) || earlier.seen.n_items != n) {
        return false;
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (!store_has(store, earlier.seen.items[idx].sha256, NULL)) {
            return false;
        }
    }
    for (size_t idx = 0; idx < n; idx++) {
        fetched->files[fetched->n_files++] =
            (struct dataset_got){.item = earlier.seen.items[idx], .origin = FROM_STORE};
    }
    record->seen = earlier.seen;
    record->date = earlier.date;
    return true;
}

int dataset_synth_files(struct arena *arena, struct store *store, const struct dataset_here *here,
                        const struct dataset_fetch_opts *opts, struct dataset_fetched *fetched,
                        struct err *err)
{
    struct dataset_record *record = &fetched->record;
    CLEANUP(strbuf) struct strbuf said = {0}; /* not asked: see adopt_all */
    const struct clock_src *clock = &opts->net->opts->clock;
    char now[RFC3339_MAX];
    const char *program = NULL;
    const char *folder =
        store_path(store, arena_printf(arena, "tmp/synth-%s-%d", here->name, (int)getpid()));
    const char **argv = arena_array(arena, const char *, 8 + 2 * opts->n_samples);
    size_t n_argv = 0;
    size_t n = 0;
    struct err ignored = {0};
    (void)dataset_files_of(here, &n);
    *record = (struct dataset_record){.is_synthetic = true,
                                      .seen = {.kind = LOCK_DATASET,
                                               .id = here->dataset.id,
                                               .items = arena_array(arena, struct lock_item, n + 1),
                                               .n_files = -1,
                                               .file_bytes = -1}};
    fetched->files = arena_array(arena, struct dataset_got, n + 1);
    if (pack_program_find(arena, opts->self, &program, err) < 0 ||
        splits_of(arena, here, opts, record, err) < 0 ||
        recipe_of(arena, here, program, record, err) < 0) {
        return -1;
    }
    if (has_it(arena, store, here, record, fetched)) {
        return 0;
    }
    argv[n_argv++] = program;
    argv[n_argv++] = "synth";
    argv[n_argv++] = "--dataset";
    argv[n_argv++] = fs_join(arena, here->folder, "dataset.json");
    argv[n_argv++] = "--out";
    argv[n_argv++] = folder;
    for (size_t idx = 0; idx < opts->n_samples; idx++) {
        argv[n_argv++] = "--samples";
        argv[n_argv++] = opts->samples[idx];
    }
    if (fs_remove_tree(folder, err) < 0 || fs_mkdir_p(folder, err) < 0) {
        return -1;
    }
    strbuf_init(&said, OUTPUT_MAX);
    int result = pack_program_run(arena, store, opts->net->opts, argv, &said, err);
    clock_rfc3339(clock->wall_ns(clock->ctx), now);
    record->date = str_dup(arena, str_of(now));
    result = result < 0 ? -1 : adopt_all(arena, store, here, folder, fetched, err);
    return fs_remove_tree(folder, result < 0 ? &ignored : err) < 0 ? -1 : result;
}
