/* SPDX-License-Identifier: Apache-2.0 */
/* Login by key: first the agent's keys that the config names, then the agent's others, then files. */
#include "base/base.h"

#include "net/ssh_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fs.h"

/* A passphrase typed at the terminal, the only thing here that blocks the loop. It is kept in memory only, so that the key to
   128 nodes is asked for once: the only process-wide state of net/ssh. */

#define KEPT_MAX       16
#define PASSPHRASE_MAX 1024
#define WAIT_MS        120000
#define ASKED_MAX      3

struct kept {
    char *path; /* NULL: a free row */
    char passphrase[PASSPHRASE_MAX];
    int n_asked;
};

static struct kept kept[KEPT_MAX];

static struct kept *row_of(const char *path)
{
    for (size_t idx = 0; idx < KEPT_MAX; idx++) {
        if (!kept[idx].path) {
            kept[idx].path = xstrdup(path); /* for the life of the process */
            return &kept[idx];
        }
        if (strcmp(kept[idx].path, path) == 0) {
            return &kept[idx];
        }
    }
    return NULL;
}

/* Without echo, byte by byte; ^C gives up. */
static int read_line(int fd, char *dst, struct err *err)
{
    size_t len = 0;
    for (;;) {
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        char c;
        int n = poll(&polled, 1, WAIT_MS);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n == 0) {
            return err_set(err, ERR_AUTH, "no passphrase was typed within %d s", WAIT_MS / 1000);
        }
        if (n < 0 || read(fd, &c, 1) != 1 || c == 4) {
            return err_set(err, ERR_AUTH, "no passphrase was typed");
        }
        if (c == 3) {
            return err_set(err, ERR_INTERRUPTED, "given up at the passphrase");
        }
        if (c == '\n' || c == '\r') {
            dst[len] = '\0';
            return 0;
        }
        if (c == 127 || c == 8) {
            len -= len > 0 ? 1 : 0;
        } else if (len + 1 < PASSPHRASE_MAX) {
            dst[len++] = c;
        }
    }
}

static int ask(int fd, const char *path, bool is_again, char *dst, struct err *err)
{
    struct termios old;
    CLEANUP(strbuf) struct strbuf line = STRBUF(8192);
    strbuf_printf(&line, "%sPassphrase of %s: ", is_again ? "Wrong passphrase. " : "", path);
    if (tcgetattr(fd, &old) < 0) {
        return err_set(err, ERR_AUTH, "/dev/tty: %s", err_errno_text(errno));
    }
    struct termios quiet = old;
    quiet.c_lflag &= ~(tcflag_t)(ECHO | ICANON | ISIG);
    quiet.c_cc[VMIN] = 1;
    quiet.c_cc[VTIME] = 0;
    if (tcsetattr(fd, TCSAFLUSH, &quiet) < 0) {
        return err_set(err, ERR_AUTH, "/dev/tty: %s", err_errno_text(errno));
    }
    int result = fs_write_all(fd, line.ptr, line.len, "/dev/tty", err);
    result = result < 0 ? result : read_line(fd, dst, err);
    (void)tcsetattr(fd, TCSAFLUSH, &old);
    if (result == 0) {
        result = fs_write_all(fd, "\n", 1, "/dev/tty", err);
    }
    return result;
}

/* The prompt keeps the passphrase for other nodes with the same key. */
static int ssh_prompt(const char *path, bool is_again, const char **ret_passphrase, struct err *err)
{
    struct kept *row = row_of(path);
    CLEANUP(fd) int fd = -1;
    if (!row) {
        return err_set(err, ERR_AUTH, "more than %d encrypted keys", KEPT_MAX);
    }
    if (!is_again && row->passphrase[0]) {
        *ret_passphrase = row->passphrase;
        return 0;
    }
    if (row->n_asked >= ASKED_MAX) {
        return err_set(err, ERR_AUTH, "encrypted, and %d passphrases were wrong", ASKED_MAX);
    }
    fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return err_set(
            err, ERR_AUTH,
            "encrypted, and there is no terminal to ask for its passphrase: add it to an "
            "agent (ssh-add)");
    }
    row->n_asked++;
    explicit_bzero(row->passphrase, sizeof(row->passphrase));
    if (ask(fd, path, is_again, row->passphrase, err) < 0) {
        explicit_bzero(row->passphrase, sizeof(row->passphrase));
        return -1;
    }
    *ret_passphrase = row->passphrase;
    return 0;
}

