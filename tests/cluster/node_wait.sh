#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Waits until a node answers, run inside the cluster: node_wait.sh STATE NUMBER. A container engine that does not come is no end of the
# cluster: STATE/no-docker then says why.
set -eu
# shellcheck source=tests/cluster/env.sh
. "$(dirname "$0")/env.sh"
S=$1 i=$2
on_node() { ssh -F "$S/ssh_config" "node$i" "$@" 2>/dev/null; }
wait_for 240 on_node true || {
    echo "node$i does not answer; its log ends with:" >&2
    tail -n 20 "$S/log/node$i.log" "$S/node$i/upper/var/log/sshd.log" >&2
    exit 1
}
# shellcheck disable=SC2016
on_node '
    command -v dockerd >/dev/null || { echo "dockerd is not installed"; exit 1; }
    for _ in $(seq 900); do
        docker version >/dev/null 2>&1 && exit 0
        kill -0 "$(cat /run/docker.begun)" || break
        sleep 0.1
    done
    echo "dockerd does not run: $(grep -iE "fail|error" /var/log/dockerd.log | tail -n 1)"
    exit 1' >"$S/run/docker-said" || {
    echo "node$i: $(cat "$S/run/docker-said")" >"$S/no-docker"
}
