/* SPDX-License-Identifier: Apache-2.0 */
/* From archives in the store to trees/NAME: unpacked and digested in one pass into tmp/tree-NAME, listed, renamed; or made of
   another dataset's tree by reperf-pack. If the process dies on the way there is no tree; the next call starts this part
   again. */
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
    const struct dataset_job *job;
    const struct dataset_fetched *fetched;
    struct dataset_unpacking to; /* work: STORE/tmp/tree-NAME */
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
    const struct dataset_job *job = m->job;
    uint64_t needed = job->here->from ? (uint64_t)m->fetched->from->tree.seen.file_bytes : 0;
    size_t n = 0;
    const struct dataset_file *files = dataset_files_of(job->here, &n);
    for (size_t idx = 0; idx < n; idx++) {
        const struct lock_item *item = lock_find(&m->fetched->record.seen, files[idx].name);
        struct dataset_file file = files[idx];
        file.size_bytes = item ? item->size_bytes : 0;
        needed += (uint64_t)dataset_unpacked_bytes(&file);
    }
    return fs_expect_room(job->store->lock_fd, needed,
                          arena_printf(job->arena, "the tree of %s", job->here->name), err);
}

/* ---- archives ---- */

static void show_progress(void *ctx, uint64_t done, uint64_t total UNUSED)
{
    struct dataset_unpacking *u = ctx;
    progress_set(&u->progress, u->done_bytes + done);
}

static const char *tree_path_of(const struct dataset_unpacking *u, const char *path)
{
    return u->file->into.ptr ? arena_printf(u->job->arena, "%s/%s", u->file->into.ptr, path) : path;
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
        .archive = store_blob_path(u->job->store, item->sha256),
        .into = file->into.ptr ? fs_join(u->job->arena, u->work, file->into.ptr) : u->work,
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
    if (unpack_tree(u->job->arena, &opts, &result, err) < 0) {
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
    const char *from = store_blob_path(u->job->store, item->sha256);
    struct digest_value value;
    if (u->wants && !u->wants(u->ctx, path)) {
        return 0;
    }
    if (copy_file(from, fs_join(u->job->arena, u->work, path), &value, err) < 0) {
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
    const struct dataset_file *files = dataset_files_of(u->job->here, &n);
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
    progress_start(&u->progress, u->job->net->opts->clock, "unpack", "bytes", total);
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
                           m->job->here->name, path);
        }
    }
    return 0;
}

/* Against the description's own list, or the lock's digest of it. */
static int check_list(const struct making *m, const struct tree_list *list, const uint8_t *sha256,
                      struct err *err)
{
    const struct dataset_here *here = m->job->here;
    const struct dataset *dataset = &here->dataset;
    struct arena *arena = m->job->arena;
    struct tree_list wanted;
    struct tree_differences differences = {0};
    if (here->is_synthetic || !dataset->has_list_sha256 ||
        memcmp(dataset->list_sha256, sha256, SHA256_BYTES) == 0) {
        return 0;
    }
    if (dataset->list_path.ptr) {
        if (tree_list_read(arena, fs_join(arena, here->folder, dataset->list_path.ptr), &wanted,
                           err) < 0) {
            return -1;
        }
        tree_compare(arena, &wanted, list, &differences);
        for (size_t idx = 0; idx < differences.n && idx < DIFFER_SHOW; idx++) {
            log_line(LOG_WARN, "%s: %s: %s", here->name, differences.items[idx].path,
                     TREE_FAULT_NAMES[differences.items[idx].fault]);
        }
    }
    return err_set(err, ERR_INTEGRITY,
                   "%s: the tree is not the known one: its list has SHA-256 %s, %zu files differ",
                   here->name, sha256_hex_of(sha256).text, differences.n);
}

static int write_record(const struct making *m, const struct tree_list *list, const uint8_t *sha256,
                        struct dataset_record *ret_record, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(4u << 20);
    struct dataset_record record = m->fetched->record;
    record.date = dataset_now(m->job);
    record.seen.has_list = true;
    memcpy(record.seen.list_sha256, sha256, SHA256_BYTES);
    record.seen.n_files = (int64_t)list->n;
    record.seen.file_bytes = (int64_t)m->to.file_bytes;
    dataset_record_encode(&record, &text);
    *ret_record = record;
    return fs_replace(fs_join(m->job->arena, m->to.work, DATASET_TREE_JSON), strbuf_str(&text),
                      err);
}

/* An older tree of other archives is moved out of the way first; half a tree never has the name. */
static int place(const struct making *m, struct err *err)
{
    const struct dataset_job *job = m->job;
    const char *to = dataset_tree_path(job->store, job->here->name);
    const char *old = store_path(
        job->store, arena_printf(job->arena, "tmp/old-%s-%d", job->here->name, (int)getpid()));
    if (fs_exists(to) && rename(to, old) < 0) {
        return err_errno(err, "rename", to);
    }
    return publish_tree(m->to.work, to, err) < 0 ? -1 : fs_remove_tree(old, err);
}

