/* SPDX-License-Identifier: Apache-2.0 */
/* Beside the objects of reperf-node, which is linked statically, so that nothing can be loaded before it: a node to which happens what a
   test cannot do to the machine. It is linked with --wrap for these functions; since this program is put into the work folder's bin, the
   files are found beside that.
   clock: the seconds by which its wall clock is off.
   cut: the number of the removal, from 1, at which the process stops; then it is removed, and "stopped" has the process's number. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATH_BYTES 4096

int __real_clock_gettime(clockid_t id, struct timespec *ret_now);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret_now);
time_t __wrap_time(time_t *ret_now);
int __real_remove(const char *path);
int __wrap_remove(const char *path);

/* WORK/NAME, of WORK/bin/PROGRAM. */
static void path_of(const char *name, char ret_path[PATH_BYTES])
{
    ssize_t len = readlink("/proc/self/exe", ret_path, PATH_BYTES - 32);
    char *end;
    ret_path[len > 0 ? len : 0] = '\0';
    for (int up = 0; up < 2 && (end = strrchr(ret_path, '/')); up++) {
        *end = '\0';
    }
    snprintf(ret_path + strlen(ret_path), 32, "/%s", name);
}

static long number_in(const char *name)
{
    char path[PATH_BYTES], text[32] = "";
    path_of(name, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0) {
        close(fd);
    }
    return len > 0 ? strtol(text, NULL, 10) : 0;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *ret_now)
{
    int rc = __real_clock_gettime(id, ret_now);
    ret_now->tv_sec += id == CLOCK_REALTIME ? number_in("clock") : 0;
    return rc;
}

time_t __wrap_time(time_t *ret_now)
{
    struct timespec now;
    (void)__wrap_clock_gettime(CLOCK_REALTIME, &now);
    if (ret_now) {
        *ret_now = now.tv_sec;
    }
    return now.tv_sec;
}

int __wrap_remove(const char *path)
{
    static long n;
    if (++n == number_in("cut")) {
        char cut[PATH_BYTES], stopped[PATH_BYTES];
        path_of("cut", cut);
        path_of("stopped", stopped);
        int fd = open(cut, O_WRONLY | O_TRUNC | O_CLOEXEC);
        if (fd < 0 || dprintf(fd, "%d\n", (int)getpid()) < 0 || rename(cut, stopped) < 0) {
            _exit(1);
        }
        (void)raise(SIGSTOP);
    }
    return __real_remove(path);
}
