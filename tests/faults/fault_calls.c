/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOAD: the call of number REPERF_FAULT_AT (from 1) of kind REPERF_FAULT_CALL (open, write, fsync, rename, mkdir) on a path
   that begins with REPERF_FAULT_BELOW and ends with REPERF_FAULT_END (where that is set) fails once with errno REPERF_FAULT_ERRNO,
   in whichever process makes it first; the file REPERF_FAULT_DONE is then created. With REPERF_FAULT_SIGNAL, a number, it does not
   fail: the process first sends itself that signal. Without REPERF_FAULT_AT nothing fails and REPERF_FAULT_DONE gets a byte a
   call. REPERF_FAULT_RECEIVE is the size in bytes of the receive buffer of each connection: what a killed process had not read
   is then no more than that, however late it was. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long n_calls;

static bool is_below(const char *path)
{
    const char *top = getenv("REPERF_FAULT_BELOW");
    const char *end = getenv("REPERF_FAULT_END");
    size_t len = strlen(path);
    size_t end_len = end ? strlen(end) : 0;
    return top && strncmp(path, top, strlen(top)) == 0 && len >= end_len &&
           memcmp(path + len - end_len, end ? end : "", end_len) == 0;
}

static bool is_fd_below(int fd)
{
    char link[64];
    char path[PATH_MAX];
    ssize_t len;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    len = readlink(link, path, sizeof(path) - 1);
    if (len <= 0) {
        return false;
    }
    path[len] = '\0';
    return is_below(path);
}

/* On a path of ours: sets the mark, by system calls alone. */
static bool fails(const char *call)
{
    const char *wanted = getenv("REPERF_FAULT_CALL");
    const char *at = getenv("REPERF_FAULT_AT");
    const char *mark = getenv("REPERF_FAULT_DONE");
    const char *error = getenv("REPERF_FAULT_ERRNO");
    const char *signal_no = getenv("REPERF_FAULT_SIGNAL");
    long fd;
    if (!wanted || !mark || strcmp(wanted, call) != 0) {
        return false;
    }
    if (!at) {
        fd = syscall(SYS_openat, AT_FDCWD, mark, O_WRONLY | O_CREAT | O_APPEND, 0600);
        (void)syscall(SYS_write, fd, "x", 1);
        (void)syscall(SYS_close, fd);
        return false;
    }
    if (atomic_fetch_add(&n_calls, 1) + 1 != strtol(at, NULL, 10)) {
        return false;
    }
    fd = syscall(SYS_openat, AT_FDCWD, mark, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0) {
        return false; /* it was elsewhere already */
    }
    (void)syscall(SYS_close, fd);
    if (signal_no) {
        (void)syscall(SYS_kill, getpid(), (int)strtol(signal_no, NULL, 10));
        return false;
    }
    errno = error && strcmp(error, "EIO") == 0      ? EIO
            : error && strcmp(error, "EMFILE") == 0 ? EMFILE
                                                    : ENOSPC;
    return true;
}

static mode_t mode_of(int flags, va_list args)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

static int open_at(int at, const char *path, int flags, mode_t mode)
{
    if ((path[0] == '/' ? is_below(path) : at != AT_FDCWD && is_fd_below(at)) && fails("open")) {
        return -1;
    }
    return (int)syscall(SYS_openat, at, path, flags, mode);
}

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode_t mode = mode_of(flags, args);                                                        \
        va_end(args);                                                                              \
        return open_at(AT_FDCWD, path, flags, mode);                                               \
    }
#define OPENAT(name)                                                                               \
    int name(int at, const char *path, int flags, ...)                                             \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode_t mode = mode_of(flags, args);                                                        \
        va_end(args);                                                                              \
        return open_at(at, path, flags, mode);                                                     \
    }
OPEN(open)
OPEN(open64)
OPEN(__open_2)
OPEN(__open64_2)
OPENAT(openat)
OPENAT(openat64)
OPENAT(__openat_2)
OPENAT(__openat64_2)

int mkostemp(char *path, int flags)
{
    static int (*next)(char *, int);
    next = next ? next : (int (*)(char *, int))dlsym(RTLD_NEXT, "mkostemp");
    return is_below(path) && fails("open") ? -1 : next(path, flags);
}

int mkostemp64(char *path, int flags)
{
    return mkostemp(path, flags);
}

char *mkdtemp(char *path)
{
    static char *(*next)(char *);
    next = next ? next : (char *(*)(char *))dlsym(RTLD_NEXT, "mkdtemp");
    return is_below(path) && fails("mkdir") ? NULL : next(path);
}

ssize_t write(int fd, const void *ptr, size_t len)
{
    return is_fd_below(fd) && fails("write") ? -1 : syscall(SYS_write, fd, ptr, len);
}

ssize_t pwrite(int fd, const void *ptr, size_t len, off_t at)
{
    return is_fd_below(fd) && fails("write") ? -1 : syscall(SYS_pwrite64, fd, ptr, len, at);
}

ssize_t pwrite64(int fd, const void *ptr, size_t len, off64_t at)
{
    return pwrite(fd, ptr, len, at);
}

int fsync(int fd)
{
    return is_fd_below(fd) && fails("fsync") ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return is_fd_below(fd) && fails("fsync") ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int syncfs(int fd)
{
    return is_fd_below(fd) && fails("fsync") ? -1 : (int)syscall(SYS_syncfs, fd);
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    bool is_ours = to[0] == '/' ? is_below(to) : to_at != AT_FDCWD && is_fd_below(to_at);
    return is_ours && fails("rename")
               ? -1
               : (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
    return renameat2(from_at, from, to_at, to, 0);
}

int rename(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int mkdirat(int at, const char *path, mode_t mode)
{
    bool is_ours = path[0] == '/' ? is_below(path) : at != AT_FDCWD && is_fd_below(at);
    return is_ours && fails("mkdir") ? -1 : (int)syscall(SYS_mkdirat, at, path, mode);
}

int mkdir(const char *path, mode_t mode)
{
    return mkdirat(AT_FDCWD, path, mode);
}

int connect(int fd, const struct sockaddr *address, socklen_t len)
{
    const char *receive = getenv("REPERF_FAULT_RECEIVE");
    int n_bytes = receive ? (int)strtol(receive, NULL, 10) : 0;
    if (n_bytes) {
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &n_bytes, sizeof(n_bytes));
    }
    return (int)syscall(SYS_connect, fd, address, len);
}