/* From another dataset. */
static int make_records(struct making *m, struct err *err)
{
    const struct dataset_job *job = m->job;
    CLEANUP(pool) struct pool *pool = NULL;
    struct tree_list list;
    struct tree_hash_stats stats = {0};
    struct tree_opts opts = {.folder = m->to.work,
                             .n_threads = POOL_THREADS_MIN + 1,
                             .kinds = DIGEST_SHA256,
                             .ret_stats = &stats};
    if (dataset_list_holds(job->store, job->here->from->name, &m->fetched->from->tree, err) < 0 ||
        dataset_make_records(job, m->to.work, err) < 0 ||
        pool_new(opts.n_threads, &pool, err) < 0) {
        return -1;
    }
    opts.pool = pool;
    if (tree_hash(job->arena, &opts, &list, err) < 0) {
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
        fs_mkdir_p(m->to.work, err) < 0 ||
        (m->job->here->from ? make_records(m, err) : dataset_unpack(&m->to, err)) < 0 ||
        check_names(m, err) < 0) {
        return -1;
    }
    struct tree_list list = {.files = m->to.files.items, .n = m->to.files.n};
    tree_list_sort(&list);
    return tree_list_write(&list, fs_join(m->job->arena, m->to.work, DATASET_TREE_LIST), sha256,
                           err) < 0 ||
                   check_list(m, &list, sha256, err) < 0 ||
                   write_record(m, &list, sha256, ret_record, err) < 0
               ? -1
               : place(m, err);
}

/* One process at a time makes a tree; the lock goes with the descriptor. */
static int lock_work(const struct dataset_job *job, int *ret_fd, struct err *err)
{
    const char *path =
        store_path(job->store, arena_printf(job->arena, "tmp/tree-%s.lock", job->here->name));
    CLEANUP(fd) int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0) {
        return err_errno(err, "create", path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        return err_set(err, ERR_IO, "%s: its tree is being made by another process",
                       job->here->name);
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

int dataset_make_tree(const struct dataset_job *job, struct dataset_fetched *fetched,
                      struct err *err)
{
    CLEANUP(fd) int lock = -1;
    const char *name = job->here->name;
    struct making m = {
        .job = job,
        .fetched = fetched,
        .to = {.job = job,
               .from = &fetched->record.seen,
               .work = store_path(job->store, arena_printf(job->arena, "tmp/tree-%s", name))}};
    struct dataset_record tree;
    fetched->tree_path = dataset_tree_path(job->store, name);
    if (lock_work(job, &lock, err) < 0) {
        return -1;
    }
    fetched->was_there = !job->makes_anew &&
                         dataset_tree_read(job->arena, job->store, name, &tree, ERR_IGNORED) == 0 &&
                         same_archives(&tree, &fetched->record);
    if (!fetched->was_there) {
        int result = make(&m, &tree, err);
        VEC_RELEASE(&m.to.files);
        if (result < 0) {
            fs_drop_tree(m.to.work);
            return -1;
        }
    }
    fetched->has_tree = true;
    fetched->tree = tree;
    return 0;
}

/* Unpacked, whether just now or before. */
static int get_other(const struct dataset_job *job, struct dataset_fetched *fetched,
                     struct err *err)
{
    struct dataset_fetched *from = arena_new(job->arena, struct dataset_fetched);
    struct dataset_job other = *job;
    fetched->from = from;
    other.here = job->here->from;
    other.makes_anew = false;
    if (!job->n_samples && dataset_tree_read(job->arena, job->store, other.here->name, &from->tree,
                                             ERR_IGNORED) == 0) {
        return 0;
    }
    int result = dataset_fetch(&other, from, err);
    fetched->files = from->files;
    fetched->n_files = from->n_files;
    fetched->wanted = from->wanted;
    fetched->n_wanted = from->n_wanted;
    return result < 0 ? err_wrap(err, "%s", job->here->name) : 0;
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
static int get_made(const struct dataset_job *job, struct dataset_fetched *fetched, struct err *err)
{
    const struct dataset_here *here = job->here;
    struct dataset_record *record = &fetched->record;
    if (!job->makes_anew && !job->n_samples &&
        dataset_state(job->arena, job->store, here->from) != DATASET_TREE &&
        dataset_tree_read(job->arena, job->store, here->name, record, ERR_IGNORED) == 0) {
        return 0; /* the other one has been dropped since */
    }
    if (get_other(job, fetched, err) < 0) {
        return -1;
    }
    if (!job->wants_tree) {
        return 0;
    }
    *record = fetched->from->tree;
    record->seen = dataset_record_new(job, 0).seen;
    record->recipe =
        str_printf(job->arena, "reperf-pack records %d; list of %s sha256:%s", RECIPE_REVISION,
                   here->from->name, sha256_hex_of(fetched->from->tree.seen.list_sha256).text);
    count_files(job->arena, here, record);
    return dataset_ref_write(job->store, here->name, record, err);
}

int dataset_get_parts(const struct dataset_job *job, struct dataset_fetched *fetched,
                      struct err *err)
{
    return job->here->from           ? get_made(job, fetched, err)
           : job->here->is_synthetic ? dataset_synth_files(job, fetched, err)
                                     : dataset_get_files(job, fetched, err);
}

int dataset_fetch(const struct dataset_job *job, struct dataset_fetched *fetched, struct err *err)
{
    const struct dataset_here *here = job->here;
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
    if (!here->is_synthetic && job->n_samples) {
        return err_set(err, ERR_USAGE, "--samples: only for synthetic datasets");
    }
    return dataset_get_parts(job, fetched, err) < 0 ? -1
           : job->wants_tree                        ? dataset_make_tree(job, fetched, err)
                                                    : 0;
}
