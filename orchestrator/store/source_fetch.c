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
#include "codec/pattern.h"
#include "report/source.h"

#define PROBE_DEADLINE_NS (30 * NS_PER_S)
#define FETCH_DEADLINE_NS (6LL * 3600 * NS_PER_S)
#define REPO_LOCK         "reperf.lock"
#define REF_PREFIX        "refs/reperf/"
/* Source: git's builtin/fsck.c, ERROR_REACHABLE: an object that another names is not there. */
#define FSCK_MISSING 2

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

/* --- a server's answers ------------------------------------------------------------------------------------------- */

static bool says(struct str text, const char *form)
{
    struct patterns patterns = {0};
    bool is_found = patterns_find(&patterns, form, text, NULL, 0);
    patterns_release(&patterns);
    return is_found;
}

static int fail_remote(const char *url, const struct git_result *result, struct err *err)
{
    bool is_closed =
        says(result->error, "could not read (Username|Password)|Authentication failed|Permission "
                            "denied|returned error: 40[13]|Host key verification");
    bool is_down = says(result->error,
                        "Could not resolve host|Failed to connect|Connection refused|unable to "
                        "connect|Couldn't connect|returned error: 5|timed out|early EOF|hung up "
                        "unexpectedly");
    return err_set(err,
                   is_closed ? ERR_AUTH
                   : is_down ? ERR_NET
                             : ERR_FETCH,
                   "%.200s cannot be %s: %.*s", url,
                   is_closed ? "cloned without a login" : "cloned", STR_ARG(result->error));
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

/* Lines "HEX\tREF" of ls-remote, a tag's commit, REF^{}, after the tag itself. */
static void read_refs(struct arena *arena, struct str text, const char *ref, struct str *branch,
                      struct str *tag)
{
    const struct str peeled = str_printf(arena, "%s^{}", ref);
    struct str line;
    while (str_next(&text, '\n', &line)) {
        struct str hex = str_sub(line, 0, SOURCE_COMMIT_HEX);
        struct str name = str_sub(line, SOURCE_COMMIT_HEX + 1, line.len), end = name;
        bool is_tag = str_starts(name, STR_LIT("refs/tags/"));
        if (is_tag || str_starts(name, STR_LIT("refs/heads/"))) {
            end = str_sub(name, strlen(is_tag ? "refs/tags/" : "refs/heads/"), name.len);
        }
        if (source_is_commit(hex) && (str_eq_z(end, ref) || str_eq(end, peeled) ||
                                      str_eq_z(name, ref) || str_eq(name, peeled))) {
            *(is_tag ? tag : branch) = hex;
        }
    }
}

int source_resolve(struct sources *sources, const char *url, const char *ref,
                   const char **ret_commit, struct err *err)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(GIT_OUTPUT_MAX);
    struct arena *arena = sources->git.arena;
    struct git_result result;
    struct str branch = STR_EMPTY, tag = STR_EMPTY;
    const struct git_call call = {
        .args = GIT_ARGS("ls-remote", "--quiet", "--", url, ref, arena_printf(arena, "%s^{}", ref)),
        .deadline_ns = PROBE_DEADLINE_NS};
    if (check_online(sources, url, err) < 0 ||
        git_run(&sources->git, &call, &out, &result, err) < 0) {
        return -1;
    }
    if (result.exit_status != 0) {
        return fail_remote(url, &result, err);
    }
    read_refs(arena, strbuf_str(&out), ref, &branch, &tag);
    if (!tag.ptr && !branch.ptr) {
        return err_set(err, ERR_FETCH, "%.200s has no branch and no tag %s", url, ref);
    }
    if (tag.ptr && branch.ptr && !str_eq(tag, branch)) {
        return err_set(err, ERR_FETCH,
                       "%.200s has a branch and a tag %s, at different commits: say refs/heads/%s "
                       "or refs/tags/%s",
                       url, ref, ref, ref);
    }
    *ret_commit = str_z(arena, tag.ptr ? tag : branch);
    return 0;
}

/* --- one repository ----------------------------------------------------------------------------------------------- */

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

