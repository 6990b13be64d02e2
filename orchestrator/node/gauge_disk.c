/* SPDX-License-Identifier: Apache-2.0 */
/* The disk of the work folder: sequential writes and reads past the page cache, and the time until a written block is safe. The
   file is unlinked as soon as it is open, so that nothing is left, however this ends. */
#include "base/base.h"

#include "node/gauge.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fs.h"

#define BLOCK_BYTES  (1u << 20) /* of one request */
#define PAGE_BYTES   4096
#define SYNCS        10 /* of one repeat */
#define SHARE_MAX    4  /* of the free space at most one part in this many is written */
#define BYTE_PATTERN 0x5a

struct disk {
    struct gauge *gauge;
    int fd;
    char *block; /* aligned, BLOCK_BYTES */
    int64_t bytes;
    size_t n_repeats;
};

static int fail(const char *what, struct err *err)
{
    return err_set(err, ERR_IO, "%s: %s", what, err_errno_text(errno));
}

/* Whether the whole block was transferred; less means a truncated file. */
static bool is_whole(ssize_t done, size_t asked)
{
    if (done >= 0 && (size_t)done != asked) {
        errno = EIO;
    }
    return done >= 0 && (size_t)done == asked;
}

static int write_once(struct disk *disk, struct err *err)
{
    for (int64_t at = 0; at < disk->bytes; at += BLOCK_BYTES) {
        memcpy(disk->block, &at, sizeof(at)); /* no two blocks are the same */
        if (!is_whole(pwrite(disk->fd, disk->block, BLOCK_BYTES, at), BLOCK_BYTES)) {
            return fail("write", err);
        }
    }
    return fdatasync(disk->fd) < 0 ? fail("fdatasync", err) : 0;
}

static int read_once(struct disk *disk, struct err *err)
{
    for (int64_t at = 0; at < disk->bytes; at += BLOCK_BYTES) {
        int64_t found;
        if (!is_whole(pread(disk->fd, disk->block, BLOCK_BYTES, at), BLOCK_BYTES)) {
            return fail("read", err);
        }
        memcpy(&found, disk->block, sizeof(found));
        if (found != at) {
            return err_set(err, ERR_IO, "block %" PRId64 " is not what was written", at);
        }
    }
    return 0;
}

static int sync_often(struct disk *disk, struct err *err)
{
    for (int idx = 0; idx < SYNCS; idx++) {
        ssize_t done = pwrite(disk->fd, disk->block, PAGE_BYTES, (off_t)idx * PAGE_BYTES);
        if (!is_whole(done, PAGE_BYTES) || fdatasync(disk->fd) < 0) {
            return fail("write and fdatasync", err);
        }
    }
    return 0;
}

static void measure(struct disk *disk, const char *name, int64_t work,
                    int (*once)(struct disk *disk, struct err *err))
{
    int64_t ns[GAUGE_REPEATS_MAX];
    struct err err = {0};
    for (size_t idx = 0; idx < disk->n_repeats; idx++) {
        int64_t begin_ns = clock_now_ns();
        if (once(disk, &err) < 0) {
            gauge_lacks(disk->gauge, name, err.msg);
            return;
        }
        ns[idx] = clock_now_ns() - begin_ns;
    }
    gauge_add(disk->gauge, &(struct gauge_series){
                               .measure = name, .work = work, .ns = ns, .n = disk->n_repeats});
}

static int open_unnamed(const char *folder, int64_t bytes, int *ret_fd, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *path = arena_printf(&arena, "%s/.bench-%d", folder, (int)getpid());
    CLEANUP(fd) int fd = -1;
    struct statvfs space;
    if (statvfs(folder, &space) < 0) {
        return fail(folder, err);
    }
    if ((uint64_t)space.f_bavail * space.f_frsize / SHARE_MAX < (uint64_t)bytes) {
        return err_set(err, ERR_DISK,
                       "%s: %" PRIu64 " MiB are free, of which a quarter is taken at most", folder,
                       (uint64_t)space.f_bavail * space.f_frsize >> 20);
    }
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0600);
    if (fd < 0) {
        int why = errno;
        (void)unlink(path); /* some create the file and then refuse O_DIRECT */
        return err_set(err, ERR_IO, "%s: no direct I/O: %s", folder, err_errno_text(why));
    }
    if (unlink(path) < 0) {
        return fail(path, err);
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

void gauge_disk(struct gauge *gauge, const char *folder, int64_t bytes, size_t n_repeats)
{
    static const char *const NAMES[] = {"disk.write", "disk.read", "disk.fsync"};
    CLEANUP(fd) int fd = -1;
    struct err err = {0};
    struct disk disk = {.gauge = gauge, .n_repeats = n_repeats};
    disk.bytes = (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    disk.block =
        mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (disk.block == MAP_FAILED) {
        (void)!fail("mmap", &err);
    } else {
        memset(disk.block, BYTE_PATTERN, BLOCK_BYTES);
    }
    if (err.code != ERR_NONE || open_unnamed(folder, disk.bytes, &fd, &err) < 0) {
        for (size_t idx = 0; idx < ARRAY_LEN(NAMES); idx++) {
            gauge_lacks(gauge, NAMES[idx], err.msg);
        }
        return;
    }
    disk.fd = fd;
    measure(&disk, NAMES[0], disk.bytes, write_once);
    measure(&disk, NAMES[1], disk.bytes, read_once);
    measure(&disk, NAMES[2], SYNCS, sync_often);
    (void)munmap(disk.block, BLOCK_BYTES);
}
