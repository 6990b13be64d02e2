/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/unpack_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fs.h"
#include "base/map.h"
#include "base/publish.h"
#include "base/stop.h"
#include "base/temp.h"
#include "base/vec.h"
#include "codec/digest.h"
#include "sys/pool.h"
#include "sys/tree.h"

#define BLOCK_BYTES (1u << 20)  /* what is read of the archive at once */
#define LARGE_BYTES (64u << 20) /* for a file of that size free space is looked at before */
#define FOLDER_MODE 0755
#define LINKS_MAX   65536

struct link {
    const char *path, *target; /* target: the file's path */
    const char *text;          /* a symlink's; NULL: a hard link */
};

/* A file that was written. */
struct written {
    const char *path;
    struct digest_value value;
};

struct job {
    const struct unpack_tree_opts *opts;
    struct arena *arena;
    int archive_fd, root_fd; /* borrowed */
    uint64_t archive_bytes, read_bytes;
    /* Owned; one is unpacked while a thread of its own takes the archive's digest of the same. */
    uint8_t *blocks[2];
    size_t n_blocks;     /* read so far */
    struct str digested; /* the block that the thread has */
    struct pool *pool;
    struct pool_job digesting;
    struct digest archive, file;
    unsigned file_kinds;
    struct unpack *unpack;
    VEC(struct written) files;
    VEC(struct link) links;
    struct map hardlinks; /* path to the file's path */
    uint64_t n_folders, file_bytes;
};

