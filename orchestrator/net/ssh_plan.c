/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/ssh_plan.h"

#include <pwd.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/ssh_known.h"

#define CONNECT_TIMEOUT_S 10
#define ALIVE_INTERVAL_S  10
#define ALIVE_COUNT_MAX   3
#define SECONDS_MAX       315360000       /* ten years */
#define ASK_DEADLINE_NS   (60 * NS_PER_S) /* a Match exec may look names up */
#define ANSWER_MAX        (256u << 10)
#define PATH_MAX_BYTES    4096

/* ---- one answer ---- */

enum answer_kind { ANSWER_TEXT, ANSWER_NUMBER, ANSWER_IDENTITY, ANSWER_REFUSED };

#define AT(field) offsetof(struct ssh_answer, field)

static const struct answer_row {
    const char *name;
    enum answer_kind kind;
    size_t offset;
    const char *fine[2]; /* ANSWER_REFUSED: the values that ask for nothing */
    const char *instead;
} ROWS[] = {
    {.name = "hostname", .kind = ANSWER_TEXT, .offset = AT(host_name)},
    {.name = "user", .kind = ANSWER_TEXT, .offset = AT(user)},
    {.name = "port", .kind = ANSWER_NUMBER, .offset = AT(port)},
    {.name = "proxyjump", .kind = ANSWER_TEXT, .offset = AT(proxy_jump)},
    {.name = "hostkeyalias", .kind = ANSWER_TEXT, .offset = AT(host_key_alias)},
    {.name = "identityagent", .kind = ANSWER_TEXT, .offset = AT(identity_agent)},
    {.name = "identityfile", .kind = ANSWER_IDENTITY},
    {.name = "identitiesonly", .kind = ANSWER_TEXT, .offset = AT(identities_only)},
    {.name = "userknownhostsfile", .kind = ANSWER_TEXT, .offset = AT(known_files)},
    {.name = "globalknownhostsfile", .kind = ANSWER_TEXT, .offset = AT(global_known_files)},
    {.name = "stricthostkeychecking", .kind = ANSWER_TEXT, .offset = AT(strict)},
    {.name = "hashknownhosts", .kind = ANSWER_TEXT, .offset = AT(hash_names)},
    {.name = "addressfamily", .kind = ANSWER_TEXT, .offset = AT(family)},
    {.name = "connecttimeout", .kind = ANSWER_NUMBER, .offset = AT(connect_timeout_s)},
    {.name = "serveraliveinterval", .kind = ANSWER_NUMBER, .offset = AT(alive_s)},
    {.name = "serveralivecountmax", .kind = ANSWER_NUMBER, .offset = AT(alive_count_max)},
    {.name = "proxycommand", .kind = ANSWER_REFUSED, .fine = {"none"}, .instead = "use ProxyJump"},
    {.name = "pubkeyauthentication",
     .kind = ANSWER_REFUSED,
     .fine = {"true", "unbound"},
     .instead = "a login needs a key"},
    {.name = "certificatefile", .kind = ANSWER_REFUSED, .fine = {"none"}},
    {.name = "knownhostscommand", .kind = ANSWER_REFUSED, .fine = {"none"}},
    {.name = "pkcs11provider", .kind = ANSWER_REFUSED, .fine = {"none"}},
    {.name = "bindaddress", .kind = ANSWER_REFUSED},
    {.name = "bindinterface", .kind = ANSWER_REFUSED},
    {.name = "verifyhostkeydns", .kind = ANSWER_REFUSED, .fine = {"false", "no"}},
    {.name = "revokedhostkeys", .kind = ANSWER_REFUSED, .fine = {"none"}},
};

