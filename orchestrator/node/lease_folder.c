/* SPDX-License-Identifier: Apache-2.0 */
/* WORK/lease: holder ("RUN SECONDS", this node's own clock) and who ("USER@HOST" of that run). Whoever made the folder has it. */
#include "base/base.h"

#include "node/serve.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "node/job.h"

#define TEXT_MAX  512
#define TTL_MAX_S (1 << 30)
#define NAMELESS_OLD                                                                               \
    120 /* s: a holder that left no name is writing it, unless it is as old as that */
#define UNKNOWN "unknown"

struct lease {
    struct arena arena;
    const char *work_folder, *folder;
    struct str run;
    int64_t ttl_s, now_s;
    struct str holder; /* UNKNOWN: it left no name, or there is none */
    int64_t since_s;
};

static void read_holder(struct lease *lease, const char *folder)
{
    char text[TEXT_MAX];
    struct err ignored = {0};
    struct str rest, name;
    lease->holder = STR_LIT(UNKNOWN);
    lease->since_s = 0;
    if (!job_read_small(arena_printf(&lease->arena, "%s/holder", folder), text, sizeof(text))) {
        return;
    }
    rest = str_of(text);
    if (str_next(&rest, ' ', &name) && name.len) {
        lease->holder = str_dup(&lease->arena, name);
        if (str_to_i64(str_trim(rest), 0, INT64_MAX, &lease->since_s, &ignored) < 0) {
            lease->since_s = 0;
        }
    }
}

static int say_held(struct lease *lease, struct strbuf *text)
{
    char who[TEXT_MAX];
    struct str line = STR_EMPTY, rest;
    if (job_read_small(arena_printf(&lease->arena, "%s/who", lease->folder), who, sizeof(who))) {
        rest = str_of(who);
        (void)str_next(&rest, '\n', &line);
    }
    strbuf_printf(text, "held %.*s%s%.*s\n", STR_ARG(lease->holder), line.len ? " of " : "",
                  STR_ARG(line));
    return 0;
}

static bool note_alive(void *ctx, const char *dir)
{
    struct job_look look;
    job_look(dir, &look);
    *(bool *)ctx = look.state == LOOK_RUNNING;
    return look.state != LOOK_RUNNING;
}

static bool has_job(struct lease *lease)
{
    bool is_alive = false;
    if (serve_is_plain_id(lease->holder)) {
        job_find(
            arena_printf(&lease->arena, "%s/jobs/%.*s", lease->work_folder, STR_ARG(lease->holder)),
            note_alive, &is_alive);
    }
    return is_alive;
}

static bool may_be_taken_over(struct lease *lease)
{
    struct stat info;
    if (str_eq_z(lease->holder, UNKNOWN)) {
        return stat(lease->folder, &info) == 0 && lease->now_s - info.st_mtime > NAMELESS_OLD;
    }
    return lease->now_s - lease->since_s >= lease->ttl_s && !has_job(lease);
}

/* Away with it, unless it has become another's meanwhile. 1: it may be made anew; 0: it is held; -1. */
static int take_away(struct lease *lease, struct err *err)
{
    const char *stale = arena_printf(&lease->arena, "%s.stale.%d", lease->folder, (int)getpid());
    struct str before = lease->holder;
    if (rename(lease->folder, stale) < 0) {
        return 0;
    }
    read_holder(lease, stale);
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

/* 1: it is ours; 0: it is held; -1. */
static int take(struct lease *lease, struct err *err)
{
    int rc;
    if (fs_mkdir_p(lease->work_folder, err) < 0) {
        return -1;
    }
    if (mkdir(lease->folder, 0777) == 0 || str_eq(lease->holder, lease->run)) {
        return 1;
    }
    if (errno != EEXIST || !fs_is_dir(lease->folder)) {
        return fail(lease, err);
    }
    rc = may_be_taken_over(lease) ? take_away(lease, err) : 0;
    return rc > 0 && mkdir(lease->folder, 0777) < 0 ? 0 : rc;
}

static int sign(struct lease *lease, struct str who, struct err *err)
{
    struct arena *arena = &lease->arena;
    const char *line = arena_printf(arena, "%.*s %" PRId64 "\n", STR_ARG(lease->run), lease->now_s);
    return job_put(arena_printf(arena, "%s/who", lease->folder),
                   str_of(arena_printf(arena, "%.*s\n", STR_ARG(who))), false, err) < 0 ||
                   job_put(arena_printf(arena, "%s/holder", lease->folder), str_of(line), false,
                           err) < 0
               ? -1
               : 0;
}

static int drop(const struct lease *lease, struct err *err)
{
    return str_eq(lease->holder, lease->run) ? fs_remove_tree(lease->folder, err) : 0;
}

static int serve(struct lease *lease, bool is_take, struct str who, struct strbuf *text)
{
    struct err err = {0};
    int rc = is_take ? take(lease, &err) : drop(lease, &err);
    if (rc == 0 && is_take) {
        return say_held(lease, text);
    }
    if (rc < 0 || (is_take && sign(lease, who, &err) < 0)) {
        err.code = ERR_DISK; /* whatever it is that takes no files */
        return serve_failed(text, "the lease cannot be written", &err);
    }
    return 0;
}

int serve_lease(const struct server *server, const struct node_request *request,
                struct strbuf *text)
{
    struct lease lease = {.work_folder = server->work_folder, .now_s = (int64_t)time(NULL)};
    bool is_take = request->n_fields == 4 && str_eq_z(request->fields[2], "take");
    int status;
    if (request->n_fields != 4 || !serve_is_plain_id(request->fields[0]) ||
        !serve_number(request, 1, TTL_MAX_S, &lease.ttl_s) ||
        (!is_take && !str_eq_z(request->fields[2], "drop"))) {
        return serve_bad(text);
    }
    lease.run = request->fields[0];
    lease.folder = arena_printf(&lease.arena, "%s/lease", server->work_folder);
    read_holder(&lease, lease.folder);
    status = serve(&lease, is_take, request->fields[3], text);
    arena_release(&lease.arena);
    return status;
}
