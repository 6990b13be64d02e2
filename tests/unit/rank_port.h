/* SPDX-License-Identifier: Apache-2.0 */
/* Where the ranks of a test's job meet. */
#pragma once

#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "dist/sock.h"

/* A free port of 127.0.0.1: one of a hundred of this process, and of its lane where tests/tap.sh
 * runs it, below those that the kernel gives to connections (32768 on; net.ipv4.ip_local_port_range),
 * because a port that a connection uses for a moment cannot be bound. A failed assertion if all are
 * in use. */
static inline int rank_port(void)
{
    static int n_given;
    const char *lane = getenv("TAP_LANE");
    int first = lane
                    ? 10000 + (int)(strtol(lane, NULL, 10) % 10) * 2240 + (int)(getpid() % 22) * 100
                    : 10000 + (int)(getpid() % 200) * 100;
    for (int tries = 0; tries < 100; tries++) {
        struct err err = {0};
        CLEANUP(fd) int fd = -1;
        int port = first + n_given++ % 100;
        if (sock_listen("127.0.0.1", port, &fd, &err) == 0) {
            return port;
        }
    }
    fail_msg("no free port");
    return -1;
}
