/* SPDX-License-Identifier: Apache-2.0 */
/* The route to a node by ~/.ssh/config: its stops (jump hosts first, the node last), each with its address, user, keys and
   known_hosts files. Reads the config once, when it is made. */
#ifndef NET_SSH_PLAN_H
#define NET_SSH_PLAN_H

#include "net/ssh_config.h"

#define SSH_HOPS_MAX 8

struct ssh_target {
    const char *host; /* as it is connected to */
    int64_t port;
    const char *user;
    const char *label; /* USER@HOST:PORT, for messages */
    int family;        /* 0: any, 4, 6 */
    const char *known_name;
    const char *known_name_plain; /* without the port; NULL: the same */
    const char **known_files;     /* the user's first, into which accept-new writes */
    size_t n_known_files;
    bool accepts_new;
    const char **identity_files;
    size_t n_identity_files;
    bool are_identities_default; /* not named by the user: a missing one does not matter */
    bool has_identities_only;
    const char *agent_path; /* NULL: no agent */
    int64_t connect_timeout_ns;
    int64_t alive_interval_ns; /* 0: no keepalive */
    int64_t alive_count_max;
};

struct ssh_plan {
    struct arena arena;
    struct ssh_target targets[SSH_HOPS_MAX];
    size_t n_targets;
};

struct ssh_plan_opts {
    const char *host;
    int64_t port;               /* 0: as the config says, else 22 */
    const char *user;           /* NULL: as the config says, else ours */
    const char *config_path;    /* NULL: $REPERF_SSH_CONFIG, else ~/.ssh/config */
    int64_t connect_timeout_ns; /* 0: as the config says, else 10 s */
};

MUST_CHECK int ssh_plan_make(struct ssh_plan *plan, const struct ssh_plan_opts *opts,
                             struct err *err);
void ssh_plan_release(struct ssh_plan *plan);

#endif
