#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What runs as process 1 of a node, from the node's own root: sshd and dockerd, each started again by nobody, as faults want it.
exec </dev/null >>/var/log/boot.log 2>&1
unset REPERF_CLUSTER REPERF_SSH_CONFIG REPERF_STATE REPERF_STORE
export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
cd / || exit 1
rm -f /var/run/docker.pid /var/run/docker/containerd/containerd.pid
rm -f /run/docker.begun
if command -v dockerd >/dev/null; then
    setsid dockerd >>/var/log/dockerd.log 2>&1 &
    echo $! >/run/docker.begun # before sshd answers: who asks whether it lives finds a process, though it may not be dockerd yet
fi
setsid /usr/sbin/sshd -D -e >>/var/log/sshd.log 2>&1 &
# bash collects the children of those that end while it waits.
while :; do
    sleep 3600 &
    wait $! || :
done
