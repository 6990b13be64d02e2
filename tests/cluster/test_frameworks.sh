#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The other frameworks' columns on four nodes in containers: first what reperf gives a recipe and takes from it, with a made-up framework, then PaddleSeg and
# mmsegmentation themselves where their images were made (images/build.sh).
# shellcheck source=tests/cluster/lib.sh disable=SC2016
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/fault_lib.sh
. "$(dirname "$0")/fault_lib.sh"
# shellcheck source=tests/cluster/columns_lib.sh
. "$(dirname "$0")/columns_lib.sh"
cluster_reset || exit 1
if no_docker "frameworks on four nodes in containers"; then tap_done; fi
R=paddle-perf-hrnetw18
exits 0 "the twin of Cityscapes" "$REPERF" fetch cityscapes --synthetic

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
why() { jq -r '.cells[0] | "\(.verdict) \(.value) \(.cause) \(.why)"' "$T/out"; }
framework 9 "ends with 0 and no metric" $one rank 'echo hello'
like "$(why)" '^failed null parse .*no_metric' "is no success"
framework 9 "a loss of NaN" $one rank 'RATE=nan; '"$LINES_OF"
like "$(why)" '^failed null parse .*nan' "is none"
framework 9 "half of its lines" $one rank 'RATE=2; '"${LINES_OF/-lt 20/-lt 9}"
like "$(why)" '^failed null parse .*(incomplete|truncated)' "is none"
framework 124 "hangs in its reader" $one rank 'sleep 600' --deadline 5
like "$(why)" '^failed null timeout' "is stopped at its deadline"
framework 8 "one rank of four dies" $four rank 'RATE=2; [ $RANK != 2 ] || exit 3; '"$LINES_OF"'; sleep 600' --deadline 100
like "$(why)" '^failed null workload .*node3: ended with exit status 3' "the job ends, and the node is named"
framework 7 "a program that the image lacks" $one rank 'exec python3.7 train.py'
like "$(why)" '^failed null container' "is the image's failure"
nothing_left "after all of it" 1 2 3 4

# --- the frameworks themselves ---------------------------------------------------------------------
column $R paddle-cpu PaddleSeg 'hrnetw18/paddle/fp32/*' 3 3
column $R mmseg-cpu mmsegmentation 'hrnetw18/mmseg/fp32/n1g1/*' 1 1
if in_test_all "the columns of TensorFlow 2, MXNet and BERT"; then
    twins imagenet-2012 bert-hdf5-sample bert-tfrecord-sample
    column dlperf-tf2-resnet50 tf2-cpu TensorFlow 'resnet50/tf2/fp32/n1g1/*' 1
    column paddle-perf-2020 mxnet-cpu MXNet 'resnet50/ngc-mxnet/fp32/*' 2
    column paddle-perf-2020 bert-torch-cpu "PyTorch's BERT" 'bert-base/ngc-pytorch/fp32/n1g8/bs32' 1
    column paddle-perf-2020 tf2-cpu "TensorFlow's BERT" 'bert-base/ngc-tf/fp32/n1g1/bs32' 1
fi
echo "# test-frameworks: every column that runs on a CPU, with SOURCES=DIR also by the projects' own code; less than 45 minutes"
nothing_left "at the end" 1 2 3 4
tap_done
