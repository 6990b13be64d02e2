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

#define BATCH_BYTES 1048576u /* a batch is sent at the end of a file once it has so many, */
#define BATCH_OPS   256u     /* or so many files; */
#define CUT_BYTES   4194304u /* within a file, at so many */

struct write_piece {
    const void *ptr;
    size_t len;
};

/* A file that goes over more than one batch. Only one batch at a time works on it. */
struct write_span {
    struct write_span *next;
    int fd;
    struct digest digest;
};

struct write_op {
    size_t file; /* in writer.files */
    const char *path;
    size_t n_pieces;
    struct write_span *span; /* or NULL: begins and ends in this batch */
    bool is_first, is_last, is_executable;
    struct digest_value value;
};

struct write_batch {
    struct pool_job job;
    struct unpack_writer *writer; /* borrowed: root_fd, kinds and is_stopping alone */
    VEC(struct write_op) ops;
    VEC(struct write_piece) pieces;
    VEC(struct unpack_block *) blocks;
    struct digest digest; /* of files that end here */
    uint8_t *copies;      /* owned; CUT_BYTES */
    size_t n_copied;
    size_t bytes;
};

/* --- on the pool -------------------------------------------------------------------------------------------------------------- */

static int fail_path(struct err *err, const char *what, const char *path)
{
    return err_set(err, err_code_of_errno(errno), "%s %.300s: %s", what, path,
                   err_errno_text(errno));
}

static int open_file(const struct unpack_writer *writer, const struct write_op *op, int *fd,
                     struct err *err)
{
    mode_t mode = op->is_executable ? 0755 : 0644;
    *fd = beneath_open(writer->root_fd, op->path, O_WRONLY | O_CREAT | O_EXCL, mode);
    if (*fd < 0 && errno == EEXIST) {
        return err_set(err, ERR_INTEGRITY, "%.300s: another archive has that file, too", op->path);
    }
    /* Unlike open, this ignores the umask. */
    return *fd < 0 || fchmod(*fd, mode) < 0 ? fail_path(err, "create", op->path) : 0;
}

static int close_file(const struct write_op *op, int *fd, struct err *err)
{
    int closing = take_fd(fd);
    return close(closing) < 0 ? fail_path(err, "write", op->path) : 0;
}

static int write_op(struct write_batch *batch, struct write_op *op,
                    const struct write_piece *pieces, struct err *err)
{
    CLEANUP(fd) int own_fd = -1;
    int *fd = op->span ? &op->span->fd : &own_fd;
    struct digest *digest = op->span ? &op->span->digest : &batch->digest;
    if (op->is_first) {
        if (open_file(batch->writer, op, fd, err) < 0) {
            return -1;
        }
        digest_start(digest, batch->writer->kinds);
    }
    for (size_t idx = 0; idx < op->n_pieces; idx++) {
        digest_update(digest, pieces[idx].ptr, pieces[idx].len);
        if (fs_write_all(*fd, pieces[idx].ptr, pieces[idx].len, op->path, err) < 0) {
            return -1;
        }
    }
    if (op->is_last) {
        op->value = digest_finish(digest);
        return close_file(op, fd, err);
    }
    return 0;
}

/* A file that begins and ends in the batch, being hashed in one of two lanes. */
struct write_lane {
    struct sha256_lane sha256;
    struct write_op *op; /* NULL: nothing is left for it */
    const struct write_piece *pieces;
    size_t piece, offset;
};

static bool is_whole(const struct write_op *op)
{
    return op->is_first && op->is_last && !op->span;
}

/* The next whole file after *ret_idx, and its pieces. */
static void next_whole(struct write_batch *batch, struct write_lane *lane, size_t *idx,
                       size_t *piece)
{
    lane->op = NULL;
    while (*idx < batch->ops.n && !lane->op) {
        struct write_op *op = &batch->ops.items[*idx];
        if (is_whole(op)) {
            lane->op = op;
            lane->pieces = batch->pieces.items + *piece;
            lane->piece = lane->offset = 0;
            sha256_lane_start(&lane->sha256);
        }
        *piece += op->n_pieces;
        *idx += 1;
    }
}

