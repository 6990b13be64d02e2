/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol between the orchestrator and reperf-node on a node, as bytes; no descriptors here. node/README.md documents it,
   with the meaning and the answer of each request. */
#pragma once

#include "base/strbuf.h"

#define NODE_HELLO         "reperf-node 6 " /* then its own path and a line break */
#define NODE_HEADER_BYTES  16
#define NODE_BODY_MAX      (17u << 20) /* of a request: a job's command and environment */
#define NODE_TEXT_MAX      (5u << 20)  /* of an answer: a log's part */
#define NODE_FAILED        74          /* an answer's status: its text is the reason */
#define NODE_ENGINE        7           /* the same, and it is the container engine */
#define NODE_FULL          10          /* the same, and the disk there is full */
#define NODE_FIELDS_MAX    65536
#define NODE_WATCH_DELAY_S 1 /* from a job's start to the first look of what watches it */
/* In the words of a job's command: the path of reperf-node there. */
#define NODE_SELF      "/@reperf-node@"
#define NODE_RANK_NAME "REPERF_NODE_RANK" /* of a node among a job's, inside a container */
#define NODE_RANK_HOLE "@"                /* where mpirun and srun start that: filled in there */
#define NODE_FRAME_MAX (NODE_HEADER_BYTES + (size_t)NODE_BODY_MAX + 1)

enum node_op {
    NODE_START = 1, /* ID BATCH CLEANUP WATCHED N_ARGV ARGV... ENV... */
    NODE_POLL,      /* ID WAIT_MS */
    NODE_READ,      /* ID OFFSET MOST */
    NODE_SIGNAL,    /* ID NUMBER */
    NODE_REAP,      /* ID */
    NODE_FORGET,    /* ID */
    NODE_FOLDER,    /* */
    NODE_LEASE,     /* RUN TTL_S "take" or "drop" WHO */
    NODE_SCAN,      /* ROOT MINUTES ENGINE LABEL */
    NODE_REMOVE,    /* ROOT ENGINE, then pairs of KIND NAME */
    NODE_CLOCK,     /* */
    NODE_FACTS,     /* ENGINES */
    NODE_LISTEN,    /* PORT ADDRESS */
    NODE_CONNECT,   /* PORT, then pairs of NAME ADDRESS */
    NODE_BATCHES,   /* */
    NODE_OP_END,
};

enum job_state {
    JOB_ABSENT, /* never started here */
    JOB_RUNNING,
    JOB_ENDED, /* its status is known */
    JOB_LOST   /* its wrapper is gone and left no status: killed, or the machine went down */
};
extern const char *const NODE_JOB_STATES[JOB_LOST + 1];

struct job_report { /* the answer to POLL */
    enum job_state state;
    int exit_status; /* of the program; 128+n where signal n ended it, as the shell says it */
    bool is_waiting; /* JOB_RUNNING, but a batch system has not started it yet */
    enum err_code
        cause;      /* of its end, if a batch system knows more than the status; else ERR_NONE */
    char why[160];  /* for people: of cause and is_waiting; else "" */
    char left[128]; /* of JOB_ENDED: names of processes that outlived it and were ended */
};

struct node_request {
    uint32_t seq;
    enum node_op op;
    /* They point into what was read; each is followed by a NUL in the arena's copy. */
    const struct str *fields;
    size_t n_fields;
};

struct node_answer {
    uint32_t seq;
    int status;      /* 0 to 255 */
    struct str text; /* into what was read */
};

/* What exceeds its maximum sets out->is_full. */
void node_request_write(struct strbuf *out, const struct node_request *request);
void node_answer_write(struct strbuf *out, const struct node_answer *answer);

/* The first frame of the bytes received. 1: it is complete and *ret_len bytes long; 0: more to come; -1: not a frame of ours
   (ERR_PARSE). A request's fields are copied into the arena; none holds a NUL. */
MUST_CHECK int node_request_read(struct arena *arena, struct str bytes,
                                 struct node_request *ret_request, size_t *ret_len,
                                 struct err *err);
MUST_CHECK int node_answer_read(struct str bytes, struct node_answer *ret_answer, size_t *ret_len,
                                struct err *err);

/* "STATE STATUS WAITING CAUSE LEFT WHY", with tabs between them. False: not one. */
void node_report_write(struct strbuf *out, const struct job_report *report);
bool node_report_read(struct str text, struct job_report *ret_report);