/* ---- the agent: the two requests of a client, without ever blocking: it may wait for its owner's consent. Source:
   draft-miller-ssh-agent-04, sections 4.4 and 4.5. ---- */

#define SSH_AGENT_KEYS_MAX 256
#define MESSAGE_MAX        (256u << 10)

enum { ASK_KEYS = 11, ANSWER_KEYS = 12, ASK_SIGN = 13, ANSWER_SIGN = 14 };

/* ---- the wire format: RFC 4251 section 5 ---- */

static bool take_u32(struct str *rest, uint32_t *ret_value)
{
    if (rest->len < 4) {
        return false;
    }
    *ret_value = get_be32(rest->ptr);
    *rest = str_sub(*rest, 4, rest->len);
    return true;
}

static bool take_string(struct str *rest, struct str *ret_string)
{
    uint32_t len;
    struct str at = *rest;
    if (!take_u32(&at, &len) || len > at.len) {
        return false;
    }
    *ret_string = str_sub(at, 0, len);
    *rest = str_sub(at, len, at.len);
    return true;
}

static void ssh_agent_init(struct ssh_agent *agent)
{
    *agent = (struct ssh_agent){.fd = -1};
    strbuf_init(&agent->out, MESSAGE_MAX);
    strbuf_init(&agent->in, MESSAGE_MAX);
}

static void ssh_agent_release(struct ssh_agent *agent)
{
    if (agent->fd >= 0) {
        close(agent->fd);
    }
    agent->fd = -1;
    strbuf_release(&agent->out);
    strbuf_release(&agent->in);
}

static int ssh_agent_connect(struct ssh_agent *agent, const char *path, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) {
        return err_set(err, ERR_AUTH, "agent %s: the path is too long", path);
    }
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        int saved = errno;
        if (fd >= 0) {
            close(fd);
        }
        return err_set(err, ERR_AUTH, "agent %s: %s", path, err_errno_text(saved));
    }
    agent->fd = fd;
    return 0;
}

static void add_u32(struct strbuf *out, size_t value)
{
    char bytes[4] = {(char)(value >> 24), (char)(value >> 16), (char)(value >> 8), (char)value};
    strbuf_add(out, bytes, sizeof(bytes));
}

static void add_string(struct strbuf *out, struct str text)
{
    add_u32(out, text.len);
    strbuf_add_str(out, text);
}

static enum step send_rest(struct ssh_agent *agent, struct err *err)
{
    while (agent->sent < agent->out.len) {
        ssize_t len = send(agent->fd, agent->out.ptr + agent->sent, agent->out.len - agent->sent,
                           MSG_NOSIGNAL);
        if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
            return STEP_AGAIN;
        }
        if (len < 0) {
            return step_fail(err_set(err, ERR_AUTH, "agent: %s", err_errno_text(errno)));
        }
        agent->sent += (size_t)len;
    }
    return STEP_DONE;
}

/* The answer's body, once whole; borrowed from agent->in. */
static enum step receive(struct ssh_agent *agent, uint8_t kind, struct str *ret_body,
                         struct err *err)
{
    struct str message;
    char bytes[4096];
    enum step step = send_rest(agent, err);
    if (step != STEP_DONE) {
        return step;
    }
    for (;;) {
        struct str whole = strbuf_str(&agent->in);
        if (take_string(&whole, &message)) {
            break;
        }
        ssize_t len = recv(agent->fd, bytes, sizeof(bytes), 0);
        if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
            return STEP_AGAIN;
        }
        if (len <= 0) {
            return step_fail(err_set(err, ERR_AUTH, "agent: %s",
                                     len < 0 ? err_errno_text(errno)
                                             : "closed the connection without an answer"));
        }
        strbuf_add(&agent->in, bytes, (size_t)len);
        if (agent->in.is_full) {
            return step_fail(
                err_set(err, ERR_AUTH, "agent: an answer of more than %u bytes", MESSAGE_MAX));
        }
    }
    agent->is_asking = false;
    if (!message.len || (uint8_t)message.ptr[0] != kind) {
        return step_fail(err_set(err, ERR_AUTH, "agent: refused"));
    }
    *ret_body = str_sub(message, 1, message.len);
    return STEP_DONE;
}

static void begin(struct ssh_agent *agent)
{
    strbuf_clear(&agent->out);
    strbuf_clear(&agent->in);
    agent->sent = 0;
    agent->is_asking = true;
}

