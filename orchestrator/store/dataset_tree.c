/* SPDX-License-Identifier: Apache-2.0 */
/* From archives in the store to trees/NAME: unpacked and digested in one pass into tmp/tree-NAME, listed, renamed; or made of another
   dataset's tree by reperf-pack. If the process dies on the way there is no tree; the next call starts this part again. */
#include "base/base.h"

#include "store/dataset_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/publish.h"
#include "store/copy_file.h"
#include "store/unpack_tree.h"

#define DIFFER_SHOW     20
#define RECIPE_REVISION 1 /* grows when the same tree would give other bytes */

struct making {
    struct arena *arena;
    struct store *store;
    const struct dataset_here *here;
    const struct dataset_fetch_opts *opts;
    const struct dataset_record *from;
    const struct dataset_fetched *parts; /* of what it is made from; NULL: of archives */
    struct dataset_unpacking to;         /* work: STORE/tmp/tree-NAME */
};

static bool same_archives(const struct dataset_record *a, const struct dataset_record *b)
{
    if (a->seen.n_items != b->seen.n_items || a->is_synthetic != b->is_synthetic ||
        (!a->seen.n_items && !str_eq(a->recipe, b->recipe))) {
        return false;
    }
    for (size_t idx = 0; idx < a->seen.n_items; idx++) {
        const struct lock_item *item = lock_find(&b->seen, a->seen.items[idx].name);
        if (!item || memcmp(item->sha256, a->seen.items[idx].sha256, SHA256_BYTES) != 0) {
            return false;
        }
    }
    return true;
}

/* Estimated: a compressed archive says little about its content, so the disk may still become full, which is an error
   then. */
static int check_space(const struct making *m, struct err *err)
{
    uint64_t needed = 0;
    size_t n = 0;
    const struct dataset_file *files = dataset_files_of(m->here, &n);
    for (size_t idx = 0; idx < n; idx++) {
        const struct lock_item *item = lock_find(&m->from->seen, files[idx].name);
        struct dataset_file file = files[idx];
        file.size_bytes = item ? item->size_bytes : 0;
        needed += (uint64_t)dataset_unpacked_bytes(&file);
    }
    needed += m->here->from ? (uint64_t)m->parts->tree.seen.file_bytes : 0;
    return fs_expect_room(m->store->lock_fd, needed,
                          arena_printf(m->arena, "the tree of %s", m->here->name), err);
}

static void show_difference(const struct making *m, enum tree_fault fault, const char *path)
{
    log_line(LOG_WARN, "%s: %s: %s", m->here->name, path, TREE_FAULT_NAMES[fault]);
}

/* ---- archives ---- */

static void show_progress(void *ctx, uint64_t done, uint64_t total UNUSED)
{
    struct dataset_unpacking *u = ctx;
    progress_set(&u->progress, u->done_bytes + done);
}

static const char *tree_path_of(const struct dataset_unpacking *u, const char *path)
{
    return u->file->into.ptr ? arena_printf(u->arena, "%s/%s", u->file->into.ptr, path) : path;
}

static bool wants(void *ctx, const char *path)
{
    const struct dataset_unpacking *u = ctx;
    return u->wants(u->ctx, tree_path_of(u, path));
}

static void add_file(struct dataset_unpacking *u, const char *path, const uint8_t *sha256)
{
    struct tree_file file = {.path = path};
    memcpy(file.sha256, sha256, SHA256_BYTES);
    VEC_PUSH(&u->files, file);
}

static int unpack_one(struct dataset_unpacking *u, const struct lock_item *item, struct err *err)
{
    const struct dataset_file *file = u->file;
    struct unpack_tree_result result;
    const struct unpack_tree_opts opts = {
        .archive = store_blob_path(u->store, item->sha256),
        .into = file->into.ptr ? fs_join(u->arena, u->work, file->into.ptr) : u->work,
        .wants = u->wants ? wants : NULL,
        .unpack.is_nested = file->is_nested,
        .sha256 = item->sha256,
        .size_bytes = item->size_bytes,
        .on_progress = show_progress,
        .ctx = u,
    };
    if (fs_mkdir_p(opts.into, err) < 0) {
        return -1;
    }
    if (unpack_tree(u->arena, &opts, &result, err) < 0) {
        return err_wrap(err, "unpack %s", file->name.ptr);
    }
    for (size_t idx = 0; idx < result.list.n; idx++) {
        add_file(u, tree_path_of(u, result.list.files[idx].path), result.list.files[idx].sha256);
    }
    u->file_bytes += result.file_bytes;
    return 0;
}