/* A damaged reference is none: the commit is fetched again. */
static bool has_ref(struct sources *sources, const char *repo, const char *commit)
{
    struct arena *arena = sources->git.arena;
    const char *path = arena_printf(arena, "%s/" REF_PREFIX "%s", repo, commit);
    struct str text;
    return fs_read(arena, path, SOURCE_COMMIT_HEX + 1, &text, ERR_IGNORED) == 0 &&
           str_eq_z(str_trim(text), commit);
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
        .args = GIT_ARGS("update-ref", arena_printf(sources->git.arena, REF_PREFIX "%s", commit),
                         commit)};
    return publish_all(sources->store->lock_fd, repo, err) < 0 ||
                   git_must(&sources->git, &call, NULL, ERR_INTEGRITY, err) < 0
               ? -1
               : publish_all(sources->store->lock_fd, repo, err);
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

struct fetch_call {
    const char *url;
    struct source_part *part;
    bool is_partial; /* blobs are not sent unless they are asked for */
    const char *option, *refs[2];
    const char *input_path;
};

static int run_fetch(struct sources *sources, const struct fetch_call *fetch,
                     struct git_result *ret_result, struct err *err)
{
    /* For a local repository we decide what it provides; otherwise its server does. */
    const char *provided = strncmp(fetch->url, "file:", 5) == 0
                               ? "--upload-pack=git -c safe.directory=* -c "
                                 "uploadpack.allowFilter=true -c "
                                 "uploadpack.allowAnySHA1InWant=true upload-pack"
                               : "--quiet";
    const struct git_call call = {
        .git_dir = fetch->part->repo,
        .part_of = fetch->is_partial ? fetch->url : NULL,
        .args =
            GIT_ARGS("fetch", "--quiet", "--no-tags", "--no-write-fetch-head",
                     fetch->is_partial ? "--filter=blob:none" : "--quiet", provided, fetch->option,
                     "--", fetch->is_partial ? "part" : fetch->url, fetch->refs[0], fetch->refs[1]),
        .input_path = fetch->input_path,
        .deadline_ns = FETCH_DEADLINE_NS};
    return git_run(&sources->git, &call, NULL, ret_result, err);
}

/* Once the trees are there, the blobs of a part, but of a server that has sent them already. */
static int fetch_blobs(struct sources *sources, struct fetch_call fetch, struct err *err)
{
    CLEANUP(temp) struct temp *tmp = NULL;
    struct source_part *part = fetch.part;
    struct err absent = {0};
    struct git_result result;
    if (source_find_selection(sources, part, &absent) == 0) {
        return 0;
    }
    if (!part->entries.ptr || absent.code != ERR_INTEGRITY || !fetch.is_partial) {
        return err_pass(err, &absent);
    }
    if (source_make_tmp(sources, &tmp, err) < 0) {
        return -1;
    }
    fetch.option = "--stdin";
    fetch.refs[0] = NULL;
    fetch.input_path = fs_join(sources->git.arena, tmp->path, "ids");
    if (source_list_blobs(part, fetch.input_path, err) < 0 ||
        run_fetch(sources, &fetch, &result, err) < 0) {
        return -1;
    }
    return result.exit_status != 0 ? fail_remote(fetch.url, &result, err)
                                   : source_find_selection(sources, part, err);
}

/* From one address. The id is the check: whatever the origin, the bytes hash to it or git refuses them. */
static int fetch_from(struct sources *sources, const char *url, struct source_part *part,
                      struct err *err)
{
    struct fetch_call fetch = {url, part, part->paths, "--depth=1", {part->commit}, NULL};
    struct git_result result;
    if (run_fetch(sources, &fetch, &result, err) < 0) {
        return -1;
    }
    bool is_dumb = says(result.error, "dumb http");
    if (result.exit_status != 0 && (is_dumb || says(result.error, "unadvertised object"))) {
        log_line(LOG_INFO,
                 "%s does not serve single commits: fetching its branches and tags instead", url);
        /* A dumb server has no parts: git would fetch each missing object by a fetch of its own, without end. */
        fetch.is_partial &= !is_dumb;
        fetch.option = is_dumb ? "--jobs=1" : "--depth=2147483647";
        fetch.refs[0] = "+refs/heads/*:refs/reperf-heads/*";
        fetch.refs[1] = "+refs/tags/*:refs/reperf-tags/*";
        if (run_fetch(sources, &fetch, &result, err) < 0) {
            return -1;
        }
    }
    if (result.exit_status != 0) {
        return says(result.error, "not our ref")
                   ? err_set(err, ERR_FETCH, "%.200s has no commit %s", url, part->commit)
                   : fail_remote(url, &result, err);
    }
    fetch.refs[1] = NULL;
    return check_type(sources, url, part->repo, part->commit, err) < 0 ||
                   (part->paths && fetch_blobs(sources, fetch, err) < 0) ||
                   check_objects(sources, part, "--full", err) < 0
               ? -1
               : set_ref(sources, part->repo, part->commit, err);
}

