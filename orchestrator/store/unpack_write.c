/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/unpack_write.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fs.h"
#include "base/sha256_pair.h"

#define BLOCK_BYTES (1u << 20)
#define BATCH_BYTES (4u << 20) /* a batch is sent once it has so many, */
#define BATCH_FILES 256u       /* or so many files */

static int fail_path(struct err *err, const char *what, const char *path)
{
    return err_set(err, err_code_of_errno(errno), "%s %.300s: %s", what, path,
                   err_errno_text(errno));
}

/* As much as there is, up to BLOCK_BYTES. */
static int read_block(int fd, const char *name, uint8_t *block, size_t *ret_len, struct err *err)
{
    size_t len = 0;
    ssize_t got = 1;
    while (len < BLOCK_BYTES && got != 0) {
        got = read(fd, block + len, BLOCK_BYTES - len);
        if (got < 0 && errno != EINTR) {
            return fail_path(err, "read", name);
        }
        len += got > 0 ? (size_t)got : 0;
    }
    *ret_len = len;
    return 0;
}

/* --- the archive -------------------------------------------------------------------------------------------------------------- */

static int hash_block(void *arg, const atomic_bool *is_cancelled UNUSED, struct err *err UNUSED)
{
    struct archive_reader *reader = arg;
    digest_update(&reader->digest, reader->hashing, reader->hashing_len);
    return 0;
}

static int wait_block(struct archive_reader *reader, struct err *err)
{
    int result = reader->hashing ? pool_wait(reader->pool, &reader->job, err) : 0;
    reader->hashing = NULL;
    return result;
}

void archive_reader_init(struct archive_reader *reader, int fd, const char *name, unsigned kinds,
                         struct pool *pool)
{
    *reader = (struct archive_reader){.fd = fd, .name = name, .pool = pool};
    for (size_t idx = 0; idx < ARCHIVE_BLOCKS; idx++) {
        reader->blocks[idx] = xmalloc(BLOCK_BYTES);
    }
    digest_start(&reader->digest, kinds);
}

void archive_reader_release(struct archive_reader *reader)
{
    struct err ignored = {0};
    (void)!wait_block(reader, &ignored);
    for (size_t idx = 0; idx < ARCHIVE_BLOCKS; idx++) {
        free(reader->blocks[idx]);
    }
    digest_release(&reader->digest);
}

int archive_reader_next(struct archive_reader *reader, const void **ret_ptr, size_t *ret_len,
                        struct err *err)
{
    uint8_t *block = reader->blocks[reader->next];
    size_t len = 0;
    reader->next = (reader->next + 1) % ARCHIVE_BLOCKS;
    if (read_block(reader->fd, reader->name, block, &len, err) < 0) {
        return -1;
    }
    if (wait_block(reader, err) < 0) {
        return -1;
    }
    reader->read_bytes += len;
    reader->hashing = block;
    reader->hashing_len = len;
    reader->job = (struct pool_job){.fn = hash_block, .arg = reader};
    pool_submit(reader->pool, &reader->job);
    *ret_ptr = block;
    *ret_len = len;
    return 0;
}

int archive_reader_finish(struct archive_reader *reader, struct digest_value *ret_value,
                          struct err *err)
{
    if (wait_block(reader, err) < 0) {
        return -1;
    }
    *ret_value = digest_finish(&reader->digest);
    return 0;
}

/* --- files -------------------------------------------------------------------------------------------------------------------- */

struct hash_batch {
    struct pool_job job;
    int root_fd; /* borrowed */
    unsigned kinds;
    size_t first, n; /* of writer->files, which moves while this runs: */
    struct written files[BATCH_FILES];
};

/* Two small files at a time, where the processor gains by it (base/sha256_pair.h). */
struct hash_pair {
    struct written *files[2];
    uint8_t *bytes[2]; /* owned; BLOCK_BYTES */
    size_t len[2];
    size_t n;
};

static void hash_pair_cleanup(struct hash_pair *pair)
{
    free(pair->bytes[0]);
    free(pair->bytes[1]);
}

static void hash_pair(struct hash_pair *pair)
{
    struct sha256_lane lanes[2];
    size_t both = 0;
    for (size_t idx = 0; idx < pair->n; idx++) {
        sha256_lane_start(&lanes[idx]);
    }
    if (pair->n == 2) {
        both = pair->len[0] < pair->len[1] ? pair->len[0] : pair->len[1];
        sha256_pair_add(&lanes[0], pair->bytes[0], both, &lanes[1], pair->bytes[1], both);
    }
    for (size_t idx = 0; idx < pair->n; idx++) {
        sha256_lane_add(&lanes[idx], pair->bytes[idx] + both, pair->len[idx] - both);
        sha256_lane_finish(&lanes[idx], pair->files[idx]->value.sha256);
    }
    pair->n = 0;
}

/* From a file that is read from its start. A larger one is digested alone. */
static int pair_up(struct hash_pair *pair, int fd, struct written *file, struct err *err)
{
    uint8_t **bytes = &pair->bytes[pair->n];
    size_t *len = &pair->len[pair->n];
    *bytes = *bytes ? *bytes : xmalloc(BLOCK_BYTES);
    if (read_block(fd, file->path, *bytes, len, err) < 0) {
        return -1;
    }
    if (*len == BLOCK_BYTES) {
        return lseek(fd, 0, SEEK_SET) < 0
                   ? fail_path(err, "read", file->path)
                   : digest_fd(fd, file->path, DIGEST_SHA256, &file->value, err);
    }
    file->value.size_bytes = *len;
    pair->files[pair->n++] = file;
    if (pair->n == 2) {
        hash_pair(pair);
    }
    return 0;
}

