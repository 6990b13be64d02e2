/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/git.h"

#include <unistd.h>

#include "base/fs.h"
#include "base/str.h"
#include "report/source.h"
#include "sys/child.h"

/* Source: git-config(1), git(1); prevents what a repository or its server could otherwise make git do. */
static const char *const OPTIONS[] = {
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    "credential.helper=",
    "protocol.ext.allow=never",
    "protocol.file.allow=always",
    "fetch.fsckObjects=true",
    "fetch.fsck.zeroPaddedFilemode=warn", /* harmless findings in old repositories */
    "fetch.fsck.missingSpaceBeforeDate=warn",
    "fetch.fsck.badTimezone=warn",
    "fsck.zeroPaddedFilemode=ignore",
    "fsck.missingSpaceBeforeDate=ignore",
    "fsck.badTimezone=ignore",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "safe.directory=*",
    "core.autocrlf=false",
    "core.symlinks=true",
    "core.fileMode=true",
    "tar.umask=0022",
    "advice.detachedHead=false",
};
/* Not in the repository's own configuration: there git would ask the network for every object that it lacks. */
static const char *const PART_OPTIONS[] = {
    "remote.part.promisor=true", "remote.part.partialCloneFilter=blob:none",
    "fsck.gitattributesMissing=ignore", "fsck.gitmodulesMissing=ignore"};
static const char *const ENVIRONMENT[] = {
    "HOME=/nonexistent",
    "LC_ALL=C",
    "GIT_CONFIG_NOSYSTEM=1",
    "GIT_CONFIG_GLOBAL=/dev/null",
    "GIT_TERMINAL_PROMPT=0",
    "GIT_ALLOW_PROTOCOL=https:http:git:ssh:file",
    "GIT_PROTOCOL_FROM_USER=0",
    "GIT_NO_REPLACE_OBJECTS=1",
    "GIT_NO_LAZY_FETCH=1", /* since git 2.44 */
    "GIT_ATTR_NOSYSTEM=1",
    "GIT_DEFAULT_REF_FORMAT=files",
    "GIT_SSH_COMMAND=ssh -o BatchMode=yes -o StrictHostKeyChecking=yes",
    "GIT_HTTP_LOW_SPEED_LIMIT=1000",
    "GIT_HTTP_LOW_SPEED_TIME=60",
};
static const char *const PASSED[] = {"PATH", "TMPDIR", "SSH_AUTH_SOCK"};

/* git runs in another folder: our paths are made absolute. */
static const char *from_root(const struct git *git, const char *path)
{
    CLEANUP(free) char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
    return here ? fs_join(git->arena, here, path) : path;
}

static const char **make_env(const struct git *git, const struct git_call *call)
{
    const char **env = arena_array(git->arena, const char *, 64);
    size_t n = 0;
    for (size_t idx = 0; idx < ARRAY_LEN(ENVIRONMENT); idx++) {
        env[n++] = ENVIRONMENT[idx];
    }
    for (size_t idx = 0; idx < ARRAY_LEN(PASSED); idx++) {
        const char *value = getenv(PASSED[idx]);
        if (value) {
            env[n++] = arena_printf(git->arena, "%s=%s", PASSED[idx], value);
        }
    }
    const char *const ours[][2] = {
        {"http_proxy", git->proxy},
        {"https_proxy", git->proxy},
        {"GIT_SSL_CAINFO", git->ca_path ? from_root(git, git->ca_path) : NULL},
        {"GIT_DIR", call->git_dir ? from_root(git, call->git_dir) : NULL},
        {"GIT_WORK_TREE", call->work_tree ? from_root(git, call->work_tree) : NULL},
        {"GIT_INDEX_FILE", call->index_path ? from_root(git, call->index_path) : NULL},
        {"GIT_OBJECT_DIRECTORY", call->new_objects ? from_root(git, call->new_objects) : NULL},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ours); idx++) {
        if (ours[idx][1]) {
            env[n++] = arena_printf(git->arena, "%s=%s", ours[idx][0], ours[idx][1]);
        }
    }
    if (call->new_objects) {
        env[n++] = arena_printf(git->arena, "GIT_ALTERNATE_OBJECT_DIRECTORIES=%s/objects",
                                from_root(git, call->git_dir));
    }
    env[n] = NULL;
    return env;
}

