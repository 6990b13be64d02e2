/* SPDX-License-Identifier: Apache-2.0 */
/* From a name to a session with an authenticated other end. */
#include "base/base.h"

#include "net/ssh_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

#define FREE_TRIES_MAX 64 /* each reads further towards the end of a shut-down socket */

/* ---- name and socket ---- */

/* The resolver's threads may still write into an abandoned request: then it is leaked to them. */
static void drop_lookup(struct ssh_hop *hop)
{
    struct gaicb *lookup = hop->lookup;
    hop->lookup = NULL;
    if (!lookup) {
        return;
    }
    if (gai_error(lookup) == EAI_INPROGRESS && gai_cancel(lookup) != EAI_CANCELED) {
        return;
    }
    if (lookup->ar_result) {
        freeaddrinfo(lookup->ar_result);
    }
    free((void *)(uintptr_t)lookup->ar_name); /* both were duplicated for it */
    free((void *)(uintptr_t)lookup->ar_request);
    free(lookup);
}

static struct addrinfo hints_of(const struct ssh_target *target)
{
    return (struct addrinfo){.ai_family = target->family == 4   ? AF_INET
                                          : target->family == 6 ? AF_INET6
                                                                : AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM};
}

static enum step lookup_failed(struct ssh_hop *hop, int status, struct err *err)
{
    bool may_pass = status == EAI_AGAIN || status == EAI_MEMORY || status == EAI_SYSTEM;
    return step_fail(err_set(err, may_pass ? ERR_NET : ERR_NODE, "%s: name: %s", hop->target->label,
                             gai_strerror(status)));
}

static enum step begin_lookup(struct ssh_hop *hop, struct err *err)
{
    struct addrinfo hints = hints_of(hop->target);
    struct addrinfo *heap_hints;
    hints.ai_flags = AI_NUMERICHOST;
    int status = getaddrinfo(hop->target->host, NULL, &hints, &hop->addresses);
    if (status == 0) {
        hop->address = hop->addresses;
        hop->state = HOP_CONNECT;
        return STEP_DONE;
    }
    heap_hints = xcalloc(1, sizeof(*heap_hints));
    *heap_hints = hints_of(hop->target);
    hop->lookup = xcalloc(1, sizeof(*hop->lookup));
    hop->lookup->ar_name = xstrdup(hop->target->host);
    hop->lookup->ar_request = heap_hints;
    status = getaddrinfo_a(GAI_NOWAIT, &hop->lookup, 1, NULL);
    return status == 0 ? STEP_AGAIN : lookup_failed(hop, status, err);
}

enum step hop_resolve(struct ssh_hop *hop, struct err *err)
{
    if (!hop->lookup) {
        return begin_lookup(hop, err);
    }
    int status = gai_error(hop->lookup);
    if (status == EAI_INPROGRESS) {
        return STEP_AGAIN;
    }
    if (status != 0) {
        return lookup_failed(hop, status, err);
    }
    hop->addresses = hop->lookup->ar_result;
    hop->lookup->ar_result = NULL;
    drop_lookup(hop);
    hop->address = hop->addresses;
    hop->state = HOP_CONNECT;
    return STEP_DONE;
}

static void set_options(struct ssh_hop *hop)
{
    static const int ON = 1;
    int64_t silence_ns = hop->target->alive_interval_ns * hop->target->alive_count_max;
    unsigned silence_ms = (unsigned)(silence_ns / NS_PER_MS);
    /* If the kernel refuses one of these we still connect: our own deadlines apply in any case. */
    (void)setsockopt(hop->fd, IPPROTO_TCP, TCP_NODELAY, &ON, sizeof(ON));
    (void)setsockopt(hop->fd, SOL_SOCKET, SO_KEEPALIVE, &ON, sizeof(ON));
    if (silence_ms) {
        (void)setsockopt(hop->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, sizeof(silence_ms));
    }
}

