/* SPDX-License-Identifier: Apache-2.0 */
/* The way into a node, one blocking call after the other in a thread of its own: name, connection, handshake, host key, login
   by key. Nothing here has a deadline: the loop has one for all of it, and shuts the sockets down when it has passed, which
   ends every wait but those for a resolver and an agent. A thread that hangs in one of these two is left behind; what it has
   is its own. */
#include "base/base.h"

#include "net/ssh_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "net/ssh_known.h"

#define FREE_TRIES_MAX 64 /* each reads further towards the end of a shut-down socket */
#define TRIED_MAX      400
#define KEY_TEXT_MAX   (64u << 10)

static bool is_lost(int rc)
{
    switch (rc) {
    case LIBSSH2_ERROR_SOCKET_NONE:
    case LIBSSH2_ERROR_BANNER_RECV:
    case LIBSSH2_ERROR_BANNER_SEND:
    case LIBSSH2_ERROR_INVALID_MAC:
    case LIBSSH2_ERROR_SOCKET_SEND:
    case LIBSSH2_ERROR_KEY_EXCHANGE_FAILURE:
    case LIBSSH2_ERROR_TIMEOUT:
    case LIBSSH2_ERROR_DECRYPT:
    case LIBSSH2_ERROR_SOCKET_DISCONNECT:
    case LIBSSH2_ERROR_PROTO:
    case LIBSSH2_ERROR_SOCKET_TIMEOUT:
    case LIBSSH2_ERROR_SOCKET_RECV:
    case LIBSSH2_ERROR_BAD_SOCKET:
    case LIBSSH2_ERROR_BAD_USE:
    case LIBSSH2_ERROR_CHANNEL_CLOSED:
    case LIBSSH2_ERROR_CHANNEL_EOF_SENT:
        return true;
    default:
        return false;
    }
}

static struct str last_words(LIBSSH2_SESSION *session)
{
    char *text = NULL;
    int len = 0;
    libssh2_session_last_error(session, &text, &len, 0);
    return (struct str){text ? text : "", text ? (size_t)len : 0};
}

int ssh_fail(const char *label, LIBSSH2_SESSION *session, int rc, const char *what, struct err *err)
{
    return err_set(err, is_lost(rc) ? ERR_NET : ERR_NODE, "%s: %s: %.*s (%d)", label, what,
                   STR_ARG(last_words(session)), rc);
}

static int fail(struct ssh_login *login, int rc, const char *what, struct err *err)
{
    return ssh_fail(login->target->label, login->session, rc, what, err);
}

/* ---- name and socket ---- */

CLEANUP_POINTER(addresses, struct addrinfo, freeaddrinfo);

static int resolve(struct ssh_login *login, struct addrinfo **ret_addresses, struct err *err)
{
    const struct ssh_target *target = login->target;
    const struct addrinfo hints = {.ai_family = target->family == 4   ? AF_INET
                                                : target->family == 6 ? AF_INET6
                                                                      : AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM};
    int status =
        getaddrinfo(target->host, arena_printf(&login->arena, "%lld", (long long)target->port),
                    &hints, ret_addresses);
    bool may_pass = status == EAI_AGAIN || status == EAI_MEMORY || status == EAI_SYSTEM;
    return status == 0 ? 0
                       : err_set(err, may_pass ? ERR_NET : ERR_NODE, "%s: name: %s", target->label,
                                 gai_strerror(status));
}

