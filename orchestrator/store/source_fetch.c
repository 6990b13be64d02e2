/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/source_impl.h"

#include <sys/file.h>
#include <unistd.h>

#include <fcntl.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/publish.h"
#include "base/temp.h"
#include "report/source.h"

#define PROBE_DEADLINE_NS (30 * NS_PER_S)
#define FETCH_DEADLINE_NS (6LL * 3600 * NS_PER_S)
#define REPO_LOCK         "reperf.lock"
#define REF_PREFIX        "refs/reperf/"
#define FSCK_MISSING                                                                               \
    2 /* Source: git's builtin/fsck.c, ERROR_REACHABLE: an object that another names is not there */

/* Highest priority: a repository's .gitattributes cannot change what is checked out or exported. */
static const char ATTRIBUTES[] =
    "* -text -ident -filter -working-tree-encoding -export-ignore -export-subst !eol\n";

int sources_init(struct sources *sources, struct arena *arena, const struct store *store,
                 const struct net_opts *net, struct err *err)
{
    *sources = (struct sources){
        .git = {.arena = arena,
                .clock = net->clock,
                .tmp_folder = store_path(store, "tmp"),
                .proxy = net->proxy,
                .ca_path = net->ca_path},
        .store = store,
        .net = net,
    };
    if (fs_mkdir_p(sources->git.tmp_folder, err) < 0) {
        return -1;
    }
    return fs_mkdir_p(store_path(store, "sources"), err);
}

/* --- a server's messages
   ------------------------------------------------------------------------------------------------------- */

static bool says(struct str text, const char *words)
{
    return str_find(text, str_of(words)) >= 0;
}

static int fail_remote(const char *url, const struct git_result *result, struct err *err)
{
    static const struct {
        const char *words;
        enum err_code code;
    } ROWS[] = {
        {"could not read Username", ERR_AUTH},
        {"could not read Password", ERR_AUTH},
        {"Authentication failed", ERR_AUTH},
        {"Permission denied", ERR_AUTH},
        {"returned error: 401", ERR_AUTH},
        {"returned error: 403", ERR_AUTH},
        {"Host key verification", ERR_AUTH},
        {"Could not resolve host", ERR_NET},
        {"Failed to connect", ERR_NET},
        {"Connection refused", ERR_NET},
        {"unable to connect", ERR_NET},
        {"returned error: 5", ERR_NET},
        {"timed out", ERR_NET},
        {"early EOF", ERR_NET},
        {"hung up unexpectedly", ERR_NET},
        {"Couldn't connect", ERR_NET},
    };
    enum err_code code = ERR_FETCH;
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        if (says(result->error, ROWS[idx].words)) {
            code = ROWS[idx].code;
            break;
        }
    }
    return err_set(err, code, "%.200s cannot be %s: %.*s", url,
                   code == ERR_AUTH ? "cloned without a login" : "cloned", STR_ARG(result->error));
}

static int check_online(const struct sources *sources, const char *url, struct err *err)
{
    if (source_check_url(str_of(url), err) < 0) {
        return -1;
    }
    return net_allows_url(sources->net, url)
               ? 0
               : err_set(err, ERR_FETCH, "offline: %.300s would have been asked", url);
}

struct found_ref {
    struct str branch, tag, peeled;
};

/* Lines "HEX\tREF" of ls-remote. */
static void read_refs(struct str text, const char *ref, struct arena *arena,
                      struct found_ref *found)
{
    struct str line;
    const char *branch = arena_printf(arena, "refs/heads/%s", ref);
    const char *tag = arena_printf(arena, "refs/tags/%s", ref);
    const char *peeled = arena_printf(arena, "refs/tags/%s^{}", ref);
    while (str_next(&text, '\n', &line)) {
        struct str hex = str_sub(line, 0, SOURCE_COMMIT_HEX);
        struct str name = str_sub(line, SOURCE_COMMIT_HEX + 1, line.len);
        if (!source_is_commit(hex)) {
            continue;
        }
        if (str_eq_z(name, branch) || str_eq_z(name, ref)) {
            found->branch = hex;
        } else if (str_eq_z(name, tag)) {
            found->tag = hex;
        } else if (str_eq_z(name, peeled)) {
            found->peeled = hex;
        }
    }
}

