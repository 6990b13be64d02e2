/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing the files of a job's folder. */
#include "base/base.h"

#include "node/job.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/publish.h"

#define SMALL_MAX    256
#define STAT_MAX     1024
#define STAT_STATE   0 /* words of /proc/PID/stat after the name, from 0 */
#define STAT_PARENT  1
#define STAT_SESSION 3 /* Source: proc(5), fields 3, 4, 6 and 22 */
#define STAT_START   19
#define CLAIM_OLD_NS (60 * NS_PER_S)
#define PROBE_BYTES  16384

bool job_read_small(const char *path, char *ret_text, size_t size)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, ret_text, size - 1);
    if (len < 0) {
        return false;
    }
    while (len > 0 && ret_text[len - 1] == '\n') {
        len--;
    }
    ret_text[len] = '\0';
    return true;
}

static bool read_in(const char *dir, const char *name, char *ret_text, size_t size)
{
    char path[JOB_PATH_BYTES];
    int len = snprintf(path, sizeof(path), "%s/%s", dir, name);
    return len > 0 && (size_t)len < sizeof(path) && job_read_small(path, ret_text, size);
}

bool job_read_boot_id(char *ret_text, size_t size)
{
    return job_read_small("/proc/sys/kernel/random/boot_id", ret_text, size);
}

bool job_proc_stat(pid_t pid, struct proc_stat *ret_stat)
{
    char path[64], text[STAT_MAX];
    struct proc_stat stat = {0};
    struct str word;
    const char *after;
    int64_t number;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (!job_read_small(path, text, sizeof(text)) || !(after = strrchr(text, ')')) ||
        after[1] != ' ') {
        return false;
    }
    struct str rest = str_of(after + 2);
    for (int at = 0; at <= STAT_START; at++) {
        if (!str_next(&rest, ' ', &word) || !word.len) {
            return false;
        }
        if (at == STAT_STATE) {
            stat.state = word.ptr[0];
        } else if (at == STAT_PARENT || at == STAT_SESSION || at == STAT_START) {
            if (str_to_i64(word, 0, INT64_MAX, &number, ERR_IGNORED) < 0) {
                return false;
            }
            stat.parent = at == STAT_PARENT ? (pid_t)number : stat.parent;
            stat.session = at == STAT_SESSION ? (pid_t)number : stat.session;
            stat.start_ticks = (uint64_t)number;
        }
    }
    *ret_stat = stat;
    return true;
}

bool job_read_pid(const char *dir, struct job_pid *ret_pid)
{
    char text[SMALL_MAX], boot[SMALL_MAX];
    struct str pid, start;
    int64_t number, ticks;
    if (!read_in(dir, "pid", text, sizeof(text))) {
        return false;
    }
    struct str rest = str_of(text);
    if (!str_next(&rest, ' ', &pid) || !str_next(&rest, ' ', &start) ||
        str_to_i64(pid, 1, INT32_MAX, &number, ERR_IGNORED) < 0 ||
        str_to_i64(start, 0, INT64_MAX, &ticks, ERR_IGNORED) < 0) {
        *ret_pid = (struct job_pid){0}; /* the file exists, but names no process */
        return true;
    }
    *ret_pid = (struct job_pid){.pid = (pid_t)number,
                                .start_ticks = (uint64_t)ticks,
                                .is_of_boot =
                                    job_read_boot_id(boot, sizeof(boot)) && str_eq_z(rest, boot)};
    return true;
}

static bool is_alive(const struct job_pid *wrapper)
{
    struct proc_stat stat;
    return wrapper->pid && wrapper->is_of_boot && job_proc_stat(wrapper->pid, &stat) &&
           stat.start_ticks == wrapper->start_ticks && stat.state != 'Z';
}

bool job_read_status(const char *dir, int *ret_exit_status)
{
    char text[SMALL_MAX];
    int64_t status;
    if (!read_in(dir, "status", text, sizeof(text)) || strncmp(text, "exit ", 5) != 0 ||
        str_to_i64(str_of(text + 5), 0, 255, &status, ERR_IGNORED) < 0) {
        return false;
    }
    *ret_exit_status = (int)status;
    return true;
}

void job_look(const char *dir, struct job_look *ret_look)
{
    struct job_look look = {.state = JOB_ABSENT};
    char claim[JOB_PATH_BYTES];
    struct stat info;
    struct timespec now;
    if (job_read_pid(dir, &look.wrapper)) {
        look.state = is_alive(&look.wrapper) ? JOB_RUNNING : JOB_LOST;
    } else {
        snprintf(claim, sizeof(claim), "%s/claim", dir);
        if (stat(claim, &info) == 0) {
            clock_gettime(CLOCK_REALTIME, &now);
            look.state = llabs(now.tv_sec - info.st_mtim.tv_sec) * NS_PER_S > CLAIM_OLD_NS
                             ? JOB_LOST
                             : JOB_RUNNING; /* from later than now: the clock was set back */
        }
    }
    /* Read again last: a wrapper that was alive a moment ago may have written it since. */
    if (job_read_status(dir, &look.exit_status)) {
        look.state = JOB_ENDED;
    }
    *ret_look = look;
}

static int fail(struct err *err, const char *path)
{
    return err_set(err, err_code_of_errno(errno), "%s: %s", path, err_errno_text(errno));
}

int job_probe(const char *dir, struct err *err)
{
    static const char ZEROS[PROBE_BYTES];
    char path[JOB_PATH_BYTES];
    CLEANUP(fd) int fd = -1;
    snprintf(path, sizeof(path), "%s/.probe.%d", dir, (int)getpid());
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        return fail(err, path);
    }
    int rc = fs_write_all(fd, ZEROS, sizeof(ZEROS), path, err);
    (void)unlink(path);
    return rc;
}

/* first_fd: a file that must be on the disk before; -1: there is none. */
static int put(const char *path, struct str text, bool is_synced, int first_fd, struct err *err)
{
    char part[JOB_PATH_BYTES];
    CLEANUP(fd) int fd = -1;
    /* A start whose channel was lost may still be finishing when it is requested again: each uses a name of its own. */
    int len = snprintf(part, sizeof(part), "%s.part.%d", path, (int)getpid());
    if (len < 0 || (size_t)len >= sizeof(part)) {
        return err_set(err, ERR_IO, "%s: the path is too long", path);
    }
    fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        return fail(err, part);
    }
    if (fs_write_all(fd, text.ptr, text.len, part, err) < 0) {
        (void)unlink(part);
        return -1;
    }
    if (first_fd >= 0) {
        /* Begun for this one, too: then one commit of the file system serves both. */
        (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
    if ((first_fd >= 0 && publish_data(first_fd, path, err) < 0) ||
        (is_synced && publish_file(fd, part, path, err) < 0)) {
        (void)unlink(part);
        return -1;
    }
    if (!is_synced && rename(part, path) < 0) {
        int failed = fail(err, path);
        (void)unlink(part);
        return failed;
    }
    return 0;
}

int job_put(const char *path, struct str text, bool is_synced, struct err *err)
{
    return put(path, text, is_synced, -1, err);
}

int job_put_after(const char *path, struct str text, int first_fd, struct err *err)
{
    return put(path, text, true, first_fd, err);
}