static size_t left_in_piece(const struct write_lane *lane)
{
    return lane->op && lane->piece < lane->op->n_pieces
               ? lane->pieces[lane->piece].len - lane->offset
               : 0;
}

static const uint8_t *lane_at(const struct write_lane *lane)
{
    return (const uint8_t *)lane->pieces[lane->piece].ptr + lane->offset;
}

static void lane_move(struct write_lane *lane, size_t n)
{
    lane->offset += n;
    if (lane->offset == lane->pieces[lane->piece].len) {
        lane->offset = 0;
        lane->piece++;
    }
}

/* Its bytes are still in the cache. */
static int write_whole(struct write_batch *batch, struct write_lane *lane, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    struct write_op *op = lane->op;
    sha256_lane_finish(&lane->sha256, op->value.sha256);
    if (open_file(batch->writer, op, &fd, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < op->n_pieces; idx++) {
        if (fs_write_all(fd, lane->pieces[idx].ptr, lane->pieces[idx].len, op->path, err) < 0) {
            return -1;
        }
    }
    return close_file(op, &fd, err);
}

static bool is_stopped(const struct write_batch *batch, const atomic_bool *is_cancelled)
{
    return atomic_load(is_cancelled) || atomic_load(&batch->writer->is_stopping);
}

/* What both lanes have in one piece; the last file alone. */
static void hash_some(struct write_lane *lanes, const size_t *left)
{
    size_t n = left[0] < left[1] ? left[0] : left[1];
    struct write_lane *last = left[0] ? &lanes[0] : &lanes[1];
    if (n > 0) {
        sha256_pair_add(&lanes[0].sha256, lane_at(&lanes[0]), n, &lanes[1].sha256,
                        lane_at(&lanes[1]), n);
        lane_move(&lanes[0], n);
        lane_move(&lanes[1], n);
    } else {
        n = left_in_piece(last);
        sha256_lane_add(&last->sha256, lane_at(last), n);
        lane_move(last, n);
    }
}

/* Two files at a time. */
static int write_pairs(struct write_batch *batch, const atomic_bool *is_cancelled, struct err *err)
{
    struct write_lane lanes[2];
    size_t idx = 0, piece = 0;
    next_whole(batch, &lanes[0], &idx, &piece);
    next_whole(batch, &lanes[1], &idx, &piece);
    while (lanes[0].op || lanes[1].op) {
        size_t left[2] = {left_in_piece(&lanes[0]), left_in_piece(&lanes[1])};
        struct write_lane *done = lanes[0].op && left[0] == 0   ? &lanes[0]
                                  : lanes[1].op && left[1] == 0 ? &lanes[1]
                                                                : NULL;
        if (!done) {
            hash_some(lanes, left);
            continue;
        }
        if (is_stopped(batch, is_cancelled)) {
            return err_set(err, ERR_INTERRUPTED, "unpacking was stopped");
        }
        if (write_whole(batch, done, err) < 0) {
            return -1;
        }
        next_whole(batch, done, &idx, &piece);
    }
    return 0;
}

static int run_batch(void *arg, const atomic_bool *is_cancelled, struct err *err)
{
    struct write_batch *batch = arg;
    bool has_pairs = batch->writer->kinds == DIGEST_SHA256 && sha256_pair_is_there();
    size_t piece = 0;
    for (size_t idx = 0; idx < batch->ops.n; idx++) {
        struct write_op *op = &batch->ops.items[idx];
        if (is_stopped(batch, is_cancelled)) {
            return err_set(err, ERR_INTERRUPTED, "unpacking was stopped");
        }
        if (!(has_pairs && is_whole(op)) &&
            write_op(batch, op, batch->pieces.items + piece, err) < 0) {
            return -1;
        }
        piece += op->n_pieces;
    }
    return has_pairs ? write_pairs(batch, is_cancelled, err) : 0;
}

/* --- the owner's side --------------------------------------------------------------------------------------------------------- */

static struct write_batch *batch_new(struct unpack_writer *writer)
{
    struct write_batch *batch = xcalloc(1, sizeof(*batch));
    batch->writer = writer;
    return batch;
}

static void batch_free(struct write_batch *batch)
{
    if (!batch) {
        return;
    }
    VEC_RELEASE(&batch->ops);
    VEC_RELEASE(&batch->pieces);
    VEC_RELEASE(&batch->blocks);
    digest_release(&batch->digest);
    free(batch->copies);
    free(batch);
}

static void span_free(struct unpack_writer *writer, struct write_span *span)
{
    struct write_span **at = &writer->spans;
    while (*at != span) {
        at = &(*at)->next;
    }
    *at = span->next;
    fd_close(&span->fd);
    digest_release(&span->digest);
    free(span);
}

void writer_init(struct unpack_writer *writer, int root_fd, unsigned kinds, struct arena *arena,
                 struct pool *pool)
{
    *writer =
        (struct unpack_writer){.root_fd = root_fd, .kinds = kinds, .arena = arena, .pool = pool};
    writer->filling = batch_new(writer);
}

/* Waits for the oldest; takes its digests over; makes it ready for use. */
static int end_oldest(struct unpack_writer *writer, struct err *err)
{
    struct write_batch *batch = writer->batches[writer->first];
    int result = pool_wait(writer->pool, &batch->job, err);
    for (size_t idx = 0; idx < batch->blocks.n; idx++) {
        batch->blocks.items[idx]->n_refs--;
    }
    for (size_t idx = 0; result == 0 && idx < batch->ops.n; idx++) {
        struct write_op *op = &batch->ops.items[idx];
        if (op->is_last) {
            memcpy(writer->files.items[op->file].sha256, op->value.sha256, SHA256_BYTES);
            memcpy(writer->files.items[op->file].md5, op->value.md5, MD5_BYTES);
            if (op->span) {
                span_free(writer, op->span);
            }
        }
    }
    batch->ops.n = batch->pieces.n = batch->blocks.n = 0;
    batch->n_copied = batch->bytes = 0;
    writer->first = (writer->first + 1) % BATCHES_MAX;
    writer->n_flying--;
    return result;
}

void writer_release(struct unpack_writer *writer)
{
    struct err ignored = {0};
    atomic_store(&writer->is_stopping, true);
    while (writer->n_flying > 0) {
        if (end_oldest(writer, &ignored) < 0) {
            ignored = (struct err){0};
        }
    }
    for (size_t idx = 0; idx < BATCHES_MAX; idx++) {
        batch_free(writer->batches[idx]);
    }
    batch_free(writer->filling);
    while (writer->spans) {
        span_free(writer, writer->spans);
    }
    VEC_RELEASE(&writer->files);
}

/* The batch that is being filled goes to the pool. */
static int send(struct unpack_writer *writer, struct err *err)
{
    struct write_batch *batch = writer->filling;
    size_t slot;
    /* What continues a file waits for what began it. */
    if (!batch->ops.items[0].is_first) {
        while (writer->n_flying > 0) {
            if (end_oldest(writer, err) < 0) {
                return -1;
            }
        }
    }
    if (writer->n_flying == BATCHES_MAX && end_oldest(writer, err) < 0) {
        return -1;
    }
    slot = (writer->first + writer->n_flying) % BATCHES_MAX;
    writer->filling = writer->batches[slot] ? writer->batches[slot] : batch_new(writer);
    writer->batches[slot] = batch;
    writer->n_flying++;
    batch->job = (struct pool_job){.fn = run_batch, .arg = batch};
    pool_submit(writer->pool, &batch->job);
    return 0;
}

static struct write_op *add_op(struct unpack_writer *writer, bool is_first)
{
    size_t file = writer->files.n - 1;
    VEC_PUSH(&writer->filling->ops, (struct write_op){.file = file,
                                                      .path = writer->files.items[file].path,
                                                      .span = writer->span,
                                                      .is_first = is_first,
                                                      .is_executable = writer->is_executable});
    return &writer->filling->ops.items[writer->filling->ops.n - 1];
}

int writer_begin(struct unpack_writer *writer, const char *path, bool is_executable,
                 struct err *err)
{
    struct write_batch *batch = writer->filling;
    ASSERT(!writer->is_in_file);
    if ((batch->bytes >= BATCH_BYTES || batch->ops.n >= BATCH_OPS) && send(writer, err) < 0) {
        return -1;
    }
    VEC_PUSH(&writer->files, (struct written){.path = path});
    writer->is_in_file = true;
    writer->is_executable = is_executable;
    writer->span = NULL;
    add_op(writer, true);
    return 0;
}

/* The file goes on in another batch. */
static int cut(struct unpack_writer *writer, struct err *err)
{
    struct write_op *op = &writer->filling->ops.items[writer->filling->ops.n - 1];
    if (!writer->span) {
        writer->span = xcalloc(1, sizeof(*writer->span));
        writer->span->fd = -1;
        writer->span->next = writer->spans;
        writer->spans = writer->span;
        op->span = writer->span;
    }
    if (send(writer, err) < 0) {
        return -1;
    }
    add_op(writer, false);
    return 0;
}

static void hold_block(struct write_batch *batch, struct unpack_block *block)
{
    if (batch->blocks.n == 0 || batch->blocks.items[batch->blocks.n - 1] != block) {
        VEC_PUSH(&batch->blocks, block);
        block->n_refs++;
    }
}

int writer_data(struct unpack_writer *writer, const void *ptr, size_t len,
                struct unpack_block *block, struct err *err)
{
    struct write_batch *batch;
    ASSERT(writer->is_in_file && len <= CUT_BYTES);
    if (writer->filling->bytes + len > CUT_BYTES && cut(writer, err) < 0) {
        return -1;
    }
    batch = writer->filling;
    if (block) {
        hold_block(batch, block);
    } else {
        if (!batch->copies) {
            batch->copies = xmalloc(CUT_BYTES);
        }
        memcpy(batch->copies + batch->n_copied, ptr, len);
        ptr = batch->copies + batch->n_copied;
        batch->n_copied += len;
    }
    VEC_PUSH(&batch->pieces, (struct write_piece){ptr, len});
    batch->ops.items[batch->ops.n - 1].n_pieces++;
    batch->bytes += len;
    return 0;
}

int writer_end(struct unpack_writer *writer, struct err *err)
{
    struct write_batch *batch = writer->filling;
    ASSERT(writer->is_in_file);
    batch->ops.items[batch->ops.n - 1].is_last = true;
    writer->is_in_file = false;
    writer->span = NULL;
    return batch->bytes >= BATCH_BYTES ? send(writer, err) : 0;
}

int writer_wait_one(struct unpack_writer *writer, bool *ret_waited, struct err *err)
{
    *ret_waited = true;
    if (writer->n_flying == 0 && writer->filling->ops.n > 0) {
        if (writer->is_in_file ? cut(writer, err) < 0 : send(writer, err) < 0) {
            return -1;
        }
    }
    if (writer->n_flying == 0) {
        *ret_waited = false;
        return 0;
    }
    return end_oldest(writer, err);
}

int writer_finish(struct unpack_writer *writer, struct err *err)
{
    ASSERT(!writer->is_in_file);
    if (writer->filling->ops.n > 0 && send(writer, err) < 0) {
        return -1;
    }
    while (writer->n_flying > 0) {
        if (end_oldest(writer, err) < 0) {
            return -1;
        }
    }
    return 0;
}
