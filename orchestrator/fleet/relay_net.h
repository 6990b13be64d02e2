/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets of the relays: listening, connecting, and the proof of each side to the other that it knows the token
   (codec/relay.h). These functions wait, each no longer than it is told: on a node they are called by the relay itself, which has
   nothing else to do then; the orchestrator calls them on a pool. */
#ifndef FLEET_RELAY_NET_H
#define FLEET_RELAY_NET_H

#include "base/clock.h"
#include "codec/relay.h"

#define RELAY_REACH_NS (5 * NS_PER_S) /* for a connection */
#define RELAY_SHAKE_NS                                                                             \
    (20 * NS_PER_S) /* for the server's proof: it may still be busy with the stream before */
#define RELAY_PROVE_NS (5 * NS_PER_S) /* for the client's, while the server does nothing else */

/* On all interfaces, at a port that the kernel chooses. */
MUST_CHECK int relay_listen(int *ret_fd, uint16_t *ret_port, struct err *err);

/* Connected, proven, non-blocking. ERR_NET where nobody is reached, ERR_AUTH where who answers does not know the token. */
MUST_CHECK int relay_connect(const struct relay_hop *hop, const uint8_t *token, int *ret_fd,
                             struct err *err);
/* The other side: the connection that waits at listen_fd. ERR_AUTH: not one of ours; it is closed. */
MUST_CHECK int relay_accept(int listen_fd, const uint8_t *token, int *ret_fd, struct err *err);

/* All of it within the span; fd is non-blocking. */
MUST_CHECK int relay_write(int fd, const void *ptr, size_t len, int64_t span_ns, struct err *err);

MUST_CHECK int relay_random(uint8_t *ret_bytes, size_t n, struct err *err);

#endif
