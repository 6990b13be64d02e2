# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# An inventory of three nodes n1 n2 n3, each an own sshd on 127.0.0.1 with an own work folder $T/work-NAME; the last, n4, is nobody.
# nodes_start leaves $INV (n1 to n3) and $INV4 (n4 as well), and REPERF_SSH_CONFIG set.
# shellcheck source=tests/integration/ssh_lib.sh
. "${BASH_SOURCE[0]%/*}/ssh_lib.sh"
nodes_start() {
    local name
    ssh_keys
    for name in n1 n2 n3; do
        start_sshd "$name" || return 1
    done
    INV="$T/three.json" INV4="$T/four.json"
    nodes_inventory n1 n2 n3 >"$INV"
    # shellcheck disable=SC2154
    ssh_port[n4]=1
    nodes_inventory n1 n2 n3 n4 >"$INV4"
}
nodes_inventory() { # NAME...
    local name comma=
    printf '{"schema_version": 1, "id": "test", "title": "sshds on 127.0.0.1", "remote": "ssh", "runtime": "none", "nodes": ['
    for name; do
        printf '%s{"name": "%s", "address": "127.0.0.1", "port": %s, "user": null, "gpus": 0, "fast_address": null, "work_folder": "%s", "groups": []}' \
            "$comma" "$name" "${ssh_port[$name]}" "$T/work-$name"
        comma=', '
    done
    printf '], "source": null}\n'
}
