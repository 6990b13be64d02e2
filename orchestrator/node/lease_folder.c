/* SPDX-License-Identifier: Apache-2.0 */
/* WORK/lease: holder ("RUN SECONDS UPTIME BOOT_ID") and who ("USER@HOST" of that run). Whoever created the folder holds the lease. Its
   age is counted by the uptime, since a clock may be set in mid-run, by hours and either way; by the seconds since 1970 only where another
   machine, another boot or an earlier version wrote it. */
#include "base/base.h"

#include "node/serve.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "node/job.h"

#define TEXT_MAX  512
#define TTL_MAX_S (1 << 30)
#define NAMELESS_OLD                                                                               \
    120 /* s: a holder without a name is still writing it, unless it is as old as this */
#define UNKNOWN "unknown"

struct lease {
    struct arena arena;
    const char *work_folder, *folder;
    struct str run;
    int64_t ttl_s;
    struct str holder; /* UNKNOWN: it left no name, or there is no holder */
    int64_t age_s;
};

/* "SECONDS UPTIME BOOT_ID", or the first of them. */
static int64_t age_of(struct str since)
{
    char boot[TEXT_MAX];
    struct str wall, uptime = STR_EMPTY;
    int64_t from_s;
    (void)str_next(&since, ' ', &wall);
    if (str_next(&since, ' ', &uptime) && job_read_boot_id(boot, sizeof(boot)) &&
        str_eq_z(since, boot) &&
        str_to_i64(uptime, INT64_MIN, INT64_MAX, &from_s, ERR_IGNORED) == 0) {
        return clock_boot_ns() / NS_PER_S - from_s;
    }
    return str_to_i64(wall, 0, INT64_MAX, &from_s, &(struct err){0}) < 0 ? INT64_MAX
                                                                         : time(NULL) - from_s;
}

static void read_holder(struct arena *arena, const char *folder, struct str *ret_holder,
                        int64_t *ret_age_s)
{
    char text[TEXT_MAX];
    struct str name;
    *ret_holder = STR_LIT(UNKNOWN);
    *ret_age_s = INT64_MAX;
    if (!job_read_small(arena_printf(arena, "%s/holder", folder), text, sizeof(text))) {
        return;
    }
    struct str rest = str_of(text);
    if (str_next(&rest, ' ', &name) && name.len) {
        *ret_holder = str_dup(arena, name);
        *ret_age_s = age_of(rest);
    }
}

bool lease_read(struct arena *arena, const char *work_folder, struct str *ret_holder,
                int64_t *ret_age_s)
{
    const char *folder = arena_printf(arena, "%s/lease", work_folder);
    read_holder(arena, folder, ret_holder, ret_age_s);
    return fs_is_dir(folder);
}

/* Half of it is never left under its name: nobody would know whose it was. */
static const char *stale_name(struct arena *arena, const char *work_folder)
{
    return arena_printf(arena, "%s/lease.stale.%d", work_folder, (int)getpid());
}

int lease_remove(const struct server *server, struct str run, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *folder = arena_printf(&arena, "%s/lease", server->work_folder);
    const char *stale = stale_name(&arena, server->work_folder);
    struct str holder;
    int64_t unused;
    if (!lease_read(&arena, server->work_folder, &holder, &unused) || !str_eq(holder, run)) {
        return 0;
    }
    if (rename(folder, stale) < 0 && errno != ENOENT) { /* or somebody else has removed it */
        return err_set(err, err_code_of_errno(errno), "%s: %s", folder, err_errno_text(errno));
    }
    return fs_remove_tree(stale, err);
}

static int say_held(struct lease *lease, struct strbuf *text)
{
    char who[TEXT_MAX];
    struct str line = STR_EMPTY;
    if (job_read_small(arena_printf(&lease->arena, "%s/who", lease->folder), who, sizeof(who))) {
        struct str rest = str_of(who);
        (void)str_next(&rest, '\n', &line);
    }
    strbuf_printf(text, "held %.*s%s%.*s\n", STR_ARG(lease->holder), line.len ? " of " : "",
                  STR_ARG(line));
    return 0;
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
        search->is_alive = look.state == LOOK_RUNNING;
    }
    return search->is_alive ? WALK_END : WALK_INTO;
}

static bool has_job(struct lease *lease)
{
    struct alive_search search = {.root = arena_printf(&lease->arena, "%s/jobs/%.*s",
                                                       lease->work_folder, STR_ARG(lease->holder))};
    if (serve_is_plain_id(lease->holder)) {
        job_walk(search.root, note_alive, &search);
    }
    return search.is_alive;
}

