/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked over the channel, done: one request, one answer. What it waits for ends early when something more is to be read. */
#ifndef NODE_SERVE_H
#define NODE_SERVE_H

#include "codec/node_wire.h"

struct server {
    const char *work_folder;
    int input_fd; /* the channel's; readable, or at its end: a wait is over */
};

/* Appends the text of the answer; returns its status. */
MUST_CHECK int serve_request(const struct server *server, const struct node_request *request,
                             struct strbuf *text);

/* ---- requests in files of their own ---- */

int serve_lease(const struct server *server, const struct node_request *request,
                struct strbuf *text); /* lease_folder.c */
/* leftovers.c */
int serve_scan(const struct server *server, const struct node_request *request,
               struct strbuf *text);
int serve_remove(const struct server *server, const struct node_request *request,
                 struct strbuf *text);
/* facts.c */
int serve_facts(const struct server *server, const struct node_request *request,
                struct strbuf *text);
/* ports.c */
int serve_listen(const struct server *server, const struct node_request *request,
                 struct strbuf *text);
int serve_connect(const struct server *server, const struct node_request *request,
                  struct strbuf *text);
int serve_clock(const struct server *server, const struct node_request *request,
                struct strbuf *text);

/* lease_folder.c: false: nobody has the node. A holder that left no name is "unknown". */
bool lease_read(struct arena *arena, const char *work_folder, struct str *ret_holder,
                int64_t *ret_since_s);
/* Of that run; another's stays. */
MUST_CHECK int lease_remove(const struct server *server, struct str run, struct err *err);

/* The text becomes the reason: what, and the error where there is one (NULL: none). Returns the status. */
int serve_failed(struct strbuf *text, const char *what, const struct err *err);
int serve_bad(struct strbuf *text); /* the request is none of its operation */
/* A field's number, from 0 to max; false: it has none. */
bool serve_number(const struct node_request *request, size_t field, int64_t max,
                  int64_t *ret_number);
bool serve_is_plain_id(struct str id); /* a relative path of plain names */

#endif
