/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/fetch_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fs.h"

#define BLOCK_BYTES_MIN (4u << 10)
#define BLOCK_BYTES_MAX (4u << 20)
#define BLOCKS_WANTED   16384u /* so that a crash costs only a small part of any file */
#define PIECE_BYTES_MIN (1u << 20)
#define PIECE_BYTES_MAX (64u << 20)
#define PIECES_WANTED   4096u
#define DIVISOR_MAX     4096u
#define RECORDS_MAX     (1u << 20)

#define DISK_FAIL(err, op, path)                                                                   \
    err_set((err), err_code_of_errno(errno), "%s %s: %s", (op), (path), err_errno_text(errno))

static int take_lock(struct fetch *fetch, struct err *err)
{
    fetch->lock_fd = open(fetch->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fetch->lock_fd < 0) {
        return DISK_FAIL(err, "open", fetch->lock_path);
    }
    if (flock(fetch->lock_fd, LOCK_EX | LOCK_NB) == 0) {
        return 0;
    }
    return errno == EWOULDBLOCK
               ? err_set(err, ERR_IO, "%s is being fetched by another process", fetch->spec->name)
               : DISK_FAIL(err, "lock", fetch->lock_path);
}

int disk_check_space(const struct fetch *fetch, struct err *err)
{
    struct statvfs room;
    struct stat info;
    uint64_t wanted, is_there, is_free;
    if (fetch->size_bytes < 0) {
        return 0;
    }
    if (statvfs(fetch->spec->folder, &room) < 0 || fstat(fetch->data_fd, &info) < 0) {
        return DISK_FAIL(err, "look at the disk of", fetch->spec->folder);
    }
    is_there = (uint64_t)info.st_blocks * 512;
    is_free = (uint64_t)room.f_bavail * room.f_frsize;
    if (__builtin_add_overflow((uint64_t)fetch->size_bytes, fetch->spec->spare_bytes, &wanted)) {
        wanted = UINT64_MAX;
    }
    wanted -= is_there < wanted ? is_there : wanted;
    if (wanted > is_free) {
        return err_set(err, ERR_DISK,
                       "%s needs %" PRIu64 " bytes more on the disk of %s (%" PRIu64
                       " of them for what comes after), and %" PRIu64 " are free",
                       fetch->spec->name, wanted, fetch->spec->folder, fetch->spec->spare_bytes,
                       is_free);
    }
    return 0;
}

static uint64_t power_over(uint64_t value, uint64_t min, uint64_t max)
{
    uint64_t power = min;
    while (power < value && power < max) {
        power *= 2;
    }
    return power;
}

/* Blocks are small compared with the file, and a piece is a whole number of them. */
static uint64_t choose_block(uint64_t size_bytes, uint64_t piece_bytes)
{
    uint64_t block_bytes = power_over(size_bytes / BLOCKS_WANTED, BLOCK_BYTES_MIN, BLOCK_BYTES_MAX);
    while (size_bytes / block_bytes >= FETCH_PIECES_MAX) {
        block_bytes *= 2;
    }
    if (piece_bytes == 0 || piece_bytes % block_bytes == 0) {
        return block_bytes;
    }
    for (uint64_t n = piece_bytes / block_bytes + 1; n > 1 && n < DIVISOR_MAX; n++) {
        if (piece_bytes % n == 0 && size_bytes / (piece_bytes / n) < FETCH_PIECES_MAX) {
            return piece_bytes / n;
        }
    }
    return piece_bytes;
}

static void set_pieces(struct fetch *fetch)
{
    const struct fetch_pieces *known = fetch->spec->pieces;
    uint64_t size_bytes = (uint64_t)fetch->size_bytes;
    fetch->piece_bytes = known                       ? known->piece_bytes
                         : fetch->spec->wants_pieces ? power_over(size_bytes / PIECES_WANTED,
                                                                  PIECE_BYTES_MIN, PIECE_BYTES_MAX)
                                                     : 0;
    while (!known && fetch->piece_bytes && size_bytes / fetch->piece_bytes >= FETCH_PIECES_MAX) {
        fetch->piece_bytes *= 2;
    }
    if (fetch->piece_bytes) {
        fetch->n_pieces = state_n_blocks(size_bytes, fetch->piece_bytes);
        fetch->pieces = arena_array(&fetch->arena, struct piece, fetch->n_pieces + 1);
        fetch->ready.n = 0;
        fetch->piece_sha256 =
            arena_alloc_array(&fetch->arena, SHA256_BYTES, fetch->n_pieces + 1, 1);
    }
}

