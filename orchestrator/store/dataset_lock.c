/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/dataset_lock.h"

#include <fcntl.h>

#include "base/fs.h"
#include "base/progress.h"
#include "base/stop.h"
#include "store/lock_file.h"

#define PIECE_BYTES (16u << 20) /* a bad byte costs one of these again */

struct piecing {
    const struct dataset_job *job;
    struct progress progress;
    uint64_t done_bytes;
};

/* One SHA-256 a line, of each PIECE_BYTES. */
static int digest_pieces(struct piecing *p, const char *path, struct strbuf *lines, struct err *err)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    CLEANUP(free) char *piece = xmalloc(PIECE_BYTES);
    size_t len = 1;
    if (fd < 0) {
        return err_errno(err, "open", path);
    }
    while (len > 0) {
        uint8_t sha256[SHA256_BYTES];
        if (stop_is_asked()) {
            return err_set(err, ERR_INTERRUPTED, "lock: interrupted");
        }
        if (fs_fill(fd, piece, PIECE_BYTES, path, &len, err) < 0) {
            return -1;
        }
        sha256_of((struct str){piece, len}, sha256);
        if (len > 0) {
            strbuf_printf(lines, "%s\n", sha256_hex_of(sha256).text);
        }
        p->done_bytes += len;
        progress_set(&p->progress, p->done_bytes);
    }
    return 0;
}

static int write_pieces(struct piecing *p, struct lock_item *item, struct err *err)
{
    const struct dataset_here *here = p->job->here;
    struct arena *arena = p->job->arena;
    CLEANUP(strbuf) struct strbuf lines = STRBUF((size_t)FETCH_PIECES_MAX * SHA256_HEX_SIZE);
    const char *folder = fs_join(arena, here->locks, LOCK_KIND_NAMES[LOCK_DATASET]);
    const char *name = arena_printf(arena, "%s.%s.pieces", here->dataset.id.ptr, item->name.ptr);
    if (digest_pieces(p, store_blob_path(p->job->store, item->sha256), &lines, err) < 0) {
        return -1;
    }
    if (lines.is_full) {
        return err_set(err, ERR_INTERNAL, "%s: more than %u pieces", item->name.ptr,
                       FETCH_PIECES_MAX);
    }
    if (fs_mkdir_p(folder, err) < 0 ||
        fs_write_atomic(fs_join(arena, folder, name), strbuf_str(&lines), err) < 0) {
        return -1;
    }
    item->piece_bytes = PIECE_BYTES;
    item->pieces_path = str_of(name);
    return 0;
}

/* Only for new files with several pieces: a single piece would be fetched again whole anyway. */
static int add_pieces(const struct dataset_job *job, const struct lock *known, struct lock *found,
                      struct err *err)
{
    struct piecing p = {.job = job};
    uint64_t total = 0;
    int result = 0;
    for (size_t idx = 0; idx < found->n_items; idx++) {
        total += (uint64_t)found->items[idx].size_bytes;
    }
    progress_start(&p.progress, job->net->opts->clock, "lock", "bytes", total);
    for (size_t idx = 0; idx < found->n_items && result == 0; idx++) {
        struct lock_item *item = &found->items[idx];
        if (!lock_find(known, item->name) && item->size_bytes > (int64_t)PIECE_BYTES) {
            result = write_pieces(&p, item, err);
        }
    }
    progress_end(&p.progress);
    return result;
}

int dataset_lock(const struct dataset_job *job, const struct dataset_fetched *fetched,
                 struct dataset_locked *ret_locked, struct err *err)
{
    const struct dataset_here *here = job->here;
    struct arena *arena = job->arena;
    struct dataset_locked locked = {0};
    struct lock known;
    struct lock found = {.kind = LOCK_DATASET,
                         .id = here->dataset.id,
                         .items = arena_array(arena, struct lock_item, fetched->n_files + 1),
                         .has_list = fetched->has_tree,
                         .n_files = fetched->tree.seen.n_files,
                         .file_bytes = fetched->tree.seen.file_bytes};
    char *path = NULL;
    memcpy(found.list_sha256, fetched->tree.seen.list_sha256, SHA256_BYTES);
    for (size_t idx = 0; idx < fetched->n_files; idx++) {
        found.items[found.n_items++] = fetched->files[idx].item;
    }
    if (lock_read(arena, here->locks, LOCK_DATASET, here->dataset.id.ptr, &known, err) < 0 ||
        lock_check(&known, &found, err) < 0 || add_pieces(job, &known, &found, err) < 0 ||
        lock_settle(arena, here->locks, &found, &locked.is_new, err) < 0 ||
        lock_path(arena, here->locks, LOCK_DATASET, here->dataset.id.ptr, &path, err) < 0) {
        return -1;
    }
    locked.path = path;
    *ret_locked = locked;
    return 0;
}