static int copy_one(struct dataset_unpacking *u, const struct lock_item *item, struct err *err)
{
    const char *path = tree_path_of(u, u->file->name.ptr);
    const char *from = store_blob_path(u->store, item->sha256);
    struct digest_value value;
    if (u->wants && !u->wants(u->ctx, path)) {
        return 0;
    }
    if (copy_file(from, fs_join(u->arena, u->work, path), &value, err) < 0) {
        return -1;
    }
    if (memcmp(value.sha256, item->sha256, SHA256_BYTES) != 0) {
        return err_set(err, ERR_INTEGRITY, "%s: the store's copy is not what its name says", from);
    }
    u->file_bytes += (uint64_t)item->size_bytes;
    add_file(u, path, item->sha256);
    return 0;
}

static int unpack_all(struct dataset_unpacking *u, struct err *err)
{
    size_t n = 0;
    const struct dataset_file *files = dataset_files_of(u->here, &n);
    for (size_t idx = 0; idx < n; idx++) {
        const struct lock_item *item = lock_find(u->from, files[idx].name);
        ASSERT(item); /* all were got */
        u->file = &files[idx];
        if ((files[idx].unpack.ptr ? unpack_one(u, item, err) : copy_one(u, item, err)) < 0) {
            return -1;
        }
        u->done_bytes += (uint64_t)item->size_bytes;
    }
    return 0;
}

int dataset_unpack(struct dataset_unpacking *u, struct err *err)
{
    uint64_t total = 0;
    for (size_t idx = 0; idx < u->from->n_items; idx++) {
        total += (uint64_t)u->from->items[idx].size_bytes;
    }
    progress_start(&u->progress, u->net->clock, "unpack", "bytes", total);
    int result = unpack_all(u, err);
    progress_end(&u->progress);
    return result;
}

/* ---- the tree ---- */

