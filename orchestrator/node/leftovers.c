/* SPDX-License-Identifier: Apache-2.0 */
/* Lists what runs have left here, one per line, and removes it. Names with a tab or a line break are never ours. */
#include "base/base.h"

#include "node/serve.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/temp.h"
#include "node/job.h"
#include "node/tool.h"

#define ENGINE_LIMIT (30 * NS_PER_S)
#define ENGINE_BYTES (1u << 20)
#define MINUTES_MAX  1000000
#define WHY_MAX      300
#define KILL_WAIT_NS (10 * NS_PER_S) /* for a job's wrapper to be gone */
#define KILL_LOOK_MS 20

struct left_scan {
    struct arena *arena;
    const char *root; /* where the jobs are */
    const char *work; /* NULL: not scanned */
    int64_t now_s, older_than_s;
    struct strbuf *text;
};

static bool is_our_name(const char *name)
{
    return !strpbrk(name, "\t\n");
}

/* ---- jobs ---- */

static const char *state_of(const char *dir)
{
    struct job_look look;
    job_look(dir, &look);
    /* Its wrapper is gone, but its program may still run. */
    return look.state == JOB_LOST && look.wrapper.is_of_boot &&
                   job_has_process(dir, look.wrapper.pid)
               ? "orphaned"
               : NODE_JOB_STATES[look.state];
}

static enum job_walk note_job(void *ctx, const struct job_entry *entry)
{
    struct left_scan *scan = ctx;
    char dir[JOB_PATH_BYTES];
    if (strcmp(entry->name, "claim") != 0 || !entry->below[0]) {
        return scan->text->is_full ? WALK_END : WALK_INTO;
    }
    if (is_our_name(entry->below)) {
        snprintf(dir, sizeof(dir), "%s/%s", scan->root, entry->below);
        strbuf_printf(scan->text, "job\t%s\t%s\n", state_of(dir), entry->below);
    }
    return WALK_ON;
}

/* ---- containers ---- */

static const char *one_line(struct arena *arena, const struct strbuf *said)
{
    struct str text = str_trim(strbuf_str(said));
    char *line = str_z(arena, str_sub(text, text.len > WHY_MAX ? text.len - WHY_MAX : 0, text.len));
    for (char *at = line; *at; at++) {
        *at = (unsigned char)*at < ' ' ? ' ' : *at;
    }
    return line;
}

static int scan_containers(struct left_scan *scan, const char *engine, const char *label,
                           struct err *err)
{
    CLEANUP(strbuf) struct strbuf ids = STRBUF(ENGINE_BYTES);
    struct arena *arena = scan->arena;
    const char *filter = arena_printf(arena, "label=%s", label);
    const char *form = arena_printf(arena,
                                    "container\t{{.State.Status}}\t{{.Id}}\t{{index "
                                    ".Config.Labels \"%s\"}}\t{{.Name}}",
                                    label);
    const char *const list[] = {engine, "ps", "-aq", "--no-trunc", "--filter", filter, NULL};
    struct str id;
    if (tool_run(list, ENGINE_LIMIT, true, &ids) != 0) {
        return err_set(err, ERR_CONTAINER, "the container engine does not answer: %s",
                       one_line(arena, &ids));
    }
    struct str rest = strbuf_str(&ids);
    while (str_next(&rest, '\n', &id)) {
        CLEANUP(strbuf) struct strbuf said = STRBUF(ENGINE_BYTES);
        const char *const ask[] = {engine, "inspect", "-f", form, str_z(arena, id), NULL};
        /* A container that has gone meanwhile is not a leftover. */
        if (id.len && tool_run(ask, ENGINE_LIMIT, false, &said) == 0) {
            strbuf_printf(scan->text, "%.*s\n", STR_ARG(str_trim(strbuf_str(&said))));
        }
    }
    return 0;
}

/* ---- the work folder ---- */

static void scan_lease(struct left_scan *scan, const struct server *server)
{
    struct node_lease lease;
    if (lease_read(scan->arena, server, &lease)) {
        strbuf_printf(scan->text, "lease\t%" PRId64 "\t%.*s\n", lease.age_s, STR_ARG(lease.run));
    }
}

/* Half-written files of a relay or an interrupted copy. */
static bool is_partial(const char *below, const char *name)
{
    return strstr(name, ".reperf.") || temp_of(str_of(basename(below))).ptr;
}

static enum job_walk note_partial(void *ctx, const struct job_entry *entry)
{
    struct left_scan *scan = ctx;
    struct stat info;
    if (!entry->below[0] && strcmp(entry->name, "jobs") == 0) {
        return WALK_ON;
    }
    if (S_ISREG(entry->kind) && is_partial(entry->below, entry->name) && is_our_name(entry->path) &&
        job_entry_stat(entry, &info) && scan->now_s - info.st_mtime > scan->older_than_s) {
        strbuf_printf(scan->text, "partial\t%s\n", entry->path);
    }
    return scan->text->is_full ? WALK_END : WALK_INTO;
}