int source_resolve(struct sources *sources, const char *url, const char *ref,
                   const char **ret_commit, struct err *err)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(GIT_OUTPUT_MAX);
    struct git_result result;
    struct found_ref found = {0};
    struct str tag;
    const struct git_call call = {.args = GIT_ARGS("ls-remote", "--quiet", "--", url, ref,
                                                   arena_printf(sources->git.arena, "%s^{}", ref)),
                                  .deadline_ns = PROBE_DEADLINE_NS};
    if (check_online(sources, url, err) < 0 ||
        git_run(&sources->git, &call, &out, &result, err) < 0) {
        return -1;
    }
    if (result.exit_status != 0) {
        return fail_remote(url, &result, err);
    }
    read_refs(strbuf_str(&out), ref, sources->git.arena, &found);
    tag = found.peeled.ptr ? found.peeled : found.tag;
    if (!tag.ptr && !found.branch.ptr) {
        return err_set(err, ERR_FETCH, "%.200s has no branch and no tag %s", url, ref);
    }
    if (tag.ptr && found.branch.ptr && !str_eq(tag, found.branch)) {
        return err_set(err, ERR_FETCH,
                       "%.200s has a branch and a tag %s, at different commits: say refs/heads/%s "
                       "or refs/tags/%s",
                       url, ref, ref, ref);
    }
    *ret_commit = str_z(sources->git.arena, tag.ptr ? tag : found.branch);
    return 0;
}

/* --- one repository ----------------------------------------------------------------------------------------------------------- */

static int make_repo(struct sources *sources, const char *repo, struct err *err)
{
    CLEANUP(temp) struct temp *made = NULL;
    if (fs_is_dir(repo)) {
        return 0;
    }
    if (source_make_tmp(sources, &made, err) < 0) {
        return -1;
    }
    const struct git_call call = {.args = GIT_ARGS("init", "--quiet", "--bare", "--template=",
                                                   "--object-format=sha1", made->path)};
    if (git_must(&sources->git, &call, NULL, ERR_IO, err) < 0 ||
        fs_mkdir_p(fs_join(sources->git.arena, made->path, "info"), err) < 0 ||
        fs_write_atomic(fs_join(sources->git.arena, made->path, "info/attributes"),
                        STR_LIT(ATTRIBUTES), err) < 0) {
        return -1;
    }
    /* Another process may have made it now. */
    return publish_tree(made->path, repo, err) < 0 && !fs_is_dir(repo) ? -1 : 0;
}

/* Git's own locks below a folder that nobody but us works on are of a git that was killed, or whose machine lost power. */
static void drop_dead_locks(struct arena *arena, const char *folder)
{
    struct fs_names names = {0};
    if (fs_list(arena, folder, &names, ERR_IGNORED) < 0) {
        return;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        const struct str name = str_of(names.items[idx]);
        if (str_ends(name, STR_LIT(".lock")) && !str_eq_z(name, REPO_LOCK)) {
            (void)unlink(fs_join(arena, folder, names.items[idx]));
        }
    }
}

/* One process at a time works on a repository. */
static int lock_repo(const struct sources *sources, const char *repo, int *ret_fd, struct err *err)
{
    struct arena *arena = sources->git.arena;
    if (fs_lock(fs_join(arena, repo, REPO_LOCK), ret_fd, err) < 0) {
        return -1;
    }
    drop_dead_locks(arena, repo);
    drop_dead_locks(arena, fs_join(arena, repo, REF_PREFIX));
    return 0;
}

static const char *ref_of(struct arena *arena, const char *commit)
{
    return arena_printf(arena, REF_PREFIX "%s", commit);
}

static int has_ref(struct sources *sources, const char *repo, const char *commit, bool *ret_has,
                   struct err *err)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(GIT_OUTPUT_MAX);
    struct git_result result;
    const char *ref = ref_of(sources->git.arena, commit);
    *ret_has = false;
    if (!fs_is_dir(repo)) {
        return 0;
    }
    const struct git_call call = {.git_dir = repo,
                                  .args = GIT_ARGS("rev-parse", "--quiet", "--verify", ref)};
    if (git_run(&sources->git, &call, &out, &result, err) < 0) {
        return -1;
    }
    struct str found = str_trim(strbuf_str(&out));
    *ret_has = result.exit_status == 0;
    return !*ret_has || str_eq_z(found, commit)
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s in %s is %.*s", ref, repo, STR_ARG(found));
}