static int take_value(struct arena *arena, const struct answer_row *row, struct str value,
                      struct ssh_answer *answer, struct err *err)
{
    void *field = (char *)answer + row->offset;
    switch (row->kind) {
    case ANSWER_TEXT:
        *(const char **)field = str_z(arena, value);
        return 0;
    case ANSWER_NUMBER:
        return str_eq_z(value, "none") ? 0 : str_to_i64(value, 0, SECONDS_MAX, field, err);
    case ANSWER_IDENTITY:
        if (answer->n_identity_files == SSH_IDENTITIES_MAX) {
            return err_set(err, ERR_MANIFEST, "more than %d of them", SSH_IDENTITIES_MAX);
        }
        answer->identity_files[answer->n_identity_files++] = str_z(arena, value);
        return 0;
    case ANSWER_REFUSED:
    default:
        for (size_t idx = 0; idx < ARRAY_LEN(row->fine) && row->fine[idx]; idx++) {
            if (str_eq_z(value, row->fine[idx])) {
                return 0;
            }
        }
        return err_set(err, ERR_MANIFEST, "\"%.*s\" is not supported%s%s", STR_ARG(value),
                       row->instead ? "; " : "", row->instead ? row->instead : "");
    }
}

int ssh_answer_read(struct arena *arena, struct str text, struct ssh_answer *ret_answer,
                    struct err *err)
{
    struct ssh_answer answer = {0};
    struct str line, name;
    while (str_next(&text, '\n', &line)) {
        if (!str_next(&line, ' ', &name) || memchr(name.ptr, '\0', name.len)) {
            continue;
        }
        for (size_t idx = 0; line.ptr && idx < ARRAY_LEN(ROWS); idx++) {
            if (str_eq_z(name, ROWS[idx].name) &&
                take_value(arena, &ROWS[idx], line, &answer, err) < 0) {
                return err_wrap(err, "%s", ROWS[idx].name);
            }
        }
    }
    if (!answer.host_name || !answer.user || !answer.known_files || answer.port < 1 ||
        answer.port > 65535) {
        return err_set(err, ERR_MANIFEST, "it does not say hostname, user, port and known_hosts");
    }
    *ret_answer = answer;
    return 0;
}

/* ---- what it means ---- */

static const char *token_of(struct ssh_plan *plan, const struct ssh_target *target, char c)
{
    switch (c) {
    case '%':
        return "%";
    case 'd':
        return plan->home;
    case 'h':
        return target->host;
    case 'n':
        return plan->stop;
    case 'p':
        return arena_printf(&plan->arena, "%lld", (long long)target->port);
    case 'r':
        return target->user;
    case 'u':
        return plan->local_user;
    default:
        return NULL;
    }
}

/* ssh prints the names of key files as they are written, unlike all others. */
static int expand(struct ssh_plan *plan, const struct ssh_target *target, const char *text,
                  const char **ret_path, struct err *err)
{
    CLEANUP(strbuf) struct strbuf path = STRBUF(PATH_MAX_BYTES);
    for (const char *at = text; *at; at++) {
        const char *end = at[0] == '$' && at[1] == '{' ? strchr(at, '}') : NULL;
        const char *value = NULL;
        if (*at == '~' && at == text && (at[1] == '/' || at[1] == '\0')) {
            value = plan->home;
        } else if (end) {
            value = getenv(arena_strndup(&plan->arena, at + 2, (size_t)(end - at - 2)));
            at = end;
        } else if (*at == '%') {
            at++;
            value = token_of(plan, target, *at);
        } else if (*at != '~' || at != text) {
            strbuf_add_char(&path, *at);
            continue;
        }
        if (!value) {
            return err_set(err, ERR_MANIFEST, "%s: what stands before \"%s\" has no value", text,
                           *at ? at + 1 : at);
        }
        strbuf_add_z(&path, value);
    }
    *ret_path = arena_strndup(&plan->arena, path.ptr, path.len);
    return path.is_full ? err_set(err, ERR_MANIFEST, "%.100s...: too long", text) : 0;
}

