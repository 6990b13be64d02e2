#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# The other frameworks' columns on four nodes in containers: first what reperf gives a recipe and takes from it, with a made-up framework, then PaddleSeg and
# mmsegmentation themselves where their images were made (images/build.sh).
# shellcheck source=tests/cluster/lib.sh disable=SC2016,SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/fault_lib.sh
. "$(dirname "$0")/fault_lib.sh"
# shellcheck source=tests/cluster/columns_lib.sh
. "$(dirname "$0")/columns_lib.sh"
# shellcheck source=tests/faults/lib.sh
. tests/faults/lib.sh
if no_docker "frameworks on four nodes in containers"; then tap_done; fi
R=paddle-perf-hrnetw18
exits 0 "synthetic Cityscapes" "$REPERF" fetch cityscapes --synthetic --samples train=3 --samples val=3

# --- a made-up framework ---------------------------------------------------------------------------
printf '#!/bin/sh\n' >"$T/none"
tiny="$HEAD_IP:$REGISTRY_PORT/$(cluster_image test/framework "$T/none")"
LINES_OF='i=0; while [ $i -lt 20 ]; do i=$((i + 1)); printf "2026-11-23 10:00:%02d [INFO]\t[TRAIN] epoch: 1, iter: %d/20, loss: 2.5, lr: 0.01, batch_cost: 0.5, reader_cost: 0.1, ips: $RATE samples/sec | ETA 00:00:00\n" $i $i; done'
commands() { jq -nc --arg per "$1" --arg works "$2" '[{purpose: "run", nodes: 0, gpus: 0, precision: null, per: $per, printed: null, works: $works}]'; } # PER SHELL
framework() { # STATUS NAME CASE PER SHELL OPTION...
    local status=$1 name=$2 case=$3 per=$4 shell=$5
    shift 5
    exits "$status" "$name" "$REPERF" run $R --profile smoke --nodes "$S/inventory.json" --image "paddle-cpu=$tiny" --case "$case" --repeats 1 --offline --json \
        -C "stacks[paddle].smoke[1].commands=$(commands "$per" "sh -c '$shell'")" "$@"
}
raw() { echo "$(jq -r .folder "$T/out")/evidence/logs/raw/$1"; } # CASE
one=hrnetw18/paddle/fp32/n1g1/bs8 four=hrnetw18/paddle/fp32/n4g8/bs8
shell='echo "fact $NODE_RANK $NNODES $NPROC_PER_NODE $NODE_IPS $MASTER_ADDR"; ls /reperf/overlay/train.py /reperf/data/cityscapes/leftImg8bit; touch /reperf/overlay/x 2>/dev/null && echo "fact writable"; RATE=3; '$LINES_OF
framework 0 "a command a node, on four nodes" $four node "${shell//\'/}"
is "$(jq -r '.cells[0] | "\(.verdict) \(.value) \(.unit)"' "$T/out")" "not_comparable 12 samples/s" "its rate is that of four ranks"
is "$(jq -r '.cells[0].time_to_target | "\(.step) \(.value * 1000 | round) \(.unit)"' "$T/out")" "5 3333 s" "the time to its target is that of five steps of two samples a rank"
is "$(jq -r '.cells[0].also[] | "\(.rule) \(.value) \(.why)"' "$T/out")" 'paddleseg/miou-last null the log has no series "miou"' "it does not evaluate, which is said"
log=$(raw $four)
is "$(cat "$log"/*.log | grep '^fact' | sort)" "$(for i in 0 1 2 3; do echo "fact $i 4 1 10.11.0.2,10.11.0.3,10.11.0.4,10.11.0.5 10.11.0.2"; done)" "each node knows its number, all addresses and the first"
is "$(cat "$log"/*.log | grep -c -x -e /reperf/overlay/train.py -e train)" 8 "each sees the overlay and the data, and cannot write there"
archive=$(jq -r .archive "$T/out")
exits 0 "the archive holds" "$REPERF" verify "$archive" --unsigned
exits 0 "and replays" "$REPERF" replay "$archive"
like "$(tar -tf "$archive")" 'evidence/manifest/overlay/paddleseg/train.py|manifest/overlay/paddleseg/train.py' "the overlay is part of it"
framework 0 "a command a rank" $four rank 'echo "fact $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR"; [ $RANK != 0 ] || { RATE=2; '"$LINES_OF"'; }'
is "$(cat "$(raw $four)"/*.log | grep '^fact' | sort)" "$(for i in 0 1 2 3; do echo "fact $i 0 4 1 10.11.0.2"; done)" "each rank knows its number"