static bool is_ours(const char *path, const char *own)
{
    size_t len = strlen(own);
    return strncmp(path, own, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static int check_names(const struct making *m, struct err *err)
{
    for (size_t idx = 0; idx < m->to.files.n; idx++) {
        const char *path = m->to.files.items[idx].path;
        if (is_ours(path, DATASET_TREE_JSON) || is_ours(path, DATASET_TREE_LIST)) {
            return err_set(err, ERR_INTEGRITY, "%s: an archive holds \"%s\", a name that is ours",
                           m->here->name, path);
        }
    }
    return 0;
}

/* Against the description's own list, or the lock's digest of it. */
static int check_list(struct making *m, const struct tree_list *list, const uint8_t *sha256,
                      struct err *err)
{
    const struct dataset *dataset = &m->here->dataset;
    struct tree_list wanted;
    struct tree_differences differences = {0};
    if (m->here->is_synthetic || !dataset->has_list_sha256 ||
        memcmp(dataset->list_sha256, sha256, SHA256_BYTES) == 0) {
        return 0;
    }
    if (dataset->list_path.ptr) {
        if (tree_list_read(m->arena, fs_join(m->arena, m->here->folder, dataset->list_path.ptr),
                           &wanted, err) < 0) {
            return -1;
        }
        tree_compare(m->arena, &wanted, list, &differences);
        for (size_t idx = 0; idx < differences.n && idx < DIFFER_SHOW; idx++) {
            show_difference(m, differences.items[idx].fault, differences.items[idx].path);
        }
    }
    return err_set(err, ERR_INTEGRITY,
                   "%s: the tree is not the known one: its list has SHA-256 %s, %zu files differ",
                   m->here->name, sha256_hex_of(sha256).text, differences.n);
}

static int write_record(struct making *m, const struct tree_list *list, const uint8_t *sha256,
                        struct dataset_record *ret_record, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(4u << 20);
    const struct clock_src *clock = &m->opts->net->opts->clock;
    struct dataset_record record = *m->from;
    char now[RFC3339_MAX];
    clock_rfc3339(clock->wall_ns(clock->ctx), now);
    record.date = str_dup(m->arena, str_of(now));
    record.seen.has_list = true;
    memcpy(record.seen.list_sha256, sha256, SHA256_BYTES);
    record.seen.n_files = (int64_t)list->n;
    record.seen.file_bytes = (int64_t)m->to.file_bytes;
    dataset_record_encode(&record, &text);
    *ret_record = record;
    return fs_replace(fs_join(m->arena, m->to.work, DATASET_TREE_JSON), strbuf_str(&text), err);
}

/* An older tree of other archives is moved out of the way first; half a tree never has the name. */
static int place(struct making *m, struct err *err)
{
    const char *to = dataset_tree_path(m->store, m->here->name);
    const char *old =
        store_path(m->store, arena_printf(m->arena, "tmp/old-%s-%d", m->here->name, (int)getpid()));
    if (fs_exists(to) && rename(to, old) < 0) {
        return err_errno(err, "rename", to);
    }
    return publish_tree(m->to.work, to, err) < 0 ? -1 : fs_remove_tree(old, err);
}

/* ---- from another dataset ---- */

static int add_made(struct making *m, struct err *err)
{
    CLEANUP(pool) struct pool *pool = NULL;
    struct tree_list list;
    struct tree_opts opts = {
        .folder = m->to.work, .n_threads = POOL_THREADS_MIN + 1, .kinds = DIGEST_SHA256};
    struct tree_hash_stats stats = {0};
    opts.ret_stats = &stats;
    if (pool_new(opts.n_threads, &pool, err) < 0) {
        return -1;
    }
    opts.pool = pool;
    if (tree_hash(m->arena, &opts, &list, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < list.n; idx++) {
        add_file(&m->to, list.files[idx].path, list.files[idx].sha256);
    }
    m->to.file_bytes = stats.n_bytes_read;
    return 0;
}

static int make(struct making *m, struct dataset_record *ret_record, struct err *err)
{
    uint8_t sha256[SHA256_BYTES];
    if (fs_remove_tree(m->to.work, err) < 0 || check_space(m, err) < 0 ||
        fs_mkdir_p(m->to.work, err) < 0) {
        return -1;
    }
    if (m->here->from
            ? dataset_list_holds(m->store, m->here->from->name, &m->parts->tree, err) < 0 ||
                  dataset_make_records(m->arena, m->store, m->here, m->opts, m->to.work, err) < 0 ||
                  add_made(m, err) < 0
            : dataset_unpack(&m->to, err) < 0) {
        return -1;
    }
    if (check_names(m, err) < 0) {
        return -1;
    }
    struct tree_list list = (struct tree_list){.files = m->to.files.items, .n = m->to.files.n};
    tree_list_sort(&list);
    if (tree_list_write(&list, fs_join(m->arena, m->to.work, DATASET_TREE_LIST), sha256, err) < 0 ||
        check_list(m, &list, sha256, err) < 0 ||
        write_record(m, &list, sha256, ret_record, err) < 0) {
        return -1;
    }
    return place(m, err);
}

/* One process at a time makes a tree; the lock goes with the descriptor. */
static int lock_work(struct making *m, int *ret_fd, struct err *err)
{
    const char *path =
        store_path(m->store, arena_printf(m->arena, "tmp/tree-%s.lock", m->here->name));
    CLEANUP(fd) int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0) {
        return err_errno(err, "create", path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        return err_set(err, ERR_IO, "%s: its tree is being made by another process", m->here->name);
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

int dataset_make_tree(struct arena *arena, struct store *store, const struct dataset_here *here,
                      const struct dataset_fetch_opts *opts, struct dataset_fetched *fetched,
                      struct err *err)
{
    CLEANUP(fd) int lock = -1;
    struct making m = {
        .arena = arena,
        .store = store,
        .here = here,
        .opts = opts,
        .from = &fetched->record,
        .parts = fetched->from,
        .to = {.arena = arena,
               .store = store,
               .here = here,
               .from = &fetched->record.seen,
               .work = store_path(store, arena_printf(arena, "tmp/tree-%s", here->name)),
               .net = opts->net->opts}};
    struct dataset_record tree;
    fetched->tree_path = dataset_tree_path(store, here->name);
    if (lock_work(&m, &lock, err) < 0) {
        return -1;
    }
    if (!opts->makes_anew && dataset_tree_read(arena, store, here->name, &tree, ERR_IGNORED) == 0 &&
        same_archives(&tree, &fetched->record)) {
        fetched->has_tree = fetched->was_there = true;
        fetched->tree = tree;
        return 0;
    }
    int result = make(&m, &tree, err);
    VEC_RELEASE(&m.to.files);
    if (result < 0) {
        struct err dropped = {0};
        if (fs_remove_tree(m.to.work, &dropped) < 0) {
            log_line(LOG_DEBUG, "%s", dropped.msg);
        }
        return -1;
    }
    fetched->has_tree = true;
    fetched->tree = tree;
    return 0;
}

/* Unpacked, whether just now or before. */
static int get_other(struct arena *arena, struct store *store, const struct dataset_here *here,
                     const struct dataset_fetch_opts *opts, struct dataset_fetched *fetched,
                     struct err *err)
{
    struct dataset_fetched *from = arena_new(arena, struct dataset_fetched);
    struct dataset_fetch_opts fetch = *opts;
    fetched->from = from;
    if (!opts->n_samples &&
        dataset_tree_read(arena, store, here->from->name, &from->tree, ERR_IGNORED) == 0) {
        return 0;
    }
    fetch.makes_anew = false;
    int result = dataset_fetch(arena, store, here->from, &fetch, from, err);
    fetched->files = from->files;
    fetched->n_files = from->n_files;
    fetched->wanted = from->wanted;
    fetched->n_wanted = from->n_wanted;
    return result < 0 ? err_wrap(err, "%s", here->name) : 0;
}

static void count_files(struct arena *arena, const struct dataset_here *here,
                        struct dataset_record *record)
{
    const struct dataset_synthetic_split *splits = record->splits;
    record->splits = arena_array(arena, struct dataset_synthetic_split, record->n_splits + 1);
    for (size_t idx = 0; idx < record->n_splits; idx++) {
        const struct dataset_group *group =
            dataset_group_find(&here->dataset, splits[idx].name, ROLE_RECORDS);
        int64_t n = group ? group->n_files : 1;
        record->splits[idx] = splits[idx];
        record->splits[idx].n_folders = n < splits[idx].n_samples ? n : splits[idx].n_samples;
    }
}

/* Its files follow from the other one's list of files and the recipe; what is made of a synthetic dataset is one. */
static int get_made(struct arena *arena, struct store *store, const struct dataset_here *here,
                    const struct dataset_fetch_opts *opts, struct dataset_fetched *fetched,
                    struct err *err)
{
    struct dataset_record *record = &fetched->record;
    if (!opts->makes_anew && !opts->n_samples &&
        dataset_state(arena, store, here->from) != DATASET_TREE &&
        dataset_tree_read(arena, store, here->name, record, ERR_IGNORED) == 0) {
        return 0; /* the other one has been dropped since */
    }
    if (get_other(arena, store, here, opts, fetched, err) < 0) {
        return -1;
    }
    if (!opts->wants_tree) {
        return 0;
    }
    *record = fetched->from->tree;
    record->seen = (struct lock){.kind = LOCK_DATASET,
                                 .id = here->dataset.id,
                                 .items = arena_new(arena, struct lock_item),
                                 .n_files = -1,
                                 .file_bytes = -1};
    record->recipe =
        str_printf(arena, "reperf-pack records %d; list of %s sha256:%s", RECIPE_REVISION,
                   here->from->name, sha256_hex_of(fetched->from->tree.seen.list_sha256).text);
    count_files(arena, here, record);
    return dataset_ref_write(store, here->name, record, err);
}

int dataset_get_parts(struct arena *arena, struct store *store, const struct dataset_here *here,
                      const struct dataset_fetch_opts *opts, struct dataset_fetched *fetched,
                      struct err *err)
{
    return here->from           ? get_made(arena, store, here, opts, fetched, err)
           : here->is_synthetic ? dataset_synth_files(arena, store, here, opts, fetched, err)
                                : dataset_get_files(arena, store, here, opts, fetched, err);
}

int dataset_fetch(struct arena *arena, struct store *store, const struct dataset_here *here,
                  const struct dataset_fetch_opts *opts, struct dataset_fetched *fetched,
                  struct err *err)
{
    size_t n = 0;
    *fetched = (struct dataset_fetched){0};
    (void)dataset_files_of(here, &n);
    if (here->dataset.is_synthetic) {
        return err_set(err, ERR_USAGE, "%s is generated on the device: there is nothing to fetch",
                       here->name);
    }
    if (n == 0 && !here->from) {
        return err_set(err, ERR_FETCH, "%s: there is nothing that could be fetched: %.300s",
                       here->name,
                       here->dataset.note.ptr ? here->dataset.note.ptr : "no file is named");
    }
    if (!here->is_synthetic && opts->n_samples) {
        return err_set(err, ERR_USAGE, "--samples: only for synthetic datasets");
    }
    if (dataset_get_parts(arena, store, here, opts, fetched, err) < 0) {
        return -1;
    }
    return opts->wants_tree ? dataset_make_tree(arena, store, here, opts, fetched, err) : 0;
}