static int take_identities(struct ssh_plan *plan, const struct ssh_answer *answer,
                           struct ssh_target *target, struct err *err)
{
    static const char *const DEFAULT[] = {"rsa",        "ecdsa", "ecdsa_sk", "ed25519",
                                          "ed25519_sk", "xmss",  "dsa"};
    const char *agent = answer->identity_agent ? answer->identity_agent : "SSH_AUTH_SOCK";
    for (size_t idx = 0; idx < answer->n_identity_files; idx++) {
        const char *text = answer->identity_files[idx];
        size_t n = target->n_identity_files;
        for (size_t at = 0; strncmp(text, "~/.ssh/id_", 10) == 0 && at < ARRAY_LEN(DEFAULT); at++) {
            target->is_identity_default[n] |= strcmp(text + 10, DEFAULT[at]) == 0;
        }
        if (strcmp(text, "none") != 0) {
            if (expand(plan, target, text, &target->identity_files[n], err) < 0) {
                return err_wrap(err, "identityfile");
            }
            target->n_identity_files++;
        }
    }
    target->has_identities_only =
        strcmp(answer->identities_only ? answer->identities_only : "no", "yes") == 0;
    if (agent[0] == '$') {
        agent = getenv(agent + 1);
    } else if (strcmp(agent, "SSH_AUTH_SOCK") == 0) {
        agent = getenv("SSH_AUTH_SOCK");
    }
    target->agent_path = agent && *agent && strcmp(agent, "none") != 0
                             ? arena_printf(&plan->arena, "%s", agent)
                             : NULL;
    return 0;
}

/* ssh prints several without quotes: a path with a blank cannot be told from two. */
static int take_known_files(struct ssh_plan *plan, const char *paths, struct ssh_target *target,
                            struct err *err)
{
    struct str rest = str_of(paths);
    struct str path;
    while (str_next(&rest, ' ', &path)) {
        if (!path.len) {
            continue;
        }
        path = str_eq_z(path, "none") ? STR_LIT("/dev/null") : path;
        if (path.ptr[0] != '/') {
            return err_set(err, ERR_MANIFEST,
                           "known_hosts file \"%s\": expected absolute paths without blanks",
                           paths);
        }
        if (target->n_known_files == SSH_KNOWN_FILES_MAX) {
            return err_set(err, ERR_MANIFEST, "more than %d known_hosts files",
                           SSH_KNOWN_FILES_MAX);
        }
        target->known_files[target->n_known_files++] = str_z(&plan->arena, path);
    }
    return 0;
}

static int take_trust(struct ssh_plan *plan, const struct ssh_answer *answer,
                      struct ssh_target *target, struct err *err)
{
    const char *strict = answer->strict ? answer->strict : "";
    const char *known = answer->host_key_alias;
    struct arena *arena = &plan->arena;
    if (strcmp(strict, "false") == 0 || strcmp(strict, "no") == 0 || strcmp(strict, "off") == 0) {
        return err_set(
            err, ERR_MANIFEST,
            "StrictHostKeyChecking no is refused: a node whose key is not checked may be "
            "anybody; use accept-new, or add its key to known_hosts");
    }
    target->accepts_new = strcmp(strict, "accept-new") == 0;
    target->hashes_names = strcmp(answer->hash_names ? answer->hash_names : "no", "yes") == 0;
    target->known_name =
        ssh_known_name(arena, known ? known : target->host, known ? 22 : target->port);
    if (!known && target->port != 22) {
        target->known_name_plain = ssh_known_name(arena, target->host, 22);
    }
    if (take_known_files(plan, answer->known_files, target, err) < 0 ||
        take_known_files(plan, answer->global_known_files ? answer->global_known_files : "", target,
                         err) < 0) {
        return -1;
    }
    return target->n_known_files ? 0 : err_set(err, ERR_MANIFEST, "there is no known_hosts file");
}

