#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# nodes doctor, against real sshds: facts, unknowns, differences, what a report's launch lacks; GPUs are a program that prints what nvidia-smi
# prints.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/ssh_lib.sh disable=SC1091
source "$ROOT/tests/integration/ssh_lib.sh"
have_sshd "nodes doctor" || tap_done

# --- two nodes -----------------------------------------------------------------------------------------------
ssh_keys
for n in 1 2; do
    mkdir -p "$T/node$n"
    start_sshd "n$n" "SetEnv HOME=$T/home PATH=$T/node$n:/usr/sbin:/usr/bin:/bin"
done
gpus() { # NODE: gets its nvidia-smi
    cp tests/integration/fake_nvidia_smi.sh "$T/node$1/nvidia-smi"
}
fake_engine() { # NODE ENGINE VERSION INFO
    # shellcheck disable=SC2016
    printf '#!/bin/sh\ncase $1 in version) echo "%s" ;; info) echo "%s" ;; esac\n' "$3" "$4" >"$T/node$1/$2"
    chmod +x "$T/node$1/$2"
}
fake_docker() { fake_engine "$1" docker "$2" "2|systemd|overlay2|io.containerd.runc.v2 nvidia runc "; } # NODE VERSION
inventory() { # RUNTIME GPUS ADDRESS2
    cat >"$T/two.json" <<JSON
{"schema_version": 1, "id": "two", "title": "two sshds", "remote": "ssh", "runtime": "$1", "source": null, "nodes": [
 {"name": "n1", "address": "127.0.0.1", "port": ${ssh_port[n1]}, "user": null, "gpus": $2, "fast_address": "127.0.0.1", "work_folder": "$T/w1", "groups": []},
 {"name": "n2", "address": "127.0.0.1", "port": ${ssh_port[n2]}, "user": null, "gpus": $2, "fast_address": "$3", "work_folder": "$T/w2", "groups": []}]}
JSON
}
port=$(free_port)
doctor() { "$REPERF" nodes doctor "$T/two.json" --port "$port" "$@"; }
verdict() { # CHECK NODE: "verdict: found" of $T/out
    jq -r --arg check "$1" --arg node "$2" '.checks[] | select(.check == $check and (.node // "") == $node) | "\(.verdict): \(.found)"' "$T/out"
}
inventory none 0 127.0.0.2
documents doctor-output 0 "two plain nodes: all that is required holds" doctor --json
is "$(jq -r '[.nodes[].reached] | @csv' "$T/out")" "true,true" "both are reached"
like "$(verdict clock n2)" '^holds: between -[0-9.]+ s and \+[0-9.]+ s$' "the clock, between bounds"
like "$(verdict port n1)$(verdict port n2)" '^holds: openholds: open$' "each reaches the other at its fast address"
is "$(jq -r '.nodes[0].facts["gpu.count"]' "$T/out")" 0 "no driver, no GPU"
# shellcheck disable=SC2317
nobody_answers() { ! port_answers "$port" "$1"; } # ADDRESS
no_listener_at() { # ADDRESS NAME
    succeeds "$2" waiting_for 60 nobody_answers "$1"
}
for at in 127.0.0.1 127.0.0.2; do no_listener_at "$at" "no listener is left at $at"; done
facts=$(jq '.nodes[0] | [(.facts, .not_known) | keys[]] | map(select(test("^(env|engine|net)\\.") | not)) | length' "$T/out")
ok "$([ "$facts" -ge 50 ]; echo $?)" "$facts facts, and what is not known"
is "$(jq -r '.nodes[0].facts | [.["system.kernel"], .["system.host"], .["cpu.usable"], .["memory.total_kb"], .["disk.work.kind"], .["limit.nofile.soft"]] | @csv' "$T/out" | tr -d '"')" \
    "$(uname -sr),$(uname -n),$(nproc),$(awk '/^MemTotal/ { print $2 }' /proc/meminfo),$(findmnt -nro FSTYPE -T "$T"),$(ulimit -Sn)" "as uname, nproc, findmnt and the kernel say it"
