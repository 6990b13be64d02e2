/* SPDX-License-Identifier: Apache-2.0 */
/* A remote whose jobs are reperf-node's, wherever that runs: what remote_ssh.c (a channel) and remote_local.c (pipes) share. */
#pragma once

#include "base/strbuf.h"
#include "codec/digest.h"
#include "codec/node_wire.h"
#include "fleet/remote.h"

#define OWN_OUTPUT_MAX (64u << 10)
#define OP_OUTPUT_MAX  (NODE_TEXT_MAX + OWN_OUTPUT_MAX)
#define ASK_SPAN_NS    (60 * NS_PER_S) /* for a request, a signal's cleanup included */

/* The current operation. */
struct operation {
    bool is_active;
    bool is_own_word; /* what the node says against it is said as it is */
    const char *what;
    struct strbuf output;  /* an answer's text */
    struct strbuf request; /* its number still to be put in; empty: not written yet */
    int64_t span_ns;       /* for its answer over SSH */
    int n_ends;            /* how often reperf-node ended under it */
};

enum node_state {
    NODE_UNKNOWN, /* the local program has not been examined yet */
    NODE_LAUNCH,  /* to be started there, or starting */
    NODE_PUT,     /* missing there: being installed */
    NODE_UP,
};

struct served;

/* How reperf-node is reached. */
struct node_way {
    /* Finds the program here: node.program, and node.sha256 if it must be installed. */
    int (*prepare)(struct served *r, struct err *err);
    /* Starts it if the channel is not open; sends node.feed, and receives into node.said. STEP_DONE: it has ended, with that
       status; NODE_ABSENT: it is not installed. *ret_again: the connection was lost, and it is started again. */
    enum step (*turn)(struct served *r, int *ret_status, bool *ret_again, struct err *err);
    /* Installs it. Then the state is NODE_LAUNCH; or it fails by remote_node_never. NULL if it always exists. */
    enum step (*put)(struct served *r, struct err *err);
    /* Between two requests nothing of the channel ends the loop's wait. */
    void (*pause)(struct served *r);
    void (*go_on)(struct served *r);
    /* Gives up the open channel. */
    void (*close)(struct served *r);
    const char *(*label)(const struct served *r); /* for messages; "": this machine */
};
#define NODE_ABSENT 75

/* reperf-node there. */
struct remote_node {
    enum node_state state;
    char *program; /* the file here, owned */
    char sha256[SHA256_HEX_SIZE];
    char *there; /* its path there, owned; NULL: not told yet */
    bool was_put;
    bool is_open;         /* its channel is */
    bool is_asked;        /* the operation under way has been sent */
    bool has_turn_failed; /* the last error concerns the program, not the connection */
    uint32_t seq;         /* the last request's */
    struct strbuf feed, said;
};

struct served {
    struct remote remote; /* first: a struct remote * is this */
    struct remote_ops ops;
    const struct node_way *way;
    struct loop *loop; /* borrowed */
    char *work_folder; /* NULL: not asked yet */
    struct operation op;
    struct remote_node node;
};

/* ops: what this kind of remote does in its own way (exec, abort, free). */
void served_init(struct served *r, struct loop *loop, const struct node_way *way,
                 struct remote_ops ops);
/* After the channel was closed. */
void served_release(struct served *r);
void served_begin(struct served *r, const char *what);
void served_end(struct served *r);
void remote_collect(void *ctx, const char *ptr, size_t len); /* ctx: a strbuf */

/* It cannot run: fails with `what` and the first line of its output. The next operation tries again. */
enum step remote_node_never(struct served *r, const char *what, struct str said, struct err *err);
/* Its channel makes room for a script. */
void remote_node_close(struct served *r);
/* The channel is gone. */
void remote_node_lost(struct served *r);
/* Gives up the current operation; true: nothing else needs to be done for it. */
bool remote_node_abort(struct served *r);