/* The arrays, once the size is known: in the arena, because a fetch learns its size once or restarts a few times. */
static int make_blocks(struct fetch *fetch, uint64_t block_bytes, struct err *err)
{
    const struct fetch_pieces *known = fetch->spec->pieces;
    uint64_t size_bytes = (uint64_t)fetch->size_bytes;
    set_pieces(fetch);
    if (known && known->n != fetch->n_pieces) {
        return err_set(err, ERR_INTEGRITY,
                       "%s: %" PRIu64 " bytes are %zu pieces of %" PRIu64
                       " bytes, but digests of %zu are known",
                       fetch->spec->name, size_bytes, fetch->n_pieces, known->piece_bytes,
                       known->n);
    }
    fetch->block_bytes = block_bytes ? block_bytes : choose_block(size_bytes, fetch->piece_bytes);
    fetch->n_blocks = state_n_blocks(size_bytes, fetch->block_bytes);
    fetch->blocks = arena_array(&fetch->arena, struct block, fetch->n_blocks + 1);
    for (size_t idx = 0; fetch->piece_bytes && idx < fetch->n_blocks; idx++) {
        fetch->pieces[piece_of(fetch, idx)].n_missing++;
    }
    fetch->missing_bytes = size_bytes;
    fetch->done_bytes = 0;
    fetch->first_missing = 0;
    fetch->frontier = 0;
    fetch->next_claim = 0;
    return 0;
}

/* Preallocates everything, so that the disk is not full at the last byte; if a file system cannot do that, only sets the
   length. On a tmpfs preallocation would write each page twice. */
static int set_length(struct fetch *fetch, struct err *err)
{
    struct statfs kind;
    off_t size = (off_t)fetch->size_bytes;
    if (ftruncate(fetch->data_fd, size) < 0 || fstatfs(fetch->data_fd, &kind) < 0) {
        return DISK_FAIL(err, "set the length of", fetch->data_path);
    }
    if (size == 0 || kind.f_type == TMPFS_MAGIC || fallocate(fetch->data_fd, 0, 0, size) == 0 ||
        errno == EOPNOTSUPP || errno == ENOSYS) {
        return 0;
    }
    return DISK_FAIL(err, "make room for", fetch->data_path);
}

int disk_set_size(struct fetch *fetch, uint64_t size_bytes, struct err *err)
{
    fetch->size_bytes = (int64_t)size_bytes;
    if (disk_check_space(fetch, err) < 0 || make_blocks(fetch, 0, err) < 0 ||
        set_length(fetch, err) < 0) {
        return -1;
    }
    fetch->has_stale_head = true;
    return 0;
}

/* --- what an earlier process has left ------------------------------------------------------------- */

static bool is_other_digest(bool has, const uint8_t *then, const uint8_t *now, size_t n)
{
    return has && now && memcmp(then, now, n) != 0;
}

/* Takes over the validators of mirrors that are still in use; ret_map: the state's mirrors to ours. True if one of them
   has any. */
static bool take_validators(struct fetch *fetch, const struct state_head *head, uint8_t *ret_map)
{
    bool has_any = false;
    for (size_t theirs = 0; theirs < head->n_mirrors; theirs++) {
        const struct state_mirror *old = &head->mirrors[theirs];
        ret_map[theirs] = NO_MIRROR;
        for (size_t ours = 0; ours < fetch->n_mirrors; ours++) {
            struct mirror *mirror = &fetch->mirrors[ours];
            if (str_eq_z(old->shown, mirror->shown) && ret_map[theirs] == NO_MIRROR) {
                ret_map[theirs] = (uint8_t)ours;
                mirror->etag = str_dup(&fetch->arena, old->etag);
                mirror->last_modified = str_dup(&fetch->arena, old->last_modified);
                has_any |= old->etag.len > 0 || old->last_modified.len > 0;
            }
        }
    }
    return has_any;
}

