/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/ssh_plan.h"

#include <errno.h>
#include <glob.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "net/ssh_known.h"

#define CONNECT_TIMEOUT_S 10
#define ALIVE_INTERVAL_S  10
#define ALIVE_COUNT_MAX   3

struct ssh_planner {
    struct arena *arena;
    const struct ssh_plan_opts *opts;
    const char *home;
    const char *local_user;
    const char *folder; /* the folder that Include is relative to */
    bool has_config;
    struct ssh_config_text config;
};

/* ---- reading ---- */

static void globbed_cleanup(glob_t *found)
{
    globfree(found);
}

static int include_files(void *ctx, struct arena *arena, const char *pattern,
                         struct ssh_config_text **ret_texts, size_t *ret_n, struct err *err)
{
    struct ssh_planner *planner = ctx;
    const struct ssh_tokens tokens = {.home = planner->home,
                                      .host = "",
                                      .original_host = "",
                                      .user = "",
                                      .local_user = planner->local_user};
    CLEANUP(globbed) glob_t found = {0};
    const char *path;
    int status;
    if (ssh_config_expand(arena, pattern, &tokens, &path, err) < 0) {
        return -1;
    }
    path = path[0] == '/' ? path : arena_printf(arena, "%s/%s", planner->folder, path);
    status = glob(path, 0, NULL, &found);
    *ret_n = 0;
    if (status == GLOB_NOMATCH) {
        return 0;
    }
    if (status != 0 || found.gl_pathc > SSH_CONFIG_FILES_MAX) {
        return err_set(err, ERR_IO, "Include %s: cannot be listed", pattern);
    }
    *ret_texts = arena_array(arena, struct ssh_config_text, found.gl_pathc + 1);
    for (size_t idx = 0; idx < found.gl_pathc; idx++) {
        struct ssh_config_text *text = &(*ret_texts)[idx];
        text->name = arena_printf(arena, "%s", found.gl_pathv[idx]);
        if (fs_read(arena, text->name, SSH_CONFIG_TEXT_MAX, &text->text, err) < 0) {
            return -1;
        }
    }
    *ret_n = found.gl_pathc;
    return 0;
}

static int find_self(struct ssh_planner *planner, struct err *err)
{
    const struct passwd *self = getpwuid(geteuid());
    const char *home = getenv("HOME");
    if (!home || !*home) {
        home = self ? self->pw_dir : NULL;
    }
    if (!home || !self) {
        return err_set(err, ERR_USAGE,
                       "SSH: neither HOME nor the password file has our home folder");
    }
    planner->home = arena_printf(planner->arena, "%s", home);
    planner->local_user = arena_printf(planner->arena, "%s", self->pw_name);
    planner->folder = arena_printf(planner->arena, "%s/.ssh", home);
    return 0;
}

static int read_config(struct ssh_planner *planner, struct err *err)
{
    const char *path = planner->opts->config_path;
    bool is_named = true;
    if (!path) {
        path = getenv("REPERF_SSH_CONFIG");
    }
    if (!path || !*path) {
        path = arena_printf(planner->arena, "%s/config", planner->folder);
        is_named = false;
    }
    if (!is_named && !fs_exists(path)) {
        return 0;
    }
    planner->config.name = arena_printf(planner->arena, "%s", path);
    planner->has_config = true;
    return fs_read(planner->arena, path, SSH_CONFIG_TEXT_MAX, &planner->config.text, err);
}

/* ---- one stop ---- */