static bool may_be_taken_over(struct lease *lease)
{
    struct stat info;
    if (str_eq_z(lease->holder, UNKNOWN)) {
        return stat(lease->folder, &info) == 0 && time(NULL) - info.st_mtime > NAMELESS_OLD;
    }
    return lease->age_s >= lease->ttl_s && !has_job(lease);
}

/* Removes the lease, unless another run took it meanwhile. 1: it may be created again; 0: it is held; -1: error. */
static int take_away(struct lease *lease, struct err *err)
{
    const char *stale = stale_name(&lease->arena, lease->work_folder);
    struct str before = lease->holder;
    if (rename(lease->folder, stale) < 0) {
        return 0;
    }
    read_holder(&lease->arena, stale, &lease->holder, &lease->age_s);
    if (!str_eq(lease->holder, before)) {
        (void)rename(stale, lease->folder);
        return 0;
    }
    return fs_remove_tree(stale, err) < 0 ? -1 : 1;
}

static int fail(const struct lease *lease, struct err *err)
{
    return err_set(err, err_code_of_errno(errno), "%s: %s", lease->folder, err_errno_text(errno));
}

/* 1: it is ours; 0: it is held; -1: error. */
static int take(struct lease *lease, struct err *err)
{
    struct stat info;
    if (owner_check(lease->work_folder, err) < 0 || fs_mkdir_p(lease->work_folder, err) < 0) {
        return -1;
    }
    if (lstat(lease->folder, &info) == 0 && S_ISLNK(info.st_mode)) {
        return err_set(err, ERR_AUTH, "%s: expected a folder, found a link; remove it",
                       lease->folder);
    }
    if (mkdir(lease->folder, 0777) == 0 || str_eq(lease->holder, lease->run)) {
        return 1;
    }
    if (errno != EEXIST || !fs_is_dir(lease->folder)) {
        return fail(lease, err);
    }
    int rc = may_be_taken_over(lease) ? take_away(lease, err) : 0;
    return rc > 0 && mkdir(lease->folder, 0777) < 0 ? 0 : rc;
}

static int sign(struct lease *lease, struct str who, struct err *err)
{
    struct arena *arena = &lease->arena;
    char boot[TEXT_MAX] = "";
    (void)job_read_boot_id(boot, sizeof(boot));
    const char *line = arena_printf(arena, "%.*s %lld %lld %s\n", STR_ARG(lease->run),
                                    (long long)time(NULL), clock_boot_ns() / NS_PER_S, boot);
    return job_put(arena_printf(arena, "%s/who", lease->folder),
                   str_printf(arena, "%.*s\n", STR_ARG(who)), false, err) < 0 ||
                   job_put(arena_printf(arena, "%s/holder", lease->folder), str_of(line), false,
                           err) < 0
               ? -1
               : 0;
}

static int serve(const struct server *server, struct lease *lease, bool is_take, struct str who,
                 struct strbuf *text)
{
    struct err err = {0};
    int rc = is_take ? take(lease, &err) : lease_remove(server, lease->run, &err);
    if (rc == 0 && is_take) {
        return say_held(lease, text);
    }
    if (rc < 0 || (is_take && sign(lease, who, &err) < 0)) {
        err.code = err.code == ERR_AUTH ? ERR_AUTH : ERR_DISK; /* whatever other reason */
        return serve_failed(text, "the lease cannot be written", &err);
    }
    return 0;
}

int serve_lease(struct server *server, const struct node_request *request, struct strbuf *text)
{
    struct lease lease = {.work_folder = server->work_folder};
    bool is_take = request->n_fields == 4 && str_eq_z(request->fields[2], "take");
    if (request->n_fields != 4 || !serve_is_plain_id(request->fields[0]) ||
        !serve_number(request, 1, TTL_MAX_S, &lease.ttl_s) ||
        (!is_take && !str_eq_z(request->fields[2], "drop"))) {
        return serve_bad(text);
    }
    lease.run = request->fields[0];
    lease.folder = arena_printf(&lease.arena, "%s/lease", server->work_folder);
    read_holder(&lease.arena, lease.folder, &lease.holder, &lease.age_s);
    int status = serve(server, &lease, is_take, request->fields[3], text);
    arena_release(&lease.arena);
    return status;
}
