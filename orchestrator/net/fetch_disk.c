/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/fetch_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fs.h"

#define BLOCK_BYTES_MIN (4u << 10)
#define BLOCK_BYTES_MAX (4u << 20)
#define BLOCKS_WANTED   16384u /* so that a crash costs only a small part of any file */
#define BOOT_ID         "/proc/sys/kernel/random/boot_id"

static int take_lock(struct fetch *fetch, struct err *err)
{
    fetch->lock_fd = open(fetch->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fetch->lock_fd < 0) {
        return err_errno(err, "open", fetch->lock_path);
    }
    if (flock(fetch->lock_fd, LOCK_EX | LOCK_NB) == 0) {
        return 0;
    }
    return errno == EWOULDBLOCK
               ? err_set(err, ERR_IO, "%s is being fetched by another process", fetch->spec->name)
               : err_errno(err, "lock", fetch->lock_path);
}

static int check_space(struct fetch *fetch, struct err *err)
{
    struct stat info;
    uint64_t wanted;
    if (fetch->size_bytes < 0) {
        return 0;
    }
    if (fstat(fetch->data_fd, &info) < 0) {
        return err_errno(err, "look at the disk of", fetch->spec->folder);
    }
    uint64_t is_there = (uint64_t)info.st_blocks * 512;
    if (__builtin_add_overflow((uint64_t)fetch->size_bytes, fetch->spec->spare_bytes, &wanted)) {
        wanted = UINT64_MAX;
    }
    wanted -= is_there < wanted ? is_there : wanted;
    const char *what =
        fetch->spec->spare_bytes
            ? arena_printf(&fetch->arena, "%s, and what comes after it,", fetch->spec->name)
            : fetch->spec->name;
    return fs_expect_room(fetch->data_fd, wanted, what, err);
}

/* Blocks are small compared with the file, and a piece is a whole number of them: it is halved as often as that goes. */
static uint64_t choose_block(uint64_t size_bytes, uint64_t piece_bytes)
{
    uint64_t least = BLOCK_BYTES_MIN;
    while ((least < size_bytes / BLOCKS_WANTED && least < BLOCK_BYTES_MAX) ||
           size_bytes / least >= FETCH_PIECES_MAX) {
        least *= 2;
    }
    uint64_t block_bytes = piece_bytes ? piece_bytes : least;
    while (block_bytes % 2 == 0 && block_bytes / 2 >= least) {
        block_bytes /= 2;
    }
    return block_bytes;
}

static int make_pieces(struct fetch *fetch, struct err *err)
{
    const struct fetch_pieces *known = fetch->spec->pieces;
    size_t n = known ? state_n_blocks((uint64_t)fetch->size_bytes, known->piece_bytes) : 0;
    fetch->piece_bytes = known ? known->piece_bytes : 0;
    if (known && known->n != n) {
        return err_set(err, ERR_INTEGRITY,
                       "%s: %" PRId64 " bytes are %zu pieces of %" PRIu64
                       " bytes, but digests of %zu are known",
                       fetch->spec->name, fetch->size_bytes, n, known->piece_bytes, known->n);
    }
    fetch->n_bad = arena_array(&fetch->arena, uint8_t, n + 1);
    return 0;
}

/* The arrays, once the size is known: in the arena, because a fetch learns its size once or restarts a few times. */
static int make_blocks(struct fetch *fetch, uint64_t block_bytes, struct err *err)
{
    uint64_t size_bytes = (uint64_t)fetch->size_bytes;
    if (make_pieces(fetch, err) < 0) {
        return -1;
    }
    fetch->block_bytes = block_bytes && fetch->piece_bytes % block_bytes == 0
                             ? block_bytes
                             : choose_block(size_bytes, fetch->piece_bytes);
    fetch->n_blocks = fetch->n_missing = state_n_blocks(size_bytes, fetch->block_bytes);
    fetch->map = arena_array(&fetch->arena, char, fetch->n_blocks + 1);
    memset(fetch->map, BLOCK_MISSING, fetch->n_blocks);
    fetch->done_bytes = 0;
    fetch->first_missing = fetch->frontier = 0;
    fetch->has_stale_head = true;
    return 0;
}

