/* SPDX-License-Identifier: Apache-2.0 */
/* The route to a node: its address, user, keys and known_hosts files as ssh(1) itself would have them, and its jump hosts:
   `ssh -G` is asked for the node and for each stop before it, as a child on the loop. A setting that this program cannot
   honour, but that would change where a connection goes or whom it trusts, is an error, never skipped. */
#pragma once

#include <stdatomic.h>

#include "base/strbuf.h"
#include "sys/loop.h"
#include "sys/proc.h"

#define SSH_HOPS_MAX        8
#define SSH_IDENTITIES_MAX  32
#define SSH_KNOWN_FILES_MAX 16

struct ssh_target {
    const char *host; /* as it is connected to */
    int64_t port;
    const char *user;
    const char *label; /* USER@HOST:PORT, for messages */
    int family;        /* 0: any, 4, 6 */
    const char *known_name;
    const char *known_name_plain;                 /* without the port; NULL: the same */
    const char *known_files[SSH_KNOWN_FILES_MAX]; /* accept-new writes into the first */
    size_t n_known_files;
    bool accepts_new, hashes_names;
    const char *identity_files[SSH_IDENTITIES_MAX];
    bool is_identity_default[SSH_IDENTITIES_MAX]; /* a missing one does not matter */
    size_t n_identity_files;
    bool has_identities_only;
    const char *agent_path; /* NULL: no agent */
    int64_t connect_timeout_ns;
    int64_t alive_interval_ns;
    int64_t alive_count_max;
    const char *jumps; /* the stops before it, as ProxyJump has them; NULL: none */
};

/* What `ssh -G` says of one stop, as it is written there. */
struct ssh_answer {
    const char *host_name, *user, *proxy_jump, *host_key_alias, *identity_agent; /* NULL: not set */
    const char *strict, *family, *identities_only, *hash_names;
    const char *identity_files[SSH_IDENTITIES_MAX];
    size_t n_identity_files;
    const char *known_files, *global_known_files;              /* separated by blanks */
    int64_t port, connect_timeout_s, alive_s, alive_count_max; /* 0: not set, or "none" */
};

/* Pure. Lines that are not about our settings are skipped. */
MUST_CHECK int ssh_answer_read(struct arena *arena, struct str text, struct ssh_answer *ret_answer,
                               struct err *err);

/* Takes the last stop off a ProxyJump's list, as ssh has it on its command line. */
const char *ssh_last_jump(struct arena *arena, struct str *jumps);

struct ssh_plan_opts {
    const char *host;
    int64_t port;               /* 0: as ssh has it */
    const char *user;           /* NULL: likewise */
    const char *config_path;    /* NULL: $REPERF_SSH_CONFIG, else those that ssh reads */
    int64_t connect_timeout_ns; /* 0: as ssh has it, else 10 s */
};

/* An attempt to connect that is left behind in its thread reads the target after its owner has gone: who drops it last frees
   it. */
struct ssh_plan {
    atomic_int n_users;
    struct arena arena;
    struct ssh_plan_opts opts; /* its texts in the arena */
    const char *home, *local_user;
    struct ssh_target target; /* the node */
    size_t n_stops;           /* which ssh was asked for, the node included */
    bool is_made;
    /* The question under way. */
    const char *stop; /* as ssh takes it on its command line */
    struct str rest;  /* the part of the ProxyJump that named it before it */
    struct proc proc;
    struct strbuf said;
};

MUST_CHECK int ssh_plan_new(const struct ssh_plan_opts *opts, struct ssh_plan **ret_plan,
                            struct err *err);
/* Asks ssh until the route is known; nothing to do from then on. */
enum step ssh_plan_step(struct ssh_plan *plan, struct loop *loop, struct err *err);
/* Gives up the question under way; the next step asks again. */
void ssh_plan_pause(struct ssh_plan *plan);
struct ssh_plan *ssh_plan_hold(struct ssh_plan *plan);
/* Not while a question is under way. NULL is fine. */
void ssh_plan_drop(struct ssh_plan *plan);
/* For messages: as the node was named until its route is known. */
const char *ssh_plan_label(const struct ssh_plan *plan);