static enum step ssh_agent_list(struct ssh_agent *agent, struct arena *arena,
                                struct ssh_agent_key **ret_keys, size_t *ret_n, struct err *err)
{
    struct str body = STR_EMPTY;
    uint32_t n = 0;
    if (!agent->is_asking) {
        begin(agent);
        add_u32(&agent->out, 1);
        strbuf_add_char(&agent->out, ASK_KEYS);
    }
    enum step step = receive(agent, ANSWER_KEYS, &body, err);
    if (step != STEP_DONE) {
        return step;
    }
    body = str_dup(arena, body);
    if (!take_u32(&body, &n) || n > SSH_AGENT_KEYS_MAX) {
        return step_fail(err_set(err, ERR_AUTH, "agent: an answer that cannot be read"));
    }
    *ret_keys = arena_array(arena, struct ssh_agent_key, n + 1);
    for (size_t idx = 0; idx < n; idx++) {
        struct str comment;
        if (!take_string(&body, &(*ret_keys)[idx].blob) || !take_string(&body, &comment)) {
            return step_fail(err_set(err, ERR_AUTH, "agent: the answer is truncated"));
        }
        (*ret_keys)[idx].comment = str_z(arena, comment);
    }
    *ret_n = n;
    return STEP_DONE;
}

static enum step ssh_agent_sign(struct ssh_agent *agent, struct str blob, struct str data,
                                unsigned char **ret_signature, size_t *ret_len, struct err *err)
{
    struct str body = STR_EMPTY;
    struct str whole, algorithm, signature;
    if (!agent->is_asking) {
        begin(agent);
        add_u32(&agent->out, 1 + 4 + blob.len + 4 + data.len + 4);
        strbuf_add_char(&agent->out, ASK_SIGN);
        add_string(&agent->out, blob);
        add_string(&agent->out, data);
        add_u32(&agent->out, 0);
    }
    enum step step = receive(agent, ANSWER_SIGN, &body, err);
    if (step != STEP_DONE) {
        return step;
    }
    if (!take_string(&body, &whole) || !take_string(&whole, &algorithm) ||
        !take_string(&whole, &signature) || !signature.len) {
        return step_fail(err_set(err, ERR_AUTH, "agent: a signature that cannot be read"));
    }
    *ret_signature = xmalloc(signature.len);
    memcpy(*ret_signature, signature.ptr, signature.len);
    *ret_len = signature.len;
    return STEP_DONE;
}

/* ---- login ---- */

#define KEY_TEXT_MAX (64u << 10)

static const char *user_of(const struct ssh_hop *hop)
{
    return hop->target->user;
}

static void note(struct ssh_auth *auth, const char *name, const char *what)
{
    strbuf_printf(&auth->tried, "%s%s: %s", auth->tried.len ? "; " : "", name, what);
}

static enum step is_in(struct ssh_hop *hop)
{
    ssh_unwant(hop->ssh, &hop->watched_agent);
    auth_release(&hop->auth);
    hop->heard_ns = loop_now_ns(hop->ssh->loop);
    hop->state = hop == ssh_last(hop->ssh) ? HOP_UP : HOP_TUNNEL;
    return STEP_DONE;
}

void auth_release(struct ssh_auth *auth)
{
    ssh_agent_release(&auth->agent);
    arena_release(&auth->arena);
    strbuf_release(&auth->tried);
    *auth = (struct ssh_auth){.agent.fd = -1};
}

enum step auth_methods(struct ssh_hop *hop, struct err *err)
{
    const char *methods =
        libssh2_userauth_list(hop->session, user_of(hop), (unsigned)strlen(user_of(hop)));
    struct ssh_auth *auth = &hop->auth;
    if (!methods && libssh2_session_last_errno(hop->session) == LIBSSH2_ERROR_EAGAIN) {
        return ssh_want_session(hop, err) < 0 ? STEP_FAIL : STEP_AGAIN;
    }
    if (!methods && libssh2_userauth_authenticated(hop->session)) {
        return is_in(hop);
    }
    if (!methods) {
        return step_fail(
            ssh_fail(hop, libssh2_session_last_errno(hop->session), "authentication", err));
    }
    if (!strstr(methods, "publickey")) {
        return step_fail(err_set(err, ERR_AUTH, "%s: the server takes no keys, only: %s",
                                 hop->target->label, methods));
    }
    strbuf_init(&auth->tried, SSH_TRIED_MAX);
    ssh_agent_init(&auth->agent);
    hop->state = HOP_AGENT;
    return STEP_DONE;
}

