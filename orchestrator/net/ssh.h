/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to a node over SSH, by libssh2, on the one loop: never blocks. Functions that wait are steps: call them
   again after loop_once. Error codes are for policy: ERR_NET is a connection that is lost or cannot be made now; ERR_TIMEOUT
   a deadline of ours; ERR_AUTH and ERR_INTEGRITY are permanent. After a STEP_FAIL of ssh_connect, or ERR_NET of ssh_run, the
   struct ssh is useless: free it. */
#pragma once

#include "net/ssh_plan.h"
#include "sys/loop.h"
#include "sys/proc.h"

struct ssh;

/* The plan, which is made, is borrowed. */
MUST_CHECK struct ssh *ssh_new(struct loop *loop, struct ssh_plan *plan, struct err *err);
void ssh_free(struct ssh *ssh);

/* Connects and logs in. */
enum step ssh_connect(struct ssh *ssh, struct err *err);

/* One script under /bin/sh there. The login shell, whatever it is, sees one constant word; script and arguments are sent to its
   stdin. What the login shell printed before the script began is kept for messages and is not output. */
struct ssh_script {
    const char *text;
    const char *const *args; /* $1...; ended by NULL; may be NULL */
    struct str input;        /* its stdin */
    struct strbuf *feed; /* instead: what is in it is sent and removed; only ssh_abort ends it */
    proc_output_fn on_output;
    void *output_ctx;
    int64_t deadline_ns; /* span, from the request for the channel */
};

/* Pass the same arguments until it is done. ret_has_begun: whether the script started (always set). */
enum step ssh_run(struct ssh *ssh, const struct ssh_script *script, int *ret_exit_status,
                  bool *ret_has_begun, struct err *err);
/* For a script with a feed, between two exchanges: it no longer ends the loop's wait; continue it under a new deadline (a
   span). */
void ssh_pause(struct ssh *ssh);
void ssh_go_on(struct ssh *ssh, int64_t deadline_ns);
/* Gives up the current script, without ending its processes. */
void ssh_abort(struct ssh *ssh);
