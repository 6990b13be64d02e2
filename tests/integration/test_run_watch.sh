#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# The monitor of a run's jobs on remote nodes: its log is evidence, its findings, a clock that was set among them, are listed with the repeat, the
# number does not change; and a monitor that fails loses no repeat.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2119,SC2317
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/nodes_lib.sh disable=SC1091
source "$ROOT/tests/integration/nodes_lib.sh"
# shellcheck source=tests/integration/run_lib.sh disable=SC1091
source "$ROOT/tests/integration/run_lib.sh"
have_sshd "runs that are watched" || tap_done
ssh_keys
mkdir -p "$T/node1"
cp tests/integration/fake_nvidia_smi.sh "$T/node1/nvidia-smi"
start_sshd n1 "SetEnv HOME=$T/home PATH=$T/node1:/usr/sbin:/usr/bin:/bin"
nodes_inventory n1 >"$T/one.json"
# Long enough for samples: until this job's monitor has written two, or that it gets none of the GPUs.
cat >"$T/wait" <<EOF
ps -o args= -s "\$(ps -o sid= -p \$\$ | tr -d ' ')" | grep -c '/reperf-node-[0-9a-f]' >"$T/session"
i=0
until [ \$i -ge 1500 ]; do
    for log in \$(find "$T/work-n1/jobs" -path '*/monitor/log' -newer "\$dir/count"); do
        if [ "\$(grep -cE '^g 1, ' "\$log")" -ge 2 ] || grep -q '^? gpu ' "\$log"; then i=1500; fi
    done
    sleep 0.2
    i=\$((i + 1))
done
for by in \$(cat "$T/jumps" 2>/dev/null); do # the clock of the node is set, and a sample taken since
    echo "\$by" >"$T/work-n1/clock"
    log=\$(find "$T/work-n1/jobs" -path '*/monitor/log' -newer "\$dir/count") seen=\$(grep -c '^t ' "\$log") i=0
    until [ "\$(grep -c '^t ' "\$log")" -gt \$((seen + 1)) ] || [ \$((i += 1)) -gt 1500 ]; do sleep 0.2; done
done
EOF
sed -i "/^echo \"\\$\\*\" >>/r $T/wait" "$T/fake/train.sh"
ok "$(grep -c monitor/log "$T/fake/train.sh" | grep -qx 2; echo $?)" "the workload waits for its monitor"
watched() { smoke --nodes "$T/one.json" --repeats 1 "$@"; }

exits 0 "a run on a node whose GPUs are well" watched
folder=$(run_folder)
log="$folder/evidence/logs/monitor/$CASE/repeat-1.n1.log"
is "$(cat "$T/session")" 1 "it has nothing beside its wrapper when it begins"
like "$(head -n 1 "$log")" '^reperf-monitor 1 begin 2$' "later its monitor, whose log is evidence"
ok "$([ "$(grep -c '^t ' "$log")" -ge 1 ]; echo $?)" "with samples ($(grep -c '^t ' "$log"))"
ok "$([ "$(grep -c '^g 1, ' "$log")" -ge 1 ]; echo $?)" "of each GPU"
is "$(jq -r '.nodes[0].monitor' "$folder/evidence/logs/outcome/$CASE/repeat-1.json")" "logs/monitor/$CASE/repeat-1.n1.log" "the outcome says where"
is "$(jq -c '[.cells[0].repeats[0].taints // [] | .[] | select(contains("GPU"))]' "$folder/evidence/result.json")" "[]" "no GPU gives reason to doubt"
value=$(jq .cells[0].value "$folder/evidence/result.json")

forget_runs
printf 'clocks_throttle_reasons.active 0x0000000000000040\ntemperature.gpu 93\n' >"$T/node1/set"
exits 0 "one whose GPUs are hot" watched
folder=$(run_folder)
like "$(cat "$T/out")" "^$CASE: repeat 1 is tainted: n1: GPU 0: slowed by heat in [0-9]+ of [0-9]+ samples at work, up to 93 degrees C" "the table says so"
is "$(jq -c '[.cells[0].repeats[0].taints[] | select(contains("heat"))] | length' "$folder/evidence/result.json")" 2 "both GPUs, in result.json"
valid result "which is valid" "$folder/evidence/result.json"
is "$(jq .cells[0].value "$folder/evidence/result.json")" "$value" "the number is what it is"
archive=$(find "$folder" -maxdepth 1 -name '*.tar.zst')
exits 0 "the archive verifies" "$REPERF" verify "$archive" --unsigned
exits 0 "and replays" "$REPERF" replay "$archive"
none_runs() { ! pgrep -f "$T/work-n1/jobs" >/dev/null; }
succeeds "nothing is left running on the node" waiting_for 120 none_runs

# ---- a clock that is set in mid-run ----
export REPERF_NODE="$B/servers/faulty_node"
rm "$T/node1/set"
for row in '7200 -7200|14400' '-18000|18000' '7200 0|7200'; do
    forget_runs
    rm -f "$T/work-n1/clock"
    echo "${row%|*}" >"$T/jumps"
    exits 0 "a node whose clock is set by ${row%|*} s in mid-run" watched
    is "$(jq -c '.cells[0] | [.value, (.repeats[0].taints | map(select(contains("clock"))))]' "$(run_folder)/evidence/result.json")" \
        "[$value,[\"n1: its clock was set, by ${row#*|} s between the extremes\"]]" "its number is what it was, with that reason to doubt it"
    exits 0 "which verifies" "$REPERF" verify last --unsigned
    is "$(cd "$T/work-n1" && find jobs lease -type f 2>/dev/null)" "" "nothing of it is left there"
done
unset REPERF_NODE
rm "$T/jumps"

forget_runs
touch "$T/node1/broken"
exits 0 "a node whose driver does not answer" watched
like "$(cat "$(run_folder)/evidence/logs/monitor/$CASE/repeat-1.n1.log")" '^\? gpu Failed to initialize NVML' "is watched without its GPUs, and that is written down"
tap_done
