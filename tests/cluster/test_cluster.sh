#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# The test cluster itself: four separate machines as far as ssh, docker, curl and git can see, and each fault that the other tests rely on is real.
# shellcheck source=tests/cluster/lib.sh disable=SC2016,SC2317
. "$(dirname "$0")/lib.sh"
run_on() { node_ssh "$@" 2>&1; }
fast() { ssh -o ConnectTimeout=1 -F "$S/ssh_config" "node$1" "${@:2}" 2>&1; }

# --- four machines
names='' roots='' keys=''
for i in $CLUSTER_NODES; do
    names="$names $(run_on "$i" hostname)"
    roots="$roots $(run_on "$i" 'readlink /proc/self/ns/net /proc/self/ns/pid /proc/self/ns/mnt /proc/self/ns/uts /proc/self/ns/ipc' | tr '\n' ' ')"
    keys="$keys $(run_on "$i" cat /etc/ssh/ssh_host_ed25519_key.pub 2>/dev/null || ssh-keyscan -t ed25519 "$(node_ip "$i")" 2>/dev/null | cut -d' ' -f3)"
done
is "$names" " node1 node2 node3 node4" "each node has its own host name"
is "$(tr ' ' '\n' <<<"$roots" | grep -c .)" "$(tr ' ' '\n' <<<"$roots" | grep . | sort -u | wc -l)" "and its own network, processes, mounts, host name and shared memory"
is "$(for i in $CLUSTER_NODES; do ssh-keyscan -t ed25519 "$(node_ip "$i")" 2>/dev/null | cut -d' ' -f3; done | sort -u | wc -l)" 4 "and its own host key"
run_on 1 'echo one >/etc/only-here; echo two >/var/only-here'
is "$(run_on 2 'cat /etc/only-here /var/only-here 2>/dev/null | wc -l')$([ -e /etc/only-here ] && echo here)" 0 "a file written on one is not on another, nor on the head"
is "$(run_on 3 "[ -e '$ROOT/Makefile' ] && echo sees || echo lacks")" lacks "a node does not see the checkout"
like "$(run_on 1 'ping -c 1 -W 2 10.11.0.5 2>/dev/null || (exec 3<>/dev/tcp/10.11.0.5/22 && echo open)')" 'open|1 received' "one node reaches another"
echo shared >"$S/shared/file"
is "$(for i in $CLUSTER_NODES; do run_on "$i" "cat '$S/shared/file'"; done | sort | uniq -c | tr -d ' ')" 4shared "the shared folder has the same path everywhere"
rm "$S/shared/file"

# --- servers of the head
head -c 100000 /dev/zero | tr '\0' x >"$S/http/file.bin"
is "$(run_on 2 "curl -s -r 10-19 http://$HEAD_IP/file.bin")" xxxxxxxxxx "the data server serves ranges"
git init -q -b main "$T/work"
git -C "$T/work" commit -q --allow-empty -m first
rm -rf "$S/git/probe.git"
git clone -q --bare "$T/work" "$S/git/probe.git"
commit=$(git -C "$T/work" rev-parse HEAD)
is "$(run_on 3 "git -c safe.directory='*' ls-remote git://$HEAD_IP/probe.git HEAD; git ls-remote http://$HEAD_IP/git/probe.git HEAD" | cut -f1 | tr '\n' ' ')" "$commit $commit " \
    "the git server serves over git and HTTP"
is "$(curl -s -o /dev/null -w '%{http_code}' "http://$HEAD_IP:$REGISTRY_PORT/v2/")" 200 "the registry answers"