static const char **make_argv(const struct git *git, const struct git_call *call)
{
    const char **argv =
        arena_array(git->arena, const char *,
                    2 * (ARRAY_LEN(OPTIONS) + ARRAY_LEN(PART_OPTIONS) + 1) + GIT_ARGS_MAX + 2);
    size_t n = 0;
    argv[n++] = "git";
    for (size_t idx = 0; idx < ARRAY_LEN(OPTIONS); idx++) {
        argv[n++] = "-c";
        argv[n++] = OPTIONS[idx];
    }
    for (size_t idx = 0; call->part_of && idx < ARRAY_LEN(PART_OPTIONS); idx++) {
        argv[n++] = "-c";
        argv[n++] = PART_OPTIONS[idx];
    }
    if (call->part_of) {
        argv[n++] = "-c";
        argv[n++] = arena_printf(git->arena, "remote.part.url=%s", call->part_of);
    }
    for (size_t idx = 0; call->args[idx]; idx++) {
        ASSERT(idx < GIT_ARGS_MAX);
        argv[n++] = call->args[idx];
    }
    argv[n] = NULL;
    return argv;
}

/* The lines that say why: those with "fatal:", "error:" or "remote:", else the last one; joined, control bytes taken out. */
static struct str find_error(struct arena *arena, struct str text)
{
    CLEANUP(strbuf) struct strbuf found = STRBUF(CHILD_ERROR_MAX);
    struct str last = quote_last_line(text), line;
    while (str_next(&text, '\n', &line)) {
        line = str_trim(line);
        if (str_starts(line, STR_LIT("fatal:")) || str_starts(line, STR_LIT("error:")) ||
            str_starts(line, STR_LIT("remote:"))) {
            strbuf_add_z(&found, found.len ? "; " : "");
            strbuf_add_str(&found, line);
        }
    }
    return str_of(quote_shown(arena, found.len ? strbuf_str(&found) : last));
}

int git_run(const struct git *git, const struct git_call *call, struct strbuf *out,
            struct git_result *ret_result, struct err *err)
{
    const struct child_call child = {
        .argv = make_argv(git, call),
        .env = make_env(git, call),
        .folder = call->work_tree ? call->work_tree : git->tmp_folder,
        .tmp_folder = git->tmp_folder,
        .input_path = call->input_path,
        .output_path = call->output_path,
        .out = out,
        .deadline_ns = call->deadline_ns,
    };
    struct child_result result;
    if (child_run(git->arena, git->clock, &child, &result, err) < 0) {
        return err_wrap(err, "git %s", call->args[0]);
    }
    if (result.is_timed_out) {
        return err_set(err, ERR_TIMEOUT, "git %s: no answer within %lld s", call->args[0],
                       (long long)(call->deadline_ns / NS_PER_S));
    }
    if (out && out->is_full) {
        return err_set(err, ERR_INTEGRITY, "git %s: more than %zu bytes of output", call->args[0],
                       out->cap_bytes);
    }
    ret_result->exit_status = result.exit_status;
    ret_result->error = find_error(git->arena, result.error);
    return 0;
}

int git_must(const struct git *git, const struct git_call *call, struct strbuf *out,
             enum err_code code, struct err *err)
{
    struct git_result result;
    if (git_run(git, call, out, &result, err) < 0) {
        return -1;
    }
    return result.exit_status == 0 ? 0
                                   : err_set(err, code, "git %s: status %d: %.*s", call->args[0],
                                             result.exit_status, STR_ARG(result.error));
}

int git_hex(const struct git *git, const struct git_call *call, const char **ret_hex,
            struct err *err)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(4096);
    if (git_must(git, call, &out, ERR_INTEGRITY, err) < 0) {
        return -1;
    }
    struct str hex = str_trim(strbuf_str(&out));
    if (!source_is_commit(hex)) {
        return err_set(err, ERR_INTEGRITY, "git %s: expected 40 hex digits, found \"%.*s\"",
                       call->args[0], STR_ARG(str_sub(hex, 0, 80)));
    }
    *ret_hex = str_z(git->arena, hex);
    return 0;
}
