/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/publish.h"
#include "base/strbuf.h"
#include "codec/ustar.h"

#define LOCK_TEXT_MAX 64

const char *rundir_archive(struct arena *arena, const char *folder, struct str id, int n)
{
    return n ? arena_printf(arena, "%s/%.*s.%d.tar.zst", folder, STR_ARG(id), n + 1)
             : arena_printf(arena, "%s/%.*s.tar.zst", folder, STR_ARG(id));
}

int rundir_archive_of(struct arena *arena, const char *folder, const char **ret_archive,
                      struct err *err)
{
    char *whole = realpath(folder, NULL); /* "." needs its name */
    if (!whole || !fs_is_dir(folder)) {
        free(whole);
        return err_set(err, ERR_NOT_FOUND, "%s: no such folder", folder);
    }
    struct str name = str_of(whole), end = STR_LIT("/evidence");
    struct str run = str_sub(name, 0, name.len - (str_ends(name, end) ? end.len : 0));
    struct str id = str_sub(run, run.len < RUN_ID_SIZE ? 0 : run.len - (RUN_ID_SIZE - 1), SIZE_MAX);
    *ret_archive = str_ends(name, end) && run_id_is_valid(id)
                       ? rundir_archive(arena, arena_strndup(arena, run.ptr, run.len), id, 0)
                       : arena_printf(arena, "%s.tar.zst", whole);
    free(whole);
    return 0;
}

void rundir_in(struct arena *arena, const char *folder, struct str id, struct rundir *ret_dir)
{
    struct rundir dir = {.id = str_dup(arena, id)};
    dir.folder = folder;
    dir.evidence = fs_join(arena, dir.folder, "evidence");
    dir.journal = fs_join(arena, dir.folder, "journal.jsonl");
    dir.events = fs_join(arena, dir.folder, "events.jsonl");
    dir.jobs = fs_join(arena, dir.folder, "jobs");
    dir.lock = fs_join(arena, dir.folder, "run.lock");
    dir.cancel = fs_join(arena, dir.folder, "cancel");
    for (int n = 0; n == 0 || fs_exists(rundir_archive(arena, folder, id, n)); n++) {
        dir.archive = rundir_archive(arena, folder, id, n);
    }
    *ret_dir = dir;
}

void rundir_paths(struct arena *arena, const char *state, struct str id, struct rundir *ret_dir)
{
    rundir_in(arena, arena_printf(arena, "%s/runs/%.*s", state, STR_ARG(id)), id, ret_dir);
}