/* Preallocates everything, so that the disk is not full at the last byte; if a file system cannot do that, only sets the
   length. On a tmpfs preallocation would write each page twice. */
static int set_length(struct fetch *fetch, struct err *err)
{
    struct statfs kind;
    off_t size = (off_t)fetch->size_bytes;
    if (ftruncate(fetch->data_fd, size) < 0 || fstatfs(fetch->data_fd, &kind) < 0) {
        return err_errno(err, "set the length of", fetch->data_path);
    }
    if (size == 0 || kind.f_type == TMPFS_MAGIC || fallocate(fetch->data_fd, 0, 0, size) == 0 ||
        errno == EOPNOTSUPP || errno == ENOSYS) {
        return 0;
    }
    return err_errno(err, "make room for", fetch->data_path);
}

int disk_set_size(struct fetch *fetch, uint64_t size_bytes, struct err *err)
{
    fetch->size_bytes = (int64_t)size_bytes;
    return check_space(fetch, err) < 0 || make_blocks(fetch, 0, err) < 0 ||
                   set_length(fetch, err) < 0
               ? -1
               : 0;
}

/* --- what an earlier process has left ------------------------------------------------------------- */

/* Takes over the validators of mirrors that are still in use. True if one of them has any. */
static bool take_validators(struct fetch *fetch, const struct state *state)
{
    bool has_any = false;
    for (size_t ours = 0; ours < fetch->n_mirrors; ours++) {
        struct mirror *mirror = &fetch->mirrors[ours];
        for (size_t theirs = 0; theirs < state->n_mirrors; theirs++) {
            const struct state_mirror *old = &state->mirrors[theirs];
            if (str_eq_z(old->shown, mirror->shown)) {
                mirror->etag = str_dup(&fetch->arena, old->etag);
                mirror->last_modified = str_dup(&fetch->arena, old->last_modified);
                has_any |= old->etag.len > 0 || old->last_modified.len > 0;
                break;
            }
        }
    }
    return has_any;
}

static bool is_of_this_file(const struct fetch *fetch, const struct state *state)
{
    const struct fetch_spec *spec = fetch->spec;
    struct stat info;
    return (spec->size_bytes < 0 || spec->size_bytes == state->size_bytes) &&
           (!spec->pieces || spec->pieces->piece_bytes % (uint64_t)state->block_bytes == 0) &&
           fstat(fetch->data_fd, &info) == 0 && info.st_size == state->size_bytes;
}

/* Bytes are kept if something can tell whether they belong to this file, a digest or a server's validator, and whether they have
   reached the disk: a digest, or that the machine has not stopped since. */
static int take_state(struct fetch *fetch, struct err *err)
{
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    struct state state;
    struct str text;
    if (!fs_exists(fetch->state_path)) {
        return 0;
    }
    if (fs_read(&scratch, fetch->state_path, STATE_BYTES_MAX, &text, err) < 0) {
        return -1;
    }
    if (state_parse(&scratch, text, &state, ERR_IGNORED) < 0 || !is_of_this_file(fetch, &state)) {
        return 0;
    }
    bool has_validator = take_validators(fetch, &state);
    if (!fetch_has_expectation(fetch) &&
        (!has_validator || !*fetch->boot || !str_eq_z(state.boot, fetch->boot))) {
        return 0;
    }
    fetch->size_bytes = state.size_bytes;
    if (make_blocks(fetch, (uint64_t)state.block_bytes, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; fetch->block_bytes == (uint64_t)state.block_bytes && idx < state.n_blocks;
         idx++) {
        if (state.map[idx] == BLOCK_DONE || state.map[idx] == BLOCK_KEPT) {
            fetch_mark(fetch, idx, BLOCK_KEPT);
            fetch->has_kept = true;
        }
    }
    return 0;
}

/* A file whose length is not known before it is read. */
static const char *boot_id(struct arena *arena)
{
    CLEANUP(fd) int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
    char text[64];
    ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text));
    return str_z(arena, str_trim((struct str){text, len < 0 ? 0 : (size_t)len}));
}