prints 0 '^required: [0-9]+ hold, 0 fail, 0 not known; ' "text" doctor
ok "$(grep -c $'\033' "$T/out")" "no colours into a file"
prints 0 '^holds +port +n1: ' "text with all" doctor --all
# Podman looks for 0.3 s before it answers; what follows is about other things, and there it says the same at once.
podman_says() { jq -r --arg key "engine.podman.$1" '.nodes[0].facts[$key] // empty' "$T/document"; } # FACT
[ -z "$(podman_says info)" ] || for n in 1 2; do fake_engine $n podman "$(podman_says version)" "$(podman_says info)"; done

# --- what is wrong with one ----------------------------------------------------------------------------------
inventory none 0 127.0.0.2
kill_sshd n2
exits 6 "a node that is not there: status 6" doctor --json
like "$(verdict reached n2)" '^fails: .*(refused|reached)' "it says why"
is "$(verdict reached n1 | cut -d: -f1)" holds "the other is still asked"
valid doctor-output "valid"
start_sshd n2 "SetEnv HOME=$T/home PATH=$T/node2:/usr/sbin:/usr/bin:/bin"
inventory none 0 127.0.0.2
# A port on which something else listens.
perl -MSocket -e 'socket(L, PF_INET, SOCK_STREAM, 6); setsockopt(L, SOL_SOCKET, SO_REUSEADDR, 1); bind(L, sockaddr_in('"$port"', inet_aton("127.0.0.2"))) or die; listen(L, 9);
    alarm 600; while (accept(C, L)) { print C "SSH-2.0-x\n"; close C }' &
taken=$!
served $taken "another listener" port_answers "$port" 127.0.0.2
exits 6 "a port that is taken is not known to be free" doctor --json
like "$(verdict port n1)" '^not_known: not checked: .*(in use|nobody)' "and says so"
kill $taken
wait $taken 2>/dev/null
inventory none 0 no-such-host.invalid
exits 6 "an address that does not resolve" doctor --json
is "$(verdict port n1)" "fails: the name does not resolve" "is distinguished from one that does not answer"
# A doctor that ends before the listener has run once.
for _ in 1 2 3 4; do doctor --json >"$T/out" 2>&1; done
no_listener_at 127.0.0.1 "and leaves no listener behind"
# A name with two addresses, of which nothing listens at the first.
getent_says() { # NODE ADDRESS...: what it answers for a name that only this test knows
    # shellcheck disable=SC2016
    printf '#!/bin/sh\n[ "$2" = fabric.test ] || exit 2\necho "%s"\n' "$(printf '%s STREAM\n' "${@:2}")" >"$T/node$1/getent"
    chmod +x "$T/node$1/getent"
}
getent_says 1 127.0.0.9 127.0.0.2
getent_says 2 127.0.0.2
inventory none 0 fabric.test
doctor --json >"$T/out" 2>"$T/err"
is "$(verdict port n1)" "holds: open" "each address of a name is tried"
rm "$T"/node?/getent
if in_test_all "a GPU that hangs"; then # nvidia-smi gets half a minute
    # shellcheck disable=SC2016
    printf '#!/bin/sh\necho "$*" >>"%s/asked"\nsleep 60\n' "$T" >"$T/node1/nvidia-smi"
    chmod +x "$T/node1/nvidia-smi"
    doctor --json >"$T/out" 2>"$T/err"
    is "$(wc -l <"$T/asked")" 1 "nvidia-smi that does not answer is asked nothing more"
    is "$(jq -r '.nodes[0].not_known["gpu.processes"] // .nodes[0].not_known | tostring | test("does not answer|124")' "$T/out")" true "and what it knows is not known"
    rm "$T/node1/nvidia-smi"
fi