static int make_target(struct ssh_plan *plan, const struct ssh_answer *answer,
                       struct ssh_target *target, struct err *err)
{
    const char *family = answer->family ? answer->family : "any";
    int64_t timeout_s =
        answer->connect_timeout_s > 0 ? answer->connect_timeout_s : CONNECT_TIMEOUT_S;
    int64_t alive_s = answer->alive_s > 0 ? answer->alive_s : ALIVE_INTERVAL_S;
    *target = (struct ssh_target){
        .host = answer->host_name,
        .user = answer->user,
        .port = answer->port,
        .family = strcmp(family, "inet") == 0    ? 4
                  : strcmp(family, "inet6") == 0 ? 6
                                                 : 0,
        .label = arena_printf(&plan->arena, "%s@%s:%lld", answer->user, answer->host_name,
                              (long long)answer->port),
        .connect_timeout_ns =
            plan->opts.connect_timeout_ns ? plan->opts.connect_timeout_ns : timeout_s * NS_PER_S,
        /* libssh2 sends no keepalive within two seconds of the last. */
        .alive_interval_ns = (alive_s == 1 ? 2 : alive_s) * NS_PER_S,
        .alive_count_max = answer->alive_count_max > 0 ? answer->alive_count_max : ALIVE_COUNT_MAX,
        .jumps = answer->proxy_jump && strcmp(answer->proxy_jump, "none") != 0 ? answer->proxy_jump
                                                                               : NULL,
    };
    return take_trust(plan, answer, target, err) < 0 ||
                   take_identities(plan, answer, target, err) < 0
               ? -1
               : 0;
}

/* ---- the question ---- */

static void collect(void *ctx, const char *ptr, size_t len)
{
    strbuf_add(ctx, ptr, len);
}

static int ask(struct ssh_plan *plan, struct loop *loop, struct err *err)
{
    /* Debian's ssh takes 300 s for ServerAliveInterval where BatchMode is on and nothing sets it. Its answer must be what the
       config sets, and BatchMode changes nothing else in it. */
    const char *argv[16] = {"ssh", "-G", "-T", "-o", "BatchMode=no"};
    size_t n = 5;
    bool is_node = plan->n_stops == 0;
    if (plan->opts.config_path) {
        argv[n++] = "-F";
        argv[n++] = plan->opts.config_path;
    }
    if (is_node && plan->opts.port) {
        argv[n++] = "-p";
        argv[n++] = arena_printf(&plan->arena, "%lld", (long long)plan->opts.port);
    }
    if (is_node && plan->opts.user) {
        argv[n++] = "-l";
        argv[n++] = plan->opts.user;
    }
    argv[n++] = "--";
    argv[n++] = plan->stop;
    argv[n] = NULL;
    /* With our whole environment, because ssh may ask for any of it: it is what our user's own ssh would see. */
    const struct proc_spec spec = {.argv = argv,
                                   .env = (const char *const *)(uintptr_t)environ,
                                   .on_output = collect,
                                   .output_ctx = &plan->said,
                                   .deadline_ns = ASK_DEADLINE_NS};
    strbuf_clear(&plan->said);
    if (proc_start(&plan->proc, loop, &spec, err) == 0) {
        return 0;
    }
    if (err->code == ERR_NOT_FOUND) {
        *err = (struct err){0};
        return err_set(err, ERR_NODE,
                       "ssh is not here, which reads ~/.ssh/config: install openssh-client");
    }
    return -1;
}

/* Not ERR_TIMEOUT or ERR_NET: what does not answer here is this machine. */
static int check_end(const struct ssh_plan *plan, struct err *err)
{
    CLEANUP(strbuf) struct strbuf line = STRBUF(ERR_MSG_MAX);
    if (plan->proc.is_timed_out) {
        return err_set(err, ERR_NODE, "ssh -G did not end within %d s",
                       (int)(ASK_DEADLINE_NS / NS_PER_S));
    }
    if (plan->said.is_full) {
        return err_set(err, ERR_MANIFEST, "ssh -G printed more than %u bytes", ANSWER_MAX);
    }
    if (plan->proc.exit_status == 0) {
        return 0;
    }
    strbuf_add_plain(&line, str_sub(str_trim(strbuf_str(&plan->said)), 0, 300));
    return err_set(err, ERR_MANIFEST, "ssh -G: %s", line.ptr);
}

const char *ssh_last_jump(struct arena *arena, struct str *jumps)
{
    const char *comma = memrchr(jumps->ptr, ',', jumps->len);
    struct str stop =
        comma ? str_sub(*jumps, (size_t)(comma + 1 - jumps->ptr), jumps->len) : *jumps;
    *jumps = str_sub(*jumps, 0, comma ? (size_t)(comma - jumps->ptr) : 0);
    return arena_printf(arena, "%s%.*s", str_starts(stop, STR_LIT("ssh://")) ? "" : "ssh://",
                        STR_ARG(stop));
}

