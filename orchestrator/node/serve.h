/* SPDX-License-Identifier: Apache-2.0 */
/* Serves requests of the channel: one request, one answer. A wait ends early when there is more input. */
#pragma once

#include <sys/types.h>

#include "codec/node_wire.h"

struct server {
    const char *work_folder;
    int input_fd; /* the channel's; readable, or at its end: ends a wait */
};

/* The job that a request is about. */
struct asked_job {
    const struct server *server;
    struct arena arena;
    const char *id;
    const char *dir; /* WORK/jobs/ID */
};

/* Appends the text of the answer; returns its status. */
MUST_CHECK int serve_request(struct server *server, const struct node_request *request,
                             struct strbuf *text);

/* ---- requests in files of their own ---- */

/* lease_file.c */
int serve_lease(struct server *server, const struct node_request *request, struct strbuf *text);
/* leftovers.c */
int serve_scan(struct server *server, const struct node_request *request, struct strbuf *text);
int serve_remove(struct server *server, const struct node_request *request, struct strbuf *text);
/* facts.c */
int serve_facts(struct server *server, const struct node_request *request, struct strbuf *text);
/* ports.c */
int serve_listen(struct server *server, const struct node_request *request, struct strbuf *text);
int serve_connect(struct server *server, const struct node_request *request, struct strbuf *text);
int serve_clock(struct server *server, const struct node_request *request, struct strbuf *text);
/* slurm.c */
int slurm_start(struct asked_job *job, const struct node_request *request, struct str options,
                struct strbuf *text);
int slurm_poll(struct asked_job *job, int64_t wait_ms, struct strbuf *text);
int slurm_signal(struct asked_job *job, int signal_no, struct strbuf *text);
int serve_batches(struct server *server, const struct node_request *request, struct strbuf *text);
/* batch.c: `reperf-node batch DIR`. Returns the job's status. */
int batch_main(const char *dir);
int relay_main(const char *work_folder); /* relay_server.c, likewise: the exit status */
/* `reperf-node srun ...`, likewise; it returns only where there is none. */
int srun_main(int argc, char **argv);
/* rank_start.c: `reperf-node ranks ...` and the like: the exit status, or it does not return; -1: the words are none of these. */
int rank_program(int argc, char **argv);
/* Removes the folder of a job below root that does not run. */
MUST_CHECK int serve_forget_job(const char *root, const char *id, struct err *err);
MUST_CHECK int slurm_scancel(const char *number, struct err *err);

/* lease_file.c. False: nobody has the node. */
struct node_lease {
    struct str run, who;
    int64_t age_s;
};
bool lease_read(struct arena *arena, const struct server *server, struct node_lease *ret_lease);
/* Removes that run's lease; another's stays. */
MUST_CHECK int lease_remove(const struct server *server, struct str run, struct err *err);
/* The text becomes the reason: what, and the error if there is one (NULL: none). Returns the status. */
int serve_failed(struct strbuf *text, const char *what, const struct err *err);
int serve_bad(struct strbuf *text); /* the request is malformed */
/* A field's number, from 0 to max; false: not a number. */
bool serve_number(const struct node_request *request, size_t field, int64_t max,
                  int64_t *ret_number);
/* The job of a START request; false: malformed. */
struct wrapper_job;
bool serve_take_job(const struct node_request *request, const char *dir,
                    struct wrapper_job *ret_job);
/* Its cleanup, as a script in its folder. */
MUST_CHECK int serve_put_cleanup(struct asked_job *job, const struct node_request *request,
                                 struct err *err);
const char *serve_path(struct asked_job *job, const char *name); /* a file in its folder */
MUST_CHECK int serve_sha256(const char *path, char *ret_hex, struct err *err);
bool serve_is_plain_id(struct str id); /* a relative path of plain names */
