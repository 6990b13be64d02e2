/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/dataset_headers.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/progress.h"
#include "codec/file_header.h"

struct header_pass {
    const struct headers_opts *opts;
    struct header_check *checks;
    struct progress progress;
};

typedef int (*header_fn)(const uint8_t *ptr, size_t len, bool deep, struct file_header *ret,
                         struct err *err);

static header_fn reader_of(enum file_format format)
{
    switch (format) {
    case FILE_JPEG:
        return file_header_jpeg;
    case FILE_PNG:
        return file_header_png;
    case FILE_HDF5:
        return file_header_hdf5;
    case FILE_TFRECORD:
        return file_header_tfrecord;
    case FILE_TEXT:
        return file_header_text;
    case FILE_ANY:
        break;
    }
    return NULL;
}

static bool is_odd(const struct dataset_group *group, const char *path)
{
    for (size_t idx = 0; idx < group->n_odd; idx++) {
        if (str_eq_z(group->odd_paths[idx], path)) {
            return true;
        }
    }
    return false;
}

static int check_facts(const struct headers_opts *opts, const struct dataset_group *group,
                       const struct file_header *header, struct err *err)
{
    if (group->width >= 0 && header->width != group->width) {
        return err_set(err, ERR_INTEGRITY, "expected a width of %lld, found %lld x %lld pixels",
                       (long long)group->width, (long long)header->width,
                       (long long)header->height);
    }
    if (group->height >= 0 && header->height != group->height) {
        return err_set(err, ERR_INTEGRITY, "expected a height of %lld, found %lld x %lld pixels",
                       (long long)group->height, (long long)header->width,
                       (long long)header->height);
    }
    if (group->channels >= 0 && header->channels != group->channels) {
        return err_set(err, ERR_INTEGRITY, "expected %lld channels, found %lld",
                       (long long)group->channels, (long long)header->channels);
    }
    if (!opts->ignores_lines && group->n_lines >= 0 && header->n_records != group->n_lines) {
        return err_set(err, ERR_INTEGRITY, "expected %lld lines, found %lld",
                       (long long)group->n_lines, (long long)header->n_records);
    }
    return 0;
}

static int check_bytes(const struct headers_opts *opts, struct header_check *check,
                       const uint8_t *ptr, size_t len, struct err *err)
{
    struct file_header header;
    if (reader_of(check->group->format)(ptr, len, opts->is_deep, &header, err) < 0) {
        return -1;
    }
    check->n_records = header.n_records;
    return check_facts(opts, check->group, &header, err);
}

/* The tree is the user's: a file that changes while it is mapped may end this program with SIGBUS, so only large files, or those of
   which most is skipped, are mapped. */
#define READ_MAX  (64u << 20)
#define HEAD_MAX  (128u << 10)
#define TAIL_SIZE 2u

/* For a JPEG the header and the end marker are enough, so most of a dataset is not read twice. False if they are inconclusive:
   then all of it is checked. */
static bool is_right_jpeg(const struct headers_opts *opts, struct header_check *check, int fd,
                          size_t len, struct arena *arena)
{
    struct err ignored = {0};
    if (len <= HEAD_MAX + TAIL_SIZE) {
        return false;
    }
    uint8_t *bytes = arena_array(arena, uint8_t, HEAD_MAX + TAIL_SIZE);
    return pread(fd, bytes, HEAD_MAX, 0) == HEAD_MAX &&
           pread(fd, bytes + HEAD_MAX, TAIL_SIZE, (off_t)(len - TAIL_SIZE)) == TAIL_SIZE &&
           check_bytes(opts, check, bytes, HEAD_MAX + TAIL_SIZE, &ignored) == 0;
}

static int check_mapped(const struct headers_opts *opts, struct header_check *check, int fd,
                        size_t len, struct err *err)
{
    void *bytes = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED) {
        return err_set(err, err_code_of_errno(errno), "%s", err_errno_text(errno));
    }
    int result = check_bytes(opts, check, bytes, len, err);
    munmap(bytes, len);
    return result;
}

static int check_file(const struct headers_opts *opts, struct header_check *check, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    enum file_format format = check->group->format;
    const char *path = fs_join(&arena, opts->folder, check->path);
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is_skipped = !opts->is_deep && (format == FILE_HDF5 || format == FILE_TFRECORD);
    struct str text;
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0) {
        return err_set(err, err_code_of_errno(errno), "%s", err_errno_text(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return err_set(err, ERR_INTEGRITY, "not a regular file");
    }
    size_t len = (size_t)info.st_size;
    if (!opts->is_deep && format == FILE_JPEG && is_right_jpeg(opts, check, fd, len, &arena)) {
        return 0;
    }
    if (len > READ_MAX || (is_skipped && len > 0)) {
        return check_mapped(opts, check, fd, len, err);
    }
    return fs_read(&arena, path, READ_MAX, &text, err) < 0
               ? -1
               : check_bytes(opts, check, (const uint8_t *)text.ptr, text.len, err);
}

static void check_one(const struct headers_opts *opts, struct header_check *check)
{
    struct err err = {0};
    check->n_records = -1;
    if (!check->group || !reader_of(check->group->format) || is_odd(check->group, check->path)) {
        return;
    }
    check->is_seen = true;
    if (check_file(opts, check, &err) < 0) {
        check->why = xstrdup(err.msg);
    }
}

static int check_nth(void *ctx, size_t idx, const atomic_bool *is_stopped UNUSED,
                     struct err *err UNUSED)
{
    struct header_pass *pass = ctx;
    check_one(pass->opts, &pass->checks[idx]);
    return 0;
}

static void show(void *ctx, size_t n_begun)
{
    struct header_pass *pass = ctx;
    progress_set(&pass->progress, n_begun);
}

int dataset_headers(const struct headers_opts *opts, struct header_check *checks, size_t n,
                    struct err *err)
{
    struct header_pass pass = {.opts = opts, .checks = checks};
    const struct pool_many many = {.pool = opts->pool,
                                   .n_threads = opts->n_threads ? opts->n_threads : 1,
                                   .n = n,
                                   .each = check_nth,
                                   .should_stop = opts->should_stop,
                                   .on_tick = show,
                                   .ctx = &pass};
    progress_start(&pass.progress, opts->clock, "headers", "files", n);
    int result = pool_many(&many, err);
    progress_end(&pass.progress);
    return result < 0 ? err_wrap(err, "verify") : 0;
}