static int check_stop(const struct job *job, struct err *err)
{
    return stop_is_asked()
               ? err_set(err, ERR_INTERRUPTED, "unpacking %s was stopped", job->opts->archive)
               : 0;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static int digest_block(void *arg, const atomic_bool *is_cancelled UNUSED, struct err *err UNUSED)
{
    struct job *job = arg;
    digest_update(&job->archive, job->digested.ptr, job->digested.len);
    return 0;
}

static int await_digest(struct job *job, struct err *err)
{
    return job->n_blocks > 0 ? pool_wait(job->pool, &job->digesting, err) : 0;
}

/* The thread may have a block until the one after it has been read. */
static int read_archive(void *ctx, const void **ret_ptr, size_t *ret_len, struct err *err)
{
    struct job *job = ctx;
    uint8_t *block = job->blocks[job->n_blocks % 2];
    if (check_stop(job, err) < 0 ||
        fs_fill(job->archive_fd, block, BLOCK_BYTES, job->opts->archive, ret_len, err) < 0 ||
        await_digest(job, err) < 0) {
        return -1;
    }
    job->n_blocks++;
    job->digested = (struct str){(const char *)block, *ret_len};
    job->digesting = (struct pool_job){.fn = digest_block, .arg = job};
    pool_submit(job->pool, &job->digesting);
    job->read_bytes += *ret_len;
    if (job->opts->on_progress) {
        job->opts->on_progress(job->opts->ctx, job->read_bytes, job->archive_bytes);
    }
    *ret_ptr = block;
    return 0;
}

static int check_space(const struct job *job, const struct unpack_entry *entry, struct err *err)
{
    return entry->is_size_known && entry->size_bytes >= LARGE_BYTES
               ? fs_expect_room(job->root_fd, entry->size_bytes,
                                str_z(job->arena, str_sub(entry->path, 0, 200)), err)
               : 0;
}

static int make_file(struct job *job, const char *path, bool is_executable, int *ret_fd,
                     struct err *err)
{
    mode_t mode = is_executable ? 0755 : 0644;
    CLEANUP(fd) int fd = beneath_open(job->root_fd, path, O_WRONLY | O_CREAT | O_EXCL, mode);
    if (fd < 0 && errno == EEXIST) {
        return err_set(err, ERR_INTEGRITY, "%.300s: another archive has that file, too", path);
    }
    /* Unlike open, this ignores the umask. */
    if (fd < 0 || fchmod(fd, mode) < 0) {
        return err_errno(err, "create", path);
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

/* A file is digested as it is written, so that none is read from the disk again. */
static int take_file(struct job *job, const struct unpack_entry *entry, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    const void *ptr;
    size_t len = 1;
    const char *path = str_z(job->arena, entry->path);
    if (job->opts->wants && !job->opts->wants(job->opts->ctx, path)) {
        return 0;
    }
    if (check_space(job, entry, err) < 0 ||
        make_file(job, path, entry->is_executable, &fd, err) < 0) {
        return -1;
    }
    digest_start(&job->file, job->file_kinds);
    while (len > 0) {
        if (unpack_data(job->unpack, &ptr, &len, err) < 0 ||
            fs_write_all(fd, ptr, len, path, err) < 0) {
            return -1;
        }
        digest_update(&job->file, ptr, len);
        job->file_bytes += len;
    }
    VEC_PUSH(&job->files, ((struct written){path, digest_finish(&job->file)}));
    return close(take_fd(&fd)) < 0 ? err_errno(err, "write", path) : 0;
}

/* The path that a symlink's text means; unpack.h vouches that it stays inside. */
static const char *resolve(struct arena *arena, struct str link, struct str text)
{
    CLEANUP(strbuf) struct strbuf path = STRBUF((size_t)2 * UNPACK_PATH_MAX);
    struct str part;
    link = str_rcut(link, 0, "/");
    strbuf_add_str(&path, link);
    while (str_next(&text, '/', &part)) {
        if (part.len == 0 || str_eq_z(part, ".")) {
            continue;
        }
        if (str_eq_z(part, "..")) {
            struct str above = str_sub(strbuf_str(&path), 0, path.len ? path.len - 1 : 0);
            above = str_rcut(above, 0, "/");
            path.len = above.len;
            path.ptr[path.len] = '\0';
            continue;
        }
        strbuf_add_str(&path, part);
        strbuf_add_char(&path, '/');
    }
    return arena_strndup(arena, path.ptr, path.len ? path.len - 1 : 0);
}

static int take_link(struct job *job, const struct unpack_entry *entry, struct err *err)
{
    struct link link = {.path = str_z(job->arena, entry->path)};
    if (job->links.n == LINKS_MAX) {
        return err_set(err, ERR_INTEGRITY, "%s: more than %d links", job->opts->archive, LINKS_MAX);
    }
    if (entry->type == UNPACK_SYMLINK) {
        link.text = str_z(job->arena, entry->target);
        link.target = resolve(job->arena, entry->path, entry->target);
    } else {
        /* A hard link to a hard link means the file of that. */
        const char *first = map_get(&job->hardlinks, entry->target);
        char *target = first ? arena_strndup(job->arena, first, strlen(first))
                             : str_z(job->arena, entry->target);
        link.target = target;
        map_add(&job->hardlinks, str_of(link.path), target);
    }
    VEC_PUSH(&job->links, link);
    return 0;
}

static int take_entry(struct job *job, const struct unpack_entry *entry, struct err *err)
{
    switch (entry->type) {
    case UNPACK_FILE:
        return take_file(job, entry, err);
    case UNPACK_FOLDER: {
        char path[UNPACK_PATH_MAX];
        memcpy(path, entry->path.ptr, entry->path.len);
        path[entry->path.len] = '\0';
        job->n_folders++;
        return beneath_mkdir(job->root_fd, path, FOLDER_MODE) < 0
                   ? err_errno(err, "make folder", path)
                   : 0;
    }
    case UNPACK_SYMLINK:
    case UNPACK_HARDLINK:
        return job->opts->wants ? 0 : take_link(job, entry, err);
    }
    return err_set(err, ERR_INTERNAL, "an entry of type %d", (int)entry->type);
}

static int read_all(struct job *job, struct err *err)
{
    struct unpack_opts unpack = job->opts->unpack;
    bool has = true;
    unpack.archive_bytes = job->archive_bytes;
    unpack.fd = job->archive_fd;
    if (unpack_new(&unpack, read_archive, job, job->opts->archive, &job->unpack, err) < 0) {
        return -1;
    }
    while (has) {
        struct unpack_entry entry;
        if (check_stop(job, err) < 0 || unpack_next(job->unpack, &entry, &has, err) < 0 ||
            (has && take_entry(job, &entry, err) < 0)) {
            return -1;
        }
    }
    return 0;
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

static int check_digest(const char *archive, const char *kind, const uint8_t *expected,
                        const uint8_t *found, size_t n, struct err *err)
{
    if (!expected || memcmp(expected, found, n) == 0) {
        return 0;
    }
    return err_set(err, ERR_INTEGRITY, "%s: its %s is %s, expected %s", archive, kind,
                   hex_of(found, n).text, hex_of(expected, n).text);
}

static int check_archive(struct job *job, struct digest_value *ret_value, struct err *err)
{
    const struct unpack_tree_opts *opts = job->opts;
    if (await_digest(job, err) < 0) {
        return -1;
    }
    *ret_value = digest_finish(&job->archive);
    if (check_digest(opts->archive, "MD5", opts->md5, ret_value->md5, MD5_BYTES, err) < 0) {
        return -1;
    }
    return check_digest(opts->archive, "SHA-256", opts->sha256, ret_value->sha256, SHA256_BYTES,
                        err);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct written *)a)->path, ((const struct written *)b)->path);
}

/* When every file is there. */
static int make_links(const struct job *job, struct err *err)
{
    for (size_t idx = 0; idx < job->links.n; idx++) {
        const struct link *link = &job->links.items[idx];
        int result = link->text ? beneath_symlink(job->root_fd, link->path, link->text)
                                : beneath_link(job->root_fd, link->target, link->path);
        if (result < 0) {
            return err_errno(err, "make link", link->path);
        }
    }
    return 0;
}

/* In the list links count as the files that they mean. Hard links first, which symlinks may lead to. */
static int list_links(struct job *job, bool wants_symlinks, struct err *err)
{
    size_t n_files = job->files.n;
    for (size_t idx = 0; idx < job->links.n; idx++) {
        const struct link *link = &job->links.items[idx];
        const struct written key = {.path = link->target}, *found;
        if ((link->text != NULL) != wants_symlinks) {
            continue;
        }
        found = n_files ? bsearch(&key, job->files.items, n_files, sizeof(key), by_path) : NULL;
        if (!found) {
            return err_set(err, ERR_INTERNAL,
                           "%s: %.200s is a link to something that is not a file",
                           job->opts->archive, link->path);
        }
        struct written copy = *found;
        copy.path = link->path;
        VEC_PUSH(&job->files, copy);
    }
    VEC_SORT(&job->files, by_path);
    return 0;
}

static void make_list(struct job *job, struct tree_list *ret_list)
{
    size_t n = job->files.n;
    *ret_list = (struct tree_list){.n = n};
    ret_list->files = arena_array(job->arena, struct tree_file, n + 1);
    if (job->file_kinds & DIGEST_MD5) {
        ret_list->md5 = arena_alloc_array(job->arena, MD5_BYTES, n + 1, 1);
    }
    for (size_t idx = 0; idx < n; idx++) {
        const struct written *file = &job->files.items[idx];
        ret_list->files[idx].path = file->path;
        memcpy(ret_list->files[idx].sha256, file->value.sha256, SHA256_BYTES);
        if (ret_list->md5) {
            memcpy(ret_list->md5[idx], file->value.md5, MD5_BYTES);
        }
    }
}

static int check_list(struct job *job, const struct tree_list *found,
                      struct tree_differences *ret_differences, struct err *err)
{
    const struct unpack_tree_opts *opts = job->opts;
    size_t n[TREE_UNREADABLE + 1] = {0};
    if (!opts->list) {
        return 0;
    }
    tree_compare(job->arena, opts->list, found, ret_differences);
    for (size_t idx = 0; idx < ret_differences->n; idx++) {
        n[ret_differences->items[idx].fault]++;
    }
    return ret_differences->n == 0
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s: of %zu files %zu are missing, %zu extra, %zu corrupt; the first: "
                         "%.200s is %s",
                         opts->archive, opts->list->n, n[TREE_MISSING], n[TREE_EXTRA],
                         n[TREE_CORRUPT], ret_differences->items[0].path,
                         TREE_FAULT_NAMES[ret_differences->items[0].fault]);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static int unpack_and_check(struct job *job, struct unpack_tree_result *ret_result, struct err *err)
{
    const struct unpack_tree_opts *opts = job->opts;
    struct unpack_tree_result result = {0};
    result.kinds = (opts->kinds ? opts->kinds : DIGEST_SHA256) | (opts->md5 ? DIGEST_MD5 : 0u) |
                   (opts->sha256 ? DIGEST_SHA256 : 0u);
    job->file_kinds = DIGEST_SHA256 | (opts->list && opts->list->lacks_sha256 ? DIGEST_MD5 : 0u);
    digest_start(&job->archive, result.kinds);
    if (read_all(job, err) < 0 || check_archive(job, &result.archive, err) < 0 ||
        make_links(job, err) < 0) {
        return -1;
    }
    VEC_SORT(&job->files, by_path);
    if (list_links(job, false, err) < 0 || list_links(job, true, err) < 0) {
        return -1;
    }
    make_list(job, &result.list);
    if (check_list(job, &result.list, &ret_result->differences, err) < 0) {
        return -1;
    }
    result.format = unpack_format(job->unpack);
    result.n_folders = job->n_folders;
    result.n_links = job->links.n;
    result.file_bytes = job->file_bytes;
    *ret_result = result;
    return 0;
}

static int run_job(struct arena *arena, const struct unpack_tree_opts *opts, int root_fd,
                   struct unpack_tree_result *ret_result, struct err *err)
{
    CLEANUP(fd) int archive_fd = open(opts->archive, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (archive_fd < 0 || fstat(archive_fd, &info) < 0) {
        return err_errno(err, "open", opts->archive);
    }
    if (!S_ISREG(info.st_mode)) {
        return err_set(err, ERR_USAGE, "%s: not a regular file", opts->archive);
    }
    if (opts->size_bytes >= 0 && info.st_size != opts->size_bytes) {
        return err_set(err, ERR_INTEGRITY, "%s: %" PRId64 " bytes, expected %" PRId64,
                       opts->archive, (int64_t)info.st_size, opts->size_bytes);
    }
    /* Only advice: a failure does not matter. */
    (void)posix_fadvise(archive_fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    struct job job = {.opts = opts,
                      .arena = arena,
                      .archive_fd = archive_fd,
                      .root_fd = root_fd,
                      .archive_bytes = (uint64_t)info.st_size,
                      .blocks = {xmalloc(BLOCK_BYTES), xmalloc(BLOCK_BYTES)}};
    int result = pool_new(1, &job.pool, err) < 0 ? -1 : unpack_and_check(&job, ret_result, err);
    unpack_free(job.unpack);
    pool_free(job.pool);
    free(job.blocks[0]);
    free(job.blocks[1]);
    digest_release(&job.archive);
    digest_release(&job.file);
    VEC_RELEASE(&job.files);
    VEC_RELEASE(&job.links);
    map_release(&job.hardlinks);
    return result;
}

static int unpack_new_folder(struct arena *arena, const struct unpack_tree_opts *opts,
                             struct unpack_tree_result *ret_result, struct err *err)
{
    CLEANUP(temp) struct temp *made = NULL;
    size_t len = strlen(opts->new_folder);
    while (len > 1 && opts->new_folder[len - 1] == '/') {
        len--;
    }
    if (fs_exists(opts->new_folder)) {
        return err_set(err, ERR_USAGE, "%s exists already", opts->new_folder);
    }
    if (temp_folder(arena_strndup(arena, opts->new_folder, len), &made, err) < 0) {
        return -1;
    }
    if (fchmod(made->fd, FOLDER_MODE) < 0) { /* modes do not hang on the umask */
        return err_errno(err, "mode of", made->path);
    }
    return run_job(arena, opts, made->fd, ret_result, err) < 0
               ? -1
               : publish_tree(made->path, opts->new_folder, err);
}

int unpack_tree(struct arena *arena, const struct unpack_tree_opts *opts,
                struct unpack_tree_result *ret_result, struct err *err)
{
    CLEANUP(fd) int root_fd = -1;
    *ret_result = (struct unpack_tree_result){0};
    ASSERT(!opts->new_folder != !opts->into);
    if (opts->new_folder) {
        return unpack_new_folder(arena, opts, ret_result, err);
    }
    root_fd = open(opts->into, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0) {
        return err_errno(err, "open", opts->into);
    }
    return run_job(arena, opts, root_fd, ret_result, err);
}