static int hash_files(void *arg, const atomic_bool *is_cancelled, struct err *err)
{
    struct hash_batch *batch = arg;
    CLEANUP(hash_pair) struct hash_pair pair = {0};
    bool has_pairs = batch->kinds == DIGEST_SHA256 && sha256_pair_is_there();
    for (size_t idx = 0; idx < batch->n; idx++) {
        struct written *file = &batch->files[idx];
        CLEANUP(fd) int fd = beneath_open(batch->root_fd, file->path, O_RDONLY, 0);
        if (fd < 0) {
            return fail_path(err, "open", file->path);
        }
        if (atomic_load(is_cancelled)) {
            return err_set(err, ERR_INTERRUPTED, "unpacking was stopped");
        }
        if ((has_pairs ? pair_up(&pair, fd, file, err)
                       : digest_fd(fd, file->path, batch->kinds, &file->value, err)) < 0) {
            return -1;
        }
    }
    hash_pair(&pair);
    return 0;
}

void writer_init(struct unpack_writer *writer, int root_fd, unsigned kinds, struct pool *pool)
{
    *writer = (struct unpack_writer){.root_fd = root_fd, .kinds = kinds, .pool = pool, .fd = -1};
}

/* Waits for the oldest job and takes its digests over. */
static int end_oldest(struct unpack_writer *writer, struct err *err)
{
    struct hash_batch *batch = writer->batches[writer->first];
    int result = pool_wait(writer->pool, &batch->job, err);
    for (size_t idx = 0; result == 0 && idx < batch->n; idx++) {
        writer->files.items[batch->first + idx] = batch->files[idx];
    }
    writer->first = (writer->first + 1) % HASHES_MAX;
    writer->n_flying--;
    return result;
}

void writer_release(struct unpack_writer *writer)
{
    struct err ignored = {0};
    while (writer->n_flying > 0) {
        (void)!end_oldest(writer, &ignored);
    }
    for (size_t idx = 0; idx < HASHES_MAX; idx++) {
        free(writer->batches[idx]);
    }
    fd_close(&writer->fd);
    digest_release(&writer->digest);
    VEC_RELEASE(&writer->files);
}

static int send(struct unpack_writer *writer, struct err *err)
{
    struct hash_batch *batch;
    size_t slot;
    if (writer->n_flying == HASHES_MAX && end_oldest(writer, err) < 0) {
        return -1;
    }
    slot = (writer->first + writer->n_flying++) % HASHES_MAX;
    if (!writer->batches[slot]) {
        writer->batches[slot] = xmalloc(sizeof(*batch));
    }
    batch = writer->batches[slot];
    batch->job = (struct pool_job){.fn = hash_files, .arg = batch};
    batch->root_fd = writer->root_fd;
    batch->kinds = writer->kinds;
    batch->first = writer->n_sent;
    batch->n = writer->files.n - writer->n_sent;
    memcpy(batch->files, writer->files.items + batch->first, batch->n * sizeof(batch->files[0]));
    writer->n_sent = writer->files.n;
    writer->waiting_bytes = 0;
    pool_submit(writer->pool, &batch->job);
    return 0;
}

int writer_begin(struct unpack_writer *writer, const char *path, bool is_executable,
                 uint64_t size_bytes, struct err *err)
{
    mode_t mode = is_executable ? 0755 : 0644;
    ASSERT(writer->fd < 0);
    writer->is_large = size_bytes > BATCH_BYTES;
    /* A large file has its digests by itself: what waits before it goes first. */
    if (writer->is_large) {
        if (writer->n_sent < writer->files.n && send(writer, err) < 0) {
            return -1;
        }
        digest_start(&writer->digest, writer->kinds);
    }
    writer->fd = beneath_open(writer->root_fd, path, O_WRONLY | O_CREAT | O_EXCL, mode);
    if (writer->fd < 0 && errno == EEXIST) {
        return err_set(err, ERR_INTEGRITY, "%.300s: another archive has that file, too", path);
    }
    /* Unlike open, this ignores the umask. */
    if (writer->fd < 0 || fchmod(writer->fd, mode) < 0) {
        return fail_path(err, "create", path);
    }
    VEC_PUSH(&writer->files, (struct written){.path = path});
    return 0;
}

int writer_data(struct unpack_writer *writer, const void *ptr, size_t len, struct err *err)
{
    if (writer->is_large) {
        digest_update(&writer->digest, ptr, len);
    }
    writer->waiting_bytes += len;
    return fs_write_all(writer->fd, ptr, len, writer->files.items[writer->files.n - 1].path, err);
}

int writer_end(struct unpack_writer *writer, struct err *err)
{
    struct written *file = &writer->files.items[writer->files.n - 1];
    int closing = take_fd(&writer->fd);
    if (close(closing) < 0) {
        return fail_path(err, "write", file->path);
    }
    if (writer->is_large) {
        file->value = digest_finish(&writer->digest);
        writer->n_sent = writer->files.n;
        writer->waiting_bytes = 0;
        return 0;
    }
    return writer->waiting_bytes >= BATCH_BYTES || writer->files.n - writer->n_sent == BATCH_FILES
               ? send(writer, err)
               : 0;
}

int writer_finish(struct unpack_writer *writer, struct err *err)
{
    ASSERT(writer->fd < 0);
    if (writer->n_sent < writer->files.n && send(writer, err) < 0) {
        return -1;
    }
    while (writer->n_flying > 0) {
        if (end_oldest(writer, err) < 0) {
            return -1;
        }
    }
    return 0;
}
