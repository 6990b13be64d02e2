#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every framework's column that runs on a CPU, for `make test-frameworks`: one image on the nodes at a time, one node but for HRNet. With SOURCES=DIR, a mirror as
# `reperf data fetch --mirror` takes, also by the projects' own code at the reports' commits. What does not run is a named skip. ONLY=ERE: columns of such a name.
# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/fault_lib.sh
. "$(dirname "$0")/fault_lib.sh"
# shellcheck source=tests/cluster/columns_lib.sh
. "$(dirname "$0")/columns_lib.sh"
if no_docker "frameworks on four nodes in containers"; then tap_done; fi
fetch_synthetic cityscapes
one=$T/one.json
jq '.nodes[0] += {name: "node1", address: "10.11.0.2"}' "$S/inventory.json" >"$one"
fetch_synthetic imagenet-2012 imagenet-2012-tfrecord imagenet-54289 bert-sample bert-hdf5-sample bert-tfrecord-sample
column paddle-perf-hrnetw18 paddle-cpu PaddleSeg 'hrnetw18/paddle/fp32/*' 3 3 'paddleseg 2.8.0'
nodes=$one
column paddle-perf-deeplabv3p paddle-cpu "PaddleSeg's DeepLabV3+" 'deeplabv3p/paddle/fp32/n1g1/*' 1
from_source "PaddleSeg's tools/train.py" paddle-perf-hrnetw18 paddle column paddle-perf-hrnetw18 paddle-cpu "PaddleSeg's tools/train.py" 'hrnetw18/paddle/fp32/n1g1/*' 1 1 "PaddleSeg's tools/train.py"
from_source PaddleClas paddle-perf-2020 resnet50-paddle column paddle-perf-2020 paddle-cpu PaddleClas 'resnet50/paddle/fp32/n1g1/*' 1 0 "PaddleClas's tools/static/train.py"
cluster_reset
nodes=$S/inventory.json
column paddle-perf-hrnetw18 mmseg-cpu mmsegmentation 'hrnetw18/mmseg/fp32/*' 3 3 'mmsegmentation 0.20.2'
if wanted mmsegmentation && images/build.sh mmseg-cpu --cached >/dev/null 2>&1; then
    is "$(jq -c '[.cells[].repeats[].taints | values | .[] | select(contains("its log states"))]' "$T/out")" '[]' "mmsegmentation: the log states what the recipe does, PyTorch's version as well"
fi
from_source "the report's fork of mmsegmentation" paddle-perf-hrnetw18 mmseg column paddle-perf-hrnetw18 mmseg-cpu "tools/train.py of the report's fork of mmsegmentation" 'hrnetw18/mmseg/fp32/n1g1/*' 1 1 "tools/train.py of the report's fork"
nodes=$one
column airank-mmseg-deeplabv3plus mmseg-cpu "mmsegmentation's DeepLabV3+" 'deeplabv3plus-mmseg/mmseg/fp32/n1g1/*' 1
column paddle-perf-2020 mmseg-cpu mmclassification 'resnet50/ngc-pytorch/fp32/n1g1/*' 1 0 'mmclassification'
from_source DeepLearningExamples paddle-perf-2020 resnet50-ngc-pytorch column paddle-perf-2020 mmseg-cpu DeepLearningExamples 'resnet50/ngc-pytorch/fp32/n1g1/*' 1 1 "DeepLearningExamples' main.py"
cluster_reset
column dlperf-tf2-resnet50 tf2-cpu TensorFlow 'resnet50/tf2/fp32/n1g1/*' 1
column paddle-perf-2020 tf2-cpu "TensorFlow's BERT" 'bert-base/ngc-tf/fp32/n1g1/bs32' 1
cluster_reset
column paddle-perf-2020 mxnet-cpu MXNet 'resnet50/ngc-mxnet/fp32/n1g1/*' 1
cluster_reset
column paddle-perf-2020 bert-torch-cpu "PyTorch's BERT" 'bert-base/ngc-pytorch/fp32/n1g1/bs32' 1
cluster_reset
from_source "PaddleNLP's BERT" paddle-perf-2020 bert-paddle column paddle-perf-2020 paddle-bert-cpu "PaddleNLP's BERT" 'bert-base/paddle/fp32/n1g1/bs32' 1 0 "PaddleNLP's run_pretrain_single.py"
cluster_reset
from_source "DeepLearningExamples for TensorFlow 1" paddle-perf-2020 resnet50-ngc-tf column paddle-perf-2020 tf1-cpu "DeepLearningExamples for TensorFlow 1" 'resnet50/ngc-tf/fp32/n1g1/*' 1 0 "DeepLearningExamples' main.py for TensorFlow 1"
cluster_reset
from_source "DLPerf's Paddle 1.8" dlperf-paddle-resnet50 paddle column dlperf-paddle-resnet50 paddle18-cpu "DLPerf's Paddle 1.8" 'resnet50/paddle/fp32/n1g1/*' 1 0 "PaddlePaddle/models' train.py at release 1.8"
cluster_reset
from_source "OneFlow's models" dlperf-paddle-resnet50 oneflow column dlperf-paddle-resnet50 oneflow-cpu "OneFlow's models" 'resnet50/oneflow/fp32/n1g1/*' 1 0 "OneFlow's models"
cluster_reset
# What no recipe can run, by its own words.
while IFS=$'\t' read -r title why; do skip "$title" "$why"; done < <(jq -r '.stacks[] | select(.smoke and all(.smoke[]; .why_not)) | .smoke[0] | "\(.title)\t\(.why_not)"' manifests/reports/*.json | sort -u)
nothing_left "at the end" 1 2 3 4
echo "# $SECONDS s in all; at most $disk_peak MB of disk taken"
succeeds "all of it took less than 30 GB of disk" test "$disk_peak" -lt 30000
tap_done