/* The mirror comes first; of a part, its whole repository before one that has only the part. */
static int fetch_repo(struct sources *sources, struct source_part *part, struct err *err)
{
    CLEANUP(fd) int lock_fd = -1;
    struct arena *arena = sources->git.arena;
    const char *const repos[] = {part->whole_repo, part->repo};
    if (make_repo(sources, part->repo, err) < 0 ||
        lock_repo(sources, part->repo, &lock_fd, err) < 0) {
        return -1;
    }
    if (has_ref(sources, part->repo, part->commit)) {
        return part->paths ? source_find_selection(sources, part, err) : 0;
    }
    part->is_new = true;
    for (size_t idx = part->paths ? 0 : 1; idx < ARRAY_LEN(repos); idx++) {
        const char *name = arena_printf(arena, "sources/%s", strrchr(repos[idx], '/') + 1);
        struct err why = {0};
        char *mirror = NULL;
        if (net_mirror_url(arena, sources->net, name, &mirror, err) < 0) {
            return -1;
        }
        if (!mirror || !net_allows_url(sources->net, mirror)) {
            continue;
        }
        if (fetch_from(sources, mirror, part, &why) == 0) {
            return 0;
        }
        if (why.code == ERR_INTERRUPTED || why.code == ERR_MANIFEST) { /* otherwise nobody has it */
            return err_pass(err, &why);
        }
        log_line(LOG_INFO, "the mirror does not have it: %s", why.msg);
    }
    if (check_online(sources, part->url, err) < 0) {
        return -1;
    }
    log_line(LOG_INFO, "fetching %s at %s", part->url, part->commit);
    return fetch_from(sources, part->url, part, err);
}

/* --- the repository and its submodules ---------------------------------------------------------------------------- */

static int check_repo(struct sources *sources, struct source_part *part, bool is_deep,
                      struct err *err)
{
    if (!has_ref(sources, part->repo, part->commit)) {
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
static void set_repo(struct sources *sources, struct source_part *part)
{
    struct arena *arena = sources->git.arena;
    const char *name = source_repo_name(arena, part->url);
    part->whole_repo = store_path(sources->store, arena_printf(arena, "sources/%s.git", name));
    part->repo = part->whole_repo;
    if (part->paths && !has_ref(sources, part->repo, part->commit)) {
        const char *pin = arena_printf(arena, "%s:%s", part->commit, part->paths);
        const char *suffix = source_folder_name(arena, str_of(pin)) + SOURCE_COMMIT_HEX + 1;
        part->repo =
            store_path(sources->store, arena_printf(arena, "sources/%s.%s.git", name, suffix));
    }
}

static int add_submodules(struct sources *sources, struct source_tree *tree, size_t at,
                          struct err *err)
{
    const struct source_part part = tree->parts[at];
    const size_t first = tree->n;
    if (source_gitlinks(sources, &part, tree, err) < 0) {
        return -1;
    }
    for (size_t idx = first; idx < tree->n; idx++) {
        struct source_part *sub = &tree->parts[idx];
        char *url = NULL;
        if (!sub->url) {
            log_line(LOG_WARN, "submodule %s of %s: .gitmodules does not say where it is",
                     sub->path, part.url);
        } else if (source_resolve_url(sources->git.arena, part.url, str_of(sub->url), &url, err) <
                   0) {
            return err_wrap(err, "submodule %.100s", sub->path);
        }
        sub->url = url;
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
        set_repo(sources, part);
        int result = how == HOW_FETCH ? fetch_repo(sources, part, err)
                                      : check_repo(sources, part, how == HOW_VERIFY_DEEP, err);
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