/* The object that the id names must be a commit. */
static int check_type(struct sources *sources, const char *url, const char *repo,
                      const char *commit, struct err *err)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(4096);
    struct git_result result;
    if (git_run(&sources->git,
                &(struct git_call){.git_dir = repo, .args = GIT_ARGS("cat-file", "-t", commit)},
                &out, &result, err) < 0) {
        return -1;
    }
    struct str type = str_trim(strbuf_str(&out));
    if (result.exit_status != 0) {
        return err_set(err, ERR_FETCH, "%.200s has no commit %s (it is on no branch or tag)", url,
                       commit);
    }
    return str_eq_z(type, "commit")
               ? 0
               : err_set(err, ERR_MANIFEST,
                         "%.200s: %s is a %.*s, not a commit: pin the commit that it refers to",
                         url, commit, STR_ARG(type));
}

/* The reference says that all is there: git syncs neither loose objects nor folders. */
static int set_ref(struct sources *sources, const char *repo, const char *commit, struct err *err)
{
    const struct git_call call = {
        .git_dir = repo,
        .args = GIT_ARGS("update-ref", ref_of(sources->git.arena, commit), commit)};
    return publish_all(sources->store->lock_fd, repo, err) < 0 ||
                   git_must(&sources->git, &call, NULL, ERR_INTEGRITY, err) < 0
               ? -1
               : publish_all(sources->store->lock_fd, repo, err);
}

/* Servers that provide only the commits of their refs: all branches and tags, with their histories. */
static int fetch_refs(struct sources *sources, const char *url, const struct source_part *part,
                      bool is_dumb, struct err *err)
{
    struct git_result result;
    /* A dumb server has no parts: git would fetch each missing object by a fetch of its own, without end. */
    const bool is_part = part->paths && !is_dumb;
    const struct git_call call = {
        .git_dir = part->repo,
        .part_of = is_part ? url : NULL,
        .args = GIT_ARGS("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--force",
                         is_dumb ? "--jobs=1" : "--depth=2147483647",
                         is_part ? "--filter=blob:none" : "--quiet", "--", is_part ? "part" : url,
                         "+refs/heads/*:refs/reperf-heads/*", "+refs/tags/*:refs/reperf-tags/*"),
        .deadline_ns = FETCH_DEADLINE_NS};
    log_line(LOG_INFO, "%s does not serve single commits: fetching its branches and tags instead",
             url);
    if (git_run(&sources->git, &call, NULL, &result, err) < 0) {
        return -1;
    }
    return result.exit_status == 0 ? 0 : fail_remote(url, &result, err);
}

/* Whatever the transport: what a dumb server gives does not come through git's own check of received packs (fetch.fsckObjects).
   A part lacks blobs; source_find_selection looks for those that it must have. */
static int check_objects(struct sources *sources, const struct source_part *part, const char *depth,
                         struct err *err)
{
    struct git_result result;
    const int allowed = part->paths ? FSCK_MISSING : 0;
    const struct git_call call = {.git_dir = part->repo,
                                  .part_of = part->paths ? part->url : NULL,
                                  .args = GIT_ARGS("fsck", depth, "--strict", "--no-dangling",
                                                   "--no-progress", part->commit)};
    if (git_run(&sources->git, &call, NULL, &result, err) < 0) {
        return -1;
    }
    return (result.exit_status & ~allowed) == 0
               ? 0
               : err_set(err, ERR_INTEGRITY, "git fsck of %.200s: status %d: %.*s", part->url,
                         result.exit_status, STR_ARG(result.error));
}

/* From one address. The id is the check: whatever the origin, the bytes hash to it or git refuses them. */
static int fetch_from(struct sources *sources, const char *url, struct source_part *part,
                      struct err *err)
{
    const char *commit = part->commit;
    struct git_result result;
    const bool is_part = part->paths;
    const struct git_call call = {.git_dir = part->repo,
                                  .part_of = is_part ? url : NULL,
                                  .args = GIT_ARGS("fetch", "--quiet", "--no-tags",
                                                   "--no-write-fetch-head", "--depth=1",
                                                   is_part ? "--filter=blob:none" : "--quiet",
                                                   source_upload_pack(sources->git.arena, url),
                                                   "--", is_part ? "part" : url, commit),
                                  .deadline_ns = FETCH_DEADLINE_NS};
    if (git_run(&sources->git, &call, NULL, &result, err) < 0) {
        return -1;
    }
    bool is_refused = says(result.error, "unadvertised object");
    bool is_dumb = says(result.error, "dumb http");
    if (result.exit_status != 0 && says(result.error, "not our ref")) {
        return err_set(err, ERR_FETCH, "%.200s has no commit %s", url, commit);
    }
    if (result.exit_status != 0 && (is_refused || is_dumb)) {
        if (fetch_refs(sources, url, part, is_dumb, err) < 0) {
            return -1;
        }
    } else if (result.exit_status != 0) {
        return fail_remote(url, &result, err);
    }
    if (check_type(sources, url, part->repo, commit, err) < 0) {
        return -1;
    }
    result.exit_status = 0;
    if (is_part && (is_dumb ? source_find_selection(sources, part, err)
                            : source_fetch_blobs(sources, url, part, &result, err)) < 0) {
        return -1;
    }
    if (result.exit_status != 0) {
        return fail_remote(url, &result, err);
    }
    return check_objects(sources, part, "--full", err) < 0
               ? -1
               : set_ref(sources, part->repo, commit, err);
}

