/* SPDX-License-Identifier: Apache-2.0 */
/* The two requests of a client to an SSH agent, without ever blocking: an agent may wait for its owner's consent. Source:
   draft-miller-ssh-agent-04, sections 4.4 and 4.5. */
#ifndef NET_SSH_AGENT_H
#define NET_SSH_AGENT_H

#include "base/strbuf.h"
#include "sys/loop.h"

#define SSH_AGENT_KEYS_MAX 256

struct ssh_agent_key {
    struct str blob;
    const char *comment;
};

struct ssh_agent {
    int fd; /* -1: not connected */
    struct strbuf out;
    size_t sent;
    struct strbuf in;
    bool is_asking;
};

void ssh_agent_init(struct ssh_agent *agent);
void ssh_agent_release(struct ssh_agent *agent);
MUST_CHECK int ssh_agent_connect(struct ssh_agent *agent, const char *path, struct err *err);

/* Keys in the arena. On STEP_AGAIN wait for the descriptor. */
enum step ssh_agent_list(struct ssh_agent *agent, struct arena *arena,
                         struct ssh_agent_key **ret_keys, size_t *ret_n, struct err *err);
/* Only the signature, without the name of its algorithm; malloc'ed. */
enum step ssh_agent_sign(struct ssh_agent *agent, struct str blob, struct str data,
                         unsigned char **ret_signature, size_t *ret_len, struct err *err);

#endif