static bool is_of_this_file(const struct fetch *fetch, const struct state_head *head)
{
    const struct fetch_spec *spec = fetch->spec;
    return (spec->size_bytes < 0 || (uint64_t)spec->size_bytes == head->size_bytes) &&
           !is_other_digest(head->has_sha256, head->sha256, spec->sha256, SHA256_BYTES) &&
           !is_other_digest(head->has_md5, head->md5, spec->md5, MD5_BYTES) &&
           (!spec->pieces || spec->pieces->piece_bytes % head->block_bytes == 0);
}

static void claim_blocks(struct fetch *fetch, const struct state *state, const uint8_t *map)
{
    for (size_t idx = 0; idx < state->n_blocks; idx++) {
        const struct state_block *old = &state->blocks[idx];
        struct block *block = &fetch->blocks[idx];
        if (old->is_there) {
            block->crc = old->crc;
            block->state = BLOCK_CLAIMED;
            block->mirror = map[old->mirror];
            fetch->missing_bytes -= block_end(fetch, idx) - block_start(fetch, idx);
            fetch->has_kept = true;
            check_came(fetch, idx);
        }
    }
    fetch->done_bytes = (uint64_t)fetch->size_bytes - fetch->missing_bytes;
}

/* Bytes are kept if something can tell whether they belong to this file: a digest, or a server's validator. */
static int take_state(struct fetch *fetch, struct err *err)
{
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    struct err ignored = {0};
    struct state state;
    struct str text;
    uint8_t map[FETCH_MIRRORS_MAX];
    bool has_validator;
    if (!fs_exists(fetch->state_path)) {
        return 0;
    }
    if (fs_read(&scratch, fetch->state_path, STATE_BYTES_MAX, &text, err) < 0) {
        return -1;
    }
    if (state_parse(&scratch, text, &state, &ignored) < 0 || !is_of_this_file(fetch, &state.head)) {
        return 0;
    }
    has_validator = take_validators(fetch, &state.head, map);
    if (!has_validator && !fetch_has_expectation(fetch)) {
        return 0;
    }
    fetch->size_bytes = (int64_t)state.head.size_bytes;
    if (make_blocks(fetch, state.head.block_bytes, err) < 0) {
        return -1;
    }
    claim_blocks(fetch, &state, map);
    return set_length(fetch, err);
}

int disk_open(struct fetch *fetch, struct err *err)
{
    const char *folder = fetch->spec->folder;
    fetch->data_path = fs_join(&fetch->arena, folder, "data");
    fetch->state_path = fs_join(&fetch->arena, folder, "state");
    fetch->lock_path = fs_join(&fetch->arena, folder, "lock");
    strbuf_init(&fetch->records, RECORDS_MAX);
    if (fs_mkdir_p(folder, err) < 0 || take_lock(fetch, err) < 0) {
        return -1;
    }
    fetch->data_fd = open(fetch->data_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fetch->data_fd < 0) {
        return DISK_FAIL(err, "open", fetch->data_path);
    }
    fetch->size_bytes = fetch->spec->size_bytes;
    if (take_state(fetch, err) < 0) {
        return -1;
    }
    if (!fetch->blocks && ftruncate(fetch->data_fd, 0) < 0) {
        return DISK_FAIL(err, "empty", fetch->data_path);
    }
    fetch->has_stale_head = fetch->blocks != NULL;
    return disk_check_space(fetch, err);
}

/* --- the state -------------------------------------------------------------------------------------- */

