/* SPDX-License-Identifier: Apache-2.0 */
/* Only one run at a time measures on a node, wherever it was started: WORK/lease on the node says which (node/lease_file.c).
   A lease is kept by renewing it; one that was not renewed for LEASE_TTL_S, and whose run has no live job there, may be taken
   over. */
#pragma once

#include "base/strbuf.h"
#include "fleet/remote.h"

#define LEASE_TTL_S    120
#define LEASE_RENEW_NS (30 * NS_PER_S)

#define LEASE_WHO_MAX 128

enum lease_mode { LEASE_TAKE, LEASE_DROP }; /* taking one's own lease again renews it */

/* One operation on one node, from its first step to its last. */
struct lease_op {
    struct strbuf output;
    char who[LEASE_WHO_MAX]; /* our "user@host", shown to others who wait for it */
    bool is_begun;
};

/* *ret_holder, valid until lease_op_release: empty if we hold it now, else the run that does, as "RUN" or "RUN of USER@HOST".
   ERR_DISK if no file can be written to the work folder. */
enum step lease_step(struct lease_op *op, struct remote *remote, const char *run_id,
                     enum lease_mode mode, struct str *ret_holder, struct err *err);
void lease_op_release(struct lease_op *op);