/* From the node back to the first stop without a ProxyJump. In a list a,b: b is reached from a, whatever b's own entry
   says; a's own entry decides what comes before a. */
static int take_answer(struct ssh_plan *plan, struct err *err)
{
    struct ssh_answer answer;
    struct ssh_target target;
    if (check_end(plan, err) < 0 ||
        ssh_answer_read(&plan->arena, strbuf_str(&plan->said), &answer, err) < 0 ||
        make_target(plan, &answer, &target, err) < 0) {
        return -1;
    }
    if (plan->n_stops++ == 0) {
        plan->target = target;
    }
    if (plan->rest.len == 0) {
        plan->is_made = !target.jumps;
        plan->rest = str_of(target.jumps ? target.jumps : "");
    }
    if (plan->is_made) {
        return 0;
    }
    plan->stop = ssh_last_jump(&plan->arena, &plan->rest);
    return plan->n_stops < SSH_HOPS_MAX
               ? 0
               : err_set(err, ERR_USAGE, "more than %d stops by ProxyJump", SSH_HOPS_MAX);
}

static void begin(struct ssh_plan *plan)
{
    plan->n_stops = 0;
    plan->rest = STR_EMPTY;
    plan->stop = plan->opts.host;
}

enum step ssh_plan_step(struct ssh_plan *plan, struct loop *loop, struct err *err)
{
    while (!plan->is_made) {
        if (!plan->proc.pid && ask(plan, loop, err) < 0) {
            return step_fail(err_wrap(err, "%s", plan->opts.host));
        }
        if (plan->said.is_full) {
            proc_stop(&plan->proc);
        }
        if (proc_step(&plan->proc, err) != STEP_DONE) {
            return STEP_AGAIN;
        }
        int taken = take_answer(plan, err);
        proc_release(&plan->proc);
        if (taken < 0) {
            begin(plan);
            return step_fail(err_wrap(err, "%s", plan->opts.host));
        }
    }
    return STEP_DONE;
}

/* ---- life ---- */

static const char *own(struct ssh_plan *plan, const char *text)
{
    return text && *text ? arena_printf(&plan->arena, "%s", text) : NULL;
}

int ssh_plan_new(const struct ssh_plan_opts *opts, struct ssh_plan **ret_plan, struct err *err)
{
    const struct passwd *self = getpwuid(geteuid());
    struct ssh_plan *plan;
    if (!self) {
        return err_set(err, ERR_USAGE, "SSH: we are not in the password file");
    }
    if (opts->host[0] == '-' || (opts->user && opts->user[0] == '-')) {
        return err_set(err, ERR_USAGE, "%s%s%s: neither a host nor a user begins with \"-\"",
                       opts->user ? opts->user : "", opts->user ? "@" : "", opts->host);
    }
    plan = xcalloc(1, sizeof(*plan));
    *plan = (struct ssh_plan){.n_users = 1, .opts = *opts, .proc = PROC_EMPTY};
    plan->home = own(plan, self->pw_dir);
    plan->local_user = own(plan, self->pw_name);
    plan->opts.host = own(plan, opts->host);
    plan->opts.user = own(plan, opts->user);
    plan->opts.config_path =
        own(plan, opts->config_path ? opts->config_path : getenv("REPERF_SSH_CONFIG"));
    strbuf_init(&plan->said, ANSWER_MAX);
    begin(plan);
    *ret_plan = plan;
    return 0;
}

void ssh_plan_pause(struct ssh_plan *plan)
{
    proc_release(&plan->proc);
}

struct ssh_plan *ssh_plan_hold(struct ssh_plan *plan)
{
    atomic_fetch_add(&plan->n_users, 1);
    return plan;
}

void ssh_plan_drop(struct ssh_plan *plan)
{
    if (plan && atomic_fetch_sub(&plan->n_users, 1) == 1) {
        strbuf_release(&plan->said);
        arena_release(&plan->arena);
        free(plan);
    }
}

const char *ssh_plan_label(const struct ssh_plan *plan)
{
    return plan->is_made ? plan->target.label : plan->opts.host;
}