# --- containers
if ! no_docker "containers on four nodes"; then
    printf '#!/bin/sh\necho probe\n' >"$T/probe"
    image=$(cluster_image test/probe "$T/probe")
    pin="$HEAD_IP:$REGISTRY_PORT/$image"
    like "$image" '^test/probe@sha256:[0-9a-f]{64}$' "an image is made and pushed"
    is "$(cluster_image test/probe "$T/probe")" "$image" "the same programs give the same digest"
    is "$(for i in $CLUSTER_NODES; do node_ssh "$i" "docker run --rm --net=host $pin hostname" 2>/dev/null; done | tr '\n' ' ')" "node1 node2 node3 node4 " "each engine pulls it by digest and runs it as its own host"
    like "$(run_on 2 "docker run --rm --net=host $pin ip -4 addr show eth0")" '10\.11\.0\.3/24' "on its own network"
    # Tests before this one have left images of theirs.
    run_on 1 "docker tag $pin test/own && docker run -d --name stays $pin sleep 100" >/dev/null
    is "$(for i in 1 2; do run_on $i 'docker images -q test/own | wc -l; docker ps -q --filter name=stays | wc -l'; done | tr '\n' ' ')" "1 1 0 0 " \
        "each engine has its own images and containers"
    run_on 1 'docker rm -f stays; docker rmi test/own' >/dev/null
    run_on 1 "docker run --rm --privileged --ulimit memlock=-1 --ulimit nofile=1048576 --shm-size=64m $pin df /dev/shm" >"$T/flags"
    like "$(cat "$T/flags")" ' 65536 ' "the flags of the reports' lines run"
    # The engine hears of the kill and of the end by two ways, and now and then of the end alone: it is asked of three containers.
    out=$(run_on 3 "docker run --rm --memory 32m --memory-swap 32m $pin sh -c 'head -c 200000000 /dev/zero | tail -n 1 >/dev/null; exit \$?' 2>&1; echo rc=\$?
        for i in 1 2 3; do docker run --name oom\$i --memory 32m --memory-swap 32m $pin tail /dev/zero; echo rc=\$? \$(docker inspect -f '{{.State.OOMKilled}}' oom\$i); done")
    like "$(tr '\n' ' ' <<<"$out")" 'rc=137 true' "a container beyond its memory is killed, and the engine says so"
    run_on 3 'docker rm -f oom1 oom2 oom3' >/dev/null
    node_memory 3 32m
    like "$(run_on 3 "docker run --rm $pin tail /dev/zero; echo rc=\$?")" 'rc=137' "as is one beyond what the node's containers may have together"
    node_memory 3 0
    is "$(run_on 3 "docker run --rm $pin sh -c 'head -c 60000000 /dev/zero | tail -c 50000000 | wc -c'")" 50000000 "and not without that limit"
    out=$(run_on 4 "docker run --rm $HEAD_IP:$REGISTRY_PORT/test/probe@sha256:$(printf '0%.0s' $(seq 64)) true; echo rc=\$?")
    like "$out" 'manifest unknown' "a digest that is not there"
    run_on 4 'docker rmi -f $(docker images -q)' >/dev/null
    registry_corrupt "$image"
    like "$(run_on 4 "docker pull $pin")" 'verification failed|unexpected EOF|invalid' "a corrupt layer is not taken"
    registry_mend
    registry stop
    like "$(run_on 4 "docker pull $pin")" 'connection refused' "a registry that is down"
    registry start
    registry pause
    is "$(run_on 4 "timeout 2 docker pull $pin >/dev/null 2>&1; echo \$?")" 124 "a registry that is silent"
    registry resume
    like "$(run_on 4 "docker pull -q $pin")" 'test/probe' "and whole again"
    node_docker_stop 4
    like "$(run_on 4 docker ps)" 'Cannot connect to the Docker daemon' "a dead engine"
    node_docker_start 4
    is "$(run_on 4 'docker ps -q | wc -l')" 0 "which starts again"
fi

# --- faults of network and node
node_cut 2
like "$(fast 2 true)" 'timed out|No route' "a cut link"
is "$(run_on 3 hostname)" node3 "does not cut the others"
node_restore 2
is "$(run_on 2 hostname)" node2 "and is mended"
run_on 2 'echo kept >/root/kept; echo lost >/tmp/kept'
node_off 2
like "$(fast 2 true)" 'timed out|No route' "a node without power"
node_on 2
is "$(run_on 2 'cat /root/kept; cat /tmp/kept 2>/dev/null')" kept "comes back with its disk"
node_freeze 3
is "$(timeout 2 ssh -F "$S/ssh_config" node3 true 2>/dev/null; echo $?)" 124 "a frozen node accepts and says nothing"
node_thaw 3
is "$(run_on 3 hostname)" node3 "and goes on"
node_new_key 3
like "$(run_on 3 true)" 'IDENTIFICATION HAS CHANGED' "another host key"
node_old_key 3
is "$(run_on 3 hostname)" node3 "and the old one"
node_refuse_key 1
like "$(run_on 1 true)" 'Permission denied' "a key that is refused"
node_accept_key 1
node_shell 1 'echo noise from the login shell'
is "$(run_on 1 echo word)" "noise from the login shell
word" "a login shell that prints"
node_shell_plain 1
node_sshd_stop 1
like "$(run_on 1 true)" 'refused' "a dead sshd"
node_sshd_start 1
is "$(wait_for 120 fast 1 true >/dev/null && run_on 1 hostname)" node1 "which starts again"
node_loss 4 30
lost=$(run_on 4 'iptables -nvxL INPUT; true' | awk '$3 == "DROP" { print $1 }')
head -c 3000000 /dev/urandom >"$T/blob"
is "$(head -c 100000 "$T/blob" | ssh -F "$S/ssh_config" -o ConnectTimeout=240 node4 'cat | wc -c')" 100000 "data still arrive with 30 % loss"
lost=$(($(node_do 4 iptables -nvxL INPUT | awk '$3 == "DROP" { print $1 }') - lost))
ok "$((lost > 5 ? 0 : 1))" "after packets were lost ($lost)"
node_no_loss 4
node_rate 4 10mbit
seconds=$(/usr/bin/time -f %e ssh -F "$S/ssh_config" node4 'cat >/dev/null' <"$T/blob" 2>&1)
ok "$(awk -v s="$seconds" 'BEGIN { exit !(s > 1.8) }'; echo $?)" "3 MB take as long as a 10 Mbit link needs ($seconds s)"
node_no_rate 4
node_disk 1 1m
node_disk_fill 1
like "$(run_on 1 'echo more >/var/lib/reperf/more')" 'No space left' "a full disk"
node_disk_end 1
succeeds "all is whole again" cluster_reset
is "$(for i in $CLUSTER_NODES; do run_on "$i" 'mountpoint -q /var/lib/reperf || echo plain'; done | wc -l)" 4 "without what was mounted"
tap_done