/* ---- which keys there are ---- */

struct key_file {
    struct str blob; /* the public half, of the .pub beside it; empty: not known */
    unsigned type;   /* 0: not known */
    bool has_private, is_encrypted;
};

/* The file itself is libssh2's to read. But whether to ask for a passphrase must be known before. Source: PROTOCOL.key of OpenSSH
   9.2 (magic, then the name of the cipher); RFC 1421 and RFC 5958 for PEM. */
static bool is_encrypted(struct str text)
{
    static const char OPENSSH[] = "\nb3BlbnNzaC1rZXktdjEA";          /* the magic */
    static const char PLAIN[] = "\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU"; /* likewise, then "none" */
    return str_find(text, STR_LIT("ENCRYPTED")) >= 0 ||
           (str_find(text, STR_LIT(OPENSSH)) >= 0 && str_find(text, STR_LIT(PLAIN)) < 0);
}

static bool read_public(struct ssh_auth *auth, const char *path, struct key_file *key)
{
    struct err ignored = {0};
    struct str text;
    return fs_exists(path) && fs_read(&auth->arena, path, KEY_TEXT_MAX, &text, &ignored) == 0 &&
           ssh_key_public(&auth->arena, text, &key->blob);
}

/* Looks at a key file and the .pub next to it. False: it cannot be used, which is noted. */
static bool inspect(struct ssh_hop *hop, size_t idx, struct key_file *key)
{
    const char *path = hop->target->identity_files[idx];
    struct ssh_auth *auth = &hop->auth;
    struct err trouble = {0};
    struct str text;
    *key = (struct key_file){0};
    if (read_public(auth, arena_printf(&auth->arena, "%s.pub", path), key)) {
        key->type = ssh_key_type_of_name(ssh_key_name_of_blob(key->blob));
    }
    if (!fs_exists(path)) { /* the agent may still hold it */
        if (!key->blob.len && !hop->target->is_identity_default[idx]) {
            note(auth, path, "not there");
        }
        return key->blob.len > 0;
    }
    if (fs_read(&auth->arena, path, KEY_TEXT_MAX, &text, &trouble) < 0) {
        note(auth, path, trouble.msg);
        return false;
    }
    if (str_find(text, STR_LIT("PRIVATE KEY-----")) < 0) {
        /* IdentityFile may name the public half of a key that the agent holds. */
        if (!ssh_key_public(&auth->arena, text, &key->blob)) {
            note(auth, path, "not a private key");
            return false;
        }
        return true;
    }
    key->has_private = true;
    key->is_encrypted = is_encrypted(text);
    if (str_find(text, STR_LIT("BEGIN RSA PRIVATE KEY")) >= 0) {
        key->type = SSH_KEY_RSA;
    }
    return true;
}

static bool is_usable(struct ssh_auth *auth, const char *name, unsigned type)
{
    if (type == SSH_KEY_RSA && !libssh2_version(0x010b00)) {
        CLEANUP(strbuf) struct strbuf text = STRBUF(256);
        strbuf_printf(&text,
                      "an RSA key, for which libssh2 %s has only SHA-1, which servers refuse (1.11 "
                      "has more): use an ed25519 key",
                      libssh2_version(0));
        note(auth, name, text.ptr);
        return false;
    }
    if (type == SSH_KEY_OTHER) {
        note(auth, name, "of a type that libssh2 does not know");
        return false;
    }
    return true;
}

static void add_candidate(struct ssh_auth *auth, const char *path, const char *name,
                          struct str blob, bool is_encrypted)
{
    auth->candidates[auth->n_candidates++] = (struct ssh_candidate){path, blob, name, is_encrypted};
}

static bool agent_has(const struct ssh_auth *auth, struct str blob)
{
    for (size_t idx = 0; blob.len && idx < auth->n_agent_keys; idx++) {
        if (str_eq(auth->agent_keys[idx].blob, blob)) {
            return true;
        }
    }
    return false;
}

static void add_agent_keys(struct ssh_hop *hop)
{
    struct ssh_auth *auth = &hop->auth;
    size_t n_named = auth->n_candidates;
    for (size_t idx = 0; idx < auth->n_agent_keys && !hop->target->has_identities_only; idx++) {
        const struct ssh_agent_key *key = &auth->agent_keys[idx];
        const char *name = arena_printf(&auth->arena, "agent's %s", key->comment);
        bool is_named = false;
        for (size_t at = 0; at < n_named; at++) {
            is_named |= str_eq(auth->candidates[at].blob, key->blob);
        }
        if (!is_named &&
            is_usable(auth, name, ssh_key_type_of_name(ssh_key_name_of_blob(key->blob)))) {
            add_candidate(auth, NULL, name, key->blob, false);
        }
    }
}