# A wrong clock.
inventory none 0 127.0.0.2
cat >"$T/late" <<PY
#!/usr/bin/python3
# reperf-node, whose clock goes an hour late on the node whose work folder is w2.
import os, struct, subprocess, sys
real = "$ROOT/$B/reperf-node" if not "$B".startswith("/") else "$B/reperf-node"
if not sys.argv[1].endswith("/w2"):
    os.execv(real, [sys.argv[0]] + sys.argv[1:])
node = subprocess.Popen([sys.argv[0], sys.argv[1]], executable=real, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
out, asked = sys.stdout.buffer, sys.stdin.buffer
out.write(node.stdout.readline())
out.flush()
while head := asked.read(16):
    node.stdin.write(head + asked.read(struct.unpack("<I", head[12:])[0] + 1))
    node.stdin.flush()
    answer = node.stdout.read(16)
    text = node.stdout.read(struct.unpack("<I", answer[12:])[0] + 1)
    if struct.unpack("<I", head[8:12])[0] == 11:
        text = b"%d\n\n" % (int(text) - 3600 * 10**9)
    out.write(answer[:12] + struct.pack("<I", len(text) - 1) + text)
    out.flush()
PY
chmod +x "$T/late"
exits 6 "a clock an hour off" env REPERF_NODE="$T/late" "$REPERF" nodes doctor "$T/two.json" --port "$port" --json
said=$(verdict clock n2)
like "$said" '^fails: between -[0-9]+\.[0-9]+ s and -[0-9]+\.[0-9]+ s$' "is measured"
# When the node read its clock is known only up to the answer's time: the bounds contain the hour.
ok "$(awk '{ print $3 <= -3600 && -3600 <= $6 && $6 - $3 < 60 ? 0 : 1 }' <<<"$said")" "and its bounds hold the hour, not much more"
# --- GPUs ----------------------------------------------------------------------------------------------------
gpus 1
gpus 2
touch "$T/node1/old" "$T/node2/old"
inventory none 2 127.0.0.2
exits 0 "two GPUs each, an old driver" doctor --json
is "$(jq -r '.nodes[0].facts | [.["gpu.1.name"], .["nvidia.driver"], .["nvidia.cuda"], .["gpu.0.power.limit_w"]] | @csv' "$T/out")" \
    '"Tesla V100-SXM2-16GB","450.80.02","11.0","300.00"' "facts of GPUs"
like "$(jq -r '.nodes[0].not_known["smi.cap"]' "$T/out")" 'not a valid field' "what the driver does not know is not known"
is "$(jq -r '.nodes[0].facts["topo.1"]' "$T/out" | tr -s ' ')" "GPU0 X NV1 0-19" "the topology"
rm "$T"/node?/old
echo 'clocks.applications.graphics 1290 MHz' >"$T/node2/set"
exits 6 "a clock cap on one of them" doctor --json
is "$(jq -r '.differences[] | select(.what == "GPU clock (MHz, set)").values[] | "\(.value) \(.nodes[0])"' "$T/out" | xargs)" \
    "2 x 1530 n1 2 x 1290 n2" "is a difference"
is "$(verdict gpu-clocks n2)" "fails: GPU 0: 1290 of 1530 MHz" "and a cap"
printf 'ecc.errors.uncorrected.aggregate.total.1 7\npersistence_mode Disabled\nmig.mode.current.0 Enabled\n' >"$T/node2/set"
echo '4711, 512 MiB' >"$T/node2/apps"
exits 6 "worn GPUs" doctor --json
is "$(verdict gpu-ecc n2)" "fails: GPU 1: 7" "ECC"
is "$(verdict gpu-mig n2)" "fails: GPU 0: Enabled" "MIG"
is "$(verdict gpu-persistence n2)" "fails: GPU 0: Disabled, GPU 1: Disabled" "persistence"
is "$(verdict gpu-idle n2)" "fails: 1 processes" "another's process"
rm "$T/node2/set" "$T/node2/apps"
touch "$T/node2/broken"
exits 6 "a driver that does not answer: not known is not 0" doctor --json
like "$(verdict inventory-gpus n2)" '^fails|^not_known' "the number of GPUs is not invented"
rm "$T/node2/broken"

# --- what a report needs -------------------------------------------------------------------------------------
fake_docker 1 20.10.24
fake_docker 2 20.10.24
echo 8 | tee "$T/node1/gpus" >"$T/node2/gpus"
inventory docker 8 127.0.0.2
documents doctor-output 6 "a report of four nodes" doctor --report paddle-perf-2020 --case 'resnet50/paddle/*' --json
is "$(verdict nodes '')" "fails: 2 in the inventory" "nodes"
is "$(verdict gpus n1)" "holds: 8" "GPUs"
is "$(verdict gpu-model n1 | xargs)" "holds: 8 x Tesla V100-SXM2-16GB fails: 8 x Tesla V100-SXM2-16GB" "the model of its single nodes, not of its four"
is "$(verdict driver n1)" "holds: 450.80.02" "the driver for the image's CUDA"
like "$(verdict gpu-code n1)" '^holds: compute capability 7.0' "code for these GPUs"
like "$(verdict infiniband n1)" '^fails: 0 ports' "InfiniBand"
is "$(verdict device n1)" "fails: no /dev/infiniband" "its device"
is "$(verdict engine n2)" "holds: 20.10.24" "the engine"
is "$(verdict engine-gpus n2 | cut -d: -f1)" "holds" "which can give GPUs"
like "$(verdict shm n1)" '^(holds|fails): [0-9.]+ GiB$' "memory for 64 GB of /dev/shm"
like "$(jq -r '.checks[] | select(.check == "disk" and .node == "n1") | .expected' "$T/out")" 'GiB free in .*w1.*paddle-benchmark-cuda10.1' "disk for images and data, as far as sizes are stated"
doctor --report paddle-perf-hrnetw18 --case '*/paddle/*' --json >"$T/none" 2>/dev/null
like "$(jq -r '.checks[] | select(.check == "disk" and .node == "n1") | .expected' "$T/none")" '^in .*w1 room for what states no size: dataset cityscapes, image ' "or what states none"
like "$(verdict disk n1)" '^(fails|not_known): [0-9.]+ GiB on ' "which never simply holds"
is "$(verdict as-published-driver n1)" "holds: 450.80.02" "the published driver, for comparing"
is "$(jq -r '.checks[] | select(.check == "gpu-model" and .node == "n1") | .level' "$T/out" | xargs)" "required advised" "another memory of the same GPU is advice"
doctor --report paddle-perf-hrnetw18 --case '*/reperf/*' --json >"$T/out" 2>/dev/null
is "$(verdict driver n1)" "fails: 450.80.02" "a driver too old for our own image"
like "$(jq -r '.checks[] | select(.check == "driver" and .node == "n1") | .advice' "$T/out")" \
    'driver 450.80.02 is too old for image reperf-cuda12, which needs 525.60.13: state "driver"' "is told by the image's name"
is "$(verdict infiniband-device n1)" "holds: the node has none" "a node without InfiniBand needs no device of it"
echo 'driver_version 410.48' >"$T/node1/set"
doctor --report paddle-perf-2020 --case 'resnet50/paddle/*' --json >"$T/out" 2>/dev/null
is "$(verdict driver n1)" "fails: 410.48" "a driver too old for CUDA 10.1"
printf 'name NVIDIA H200\ncompute_cap 9.0\nmemory.total 143771 MiB\ndriver_version 580.95.05\n' >"$T/node1/set"
doctor --report paddle-perf-2020 --case 'resnet50/paddle/*' --json >"$T/out" 2>/dev/null
is "$(verdict driver n1)" "holds: 580.95.05" "a new driver runs old CUDA"
is "$(verdict gpu-code n1)" "fails: compute capability 9.0, supported from CUDA 11.8 on" "but old CUDA has no code for a new GPU"
rm "$T/node1/set"
rm "$T/node2/docker"
exits 6 "an engine that is missing" doctor --json
like "$(verdict engine n2)" '^(fails|holds): ' "is seen"
inventory none 0 127.0.0.2
rm "$T"/node?/nvidia-smi
exits 0 "the smoke profile needs no GPU" doctor --report paddle-perf-2020 --case 'resnet50/reperf/*/n1*' --profile smoke

# --- usage ---------------------------------------------------------------------------------------------------
exits 2 "no inventory" "$REPERF" nodes doctor
exits 2 "a case without a report" "$REPERF" nodes doctor local --case 'x*'
exits 2 "an invalid case" "$REPERF" nodes doctor local --report paddle-perf-2020 --case 'none/*'
exits 0 "this machine, without any program" env -i PATH=/nowhere HOME="$T" REPERF_ROOT="$ROOT" "$REPERF" nodes doctor local --json
is "$(jq -r '.nodes[0] | [.reached, .facts["cpu.usable"]] | @csv' "$T/out")" "true,\"$(nproc)\"" "is still asked"
documents doctor-output 0 "this machine" "$REPERF" nodes doctor local --json

# --- a node as the kernel's ABI describes one of the reports': InfiniBand, a bridge, a bond, governors, no turbo ---
cat >"$T/sys.sh" <<'SH'
set -e
mount -t tmpfs none /sys/class
mount -t tmpfs none /sys/devices/system/cpu
put() { mkdir -p "$(dirname "$1")" && echo "$2" >"$1"; }
put /sys/class/infiniband/mlx5_0/ports/1/state '4: ACTIVE'
put /sys/class/infiniband/mlx5_0/ports/1/rate '100 Gb/sec (4X EDR)'
put /sys/class/infiniband/mlx5_0/ports/1/link_layer InfiniBand
put /sys/class/net/br0/ifindex 7
put /sys/class/net/bond0/ifindex 8
mkdir /sys/class/net/br0/bridge /sys/class/net/bond0/bonding
put /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor powersave
put /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor performance
put /sys/devices/system/cpu/intel_pstate/no_turbo 1
exec "$@"
SH
if unshare -m mount -t tmpfs none /sys/class 2>/dev/null; then
    exits 0 "a node with InfiniBand" unshare -m sh "$T/sys.sh" "$REPERF" nodes doctor local --json
    is "$(jq -r '.nodes[0].facts | [.["ib.ports"], .["ib.mlx5_0.1.state"], .["ib.mlx5_0.1.rate"], .["ib.mlx5_0.1.link_layer"]] | join("; ")' "$T/out")" \
        "1; 4: ACTIVE; 100 Gb/sec (4X EDR); InfiniBand" "says its port"
    is "$(jq -r '.nodes[0].facts | [.["net.br0.kind"], .["net.bond0.kind"], .["cpu.governor"], .["cpu.turbo"]] | join("; ")' "$T/out")" \
        "bridge; bond; powersave performance; 0" "its interfaces, and how its processors are clocked"
else
    skip "a node with InfiniBand" "a mount namespace of one's own needs root"
fi

# --- a file system that answers nothing ------------------------------------------------------------------------
mkdir "$T/dead"
REPERF_STATE="$T/dead/work" /usr/bin/python3 tests/servers/dead_mount.py "$T/dead" timeout -s KILL 300 "$REPERF" nodes doctor local --json >"$T/out" 2>"$T/err"
status=$?
if [ $status = 77 ]; then
    skip "a work folder on a dead file system" "this machine mounts no FUSE: $(head -1 "$T/err")"
else
    is $status 6 "a work folder on a dead file system"
    is "$(verdict work-folder local)" "fails: its file system does not answer within 10 s" "is named"
    is "$(jq -r '.nodes[0] | [.reached, .facts["cpu.usable"]] | @csv' "$T/out")" "true,\"$(nproc)\"" "and all else is known"
fi
tap_done