/* For a part: addresses that have the whole repository come before those that have only the part. */
static int fetch_from_mirror(struct sources *sources, struct source_part *part, bool *ret_has,
                             struct err *err)
{
    const char *const repos[] = {part->whole_repo, part->repo};
    *ret_has = false;
    for (size_t idx = part->paths ? 0 : 1; idx < ARRAY_LEN(repos) && !*ret_has; idx++) {
        struct err first = {0};
        char *mirror = NULL;
        if (net_mirror_url(
                sources->git.arena, sources->net,
                arena_printf(sources->git.arena, "sources/%s", strrchr(repos[idx], '/') + 1),
                &mirror, err) < 0) {
            return -1;
        }
        if (!mirror || !net_allows_url(sources->net, mirror)) {
            continue;
        }
        *ret_has = fetch_from(sources, mirror, part, &first) == 0;
        if (first.code == ERR_INTERRUPTED ||
            first.code == ERR_MANIFEST) { /* otherwise nobody has it */
            *err = first;
            return -1;
        }
        if (!*ret_has) {
            log_line(LOG_INFO, "the mirror does not have it: %s", first.msg);
        }
    }
    return 0;
}

static int fetch_repo(struct sources *sources, struct source_part *part, struct err *err)
{
    CLEANUP(fd) int lock_fd = -1;
    bool has;
    if (make_repo(sources, part->repo, err) < 0 ||
        lock_repo(sources, part->repo, &lock_fd, err) < 0 ||
        has_ref(sources, part->repo, part->commit, &has, err) < 0) {
        return -1;
    }
    if (has) {
        return part->paths ? source_find_selection(sources, part, err) : 0;
    }
    part->is_new = true;
    if (fetch_from_mirror(sources, part, &has, err) < 0) {
        return -1;
    }
    if (has) {
        return 0;
    }
    if (check_online(sources, part->url, err) < 0) {
        return -1;
    }
    log_line(LOG_INFO, "fetching %s at %s", part->url, part->commit);
    return fetch_from(sources, part->url, part, err);
}

/* --- the repository and its submodules ---------------------------------------------------------------------------------------- */

static int check_repo(struct sources *sources, struct source_part *part, bool is_deep,
                      struct err *err)
{
    bool has;
    if (has_ref(sources, part->repo, part->commit, &has, err) < 0) {
        return -1;
    }
    if (!has) {
        return err_set(err, ERR_NOT_FOUND, "the store does not have %.200s at %s", part->url,
                       part->commit);
    }
    if (part->paths && source_find_selection(sources, part, err) < 0) {
        return -1;
    }
    return part->paths && !is_deep
               ? 0
               : check_objects(sources, part, is_deep ? "--full" : "--connectivity-only", err);
}

static int find_tree(struct sources *sources, struct source_part *part, struct err *err)
{
    return git_hex(&sources->git,
                   &(struct git_call){.git_dir = part->repo,
                                      .args = GIT_ARGS("rev-parse", "--verify",
                                                       arena_printf(sources->git.arena, "%s^{tree}",
                                                                    part->commit))},
                   &part->tree, err);
}

/* Where the whole commit is, its part is taken from there. */
static int set_repo(struct sources *sources, struct source_part *part, struct err *err)
{
    struct arena *arena = sources->git.arena;
    bool has = true;
    const char *name = source_repo_name(arena, part->url);
    part->whole_repo = store_path(sources->store, arena_printf(arena, "sources/%s.git", name));
    part->repo = part->whole_repo;
    if (part->paths && has_ref(sources, part->repo, part->commit, &has, err) < 0) {
        return -1;
    }
    if (!has) {
        const char *pin = arena_printf(arena, "%s:%s", part->commit, part->paths);
        const char *suffix = source_folder_name(arena, str_of(pin)) + SOURCE_COMMIT_HEX + 1;
        part->repo =
            store_path(sources->store, arena_printf(arena, "sources/%s.%s.git", name, suffix));
    }
    return 0;
}

