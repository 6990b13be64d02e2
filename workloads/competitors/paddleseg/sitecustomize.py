# SPDX-License-Identifier: Apache-2.0
"""A store of its own for each Gloo group of several ranks.

ProcessGroupGloo of PaddlePaddle 2.6 writes the ranks' addresses under the same keys for every group. A rank that comes to its next group before its peers
have written theirs reads those of the group before, whose sockets are closed: "Connection refused".
"""
import os
import random
import socket

RANK_ADDRESS = os.environ.get("PADDLE_CURRENT_ENDPOINT")  # of several ranks, each has one


def _free_port():
    for port in random.SystemRandom().sample(range(10000, 20000), 100):  # the kernel gives none of these to a connection
        with socket.socket() as free:
            try:
                free.bind(("", port))
            except OSError:
                continue
            return port
    raise RuntimeError("100 ports are in use")


def _own_stores():
    import cv2  # noqa: F401  before paddle, which brings an older zlib that cannot read every PNG
    from paddle.base import core

    join = core.ProcessGroupGloo.create
    stores, made = [], {}  # a store ends with the last reference to it

    def create(store, rank, size, group_id=0):
        if size == 1:
            return join(store, rank, size, group_id)
        made[group_id] = made.get(group_id, 0) + 1
        key = f"reperf/gloo/{group_id}/{made[group_id]}"
        if rank == 0:
            store.set(key, f"{RANK_ADDRESS.rpartition(':')[0]}:{_free_port()}")
        host, _, port = store.get(key).decode().rpartition(":")
        stores.append(core.TCPStore(host, int(port), rank == 0, size))
        return join(stores[-1], rank, size, group_id)

    core.ProcessGroupGloo.create = create


if RANK_ADDRESS:
    _own_stores()
