/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to a node over SSH, by libssh2, on the one loop: never blocks (but for a passphrase that is typed at the
   terminal). What needs to wait is a step: call it again after loop_once. Error codes are for policy: ERR_NET is a connection that
   is lost or cannot be had now; ERR_TIMEOUT a deadline of ours; ERR_AUTH and ERR_INTEGRITY stand whatever is tried again.
   After a STEP_FAIL of ssh_connect, or ERR_NET of ssh_run, the struct ssh is of no more use: free it. */
#ifndef NET_SSH_H
#define NET_SSH_H

#include "net/ssh_plan.h"
#include "sys/loop.h"
#include "sys/proc.h"

struct ssh;

/* The plan is borrowed. */
MUST_CHECK struct ssh *ssh_new(struct loop *loop, const struct ssh_plan *plan, struct err *err);
void ssh_free(struct ssh *ssh);

/* To the node and in. */
enum step ssh_connect(struct ssh *ssh, struct err *err);

/* One script under /bin/sh there. The login shell, whatever it is, sees one constant word; script and arguments come by its stdin.
   What the login shell printed before the script began is kept for messages and is not output. */
struct ssh_script {
    const char *text;
    const char *const *args; /* $1...; ended by NULL; may be NULL */
    struct str input;        /* its stdin */
    int input_fd;            /* instead: a regular file, from 0 to its end; -1: none */
    struct strbuf *
        feed; /* instead: whatever is in it is sent and taken out; there is no end to it but ssh_abort */
    proc_output_fn on_output;
    void *output_ctx;
    int64_t deadline_ns; /* span, from the moment that the channel is asked for */
};

/* The same arguments until it is done. ret_has_begun: the script was seen to run (set in every case). */
enum step ssh_run(struct ssh *ssh, const struct ssh_script *script, int *ret_exit_status,
                  bool *ret_has_begun, struct err *err);
/* Of a script with a feed, between two things said: nothing of it ends the loop's wait; then it is gone on with, under a new deadline
   (a span). */
void ssh_pause(struct ssh *ssh);
void ssh_go_on(struct ssh *ssh, int64_t deadline_ns);
/* Gives up the script under way; its processes there are not ended by it. */
void ssh_abort(struct ssh *ssh);

/* What the login shell printed before the last script began, its first SSH_NOISE_MAX bytes; the ssh's own. */
struct str ssh_login_noise(const struct ssh *ssh);

#endif