int rundir_list(struct arena *arena, const char *state, struct fs_names *ret_ids, struct err *err)
{
    const char *folder = fs_join(arena, state, "runs");
    struct fs_names names = {0};
    size_t n = 0;
    if (fs_exists(state) && !fs_is_dir(state)) {
        return err_set(err, ERR_IO, "state folder %s: not a folder", state);
    }
    if (fs_exists(folder) && fs_list(arena, folder, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        if (run_id_is_valid(str_of(names.items[idx]))) {
            names.items[n++] = names.items[idx];
        }
    }
    names.n = n;
    *ret_ids = names;
    return 0;
}

/* ---- names of runs ---- */

static const char *name_path(struct arena *arena, const char *state, const char *name)
{
    return arena_printf(arena, "%s/names/%s", state, name);
}

static bool is_name(const char *name)
{
    struct str text = str_of(name);
    return str_is_made_of(text, "A-Za-z0-9._-") && str_is_made_of(str_sub(text, 0, 1), "A-Za-z") &&
           text.len <= RUN_NAME_MAX && !str_eq_z(text, "last") &&
           !str_ends(text, STR_LIT(".tar.zst"));
}

/* The id that the link says, where that run is there; else NULL. */
static const char *named_id(struct arena *arena, const char *state, const char *name)
{
    char text[RUN_ID_SIZE];
    struct rundir dir;
    ssize_t len = is_name(name) ? readlink(name_path(arena, state, name), text, sizeof(text)) : -1;
    if (len < 0 || !run_id_is_valid((struct str){text, (size_t)len})) {
        return NULL;
    }
    rundir_paths(arena, state, (struct str){text, (size_t)len}, &dir);
    return fs_is_dir(dir.folder) ? dir.id.ptr : NULL;
}

int rundir_check_name(struct arena *arena, const char *state, const char *name, struct err *err)
{
    const char *id = named_id(arena, state, name);
    if (!is_name(name)) {
        return err_set(
            err, ERR_USAGE,
            "--name %.100s: expected a letter, then at most %d letters, digits, '.', '_' "
            "and '-', and not \"last\"",
            name, RUN_NAME_MAX - 1);
    }
    return id ? err_set(err, ERR_USAGE, "--name %s: run %s has that name; choose another", name, id)
              : 0;
}

int rundir_give_name(struct arena *arena, const char *state, const char *name,
                     const struct rundir *dir, struct err *err)
{
    const char *path = name_path(arena, state, name);
    if (rundir_check_name(arena, state, name, err) < 0 ||
        fs_mkdir_p(fs_join(arena, state, "names"), err) < 0) {
        return -1;
    }
    /* What is there still is the link of a run that is gone. */
    if ((unlink(path) < 0 && errno != ENOENT) || symlink(dir->id.ptr, path) < 0) {
        return err_errno(err, "make", path);
    }
    return publish_parent(path, err);
}

const char *rundir_name_of(struct arena *arena, const char *state, struct str id)
{
    const char *folder = fs_join(arena, state, "names");
    struct fs_names names = {0};
    if (!fs_exists(folder) || fs_list(arena, folder, &names, ERR_IGNORED) < 0) {
        return NULL;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        const char *of = named_id(arena, state, names.items[idx]);
        if (of && str_eq_z(id, of)) {
            return names.items[idx];
        }
    }
    return NULL;
}

int rundir_evidence_of(struct arena *arena, const char *state, const char *operand,
                       bool wants_archive, const char **ret_path, struct err *err)
{
    const char *within = fs_join(arena, operand, "evidence");
    struct rundir dir;
    if (fs_exists(operand)) {
        bool is_run = fs_is_dir(within) && fs_exists(fs_join(arena, operand, "journal.jsonl"));
        *ret_path = is_run ? within : operand;
        return 0;
    }
    if (rundir_find(arena, state, operand, &dir, err) < 0) {
        return -1;
    }
    *ret_path = wants_archive && fs_exists(dir.archive) ? dir.archive : dir.evidence;
    return 0;
}

int rundir_find(struct arena *arena, const char *state, const char *name, struct rundir *ret_dir,
                struct err *err)
{
    struct fs_names ids;
    struct str wanted = str_of(name);
    const char *found = named_id(arena, state, name);
    size_t n = 0;
    if (found) {
        rundir_paths(arena, state, str_of(found), ret_dir);
        return 0;
    }
    if (rundir_list(arena, state, &ids, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < ids.n; idx++) {
        if (wanted.len && str_starts(str_of(ids.items[idx]), wanted)) {
            found = ids.items[idx];
            n++;
        }
    }
    if (strcmp(name, "last") == 0 && ids.n) {
        found = ids.items[ids.n - 1];
        n = 1;
    }
    if (n != 1) {
        return err_set(err, n ? ERR_USAGE : ERR_NOT_FOUND,
                       "run %.100s: %s below %s/runs; reperf status lists them", name,
                       n ? "more than one of that name" : "no such run", state);
    }
    rundir_paths(arena, state, str_of(found), ret_dir);
    return 0;
}

/* ---- lock ---- */

static int64_t read_holder(int fd)
{
    char text[LOCK_TEXT_MAX];
    int64_t pid = 0;
    ssize_t len = pread(fd, text, sizeof(text), 0);
    if (len <= 0 || str_to_i64(str_trim((struct str){text, (size_t)len}), 1, INT32_MAX, &pid,
                               ERR_IGNORED) < 0) {
        return 0;
    }
    return pid;
}

int rundir_lock(const struct rundir *dir, int *ret_fd, struct err *err)
{
    char text[LOCK_TEXT_MAX];
    CLEANUP(fd) int fd = open(dir->lock, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        return err_errno(err, "open", dir->lock);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        return err_set(err, ERR_USAGE,
                       "run %.*s: process %lld is working on it; reperf cancel stops it",
                       STR_ARG(dir->id), (long long)read_holder(fd));
    }
    snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, strlen(text), 0) != (ssize_t)strlen(text)) {
        return err_errno(err, "write", dir->lock);
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

int64_t rundir_holder(const struct rundir *dir)
{
    CLEANUP(fd) int fd = open(dir->lock, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0) {
        return 0; /* closing it gives the shared lock back */
    }
    return read_holder(fd);
}

/* ---- files of the evidence ---- */

#define OF_REPEAT "%c/repeat-%r"
const struct rundir_file RUNDIR_FILES[RUNDIR_FILES_N] = {
    [RUNDIR_REPORT] = {"manifest/report.json", RUNDIR_BY_LOCK},
    [RUNDIR_PLAN] = {"manifest/plan.json", RUNDIR_BY_LOCK},
    [RUNDIR_INVENTORY] = {"manifest/inventory.json", RUNDIR_BY_LOCK, .is_optional = true},
    [RUNDIR_VOCABULARY] = {"manifest/vocabulary.json", RUNDIR_BY_LOCK, .is_optional = true},
    [RUNDIR_FORMAT] = {"manifest/formats/%n.json", RUNDIR_BY_LOCK},
    [RUNDIR_OVERLAY] = {"manifest/overlay/%n", RUNDIR_BY_LOCK},
    [RUNDIR_LOCAL] = {"environment/local.json", RUNDIR_BY_LOCK},
    [RUNDIR_LOCK] = {"lock/lock.json", RUNDIR_BY_JOURNAL},
    [RUNDIR_NODE] = {"environment/%n.json", RUNDIR_BY_JOURNAL, .is_optional = true},
    [RUNDIR_COMMANDS] = {"logs/commands/" OF_REPEAT ".json", RUNDIR_BY_JOURNAL, .is_again = true},
    [RUNDIR_LOG] = {"logs/raw/" OF_REPEAT ".log", RUNDIR_BY_JOURNAL},
    [RUNDIR_NODE_LOG] = {"logs/raw/" OF_REPEAT ".%n.log", RUNDIR_BY_JOURNAL},
    [RUNDIR_MONITOR] = {"logs/monitor/" OF_REPEAT ".%n.log", RUNDIR_BY_JOURNAL},
    [RUNDIR_OUTCOME] = {"logs/outcome/" OF_REPEAT ".json", RUNDIR_BY_JOURNAL},
    [RUNDIR_LOST] = {"logs/lost/" OF_REPEAT ".attempt-%a.log", RUNDIR_BY_JOURNAL,
                     .is_optional = true},
    [RUNDIR_LOST_NODE] = {"logs/lost/" OF_REPEAT ".attempt-%a.%n.log", RUNDIR_BY_JOURNAL,
                          .is_optional = true},
    [RUNDIR_LOST_OUTCOME] = {"logs/lost/" OF_REPEAT ".attempt-%a.json", RUNDIR_BY_JOURNAL,
                             .is_optional = true},
    [RUNDIR_SERIES] = {"series/" OF_REPEAT ".json", RUNDIR_BY_JOURNAL, .is_again = true},
    [RUNDIR_RESULT] = {"result.json", RUNDIR_BY_JOURNAL, .is_again = true},
    [RUNDIR_CRATE] = {"ro-crate-metadata.json", RUNDIR_BY_SEAL, .is_optional = true},
    [RUNDIR_SUMS] = {USTAR_SUMS, RUNDIR_BY_SEAL, .is_optional = true},
    [RUNDIR_PROVENANCE] = {USTAR_PROVENANCE, RUNDIR_BY_SEAL, .is_optional = true},
    [RUNDIR_STATEMENT] = {USTAR_STATEMENT, RUNDIR_BY_SEAL, .is_optional = true},
};

char *rundir_name(struct arena *arena, enum rundir_kind kind, struct rundir_of of)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(PATH_MAX);
    for (const char *at = RUNDIR_FILES[kind].name; *at; at++) {
        char hole = *at == '%' ? *++at : '\0';
        if (!hole) {
            strbuf_add_char(&text, *at);
        } else if (hole == 'c' || hole == 'n') {
            strbuf_add_str(&text, hole == 'c' ? of.case_id : of.name);
        } else {
            strbuf_printf(&text, "%lld", (long long)(hole == 'r' ? of.repeat : of.attempt));
        }
    }
    return str_z(arena, strbuf_str(&text));
}

const struct rundir_file *rundir_file(struct str name)
{
    for (size_t idx = 0; idx < RUNDIR_FILES_N; idx++) {
        const struct rundir_file *file = &RUNDIR_FILES[idx];
        size_t len = strcspn(file->name, "%");
        if (file->name[len] ? str_starts(name, (struct str){file->name, len})
                            : str_eq_z(name, file->name)) {
            return file;
        }
    }
    return NULL;
}

int rundir_write(struct arena *arena, const char *folder, const char *name, struct str content,
                 struct err *err)
{
    const char *path = fs_join(arena, folder, name);
    return fs_mkdir_above(path, err) < 0 ? -1 : fs_write_atomic(path, content, err);
}

int rundir_settle(struct arena *arena, const char *folder, const char *name, struct str content,
                  struct err *err)
{
    const char *path = fs_join(arena, folder, name);
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct str there;
    struct stat info;
    if (fs_mkdir_above(path, err) < 0) {
        return -1;
    }
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) ||
        (size_t)info.st_size != content.len ||
        fs_read(arena, path, content.len, &there, ERR_IGNORED) < 0 || !str_eq(there, content)) {
        return fs_write_atomic(path, content, err);
    }
    return publish_data(fd, path, err) < 0 ? -1 : publish_parent(path, err);
}