static int add_submodules(struct sources *sources, struct source_tree *tree, size_t at,
                          struct err *err)
{
    struct arena *arena = sources->git.arena;
    const struct source_part part = tree->parts[at];
    struct gitlinks links;
    if (source_gitlinks(sources, &part, &links, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < links.n; idx++) {
        struct source_part sub = {.path = strcmp(part.path, ".") == 0
                                              ? links.items[idx].path
                                              : fs_join(arena, part.path, links.items[idx].path),
                                  .commit = links.items[idx].commit,
                                  .depth = part.depth + 1};
        char *url;
        if (tree->n == SOURCE_PARTS_MAX || sub.depth > SOURCE_DEPTH_MAX) {
            return err_set(err, ERR_INTEGRITY,
                           "%.200s has more than %d submodules, or more than %d inside each other",
                           tree->parts[0].url, SOURCE_PARTS_MAX, SOURCE_DEPTH_MAX);
        }
        if (!links.items[idx].url) {
            log_line(LOG_WARN, "submodule %s of %s: .gitmodules does not say where it is", sub.path,
                     part.url);
        } else {
            if (source_resolve_url(arena, part.url, str_of(links.items[idx].url), &url, err) < 0) {
                return err_wrap(err, "submodule %.100s", sub.path);
            }
            sub.url = url;
        }
        tree->parts[tree->n++] = sub;
    }
    return 0;
}

enum how { HOW_FETCH, HOW_VERIFY, HOW_VERIFY_DEEP };

static int walk(struct sources *sources, const char *url, const char *text, enum how how,
                struct source_tree *ret_tree, struct err *err)
{
    struct source_pin pin;
    struct source_tree tree = {
        arena_array(sources->git.arena, struct source_part, SOURCE_PARTS_MAX), 1};
    if (source_check_url(str_of(url), err) < 0) {
        return -1;
    }
    if (source_parse_pin(sources->git.arena, text, &pin, err) < 0) {
        return err_wrap(err, "%.200s", url);
    }
    tree.parts[0] =
        (struct source_part){.path = ".", .url = url, .commit = pin.commit, .paths = pin.paths};
    for (size_t idx = 0; idx < tree.n; idx++) {
        struct source_part *part = &tree.parts[idx];
        if (!part->url) {
            continue;
        }
        int result = set_repo(sources, part, err);
        if (result == 0) {
            result = how == HOW_FETCH ? fetch_repo(sources, part, err)
                                      : check_repo(sources, part, how == HOW_VERIFY_DEEP, err);
        }
        if (result < 0 || find_tree(sources, part, err) < 0) {
            return idx ? err_wrap(err, "submodule %.100s", part->path) : -1;
        }
        if (add_submodules(sources, &tree, idx, err) < 0) {
            return -1;
        }
    }
    *ret_tree = tree;
    return 0;
}

int source_fetch(struct sources *sources, const char *url, const char *pin,
                 struct source_tree *ret_tree, struct err *err)
{
    return walk(sources, url, pin, HOW_FETCH, ret_tree, err);
}

int source_verify(struct sources *sources, const char *url, const char *pin, bool is_deep,
                  struct source_tree *ret_tree, struct err *err)
{
    return walk(sources, url, pin, is_deep ? HOW_VERIFY_DEEP : HOW_VERIFY, ret_tree, err);
}

void source_lock_of(struct arena *arena, const struct source_tree *tree, const char *id,
                    const char *ref, const char *date, struct lock *ret_lock)
{
    struct lock lock = {.kind = LOCK_SOURCE,
                        .id = str_of(id),
                        .items = arena_array(arena, struct lock_item, tree->n),
                        .n_items = tree->n,
                        .n_files = -1,
                        .file_bytes = -1};
    for (size_t idx = 0; idx < tree->n; idx++) {
        const struct source_part *part = &tree->parts[idx];
        lock.items[idx] = (struct lock_item){.name = str_of(part->path),
                                             .size_bytes = -1,
                                             .ref = idx == 0 ? str_of(ref) : STR_EMPTY,
                                             .commit = str_of(part->commit),
                                             .tree = str_of(part->tree),
                                             .paths = str_of(part->paths),
                                             .selection = str_of(part->selection),
                                             .url = str_of(part->url),
                                             .date = str_of(date)};
    }
    if (tree->parts[0].paths) {
        lock.n_files = (int64_t)tree->parts[0].n_files;
    }
    *ret_lock = lock;
}
