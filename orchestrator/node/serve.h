/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked over the channel, done: one request, one answer. What it waits for ends early when something more is to be read. */
#ifndef NODE_SERVE_H
#define NODE_SERVE_H

#include "codec/node_wire.h"

#define SERVE_FAILED 74 /* then the text is the reason */

struct server {
    const char *work_folder;
    int input_fd; /* the channel's; readable, or at its end: a wait is over */
};

/* Appends the text of the answer; returns its status. */
MUST_CHECK int serve_request(const struct server *server, const struct node_request *request,
                             struct strbuf *text);

#endif