static void find_candidates(struct ssh_hop *hop)
{
    struct ssh_auth *auth = &hop->auth;
    const struct ssh_target *target = hop->target;
    struct key_file *keys =
        arena_array(&auth->arena, struct key_file, target->n_identity_files + 1);
    bool *is_file = arena_array(&auth->arena, bool, target->n_identity_files + 1);
    auth->candidates = arena_array(&auth->arena, struct ssh_candidate,
                                   target->n_identity_files + auth->n_agent_keys + 1);
    for (size_t idx = 0; idx < target->n_identity_files; idx++) {
        const char *path = target->identity_files[idx];
        if (!inspect(hop, idx, &keys[idx]) || !is_usable(auth, path, keys[idx].type)) {
            continue;
        }
        if (agent_has(auth, keys[idx].blob)) {
            add_candidate(auth, NULL, path, keys[idx].blob, false);
        } else if (keys[idx].has_private) {
            is_file[idx] = true;
        } else {
            note(auth, path, "its private half is neither on disk nor in the agent");
        }
    }
    add_agent_keys(hop);
    for (size_t idx = 0; idx < target->n_identity_files; idx++) {
        if (is_file[idx]) {
            add_candidate(auth, target->identity_files[idx], target->identity_files[idx], STR_EMPTY,
                          keys[idx].is_encrypted);
        }
    }
}

enum step auth_agent(struct ssh_hop *hop, struct err *err)
{
    struct ssh_auth *auth = &hop->auth;
    struct err trouble = {0};
    enum step step = STEP_DONE;
    if (hop->target->agent_path) {
        step = auth->agent.fd < 0 &&
                       ssh_agent_connect(&auth->agent, hop->target->agent_path, &trouble) < 0
                   ? STEP_FAIL
                   : ssh_agent_list(&auth->agent, &auth->arena, &auth->agent_keys,
                                    &auth->n_agent_keys, &trouble);
    }
    if (step == STEP_AGAIN) {
        return ssh_want(hop->ssh, &hop->watched_agent, auth->agent.fd, POLLIN, err) < 0
                   ? STEP_FAIL
                   : STEP_AGAIN;
    }
    if (step == STEP_FAIL) {
        note(auth, hop->target->agent_path, trouble.msg);
        auth->n_agent_keys = 0;
    }
    ssh_unwant(hop->ssh, &hop->watched_agent);
    find_candidates(hop);
    hop->state = HOP_KEYS;
    return STEP_DONE;
}

/* ---- one after the other ---- */

static LIBSSH2_USERAUTH_PUBLICKEY_SIGN_FUNC(sign_by_agent)
{
    struct ssh_hop *hop = *abstract;
    struct ssh_auth *auth = &hop->auth;
    const struct ssh_candidate *candidate = &auth->candidates[auth->at];
    struct err trouble = {0};
    (void)session;
    enum step step =
        ssh_agent_sign(&auth->agent, candidate->blob, (struct str){(const char *)data, data_len},
                       sig, sig_len, &trouble);
    if (step == STEP_FAIL) {
        note(auth, candidate->name, trouble.msg);
    }
    return step == STEP_DONE ? 0 : step == STEP_AGAIN ? LIBSSH2_ERROR_EAGAIN : -1;
}

static int try_agent_key(struct ssh_hop *hop, const struct ssh_candidate *candidate)
{
    void *abstract = hop;
    return libssh2_userauth_publickey(hop->session, user_of(hop),
                                      (const unsigned char *)candidate->blob.ptr,
                                      candidate->blob.len, sign_by_agent, &abstract);
}

static int read_key(struct ssh_hop *hop, const struct ssh_candidate *candidate, struct err *err)
{
    struct ssh_auth *auth = &hop->auth;
    struct stat info;
    if (stat(candidate->path, &info) == 0 && (info.st_mode & 077) != 0) {
        return err_set(err, ERR_AUTH,
                       "its mode is %03o: others may read it; a private key must be 600",
                       info.st_mode & 0777);
    }
    if (fs_read(&auth->arena, candidate->path, KEY_TEXT_MAX, &auth->key_text, err) < 0) {
        return -1;
    }
    auth->passphrase = NULL;
    if (!candidate->is_encrypted) {
        return 0;
    }
    if (ssh_prompt(candidate->path, false, &auth->passphrase, err) < 0) {
        return -1;
    }
    hop->until_ns = loop_now_ns(hop->ssh->loop) + hop->target->connect_timeout_ns;
    return 0;
}