int disk_open(struct fetch *fetch, struct err *err)
{
    const char *folder = fetch->spec->folder;
    fetch->data_path = fs_join(&fetch->arena, folder, "data");
    fetch->state_path = fs_join(&fetch->arena, folder, "state");
    fetch->lock_path = fs_join(&fetch->arena, folder, "lock");
    fetch->boot = boot_id(&fetch->arena);
    if (fs_mkdir_p(folder, err) < 0 || take_lock(fetch, err) < 0) {
        return -1;
    }
    fetch->data_fd = open(fetch->data_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fetch->data_fd < 0) {
        return err_errno(err, "open", fetch->data_path);
    }
    fetch->size_bytes = fetch->spec->size_bytes;
    if (take_state(fetch, err) < 0) {
        return -1;
    }
    if (!fetch->map && ftruncate(fetch->data_fd, 0) < 0) {
        return err_errno(err, "empty", fetch->data_path);
    }
    return check_space(fetch, err);
}

/* --- the state -------------------------------------------------------------------------------------- */

int disk_write(struct fetch *fetch, uint64_t pos, const uint8_t *ptr, size_t len, struct err *err)
{
    return fs_write_at(fetch->data_fd, ptr, len, pos, fetch->data_path, err);
}

static int write_state(struct fetch *fetch, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(STATE_BYTES_MAX);
    struct state_mirror mirrors[FETCH_MIRRORS_MAX];
    struct state state = {.boot = str_of(fetch->boot),
                          .size_bytes = fetch->size_bytes,
                          .block_bytes = (int64_t)fetch->block_bytes,
                          .mirrors = mirrors,
                          .n_mirrors = fetch->n_mirrors,
                          .map = fetch->map,
                          .n_blocks = fetch->n_blocks};
    for (size_t idx = 0; idx < fetch->n_mirrors; idx++) {
        const struct mirror *mirror = &fetch->mirrors[idx];
        mirrors[idx] =
            (struct state_mirror){str_of(mirror->shown), mirror->etag, mirror->last_modified};
    }
    state_text(&state, &text);
    ASSERT(!text.is_full);
    fd_close(&fetch->state_fd);
    if (fs_write_atomic(fetch->state_path, strbuf_str(&text), err) < 0) {
        return -1;
    }
    fetch->map_at = text.len - fetch->n_blocks;
    fetch->has_stale_head = false;
    fetch->state_fd = open(fetch->state_path, O_WRONLY | O_CLOEXEC);
    return fetch->state_fd < 0 ? err_errno(err, "open", fetch->state_path) : 0;
}

int disk_flush(struct fetch *fetch, struct err *err)
{
    size_t from = fetch->dirty_from;
    size_t end = fetch->dirty_end;
    if (!fetch->map || (!fetch->has_stale_head && from >= end)) {
        return 0;
    }
    fetch->dirty_from = SIZE_MAX;
    fetch->dirty_end = 0;
    return fetch->has_stale_head ? write_state(fetch, err)
                                 : fs_write_at(fetch->state_fd, fetch->map + from, end - from,
                                               fetch->map_at + from, fetch->state_path, err);
}

int disk_forget(struct fetch *fetch, struct err *err)
{
    fd_close(&fetch->state_fd);
    fetch->map = NULL;
    fetch->has_stale_head = false;
    if (unlink(fetch->state_path) < 0 && errno != ENOENT) {
        return err_errno(err, "remove", fetch->state_path);
    }
    if (ftruncate(fetch->data_fd, 0) < 0) {
        return err_errno(err, "empty", fetch->data_path);
    }
    return 0;
}

void disk_close(struct fetch *fetch)
{
    fd_close(&fetch->data_fd);
    fd_close(&fetch->state_fd);
    fd_close(&fetch->lock_fd);
}