static void set_options(const struct ssh_target *target, int fd)
{
    static const int ON = 1;
    unsigned silence_ms =
        (unsigned)(target->alive_interval_ns * target->alive_count_max / NS_PER_MS);
    /* If the kernel refuses one of these we still connect: our own deadlines apply in any case. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &ON, sizeof(ON));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &ON, sizeof(ON));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, sizeof(silence_ms));
}

static int connect_one(struct ssh_login *login, const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    login->fds[atomic_load(&login->n_fds)] = fd;
    atomic_fetch_add(&login->n_fds, 1);
    set_options(login->target, fd);
    return connect(fd, address->ai_addr, address->ai_addrlen);
}

static int connect_any(struct ssh_login *login, const atomic_bool *is_left, struct err *err)
{
    CLEANUP(addresses) struct addrinfo *addresses = NULL;
    const struct addrinfo *address;
    int n_left = SSH_ADDRESSES_MAX;
    atomic_store(&login->waits_for, "its name was not resolved");
    if (resolve(login, &addresses, err) < 0) {
        return -1;
    }
    atomic_store(&login->waits_for, "the connection was not accepted");
    for (address = addresses; address && n_left-- > 0 && !atomic_load(is_left);
         address = address->ai_next) {
        if (connect_one(login, address) == 0) {
            return 0;
        }
    }
    return err_set(err, ERR_NET, "%s: connect: %s", login->target->label, err_errno_text(errno));
}

/* ---- who it is ---- */

static bool has_rsa_sha2(void)
{
    return libssh2_version(0x010b00) != NULL; /* RFC 8332 came with 1.11.0 */
}

static int look_for(struct ssh_login *login, const char *name, struct str blob,
                    struct known_answer *answer, struct err *err)
{
    for (size_t idx = 0; idx < login->target->n_known_files; idx++) {
        CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
        const char *path = login->target->known_files[idx];
        struct str text;
        struct stat info;
        if (stat(path, &info) < 0 || !S_ISREG(info.st_mode)) {
            continue; /* /dev/null has no keys */
        }
        if (fs_read(&scratch, path, SSH_KNOWN_TEXT_MAX, &text, err) < 0 ||
            ssh_known_look(answer, path, text, name, blob, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* With an empty blob, only which types of keys are known. For an entry without the port only a match counts: another port may be
   another machine. */
static int look_known(struct ssh_login *login, struct str blob, struct known_answer *ret_answer,
                      struct err *err)
{
    struct known_answer plain = KNOWN_ANSWER_EMPTY;
    *ret_answer = plain;
    if (look_for(login, login->target->known_name, blob, ret_answer, err) < 0) {
        return -1;
    }
    if (ret_answer->state == KNOWN_UNKNOWN && login->target->known_name_plain) {
        if (look_for(login, login->target->known_name_plain, blob, &plain, err) < 0) {
            return -1;
        }
        *ret_answer = blob.len && plain.state == KNOWN_OTHER ? *ret_answer : plain;
    }
    return 0;
}

/* A server has several keys: ask for one that is known. */
static int prefer_known_keys(struct ssh_login *login, struct err *err)
{
    /* Only types that this libssh2 has: 1.10 removes others from the list with an overlapping memcpy. */
    const struct {
        unsigned type;
        const char *names;
    } KINDS[] = {{SSH_KEY_ED25519, "ssh-ed25519"},
                 {SSH_KEY_ECDSA_256, "ecdsa-sha2-nistp256"},
                 {SSH_KEY_ECDSA_384, "ecdsa-sha2-nistp384"},
                 {SSH_KEY_ECDSA_521, "ecdsa-sha2-nistp521"},
                 {SSH_KEY_RSA, has_rsa_sha2() ? "rsa-sha2-512,rsa-sha2-256,ssh-rsa" : "ssh-rsa"}};
    CLEANUP(strbuf) struct strbuf names = STRBUF(1024);
    struct known_answer answer;
    if (look_known(login, STR_EMPTY, &answer, err) < 0) {
        return -1;
    }
    for (int round = 0; round < 2; round++) {
        for (size_t idx = 0; idx < ARRAY_LEN(KINDS); idx++) {
            if (((answer.types & KINDS[idx].type) != 0) == (round == 0)) {
                strbuf_printf(&names, "%s%s", names.len ? "," : "", KINDS[idx].names);
            }
        }
    }
    int rc = libssh2_session_method_pref(login->session, LIBSSH2_METHOD_HOSTKEY, names.ptr);
    return rc == 0 ? 0 : fail(login, rc, "host key types", err);
}

static int make_session(struct ssh_login *login, struct err *err)
{
    /* What OpenSSH takes of what libssh2 has, and no more: no key exchange with SHA-1, no MAC with MD5 or cut short. Ciphers: the
       fastest of the secure ones if the processor has AES. */
    static const char CIPHERS[] = "aes128-ctr,aes256-ctr,aes192-ctr";
    static const char MACS[] = "hmac-sha2-256,hmac-sha2-512,hmac-sha1";
    static const struct {
        int kind;
        const char *names;
    } METHODS[] = {{LIBSSH2_METHOD_KEX,
                    "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,"
                    "ecdh-sha2-nistp384,ecdh-sha2-nistp521,diffie-hellman-group-exchange-sha256,"
                    "diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,"
                    "diffie-hellman-group14-sha256"},
                   {LIBSSH2_METHOD_CRYPT_CS, CIPHERS},
                   {LIBSSH2_METHOD_CRYPT_SC, CIPHERS},
                   {LIBSSH2_METHOD_MAC_CS, MACS},
                   {LIBSSH2_METHOD_MAC_SC, MACS}};
    login->session = libssh2_session_init();
    if (!login->session) {
        return err_set(err, ERR_INTERNAL, "libssh2: no session");
    }
    for (size_t idx = 0; idx < ARRAY_LEN(METHODS); idx++) {
        int rc = libssh2_session_method_pref(login->session, METHODS[idx].kind, METHODS[idx].names);
        if (rc < 0) {
            return fail(login, rc, METHODS[idx].names, err);
        }
    }
    return prefer_known_keys(login, err);
}

static int shake_hands(struct ssh_login *login, struct err *err)
{
    const char *label = login->target->label;
    atomic_store(&login->waits_for,
                 "something accepts connections there, but there was no SSH handshake");
    int rc = libssh2_session_handshake(login->session, login->fds[atomic_load(&login->n_fds) - 1]);
    if (rc == LIBSSH2_ERROR_KEX_FAILURE) {
        return err_set(err, ERR_NODE,
                       "%s: nothing in common with the server: expected a key exchange "
                       "with SHA-2, AES in CTR mode and an HMAC with SHA-2 or SHA-1",
                       label);
    }
    if (rc == LIBSSH2_ERROR_HOSTKEY_SIGN || rc == LIBSSH2_ERROR_HOSTKEY_INIT) {
        return err_set(err, ERR_INTEGRITY,
                       "%s: the server did not prove that it has its host key (%d)", label, rc);
    }
    login->is_known = rc == 0;
    return rc == 0 ? 0 : fail(login, rc, "handshake", err);
}

static int accept_new(struct ssh_login *login, struct str blob, struct err *err)
{
    const char *path = login->target->known_files[0];
    CLEANUP(strbuf) struct strbuf line = STRBUF(65536);
    const char *slash = strrchr(path, '/');
    CLEANUP(fd) int fd = -1;
    char salt[SSH_KNOWN_SALT_BYTES];
    size_t n_salt = login->target->hashes_names ? sizeof(salt) : 0;
    if (getrandom(salt, n_salt, 0) != (ssize_t)n_salt) {
        return err_set(err, ERR_INTERNAL, "getrandom: %s", err_errno_text(errno));
    }
    if (ssh_known_line(&line, login->target->known_name, (struct str){salt, n_salt}, blob, err) <
        0) {
        return -1;
    }
    if (slash && slash != path) {
        char *folder = arena_strndup(&login->arena, path, (size_t)(slash - path));
        if (mkdir(folder, 0700) < 0 && errno != EEXIST) {
            return err_set(err, ERR_IO, "%s: %s", folder, err_errno_text(errno));
        }
    }
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return err_set(err, err_code_of_errno(errno), "%s: %s", path, err_errno_text(errno));
    }
    return fs_write_all(fd, line.ptr, line.len, path, err);
}

static int refuse_changed(struct ssh_login *login, const struct known_answer *known,
                          struct str blob, const char *print, struct err *err)
{
    const char *label = login->target->label;
    if (known->types == SSH_KEY_RSA && !has_rsa_sha2()) {
        return err_set(err, ERR_AUTH,
                       "%s: %s:%zu has only an RSA host key, which libssh2 %s cannot check (it "
                       "would need 1.11): add its ed25519 key (ssh-keyscan -t ed25519)",
                       label, known->file, known->line, libssh2_version(0));
    }
    return err_set(
        err, ERR_INTEGRITY,
        "%s: its host key has CHANGED: it shows %.*s %s, but %s:%zu has another. Somebody may be "
        "intercepting the connection, or the node was reinstalled: find out, then remove that line",
        label, STR_ARG(ssh_key_name_of_blob(blob)), print, known->file, known->line);
}

static int check_host_key(struct ssh_login *login, struct err *err)
{
    CLEANUP(strbuf) struct strbuf print = STRBUF(256);
    const struct ssh_target *target = login->target;
    struct known_answer known;
    size_t len = 0;
    int type;
    const char *key = libssh2_session_hostkey(login->session, &len, &type);
    struct str blob = {key, len};
    if (!key) {
        return fail(login, -1, "host key", err);
    }
    ssh_key_fingerprint(&print, blob);
    if (look_known(login, blob, &known, err) < 0) {
        return -1;
    }
    switch (known.state) {
    case KNOWN_MATCH:
        return 0;
    case KNOWN_REVOKED:
        return err_set(err, ERR_INTEGRITY, "%s: its host key %s is revoked by %s:%zu",
                       target->label, print.ptr, known.file, known.line);
    case KNOWN_OTHER:
        return refuse_changed(login, &known, blob, print.ptr, err);
    case KNOWN_UNKNOWN:
    default:
        return target->accepts_new
                   ? accept_new(login, blob, err)
                   : err_set(err, ERR_AUTH,
                             "%s: its host key is not in %s: it shows %s. If that is right, add it "
                             "(ssh-keyscan -p %lld %s >>%s), or set StrictHostKeyChecking "
                             "accept-new",
                             target->label, target->known_files[0], print.ptr,
                             (long long)target->port, target->host, target->known_files[0]);
    }
}

/* ---- login: the agent's keys that the config names, the agent's others, then files ---- */

static void agent_free(LIBSSH2_AGENT *agent)
{
    if (agent) {
        libssh2_agent_free(agent);
    }
}
CLEANUP_POINTER(agent, LIBSSH2_AGENT, agent_free);

struct key_file {
    const char *path;
    struct str blob; /* the public half, of the .pub beside it; empty: not known */
    struct str text; /* the private half; empty: none */
    bool is_usable;
};

static void note(struct ssh_login *login, const char *name, const char *what)
{
    strbuf_printf(&login->tried, "%s%s: %s", login->tried.len ? "; " : "", name, what);
}

static bool is_usable(struct ssh_login *login, const char *name, unsigned type)
{
    if (type == SSH_KEY_RSA && !has_rsa_sha2()) {
        note(login, name,
             arena_printf(&login->arena,
                          "an RSA key, for which libssh2 %s has only SHA-1, which servers refuse "
                          "(1.11 has more): use an ed25519 key",
                          libssh2_version(0)));
        return false;
    }
    if (type == SSH_KEY_OTHER) {
        note(login, name, "of a type that libssh2 does not know");
    }
    return type != SSH_KEY_OTHER;
}

static bool read_public(struct ssh_login *login, const char *path, struct key_file *key)
{
    struct str text;
    return fs_exists(path) && fs_read(&login->arena, path, KEY_TEXT_MAX, &text, ERR_IGNORED) == 0 &&
           ssh_key_public(&login->arena, text, &key->blob);
}

/* Looks at a key file and the .pub next to it; notes why it cannot be used. */
static void inspect(struct ssh_login *login, size_t idx, struct key_file *key)
{
    struct err trouble = {0};
    struct str text;
    unsigned type = 0;
    key->path = login->target->identity_files[idx];
    if (read_public(login, arena_printf(&login->arena, "%s.pub", key->path), key)) {
        type = ssh_key_type_of_name(ssh_key_name_of_blob(key->blob));
    }
    if (!fs_exists(key->path)) { /* the agent may still hold it */
        if (!key->blob.len && !login->target->is_identity_default[idx]) {
            note(login, key->path, "not there");
        }
        key->is_usable = key->blob.len && is_usable(login, key->path, type);
        return;
    }
    if (fs_read(&login->arena, key->path, KEY_TEXT_MAX, &text, &trouble) < 0) {
        note(login, key->path, trouble.msg);
        return;
    }
    if (str_find(text, STR_LIT("PRIVATE KEY-----")) >= 0) {
        key->text = text;
        type = str_find(text, STR_LIT("BEGIN RSA PRIVATE KEY")) >= 0 ? SSH_KEY_RSA : type;
    } else if (!ssh_key_public(&login->arena, text, &key->blob)) {
        /* It might have been the public half of a key that the agent holds. */
        note(login, key->path, "not a private key");
        return;
    }
    key->is_usable = is_usable(login, key->path, type);
}

/* After a key was tried. 1: it is in; 0: on to the next one. */
static int judge_try(struct ssh_login *login, const char *name, int rc, struct err *err)
{
    if (rc == 0) {
        return 1;
    }
    if (rc == LIBSSH2_ERROR_AUTHENTICATION_FAILED || rc == LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED) {
        login->has_refused = true;
        note(login, name, "refused by the server");
        return 0;
    }
    /* Narrower than is_lost: an unreadable key has codes of that list too. */
    if (rc != LIBSSH2_ERROR_SOCKET_SEND && rc != LIBSSH2_ERROR_SOCKET_DISCONNECT &&
        rc != LIBSSH2_ERROR_SOCKET_RECV && rc != LIBSSH2_ERROR_SOCKET_TIMEOUT &&
        rc != LIBSSH2_ERROR_BAD_SOCKET) {
        note(login, name,
             arena_printf(&login->arena, "%.*s (%d)", STR_ARG(last_words(login->session)), rc));
        return 0;
    }
    if (!login->has_refused) {
        return fail(login, rc, "authentication", err);
    }
    note(login, name, "the server hung up"); /* as it does after too many keys */
    return err_set(err, ERR_AUTH, "%s: not let in: %s", login->target->label, login->tried.ptr);
}

/* NULL: there is none, or it does not answer, which is noted. */
static LIBSSH2_AGENT *open_agent(struct ssh_login *login)
{
    CLEANUP(agent) LIBSSH2_AGENT *agent = NULL;
    LIBSSH2_AGENT *ready;
    if (!login->target->agent_path || !(agent = libssh2_agent_init(login->session))) {
        return NULL;
    }
    libssh2_agent_set_identity_path(agent, login->target->agent_path);
    if (libssh2_agent_connect(agent) != 0 || libssh2_agent_list_identities(agent) != 0) {
        note(login, login->target->agent_path,
             arena_printf(&login->arena, "%.*s", STR_ARG(last_words(login->session))));
        return NULL;
    }
    ready = agent;
    agent = NULL;
    return ready;
}

/* Its next key after `at`, NULL for the first: the one with the blob, or any if that is empty. NULL: there is none. */
static struct libssh2_agent_publickey *next_of(LIBSSH2_AGENT *agent, struct str blob,
                                               struct libssh2_agent_publickey *at)
{
    while (agent && libssh2_agent_get_identity(agent, &at, at) == 0) {
        if (!blob.len || str_eq(blob, (struct str){(const char *)at->blob, at->blob_len})) {
            return at;
        }
    }
    return NULL;
}

static int try_named(struct ssh_login *login, LIBSSH2_AGENT *agent, const struct key_file *key,
                     struct err *err)
{
    struct libssh2_agent_publickey *held = key->blob.len ? next_of(agent, key->blob, NULL) : NULL;
    if (!key->is_usable || (!held && key->text.len)) {
        return 0;
    }
    if (!held) {
        note(login, key->path, "its private half is neither on disk nor in the agent");
        return 0;
    }
    return judge_try(login, key->path, libssh2_agent_userauth(agent, login->target->user, held),
                     err);
}

static int try_others(struct ssh_login *login, LIBSSH2_AGENT *agent, const struct key_file *keys,
                      struct err *err)
{
    struct libssh2_agent_publickey *held = NULL;
    int result = 0;
    while (result == 0 && (held = next_of(agent, STR_EMPTY, held))) {
        const char *name = arena_printf(&login->arena, "agent's %s", held->comment);
        struct str blob = {(const char *)held->blob, held->blob_len};
        bool is_named = false;
        for (size_t idx = 0; idx < login->target->n_identity_files; idx++) {
            is_named |= str_eq(keys[idx].blob, blob);
        }
        if (!is_named && is_usable(login, name, ssh_key_type_of_name(ssh_key_name_of_blob(blob)))) {
            result = judge_try(login, name,
                               libssh2_agent_userauth(agent, login->target->user, held), err);
        }
    }
    return result;
}

/* Source: PROTOCOL.key of OpenSSH 9.2 (magic, then the name of the cipher); RFC 1421 and RFC 5958 for PEM. */
static bool is_encrypted(struct str text)
{
    static const char OPENSSH[] = "\nb3BlbnNzaC1rZXktdjEA";          /* the magic */
    static const char PLAIN[] = "\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU"; /* likewise, then "none" */
    return str_find(text, STR_LIT("ENCRYPTED")) >= 0 ||
           (str_find(text, STR_LIT(OPENSSH)) >= 0 && str_find(text, STR_LIT(PLAIN)) < 0);
}

static int try_file(struct ssh_login *login, LIBSSH2_AGENT *agent, const struct key_file *key,
                    struct err *err)
{
    const char *user = login->target->user;
    struct stat info;
    if (!key->is_usable || !key->text.len || (key->blob.len && next_of(agent, key->blob, NULL))) {
        return 0;
    }
    if (stat(key->path, &info) == 0 && (info.st_mode & 077) != 0) {
        note(login, key->path,
             arena_printf(&login->arena,
                          "its mode is %03o: others may read it; a private key must be 600",
                          info.st_mode & 0777));
        return 0;
    }
    if (is_encrypted(key->text)) {
        note(login, key->path, "encrypted: add it to an agent (ssh-add)");
        return 0;
    }
    return judge_try(login, key->path,
                     libssh2_userauth_publickey_frommemory(login->session, user, strlen(user), NULL,
                                                           0, key->text.ptr, key->text.len, NULL),
                     err);
}

static int try_keys(struct ssh_login *login, struct err *err)
{
    size_t n = login->target->n_identity_files;
    struct key_file *keys = arena_array(&login->arena, struct key_file, n + 1);
    int result = 0;
    atomic_store(&login->waits_for, "the agent gave no answer");
    CLEANUP(agent) LIBSSH2_AGENT *agent = open_agent(login);
    for (size_t idx = 0; idx < n; idx++) {
        inspect(login, idx, &keys[idx]);
    }
    for (size_t idx = 0; result == 0 && idx < n; idx++) {
        result = try_named(login, agent, &keys[idx], err);
    }
    if (result == 0 && !login->target->has_identities_only) {
        result = try_others(login, agent, keys, err);
    }
    atomic_store(&login->waits_for, "it refused the login");
    for (size_t idx = 0; result == 0 && idx < n; idx++) {
        result = try_file(login, agent, &keys[idx], err);
    }
    if (result != 0) {
        return result < 0 ? -1 : 0;
    }
    return err_set(err, ERR_AUTH, "%s: not let in: %s", login->target->label,
                   login->tried.len ? login->tried.ptr
                                    : "there is no key: no agent (SSH_AUTH_SOCK), and no "
                                      "~/.ssh/id_ed25519 or id_ecdsa");
}

static int authenticate(struct ssh_login *login, struct err *err)
{
    const char *user = login->target->user;
    atomic_store(&login->waits_for, "it refused the login");
    const char *methods = libssh2_userauth_list(login->session, user, (unsigned)strlen(user));
    if (!methods && libssh2_userauth_authenticated(login->session)) {
        return 0;
    }
    if (!methods) {
        return fail(login, libssh2_session_last_errno(login->session), "authentication", err);
    }
    if (!strstr(methods, "publickey")) {
        return err_set(err, ERR_AUTH, "%s: the server takes no keys, only: %s",
                       login->target->label, methods);
    }
    return try_keys(login, err);
}

/* ---- all of it ---- */

int ssh_log_in(void *arg, const atomic_bool *is_left, struct err *err)
{
    struct ssh_login *login = arg;
    strbuf_init(&login->tried, TRIED_MAX);
    if ((atomic_load(&login->n_fds) == 0 && connect_any(login, is_left, err) < 0) ||
        make_session(login, err) < 0 || shake_hands(login, err) < 0 ||
        check_host_key(login, err) < 0 || authenticate(login, err) < 0) {
        return -1;
    }
    return 0;
}

/* Disconnects as far as possible without waiting. The socket is shut down before the session is freed, which would otherwise
   wait for the other side's answer on each channel. */
static void end_session(struct ssh_login *login)
{
    libssh2_session_set_blocking(login->session, 0);
    if (login->is_known) {
        (void)libssh2_session_disconnect(login->session, "done");
    }
    for (size_t idx = 0; idx < atomic_load(&login->n_fds); idx++) {
        (void)shutdown(login->fds[idx], SHUT_RDWR);
    }
    for (int tries = 0; tries < FREE_TRIES_MAX; tries++) {
        if (libssh2_session_free(login->session) != LIBSSH2_ERROR_EAGAIN) {
            break;
        }
    }
}

void ssh_login_free(void *arg)
{
    struct ssh_login *login = arg;
    if (login->session) {
        end_session(login);
    }
    for (size_t idx = 0; idx < atomic_load(&login->n_fds); idx++) {
        close(login->fds[idx]);
    }
    strbuf_release(&login->tried);
    arena_release(&login->arena);
    ssh_plan_drop(login->plan);
    free(login);
}
