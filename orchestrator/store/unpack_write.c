/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/unpack_write.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fs.h"

#define BLOCK_BYTES (1u << 20)
#define BATCH_BYTES (4u << 20) /* a batch is sent once it has so many, */
#define BATCH_FILES 256u       /* or so many files */

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
    if (fs_fill(reader->fd, block, BLOCK_BYTES, reader->name, &len, err) < 0) {
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
    struct tree_batch of;
    size_t first; /* of writer->files, which moves while this runs */
    struct tree_file files[BATCH_FILES];
    struct digest_value values[BATCH_FILES];
};

static void keep_value(void *ctx, size_t idx, const struct digest_value *value)
{
    ((struct hash_batch *)ctx)->values[idx] = *value;
}

static int hash_files(void *arg, const atomic_bool *is_cancelled, struct err *err)
{
    return tree_batch_digest(&((struct hash_batch *)arg)->of, is_cancelled, err);
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
    for (size_t idx = 0; result == 0 && idx < batch->of.n; idx++) {
        writer->files.items[batch->first + idx].value = batch->values[idx];
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
    if (writer->n_flying == HASHES_MAX && end_oldest(writer, err) < 0) {
        return -1;
    }
    size_t slot = (writer->first + writer->n_flying++) % HASHES_MAX;
    if (!writer->batches[slot]) {
        writer->batches[slot] = xmalloc(sizeof(*batch));
    }
    batch = writer->batches[slot];
    batch->job = (struct pool_job){.fn = hash_files, .arg = batch};
    batch->first = writer->n_sent;
    batch->of = (struct tree_batch){.root_fd = writer->root_fd,
                                    .files = batch->files,
                                    .n = writer->files.n - writer->n_sent,
                                    .kinds = writer->kinds,
                                    .on_value = keep_value,
                                    .ctx = batch};
    for (size_t idx = 0; idx < batch->of.n; idx++) {
        batch->files[idx].path = writer->files.items[batch->first + idx].path;
    }
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
        return err_errno(err, "create", path);
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
        return err_errno(err, "write", file->path);
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