static void fill_head(const struct fetch *fetch, struct state_head *head)
{
    const struct fetch_spec *spec = fetch->spec;
    head->size_bytes = (uint64_t)fetch->size_bytes;
    head->block_bytes = fetch->block_bytes;
    head->has_sha256 = spec->sha256 != NULL;
    head->has_md5 = spec->md5 != NULL;
    if (spec->sha256) {
        memcpy(head->sha256, spec->sha256, SHA256_BYTES);
    }
    if (spec->md5) {
        memcpy(head->md5, spec->md5, MD5_BYTES);
    }
    head->n_mirrors = fetch->n_mirrors;
    for (size_t idx = 0; idx < fetch->n_mirrors; idx++) {
        const struct mirror *mirror = &fetch->mirrors[idx];
        head->mirrors[idx] =
            (struct state_mirror){str_of(mirror->shown), mirror->etag, mirror->last_modified};
    }
}

static void add_record(uint32_t seed, size_t block_idx, const struct block *block,
                       struct strbuf *out)
{
    uint8_t record[STATE_RECORD_BYTES];
    /* For a mirror that is no longer in use the first one is recorded, so that the record stays valid. */
    uint32_t mirror = block->mirror == NO_MIRROR ? 0 : block->mirror;
    state_record(seed, (uint32_t)block_idx, block->crc, mirror, record);
    strbuf_add(out, record, sizeof(record));
}

static int write_state(struct fetch *fetch, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text;
    struct state_head head = {0};
    strbuf_init(&text, STATE_BYTES_MAX);
    fill_head(fetch, &head);
    state_head_text(&head, &text, &fetch->state_seed);
    for (size_t idx = 0; idx < fetch->n_blocks; idx++) {
        if (fetch->blocks[idx].state >= BLOCK_CLAIMED) {
            add_record(fetch->state_seed, idx, &fetch->blocks[idx], &text);
        }
    }
    ASSERT(!text.is_full);
    fd_close(&fetch->state_fd);
    strbuf_clear(&fetch->records);
    if (fs_write_atomic(fetch->state_path, strbuf_str(&text), err) < 0) {
        return -1;
    }
    fetch->state_fd = open(fetch->state_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    fetch->has_stale_head = false;
    return fetch->state_fd < 0 ? DISK_FAIL(err, "open", fetch->state_path) : 0;
}

void disk_record(struct fetch *fetch, size_t block_idx, uint32_t crc, uint32_t mirror)
{
    uint8_t record[STATE_RECORD_BYTES];
    if (fetch->has_stale_head) {
        return; /* all blocks are about to be written */
    }
    state_record(fetch->state_seed, (uint32_t)block_idx, crc, mirror, record);
    strbuf_add(&fetch->records, record, sizeof(record));
    /* Beyond its cap the whole state is rewritten instead. */
    fetch->has_stale_head = fetch->records.is_full;
}

int disk_flush(struct fetch *fetch, struct err *err)
{
    if (!fetch->blocks) {
        return 0;
    }
    if (fetch->has_stale_head) {
        return write_state(fetch, err);
    }
    if (fetch->records.len == 0) {
        return 0;
    }
    if (fs_write_all(fetch->state_fd, fetch->records.ptr, fetch->records.len, fetch->state_path,
                     err) < 0) {
        return -1;
    }
    strbuf_clear(&fetch->records);
    return 0;
}

int disk_write(struct fetch *fetch, uint64_t pos, const uint8_t *ptr, size_t len, struct err *err)
{
    while (len) {
        ssize_t put = pwrite(fetch->data_fd, ptr, len, (off_t)pos);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return DISK_FAIL(err, "write", fetch->data_path);
        }
        ptr += put;
        pos += (uint64_t)put;
        len -= (size_t)put;
    }
    return 0;
}

int disk_forget(struct fetch *fetch, struct err *err)
{
    fd_close(&fetch->state_fd);
    fetch->blocks = NULL;
    fetch->has_stale_head = false;
    strbuf_clear(&fetch->records);
    if (unlink(fetch->state_path) < 0 && errno != ENOENT) {
        return DISK_FAIL(err, "remove", fetch->state_path);
    }
    if (ftruncate(fetch->data_fd, 0) < 0) {
        return DISK_FAIL(err, "empty", fetch->data_path);
    }
    return 0;
}

void disk_close(struct fetch *fetch)
{
    fd_close(&fetch->data_fd);
    fd_close(&fetch->state_fd);
    fd_close(&fetch->lock_fd);
    strbuf_release(&fetch->records);
}