# --- what can go wrong -----------------------------------------------------------------------------
# Four cases at a time, each with a fault of its own; all lie on one node each.
at() { echo "hrnetw18/paddle/$1/n1g$2/bs8"; } # PRECISION GPUS
have() { cat "$REPERF_STATE"/runs/2*/events.jsonl 2>/dev/null | grep -c "\"event\":\"$1\""; } # EVENT: how many, in all runs
deadline_passes() { # COMMAND...: a run; once all four have begun and two have ended by themselves
    local started finished pid
    started=$(have job_started) finished=$(have repeat_finished)
    two_are_left() { [ "$(have job_started)" -ge $((started + 4)) ] && [ "$(have repeat_finished)" -ge $((finished + 2)) ]; }
    CLOCK="$T/clock" at_clock reperf "$@" &
    pid=$!
    wait_for 240 two_are_left
    echo 500+ >"$T/clock"
    wait "$pid"
}
faults() { # STATUS NAME SHELL SHELL SHELL SHELL: for one GPU and eight in FP32, then in AMP
    local status=$1 name=$2 works
    works=$(jq -nc '[$ARGS.positional, [[1, "fp32"], [8, "fp32"], [1, "amp"], [8, "amp"]]] | transpose | map({purpose: "run", nodes: 1, gpus: .[1][0], precision: .[1][1], per: "node", printed: null, works: "sh -c \(.[0] | @sh)"})' --args "${@:3}")
    exits "$status" "$name" ${way:+"$way"} "$REPERF" run $R --profile smoke --nodes "$S/inventory.json" --image "paddle-cpu=$tiny" --case 'hrnetw18/paddle/*/n1g*' --repeats 1 --offline --json --deadline 500 \
        -C "stacks[paddle].smoke[1].commands=$works"
    succeeds "$name: none is a success, none has a number" test "$(jq '[.cells[] | select(.verdict == "failed" and .value == null)] | length' "$T/out")" = 4
}
why() { jq -r --arg case "${1:-$one}" '.cells[] | select(.case == $case) | "\(.verdict) \(.value) \(.cause) \(.why)"' "$T/out"; }
CRASH='printf "Traceback (most recent call last):\n  File \"shim.py\", line 1\nRuntimeError: CUDA error: device-side assert triggered\n"'
faults 9 "logs that give no number" 'echo hello' "RATE=2; ${LINES_OF/-lt 20/-lt 9}" "RATE=nan; $LINES_OF" "RATE=2; ${LINES_OF/-lt 20/-lt 9}; $CRASH; ${LINES_OF/i=0/i=9}"
like "$(why "$(at fp32 1)")" '^failed null parse .*no_metric' "a program that ends with 0 and no metric"
like "$(why "$(at fp32 8)")" '^failed null parse .*(incomplete|truncated)' "half of its lines"
like "$(why "$(at amp 1)")" '^failed null parse .*nan' "a loss of NaN"
like "$(why "$(at amp 8)")" '^failed null parse ' "a device's error that a shim hides, and goes on"
# shellcheck disable=SC2016 # the container's own
way=deadline_passes faults 124 "programs that come to no end of their own" 'sleep 600' 'while [ ! -e /tmp/log/workerlog.0 ]; do sleep 0.1; done; cat /tmp/log/workerlog.0' 'exec python3.7 train.py' \
    'echo "ModuleNotFoundError: No module named '"'cv2'"'" >&2; exit 1'
like "$(why "$(at fp32 1)")" '^failed null timeout' "one that hangs in its reader is stopped at its deadline"
like "$(why "$(at fp32 8)")" '^failed null timeout' "one that waits for a file that never comes, too"
like "$(why "$(at amp 1)")" '^failed null container' "a program that the image lacks is the image's failure"
like "$(why "$(at amp 8)")" '^failed null workload .*exit status 1' "a package that it lacks ends the program, and that is said"
gone=$(printf 'dead%.0s' 1 2 3 4 5 6 7 8 9 10)
exits 4 "a source whose commit is gone" "$REPERF" run $R --profile smoke --nodes "$S/inventory.json" --image "paddle-cpu=$tiny" --case $one --repeats 1 --json \
    -C "stacks[paddle].smoke[1].mounts[1]={\"kind\":\"source\",\"name\":\"http://$HEAD_IP/git/code.git\",\"commit\":\"$gone\",\"inside\":\"/reperf/source\"}"
is "$(jq -r '.cells[0] | "\(.verdict) \(.cause)"' "$T/out") $(jq .run "$T/out")" "not_run fetch null" "nothing is begun for it"
framework 8 "one rank of four dies" $four rank 'RATE=2; [ $RANK != 2 ] || exit 3; '"$LINES_OF"'; sleep 600' --deadline 500
like "$(why $four)" '^failed null workload .*node3: ended with exit status 3' "the job ends, and the node is named"
nothing_left "after all of it" 1 2 3 4

# --- the frameworks themselves ---------------------------------------------------------------------
# Each day the widest case, in so few steps that it comes to its target; those of one node are the same program with fewer ranks. Its launcher, which imports
# what each rank does, leaves it compiled.
if in_test_all "PaddleSeg's cases of one node, the frameworks' images pulled by each node"; then
    column $R paddle-cpu PaddleSeg 'hrnetw18/paddle/fp32/*' 3 3
else
    nodes_share
    mapfile -t SETTINGS < <(jq -r '.stacks[] | select(.id == "paddle").smoke[1] | "commands=\(.commands | map(.works |= sub("--iters 20"; "--iters 12")))",
        "conditions=\(.conditions + {iterations: "12"})", "env=\(.env + {PYTHONDONTWRITEBYTECODE: ""})" | "-C\nstacks[paddle].smoke[1].\(.)"' manifests/reports/$R.json)
    column $R paddle-cpu PaddleSeg "$four" 1 1
    SETTINGS=()
fi
column $R mmseg-cpu mmsegmentation 'hrnetw18/mmseg/fp32/n1g1/*' 1 1
if in_test_all "the columns of TensorFlow 2, MXNet and BERT"; then
    fetch_synthetic imagenet-2012 bert-hdf5-sample bert-tfrecord-sample
    column dlperf-tf2-resnet50 tf2-cpu TensorFlow 'resnet50/tf2/fp32/n1g1/*' 1
    column paddle-perf-2020 mxnet-cpu MXNet 'resnet50/ngc-mxnet/fp32/*' 2
    column paddle-perf-2020 bert-torch-cpu "PyTorch's BERT" 'bert-base/ngc-pytorch/fp32/n1g8/bs32' 1
    column paddle-perf-2020 tf2-cpu "TensorFlow's BERT" 'bert-base/ngc-tf/fp32/n1g1/bs32' 1
fi
echo "# test-frameworks: every column that runs on a CPU, with SOURCES=DIR also by the projects' own code; less than 45 minutes"
nothing_left "at the end" 1 2 3 4
tap_done