/* ---- the requests ---- */

static bool is_folder_name(struct str path)
{
    return path.len == 0 || path.ptr[0] == '/';
}

static const char *jobs_root(struct arena *arena, const struct server *server, struct str root)
{
    return root.len ? root.ptr : arena_printf(arena, "%s/jobs", server->work_folder);
}

int serve_scan(struct server *server, const struct node_request *request, struct strbuf *text)
{
    enum { ROOT, MINUTES, ENGINE, LABEL, N_FIELDS };
    const struct str *fields = request->fields;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct left_scan scan = {.arena = &arena, .text = text, .now_s = (int64_t)time(NULL)};
    struct err err = {0};
    int64_t minutes;
    if (request->n_fields != N_FIELDS || !is_folder_name(fields[ROOT]) ||
        !serve_number(request, MINUTES, MINUTES_MAX, &minutes)) {
        return serve_bad(text);
    }
    scan.older_than_s = minutes * 60;
    scan.work = fields[ROOT].len ? NULL : server->work_folder;
    scan.root = jobs_root(&arena, server, fields[ROOT]);
    job_walk(scan.root, note_job, &scan);
    if (fields[ENGINE].len &&
        scan_containers(&scan, fields[ENGINE].ptr, fields[LABEL].ptr, &err) < 0) {
        return serve_failed(text, "", &err);
    }
    if (scan.work && fs_is_dir(scan.work)) {
        scan_lease(&scan, server);
        job_walk(scan.work, note_partial, &scan);
    }
    strbuf_add_z(text, "end\n");
    return text->is_full ? serve_failed(text, "more is left there than an answer can hold", NULL)
                         : 0;
}

/* KILL at once, to all processes of its session: a program may ignore TERM. Also for one that has ended: KILL runs a job's
   cleanup, which removes its container. */
static int remove_job(const char *root, const char *id, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *dir = arena_printf(&arena, "%s/%s", root, id);
    int64_t until_ns = clock_now_ns() + KILL_WAIT_NS;
    struct job_look look;
    job_signal(dir, SIGKILL);
    for (job_look(dir, &look); look.state == JOB_RUNNING && clock_now_ns() < until_ns;
         job_look(dir, &look)) {
        (void)poll(NULL, 0, KILL_LOOK_MS);
    }
    return serve_forget_job(root, id, err);
}

/* It is not a failure if it is gone already. */
static int remove_one(const struct server *server, const struct str *fields, const struct str *pair,
                      struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf said = STRBUF(ENGINE_BYTES);
    const char *engine = fields[1].ptr;
    const char *name = pair[1].ptr;
    if (str_eq_z(pair[0], "container")) {
        const char *const away[] = {engine, "rm", "-f", "-v", name, NULL};
        const char *const look[] = {engine, "inspect", name, NULL};
        int status = tool_run(away, ENGINE_LIMIT, true, &said);
        if (tool_run(look, ENGINE_LIMIT, false, &(struct strbuf){0}) == 0) {
            return err_set(err, ERR_NODE, "container %s is still there: %s", name,
                           one_line(&arena, &said));
        }
        /* Its job's cleanup may have removed it meanwhile. */
        bool was_gone = str_find(strbuf_str(&said), STR_LIT("o such container")) >= 0;
        return status == 0 || was_gone
                   ? 0
                   : err_set(err, ERR_NODE, "container %s: %s", name, one_line(&arena, &said));
    }
    if (str_eq_z(pair[0], "batch")) {
        return slurm_scancel(name, err);
    }
    if (!serve_is_plain_id(pair[1])) {
        return err_set(err, ERR_NODE, "%s is not a plain relative path", name);
    }
    if (str_eq_z(pair[0], "job")) {
        return remove_job(jobs_root(&arena, server, fields[0]), name, err);
    }
    if (str_eq_z(pair[0], "lease")) {
        return lease_remove(server, pair[1], err);
    }
    return fs_remove_tree(arena_printf(&arena, "%s/%s", server->work_folder, name), err);
}

int serve_remove(struct server *server, const struct node_request *request, struct strbuf *text)
{
    struct err first = {0};
    if (request->n_fields < 2 || request->n_fields % 2 != 0 ||
        !is_folder_name(request->fields[0])) {
        return serve_bad(text);
    }
    for (size_t idx = 2; idx < request->n_fields; idx += 2) {
        struct err err = {0};
        if (remove_one(server, request->fields, request->fields + idx, &err) < 0 &&
            first.code == ERR_NONE) {
            first = err;
        }
    }
    return first.code == ERR_NONE ? 0
                                  : serve_failed(text, "not everything could be removed", &first);
}
