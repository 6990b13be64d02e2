/* SPDX-License-Identifier: Apache-2.0 */
/* WORK/lease: "RUN SECONDS UPTIME BOOT_ID USER@HOST", of the run that has the node; empty, or not there: none has. Whoever
   reads or writes it has it locked meanwhile. Its age is counted by the uptime, since a clock may be set in mid-run, by hours
   and either way; by the seconds since 1970 only where another machine, another boot or an earlier version wrote it. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "node/job.h"
#include "node/serve.h"

#define TEXT_MAX  1024
#define TTL_MAX_S (1 << 30)

static const char *path_of(struct arena *arena, const struct server *server)
{
    return arena_printf(arena, "%s/lease", server->work_folder);
}

/* Locked; -1: it cannot be opened. One that was removed while it was waited for is not it any more. */
static int open_lease(const char *path, int flags, struct err *err)
{
    for (;;) {
        CLEANUP(fd) int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0666);
        struct stat info;
        if (fd < 0 && errno == ELOOP) {
            return err_set(err, ERR_AUTH, "%s: expected a file, found a link; remove it", path);
        }
        if (fd < 0 || flock(fd, LOCK_EX) < 0 || fstat(fd, &info) < 0) {
            return err_set(err, err_code_of_errno(errno), "%s: %s", path, err_errno_text(errno));
        }
        if (info.st_nlink) {
            return take_fd(&fd);
        }
    }
}

static void read_lease(struct arena *arena, int fd, struct node_lease *ret_lease)
{
    char text[TEXT_MAX], boot[TEXT_MAX];
    struct str wall = STR_EMPTY, uptime = STR_EMPTY, of_boot = STR_EMPTY;
    struct node_lease lease = {.age_s = INT64_MAX};
    int64_t from_s;
    ssize_t len = pread(fd, text, sizeof(text), 0);
    struct str rest = str_dup(
        arena, str_trim(str_sub((struct str){text, sizeof(text)}, 0, len > 0 ? (size_t)len : 0)));
    (void)(str_next(&rest, ' ', &lease.run) && str_next(&rest, ' ', &wall) &&
           str_next(&rest, ' ', &uptime) && str_next(&rest, ' ', &of_boot));
    lease.who = rest;
    if (job_read_boot_id(boot, sizeof(boot)) && str_eq_z(of_boot, boot) &&
        str_to_i64(uptime, INT64_MIN, INT64_MAX, &from_s, ERR_IGNORED) == 0) {
        lease.age_s = clock_boot_ns() / NS_PER_S - from_s;
    } else if (str_to_i64(wall, 0, INT64_MAX, &from_s, ERR_IGNORED) == 0) {
        lease.age_s = time(NULL) - from_s;
    }
    *ret_lease = lease;
}

static int write_lease(struct arena *arena, int fd, struct str run, struct str who, struct err *err)
{
    char boot[TEXT_MAX] = "";
    (void)job_read_boot_id(boot, sizeof(boot));
    struct str line =
        str_printf(arena, "%.*s %lld %lld %s %.*s\n", STR_ARG(run), (long long)time(NULL),
                   (long long)(clock_boot_ns() / NS_PER_S), boot, STR_ARG(who));
    return pwrite(fd, line.ptr, line.len, 0) == (ssize_t)line.len &&
                   ftruncate(fd, (off_t)line.len) == 0
               ? 0
               : err_errno(err, "write", "lease");
}

bool lease_read(struct arena *arena, const struct server *server, struct node_lease *ret_lease)
{
    CLEANUP(fd) int fd = open_lease(path_of(arena, server), 0, ERR_IGNORED);
    if (fd >= 0) {
        read_lease(arena, fd, ret_lease);
    }
    return fd >= 0 && ret_lease->run.len;
}

int lease_remove(const struct server *server, struct str run, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *path = path_of(&arena, server);
    struct node_lease lease;
    struct err why = {0};
    CLEANUP(fd) int fd = open_lease(path, 0, &why);
    if (fd < 0) {
        return why.code == ERR_NOT_FOUND ? 0 : err_set(err, why.code, "%s", why.msg);
    }
    read_lease(&arena, fd, &lease);
    return str_eq(lease.run, run) && unlink(path) < 0 ? err_errno(err, "remove", path) : 0;
}

struct alive_search {
    const char *root;
    bool is_alive;
};

static enum job_walk note_alive(void *ctx, const struct job_entry *entry)
{
    struct alive_search *search = ctx;
    char dir[JOB_PATH_BYTES];
    struct job_look look;
    if (strcmp(entry->name, "pid") == 0 || strcmp(entry->name, "claim") == 0) {
        snprintf(dir, sizeof(dir), "%s/%s", search->root, entry->below);
        job_look(dir, &look);
        search->is_alive = look.state == JOB_RUNNING;
    }
    return search->is_alive ? WALK_END : WALK_INTO;
}

static bool has_job(struct arena *arena, const struct server *server, struct str run)
{
    struct alive_search search = {
        .root = arena_printf(arena, "%s/jobs/%.*s", server->work_folder, STR_ARG(run))};
    if (serve_is_plain_id(run)) {
        job_walk(search.root, note_alive, &search);
    }
    return search.is_alive;
}

/* 1: it is ours; 0: it is held; -1: error. */
static int take(struct arena *arena, const struct server *server, const struct str *fields,
                int64_t ttl_s, struct node_lease *ret_lease, struct err *err)
{
    struct str run = fields[0];
    if (owner_check(server->work_folder, err) < 0 || fs_mkdir_p(server->work_folder, err) < 0) {
        return -1;
    }
    CLEANUP(fd) int fd = open_lease(path_of(arena, server), O_CREAT, err);
    if (fd < 0) {
        return -1;
    }
    read_lease(arena, fd, ret_lease);
    if (ret_lease->run.len && !str_eq(ret_lease->run, run) &&
        (ret_lease->age_s < ttl_s || has_job(arena, server, ret_lease->run))) {
        return 0;
    }
    return write_lease(arena, fd, run, fields[3], err) < 0 ? -1 : 1;
}

int serve_lease(struct server *server, const struct node_request *request, struct strbuf *text)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct node_lease lease = {0};
    struct err err = {0};
    bool is_take = request->n_fields == 4 && str_eq_z(request->fields[2], "take");
    int64_t ttl_s;
    if (request->n_fields != 4 || !serve_is_plain_id(request->fields[0]) ||
        !serve_number(request, 1, TTL_MAX_S, &ttl_s) ||
        (!is_take && !str_eq_z(request->fields[2], "drop"))) {
        return serve_bad(text);
    }
    int rc = is_take ? take(&arena, server, request->fields, ttl_s, &lease, &err)
                     : lease_remove(server, request->fields[0], &err);
    if (rc < 0) {
        err.code = err.code == ERR_AUTH ? ERR_AUTH : ERR_DISK; /* whatever other reason */
        return serve_failed(text, "the lease cannot be written", &err);
    }
    if (rc == 0 && is_take) {
        strbuf_printf(text, "held %.*s%s%.*s\n", STR_ARG(lease.run), lease.who.len ? " of " : "",
                      STR_ARG(lease.who));
    }
    return 0;
}
