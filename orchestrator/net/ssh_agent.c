/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/bytes.h"
#include "net/ssh_agent.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MESSAGE_MAX (256u << 10)

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

void ssh_agent_init(struct ssh_agent *agent)
{
    *agent = (struct ssh_agent){.fd = -1};
    strbuf_init(&agent->out, MESSAGE_MAX);
    strbuf_init(&agent->in, MESSAGE_MAX);
}

void ssh_agent_release(struct ssh_agent *agent)
{
    if (agent->fd >= 0) {
        close(agent->fd);
    }
    agent->fd = -1;
    strbuf_release(&agent->out);
    strbuf_release(&agent->in);
}

int ssh_agent_connect(struct ssh_agent *agent, const char *path, struct err *err)
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

enum step ssh_agent_list(struct ssh_agent *agent, struct arena *arena,
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

enum step ssh_agent_sign(struct ssh_agent *agent, struct str blob, struct str data,
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