static int open_socket(struct ssh_hop *hop)
{
    struct sockaddr_storage address = {0};
    memcpy(&address, hop->address->ai_addr, hop->address->ai_addrlen);
    if (address.ss_family == AF_INET6) {
        ((struct sockaddr_in6 *)&address)->sin6_port = htons((uint16_t)hop->target->port);
    } else {
        ((struct sockaddr_in *)&address)->sin_port = htons((uint16_t)hop->target->port);
    }
    hop->fd = socket(hop->address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (hop->fd < 0) {
        return errno;
    }
    set_options(hop);
    if (connect(hop->fd, (const struct sockaddr *)&address, hop->address->ai_addrlen) < 0) {
        return errno;
    }
    return 0;
}

/* 0 if connected, EINPROGRESS, or the error. */
static int connect_state(struct ssh_hop *hop)
{
    struct pollfd polled = {.fd = hop->fd, .events = POLLOUT};
    int status = 0;
    socklen_t len = sizeof(status);
    if (poll(&polled, 1, 0) == 0) {
        return EINPROGRESS;
    }
    return getsockopt(hop->fd, SOL_SOCKET, SO_ERROR, &status, &len) < 0 ? errno : status;
}

enum step hop_connect(struct ssh_hop *hop, struct err *err)
{
    int status = hop->fd < 0 ? open_socket(hop) : connect_state(hop);
    if (status == 0) {
        hop->state = HOP_HANDSHAKE;
        return STEP_DONE;
    }
    if (status == EINPROGRESS) {
        return ssh_want(hop->ssh, &hop->watched, hop->fd, POLLOUT, err) < 0 ? STEP_FAIL
                                                                            : STEP_AGAIN;
    }
    ssh_unwant(hop->ssh, &hop->watched);
    fd_close(&hop->fd);
    hop->address = hop->address->ai_next;
    if (hop->address) {
        return STEP_DONE; /* the next one */
    }
    return step_fail(
        err_set(err, ERR_NET, "%s: connect: %s", hop->target->label, err_errno_text(status)));
}

/* ---- handshake ---- */

/* libssh2 looks for a line that begins with "SSH-" for as long as something comes, without returning. */
static bool is_flood(const struct ssh_hop *hop)
{
    return hop->state == HOP_HANDSHAKE && hop->n_heard > SSH_GREETING_MAX;
}

static LIBSSH2_RECV_FUNC(receive)
{
    struct ssh_hop *hop = *abstract;
    if (is_flood(hop)) {
        return -EPROTO;
    }
    ssize_t len = recv(socket, buffer, length, flags | MSG_DONTWAIT);
    if (len < 0) {
        return errno == EINTR || errno == EWOULDBLOCK ? -EAGAIN : -errno;
    }
    hop->heard_ns = loop_now_ns(hop->ssh->loop);
    hop->n_heard += (uint64_t)len;
    return len;
}

static bool has_rsa_sha2(void)
{
    return libssh2_version(0x010b00) != NULL; /* RFC 8332 came with 1.11.0 */
}

static int look_known(struct ssh_hop *hop, const char *name, struct str blob, struct arena *arena,
                      struct known_answer *answer, struct err *err)
{
    for (size_t idx = 0; idx < hop->target->n_known_files; idx++) {
        const char *path = hop->target->known_files[idx];
        struct str text;
        struct stat info;
        if (stat(path, &info) < 0 || !S_ISREG(info.st_mode)) {
            continue; /* /dev/null has no keys */
        }
        if (fs_read(arena, path, SSH_KNOWN_TEXT_MAX, &text, err) < 0 ||
            ssh_known_look(answer, path, text, name, blob, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* A server has several keys: ask for one that is known. */
static int prefer_known_keys(struct ssh_hop *hop, struct err *err)
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
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf names = STRBUF(1024);
    struct known_answer answer = KNOWN_ANSWER_EMPTY;
    if (look_known(hop, hop->target->known_name, STR_EMPTY, &arena, &answer, err) < 0 ||
        (hop->target->known_name_plain && answer.state == KNOWN_UNKNOWN &&
         look_known(hop, hop->target->known_name_plain, STR_EMPTY, &arena, &answer, err) < 0)) {
        return -1;
    }
    for (int round = 0; round < 2; round++) {
        for (size_t idx = 0; idx < ARRAY_LEN(KINDS); idx++) {
            if (((answer.types & KINDS[idx].type) != 0) == (round == 0)) {
                strbuf_printf(&names, "%s%s", names.len ? "," : "", KINDS[idx].names);
            }
        }
    }
    int rc = libssh2_session_method_pref(hop->session, LIBSSH2_METHOD_HOSTKEY, names.ptr);
    return rc == 0 ? 0 : ssh_fail(hop, rc, "host key types", err);
}

static int make_session(struct ssh_hop *hop, struct err *err)
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
    LIBSSH2_RECV_FUNC((*const function)) = receive;
    void *pointer; /* ISO C has no conversion to it */
    memcpy(&pointer, &function, sizeof(pointer));
    hop->session = libssh2_session_init_ex(NULL, NULL, NULL, hop);
    if (!hop->session) {
        return err_set(err, ERR_INTERNAL, "libssh2: no session");
    }
    libssh2_session_set_blocking(hop->session, 0);
    (void)libssh2_session_callback_set(hop->session, LIBSSH2_CALLBACK_RECV, pointer);
    for (size_t idx = 0; idx < ARRAY_LEN(METHODS); idx++) {
        int rc = libssh2_session_method_pref(hop->session, METHODS[idx].kind, METHODS[idx].names);
        if (rc < 0) {
            return ssh_fail(hop, rc, METHODS[idx].names, err);
        }
    }
    return prefer_known_keys(hop, err);
}

enum step hop_handshake(struct ssh_hop *hop, struct err *err)
{
    if (!hop->session && make_session(hop, err) < 0) {
        return STEP_FAIL;
    }
    int rc = libssh2_session_handshake(hop->session, hop->fd);
    if (rc == LIBSSH2_ERROR_EAGAIN) {
        return ssh_want_session(hop, err) < 0 ? STEP_FAIL : STEP_AGAIN;
    }
    if (is_flood(hop)) {
        return step_fail(err_set(err, ERR_NODE, "%s: more than %d bytes without an SSH handshake",
                                 hop->target->label, SSH_GREETING_MAX));
    }
    if (rc == LIBSSH2_ERROR_KEX_FAILURE) {
        return step_fail(err_set(err, ERR_NODE,
                                 "%s: nothing in common with the server: expected a key exchange "
                                 "with SHA-2, AES in CTR mode and an HMAC with SHA-2 or SHA-1",
                                 hop->target->label));
    }
    if (rc == LIBSSH2_ERROR_HOSTKEY_SIGN || rc == LIBSSH2_ERROR_HOSTKEY_INIT) {
        return step_fail(err_set(err, ERR_INTEGRITY,
                                 "%s: the server did not prove that it has its host key (%d)",
                                 hop->target->label, rc));
    }
    if (rc != 0) {
        return step_fail(ssh_fail(hop, rc, "handshake", err));
    }
    hop->state = HOP_HOST_KEY;
    return STEP_DONE;
}

/* ---- who it is ---- */

static int accept_new(struct ssh_hop *hop, struct str blob, struct err *err)
{
    const char *path = hop->target->known_files[0];
    CLEANUP(strbuf) struct strbuf line = STRBUF(65536);
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *slash = strrchr(path, '/');
    CLEANUP(fd) int fd = -1;
    char salt[SSH_KNOWN_SALT_BYTES];
    size_t n_salt = hop->target->hashes_names ? sizeof(salt) : 0;
    if (getrandom(salt, n_salt, 0) != (ssize_t)n_salt) {
        return err_set(err, ERR_INTERNAL, "getrandom: %s", err_errno_text(errno));
    }
    if (ssh_known_line(&line, hop->target->known_name, (struct str){salt, n_salt}, blob, err) < 0) {
        return -1;
    }
    if (slash && slash != path) {
        char *folder = arena_strndup(&arena, path, (size_t)(slash - path));
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

static int refuse_unknown(struct ssh_hop *hop, const char *print, struct err *err)
{
    const struct ssh_target *target = hop->target;
    return err_set(err, ERR_AUTH,
                   "%s: its host key is not in %s: it shows %s. If that is right, add it "
                   "(ssh-keyscan -p %lld %s >>%s), or set StrictHostKeyChecking accept-new",
                   target->label, target->known_files[0], print, (long long)target->port,
                   target->host, target->known_files[0]);
}

static int refuse_changed(struct ssh_hop *hop, const struct known_answer *known, struct str blob,
                          const char *print, struct err *err)
{
    if (known->types == SSH_KEY_RSA && !has_rsa_sha2()) {
        return err_set(err, ERR_AUTH,
                       "%s: %s:%zu has only an RSA host key, which libssh2 %s cannot check (it "
                       "would need 1.11): add its ed25519 key (ssh-keyscan -t ed25519)",
                       hop->target->label, known->file, known->line, libssh2_version(0));
    }
    return err_set(
        err, ERR_INTEGRITY,
        "%s: its host key has CHANGED: it shows %.*s %s, but %s:%zu has another. Somebody may be "
        "intercepting the connection, or the node was reinstalled: find out, then remove that line",
        hop->target->label, STR_ARG(ssh_key_name_of_blob(blob)), print, known->file, known->line);
}

enum step hop_check_host_key(struct ssh_hop *hop, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf print = STRBUF(256);
    const struct ssh_target *target = hop->target;
    struct known_answer known = KNOWN_ANSWER_EMPTY;
    size_t len = 0;
    int type;
    const char *key = libssh2_session_hostkey(hop->session, &len, &type);
    struct str blob = {key, len};
    if (!key) {
        return step_fail(ssh_fail(hop, -1, "host key", err));
    }
    ssh_key_fingerprint(&print, blob);
    if (look_known(hop, target->known_name, blob, &arena, &known, err) < 0) {
        return STEP_FAIL;
    }
    if (known.state == KNOWN_UNKNOWN && target->known_name_plain) {
        /* For an entry without the port only a match counts: another port may be another machine. */
        struct known_answer plain = KNOWN_ANSWER_EMPTY;
        if (look_known(hop, target->known_name_plain, blob, &arena, &plain, err) < 0) {
            return STEP_FAIL;
        }
        known = plain.state == KNOWN_OTHER ? known : plain;
    }
    if (known.state == KNOWN_UNKNOWN && target->accepts_new) {
        if (accept_new(hop, blob, err) < 0) {
            return STEP_FAIL;
        }
        known.state = KNOWN_MATCH;
    }
    switch (known.state) {
    case KNOWN_MATCH:
        hop->state = HOP_METHODS;
        return STEP_DONE;
    case KNOWN_REVOKED:
        return step_fail(err_set(err, ERR_INTEGRITY, "%s: its host key %s is revoked by %s:%zu",
                                 target->label, print.ptr, known.file, known.line));
    case KNOWN_OTHER:
        return step_fail(refuse_changed(hop, &known, blob, print.ptr, err));
    case KNOWN_UNKNOWN:
    default:
        return step_fail(refuse_unknown(hop, print.ptr, err));
    }
}

/* Disconnects as far as possible without waiting. The socket is shut down before the session is freed, which would otherwise
   wait for the other side's answer on each channel. */
static void end_session(struct ssh_hop *hop)
{
    if (hop->state > HOP_HANDSHAKE) {
        (void)libssh2_session_disconnect(hop->session, "done");
    }
    (void)shutdown(hop->fd, SHUT_RDWR);
    for (int tries = 0; tries < FREE_TRIES_MAX; tries++) {
        if (libssh2_session_free(hop->session) != LIBSSH2_ERROR_EAGAIN) {
            break;
        }
    }
    hop->session = NULL;
}

void hop_release(struct ssh_hop *hop)
{
    if (hop->session) {
        end_session(hop);
    }
    auth_release(&hop->auth);
    drop_lookup(hop);
    if (hop->addresses) {
        freeaddrinfo(hop->addresses);
    }
    fd_close(&hop->fd);
    fd_close(&hop->pump_fd);
    free(hop->up.bytes);
    free(hop->down.bytes);
}