static int try_file_key(struct ssh_hop *hop)
{
    struct ssh_auth *auth = &hop->auth;
    return libssh2_userauth_publickey_frommemory(hop->session, user_of(hop), strlen(user_of(hop)),
                                                 NULL, 0, auth->key_text.ptr, auth->key_text.len,
                                                 auth->passphrase);
}

static void next_candidate(struct ssh_auth *auth, const struct ssh_candidate *candidate,
                           const char *what)
{
    note(auth, candidate->name, what);
    auth->key_text = STR_EMPTY;
    auth->at++;
}

static enum step no_key_left(struct ssh_hop *hop, struct err *err)
{
    struct ssh_auth *auth = &hop->auth;
    return step_fail(err_set(err, ERR_AUTH, "%s: not let in: %s", hop->target->label,
                             auth->tried.len ? auth->tried.ptr
                                             : "there is no key: no agent (SSH_AUTH_SOCK), and no "
                                               "~/.ssh/id_ed25519 or id_ecdsa"));
}

/* Narrower than ssh_is_lost: an unreadable key has codes of that list too. */
static bool is_gone(int rc)
{
    return rc == LIBSSH2_ERROR_SOCKET_SEND || rc == LIBSSH2_ERROR_SOCKET_DISCONNECT ||
           rc == LIBSSH2_ERROR_SOCKET_RECV || rc == LIBSSH2_ERROR_SOCKET_TIMEOUT ||
           rc == LIBSSH2_ERROR_BAD_SOCKET;
}

/* Handles a rejected candidate. STEP_DONE: on to the next. */
static enum step not_taken(struct ssh_hop *hop, const struct ssh_candidate *candidate, int rc,
                           struct err *err)
{
    struct ssh_auth *auth = &hop->auth;
    if (rc == LIBSSH2_ERROR_AUTHENTICATION_FAILED || rc == LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED) {
        auth->n_refused++;
        next_candidate(auth, candidate, "refused by the server");
        return STEP_DONE;
    }
    if (is_gone(rc)) {
        if (auth->n_refused) {
            /* It hangs up after too many keys. */
            note(auth, candidate->name, "the server hung up");
            return no_key_left(hop, err);
        }
        return step_fail(ssh_fail(hop, rc, "authentication", err));
    }
    if (candidate->is_encrypted && candidate->path) {
        if (ssh_prompt(candidate->path, true, &auth->passphrase, err) < 0) {
            return STEP_FAIL;
        }
        hop->until_ns = loop_now_ns(hop->ssh->loop) + hop->target->connect_timeout_ns;
        return STEP_DONE; /* the same again */
    }
    {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        char *text = NULL;
        int len = 0;
        libssh2_session_last_error(hop->session, &text, &len, 0);
        next_candidate(auth, candidate,
                       arena_printf(&arena, "%.*s (%d)", len, text ? text : "", rc));
    }
    return STEP_DONE;
}

enum step auth_keys(struct ssh_hop *hop, struct err *err)
{
    struct ssh_auth *auth = &hop->auth;
    if (auth->at == auth->n_candidates) {
        return no_key_left(hop, err);
    }
    const struct ssh_candidate *candidate = &auth->candidates[auth->at];
    if (candidate->path && !auth->key_text.ptr) {
        struct err trouble = {0};
        if (read_key(hop, candidate, &trouble) < 0) {
            if (trouble.code == ERR_INTERRUPTED) {
                *err = trouble;
                return STEP_FAIL;
            }
            next_candidate(auth, candidate, trouble.msg);
            return STEP_DONE;
        }
    }
    int rc = candidate->path ? try_file_key(hop) : try_agent_key(hop, candidate);
    if (rc == LIBSSH2_ERROR_EAGAIN) {
        if (auth->agent.is_asking &&
            ssh_want(hop->ssh, &hop->watched_agent, auth->agent.fd, POLLIN, err) < 0) {
            return STEP_FAIL;
        }
        return ssh_want_session(hop, err) < 0 ? STEP_FAIL : STEP_AGAIN;
    }
    ssh_unwant(hop->ssh, &hop->watched_agent);
    return rc == 0 ? is_in(hop) : not_taken(hop, candidate, rc, err);
}
