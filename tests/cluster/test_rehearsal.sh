#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# The full profile rehearsed: the reports' own images, repositories, packages and commands by their published names, on four nodes with eight GPUs each as far
# as a container can tell. What answers to the names is stood in for: an image with a shell, Python, pip and git, in which each framework is a program that
# says how its ranks were started (published/standin.py). No number of it can be compared with one that was published.
# shellcheck source=tests/cluster/lib.sh disable=SC2016,SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/fault_lib.sh
. "$(dirname "$0")/fault_lib.sh"
# shellcheck source=tests/cluster/published_lib.sh
. "$(dirname "$0")/published_lib.sh"
if no_docker "the full profile rehearsed on four nodes"; then tap_done; fi
trap 'published_down; rm -rf "$T"' EXIT
succeeds "the published names are served" published_up
frameworks_are_up() { code_up && images_up && packages_up; }
succeeds "and images, repositories and packages under them" frameworks_are_up

# shellcheck source=tests/cluster/rehearse_lib.sh
. "$(dirname "$0")/rehearse_lib.sh"

R=paddle-perf-hrnetw18
rehearse 0 $R "PaddleSeg's HRNet-W18 on 32 GPUs, in one command" 'hrnetw18/paddle/fp32/n4g8/*'
holds $R "1 cases, 32 processes on 32 GPUs"
like "$(cat "$P/asked.log")" '^registry.example GET /v2/paddleseg-f3cec79/manifests/sha256:[0-9a-f]* 200' "its image was pulled by its digest"
is "$(grep -c "^\($INDEX\|www.paddlepaddle.org.cn\) " "$P/asked.log")" 0 "and no container asked for a package"
is "$(jq -r '.cells[0].differs[] | select(.name == "dataset" or .name == "device" or .name == "framework_version") | .run' "$T/out" | sort | tr '\n' ';')" "none: what would use it is stood in for;stand-in;synthetic twin of cityscapes;" \
    "what was replaced is among what differs"
archive=$(jq -r .archive "$T/out")
exits 0 "the archive holds" "$REPERF" verify "$archive" --unsigned
exits 0 "and replays" "$REPERF" replay "$archive"
# The check can fail; and a plan that denies the rehearsal is not this run's.
cp -R "$E" "$T/forged"
log=$T/forged/logs/raw/hrnetw18/paddle/fp32/n4g8/bs8/repeat-1.node3.log
sed -i '0,/"rank": 1[67]/s/"FLAGS_selected_gpus": "[01]"/"FLAGS_selected_gpus": "7"/; 0,/"--batch_size=8"/s//"--batch_size=4"/' "$log"
/usr/bin/python3 tests/cluster/check_ranks.py manifests/reports/$R.json "$T/forged" >"$T/said"
is "$? $(grep -c 'has other words than rank 0\|has batch 4' "$T/said")" "1 2" "a rank with another batch is seen"
sed -i '/^STAND-IN rank .*"rank": 20,/d' "$log"
/usr/bin/python3 tests/cluster/check_ranks.py manifests/reports/$R.json "$T/forged" >"$T/said"
is "$? $(grep -c 'expected 0 to 31' "$T/said")" "1 1" "a rank that is not there, too"
sed -i '/"rehearsal": true,/d' "$T/forged/manifest/plan.json"
exits 5 "a plan that denies it" "$REPERF" replay "$T/forged"

# --- data that are made from other data, and weights ---
if in_test_all "two repeats of a stack whose records are made from other data, rehearsed"; then
    REPEATS=2 rehearse 0 paddle-perf-2020 "two repeats of TensorFlow's ResNet-50, on records of ImageNet" 'resnet50/ngc-tf/fp32/n1g1/*'
    is "$(grep -c 'getting dataset:imagenet-2012-tfrecord.synthetic' "$T/err") $(jq -r '.cells[0].repeats | length' "$T/out")" "1 2" "whose records are made once, before both"
    is "$(cat "$E"/logs/raw/resnet50/ngc-tf/fp32/n1g1/bs128/repeat-* | grep -c '"data": \["/data/tfrecords"\]')" 2 "and mounted where the program looks"
    is "$(jq -r 'first(.steps[].mounts[] | select(.kind == "dataset")) | "\(.name) \(.version)"' "$E/manifest/plan.json")" \
        "imagenet-2012-tfrecord.synthetic $(sha256sum <"$REPERF_STORE/trees/imagenet-2012-tfrecord.synthetic/tree.sha256" | cut -d' ' -f1)" "the evidence has their digest"
fi

# --- the other frameworks, each at each of its sizes -----------------------------------------------------
if in_test_all "the full profile of every stack of the reports rehearsed, at each of its sizes"; then
    rehearse 0 $R "HRNet-W18, one GPU to 32" 'hrnetw18/paddle/amp/n1g?/*' 'hrnetw18/mmseg/*'
    holds $R "8 cases, 91 processes on 91 GPUs"
    rehearse 0 paddle-perf-deeplabv3p "DeepLabV3+" '*/paddle/fp32/*' '*/mmseg/amp/*'
    holds paddle-perf-deeplabv3p "6 cases, 82 processes on 82 GPUs"
    rehearse 0 airank-mmseg-deeplabv3plus "AI-Rank's DeepLabV3+" '*/mmseg/fp16/n1g?/*'
    holds airank-mmseg-deeplabv3plus "2 cases, 9 processes on 9 GPUs"
    rehearse 0 dlperf-tf2-resnet50 "TensorFlow 2's workers, by addresses in a file" '*/tf2/*'
    holds dlperf-tf2-resnet50 "6 cases, 10 processes on 63 GPUs"
    rehearse 0 paddle-perf-2020 "ResNet-50 in Paddle, TensorFlow, PyTorch and MXNet" 'resnet50/paddle/fp32/*' 'resnet50/ngc-tf/fp32/*' 'resnet50/ngc-pytorch/*/bs256' 'resnet50/ngc-pytorch/fp32/n1g8/*' 'resnet50/ngc-mxnet/fp32/*'
    holds paddle-perf-2020 "11 cases, 125 processes on 139 GPUs"
    rehearse 0 paddle-perf-2020 "BERT in Paddle, TensorFlow and PyTorch" 'bert-base/paddle/fp32/*/bs32*' 'bert-base/ngc-tf/amp/*/bs96*' 'bert-base/ngc-pytorch/amp/*/bs96*'
    holds paddle-perf-2020 "11 cases, 187 processes on 187 GPUs"
fi
published_down
nothing_left "at the end" 1 2 3 4
tap_done