static int expand_all(struct ssh_planner *planner, const char *const *texts, size_t n,
                      const struct ssh_tokens *tokens, const char **ret_paths, struct err *err)
{
    for (size_t idx = 0; idx < n; idx++) {
        if (ssh_config_expand(planner->arena, texts[idx], tokens, &ret_paths[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int find_known_files(struct ssh_planner *planner, const struct ssh_settings *settings,
                            const struct ssh_tokens *tokens, struct ssh_target *target,
                            struct err *err)
{
    static const char *const USER[] = {"~/.ssh/known_hosts", "~/.ssh/known_hosts2"};
    static const char *const GLOBAL[] = {"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"};
    const char *const *user = settings->n_known_files ? settings->known_files : USER;
    const char *const *global =
        settings->n_global_known_files ? settings->global_known_files : GLOBAL;
    size_t n_user = settings->n_known_files ? settings->n_known_files : ARRAY_LEN(USER);
    size_t n_global =
        settings->n_global_known_files ? settings->n_global_known_files : ARRAY_LEN(GLOBAL);
    target->known_files = arena_array(planner->arena, const char *, n_user + n_global);
    target->n_known_files = n_user + n_global;
    return expand_all(planner, user, n_user, tokens, target->known_files, err) < 0 ||
                   expand_all(planner, global, n_global, tokens, target->known_files + n_user,
                              err) < 0
               ? -1
               : 0;
}

static int find_identities(struct ssh_planner *planner, const struct ssh_settings *settings,
                           const struct ssh_tokens *tokens, struct ssh_target *target,
                           struct err *err)
{
    static const char *const DEFAULT[] = {"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"};
    const char *agent = settings->identity_agent;
    size_t n = settings->n_identity_files;
    target->are_identities_default = n == 0;
    target->n_identity_files = n ? n : ARRAY_LEN(DEFAULT);
    target->identity_files = arena_array(planner->arena, const char *, target->n_identity_files);
    target->has_identities_only = settings->identities_only > 0;
    if (!agent || strcmp(agent, "SSH_AUTH_SOCK") == 0 || strcmp(agent, "$SSH_AUTH_SOCK") == 0) {
        const char *socket_path = getenv("SSH_AUTH_SOCK");
        target->agent_path =
            socket_path && *socket_path ? arena_printf(planner->arena, "%s", socket_path) : NULL;
    } else if (strcmp(agent, "none") != 0 &&
               ssh_config_expand(planner->arena, agent, tokens, &target->agent_path, err) < 0) {
        return -1;
    }
    return expand_all(planner, n ? settings->identity_files : DEFAULT, target->n_identity_files,
                      tokens, target->identity_files, err);
}

static int make_target(struct ssh_planner *planner, const struct ssh_jump *stop,
                       const struct ssh_settings *settings, struct ssh_target *target,
                       struct err *err)
{
    struct ssh_tokens tokens = {.home = planner->home,
                                .host = stop->host,
                                .original_host = stop->host,
                                .local_user = planner->local_user};
    int64_t timeout_s =
        settings->connect_timeout_s > 0 ? settings->connect_timeout_s : CONNECT_TIMEOUT_S;
    int64_t alive_s =
        settings->alive_interval_s >= 0 ? settings->alive_interval_s : ALIVE_INTERVAL_S;
    const char *known = settings->host_key_alias;
    target->port = stop->port ? stop->port : settings->port ? settings->port : 22;
    target->user = stop->user ? stop->user : settings->user ? settings->user : planner->local_user;
    tokens.port = target->port;
    tokens.user = target->user;
    target->host = stop->host;
    if (settings->host_name &&
        ssh_config_expand(planner->arena, settings->host_name, &tokens, &target->host, err) < 0) {
        return -1;
    }
    tokens.host = target->host;
    target->host = arena_printf(planner->arena, "%s", target->host);
    target->user = arena_printf(planner->arena, "%s", target->user);
    target->label = arena_printf(planner->arena, "%s@%s:%lld", target->user, target->host,
                                 (long long)target->port);
    target->family = settings->family;
    target->known_name =
        ssh_known_name(planner->arena, known ? known : target->host, known ? 22 : target->port);
    if (!known && target->port != 22) {
        target->known_name_plain = ssh_known_name(planner->arena, target->host, 22);
    }
    target->accepts_new = settings->strict == SSH_STRICT_ACCEPT_NEW;
    target->connect_timeout_ns = planner->opts->connect_timeout_ns
                                     ? planner->opts->connect_timeout_ns
                                     : timeout_s * NS_PER_S;
    /* libssh2 sends no keepalive within two seconds of the last. */
    target->alive_interval_ns = (alive_s == 1 ? 2 : alive_s) * NS_PER_S;
    target->alive_count_max =
        settings->alive_count_max > 0 ? settings->alive_count_max : ALIVE_COUNT_MAX;
    return find_known_files(planner, settings, &tokens, target, err) < 0 ||
                   find_identities(planner, settings, &tokens, target, err) < 0
               ? -1
               : 0;
}

static int read_settings(struct ssh_planner *planner, const struct ssh_jump *stop,
                         struct ssh_settings *settings, struct err *err)
{
    struct ssh_config_ask ask = {.host = stop->host,
                                 .user = stop->user,
                                 .local_user = planner->local_user,
                                 .include = include_files,
                                 .include_ctx = planner};
    *settings = SSH_SETTINGS_EMPTY;
    return planner->has_config
               ? ssh_config_read(settings, planner->arena, &ask, &planner->config, err)
               : 0;
}

/* ---- the stops ---- */

static bool has_jump(const struct ssh_settings *settings)
{
    return settings->proxy_jump && strcasecmp(settings->proxy_jump, "none") != 0;
}

/* From the node back to the first stop without a ProxyJump. In a list a,b: b is reached from a, whatever b's own entry
   says; a's own entry decides what comes before a. */
static int make_way(struct ssh_planner *planner, struct ssh_plan *plan, struct err *err)
{
    struct ssh_target back[SSH_HOPS_MAX];
    size_t n = 0;
    struct ssh_jump stop = {planner->opts->user, planner->opts->host, planner->opts->port};
    struct str rest = STR_EMPTY; /* of a list, the part before the current stop */
    for (;;) {
        struct ssh_settings settings;
        const char *comma;
        bool is_listed = rest.ptr != NULL;
        if (n == SSH_HOPS_MAX) {
            return err_set(err, ERR_USAGE, "%s: more than %d stops by ProxyJump",
                           planner->opts->host, SSH_HOPS_MAX);
        }
        back[n] = (struct ssh_target){0};
        if (read_settings(planner, &stop, &settings, err) < 0 ||
            make_target(planner, &stop, &settings, &back[n], err) < 0) {
            return -1;
        }
        n++;
        if (!(is_listed && rest.len)) {
            if (!has_jump(&settings)) {
                break;
            }
            rest = str_of(settings.proxy_jump);
        }
        comma = memrchr(rest.ptr, ',', rest.len);
        if (ssh_jump_parse(
                planner->arena,
                comma ? (struct str){comma + 1, rest.len - (size_t)(comma + 1 - rest.ptr)} : rest,
                &stop, err) < 0) {
            return err_wrap(err, "%s: ProxyJump", planner->opts->host);
        }
        rest = (struct str){rest.ptr, comma ? (size_t)(comma - rest.ptr) : 0};
    }
    plan->n_targets = n;
    for (size_t idx = 0; idx < n; idx++) {
        plan->targets[idx] = back[n - 1 - idx];
    }
    return 0;
}

int ssh_plan_make(struct ssh_plan *plan, const struct ssh_plan_opts *opts, struct err *err)
{
    struct ssh_planner planner = {.arena = &plan->arena, .opts = opts};
    *plan = (struct ssh_plan){.arena = ARENA_EMPTY};
    if (find_self(&planner, err) < 0 || read_config(&planner, err) < 0 ||
        make_way(&planner, plan, err) < 0) {
        ssh_plan_release(plan);
        return -1;
    }
    return 0;
}

void ssh_plan_release(struct ssh_plan *plan)
{
    arena_release(&plan->arena);
    *plan = (struct ssh_plan){.arena = ARENA_EMPTY};
}
