#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# Overlays, without the frameworks: ImageNet laid out, OFRecords of it, DeepLearningExamples without a GPU, one MPI job over nodes without sshd.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
O=workloads/competitors
mkdir -p "$T/lib"

# --- imagenet/layout.py ---
# Two classes; validation images without folders, of which the development kit has the class's number.
I="$T/imagenet"
mkdir -p "$I"/train/{n02,n01} "$I/val" "$I/ILSVRC2012_devkit_t12/data"
for image in n01/n01_1 n01/n01_2 n02/n02_1; do echo "$image" >"$I/train/$image.JPEG"; done
for n in 1 2 3; do echo "val $n" >"$I/val/ILSVRC2012_val_0000000$n.JPEG"; done
printf '2\n1\n2\n' >"$I/ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt"
cp "$O/imagenet/layout.py" "$I"
printf '# by number\nn02\nn01\n' >"$I/classes.txt"
# shellcheck disable=SC2317 # called by exits
layout() { /usr/bin/python3 "$I/layout.py" "$@"; }
succeeds "its own list of classes is the dataset's" cmp -s "$O/imagenet/classes.txt" datasets/imagenet-2012/classes.txt
exits 0 "ImageNet is laid out" layout "$I" "$T/laid"
like "$(tr '\n' ' ' <"$T/laid/val_list.txt")" "^val/n01/ILSVRC2012_val_00000001.JPEG 0 val/n01/ILSVRC2012_val_00000003.JPEG 0 val/n02/ILSVRC2012_val_00000002.JPEG 1 $" "each validation image under its class"
is "$(tr '\n' ' ' <"$T/laid/train_list.txt")" "train/n01/n01_1.JPEG 0 train/n01/n01_2.JPEG 0 train/n02/n02_1.JPEG 1 " "labels by the classes' names in order"
is "$(cat "$T/laid/val/n02/"*) $(cat "$T/laid/train/n02/n02_1.JPEG")" "val 2 n02/n02_1" "the images themselves, linked"
echo 2 >>"$I/ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt"
fails 1 "3 images in .*, the development kit knows 4" "a kit that knows another number of images" layout "$I" "$T/out2"
mkdir -p "$I/val/n03"
fails 1 "no training images of n03" "a validation class without training images" layout "$I" "$T/out3"

# --- oneflow/ofrecord.py ---
# What is not a JPEG of three channels is made one: OneFlow's decoder writes past its memory otherwise. Pillow and OneFlow are fakes; a picture is its format and mode, as text.
mkdir -p "$T/lib/PIL" "$T/lib/oneflow/core/record" "$T/pictures"/{n01,n02}
touch "$T/lib/PIL/__init__.py" "$T/lib/oneflow/__init__.py" "$T/lib/oneflow/core/__init__.py" "$T/lib/oneflow/core/record/__init__.py"
cat >"$T/lib/PIL/Image.py" <<'EOF'
class Image:
    def __init__(self, format, mode):
        self.format, self.mode = format, mode
    def __enter__(self):
        return self
    def __exit__(self, *what):
        pass
    def convert(self, mode):
        return Image(self.format + " of " + self.mode, mode)
    def save(self, out, format, quality):
        out.write(("%s %s %d from %s" % (format, self.mode, quality, self.format)).encode())
def open(data):
    return Image(*data.read().decode().split()[:2])
EOF
cat >"$T/lib/oneflow/core/record/record_pb2.py" <<'EOF'
import collections, types
class OFRecord:
    def __init__(self):
        values = lambda: types.SimpleNamespace(value=[])
        self.feature = collections.defaultdict(lambda: types.SimpleNamespace(bytes_list=values(), int32_list=values()))
    def SerializeToString(self):
        return b"%d %s\n" % (self.feature["class/label"].int32_list.value[0], self.feature["encoded"].bytes_list.value[0])
EOF
echo "JPEG RGB its own" >"$T/pictures/n01/a.JPEG"
echo "JPEG CMYK" >"$T/pictures/n01/b.JPEG"
echo "JPEG L" >"$T/pictures/n02/a.JPEG"
echo "PNG RGB" >"$T/pictures/n02/b.JPEG"
# shellcheck disable=SC2317 # exits calls it
ofrecords() { PYTHONPATH="$T/lib" PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$O/oneflow/ofrecord.py" "$T/pictures" "$T/ofrecords" 2; }
exits 0 "OFRecords are written" ofrecords
is "$(cat "$T"/ofrecords/part-0000{0,1} | tr -d '\0' | grep -ao '[01] [JP].*' | tr '\n' ';')" \
    "0 JPEG RGB its own;1 JPEG RGB 95 from JPEG of L;0 JPEG RGB 95 from JPEG of CMYK;1 JPEG RGB 95 from PNG of RGB;" "of three channels, whatever the picture was"

# --- ngc-pytorch ---
# What main.py asks of CUDA, apex, DALI and DLLogger, asked by a program of two ranks of our own; its lines are read as the report's are.
if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    skip "DeepLearningExamples' overlay" "python3-torch is not installed"
else
    cat >"$T/main.py" <<'EOT'
import os
import dllogger
import torch
import torch.distributed as dist
from apex import amp
from apex.fp16_utils import *
from apex.parallel import DistributedDataParallel
from nvidia.dali.pipeline import Pipeline
from nvidia.dali.plugin.pytorch import DALIClassificationIterator
import nvidia.dali.ops as ops, nvidia.dali.types as types

class Pipe(Pipeline):
    pass

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank % torch.cuda.device_count())
dist.init_process_group(backend="nccl", init_method="env://")
for absent in (Pipe, amp.initialize, FP16_Optimizer, network_to_half):
    try:
        absent()
    except RuntimeError as said:
        print(rank, said)
model = DistributedDataParallel(torch.nn.Linear(2, 1).cuda())
loss = model(torch.full((1, 2), 1.0 + rank).cuda()).sum()
loss.backward()
with torch.cuda.stream(torch.cuda.Stream()):
    torch.cuda.current_stream().wait_stream(None)
torch.cuda.synchronize()
if rank == 0:
    print("gradient", to_python_float(next(model.parameters()).grad[0, 0]))
    dllogger.init([dllogger.StdOutBackend(dllogger.Verbosity.DEFAULT, step_format=lambda step: step if isinstance(step, str) else "Epoch: %d Iteration: %d " % step if step else "Summary:"),
                   dllogger.JSONStreamBackend(dllogger.Verbosity.VERBOSE, os.environ["REPORT"])])
    dllogger.log(step="PARAMETER", data={"data": "/tmp", "arch": "resnet50", "batch_size": 2, "fp16": False, "amp": False, "prof": 3, "print_freq": 1, "world_size": 2})
    dllogger.metadata("train.loss", {"format": ":.5f"})
    dllogger.metadata("train.total_ips", {"unit": "img/s", "format": ":.2f"})
    for step in (1, 2):
        dllogger.log(step=(0, step), data={"train.loss": 7.0 / step, "train.total_ips": 2.0 * step}, verbosity=dllogger.Verbosity.DEFAULT)
        dllogger.log(step=(0, step), data={"train.data_time": 0.1}, verbosity=dllogger.Verbosity.VERBOSE)
    dllogger.log(step=(), data={"train.loss": 5.25, "train.total_ips": 3.0})
    dllogger.flush()
EOT
    port=$(free_port)
    rank() { # RANK
        env PYTHONPATH="$O/ngc-pytorch:$O/dllogger" REPERF_DEVICE=cpu NPROC_PER_NODE=2 RANK="$1" WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" OMP_NUM_THREADS=1 \
            REPORT="$T/report.json" timeout 600 /usr/bin/python3 "$T/main.py" 2>"$T/rank-$1.err"
    }
    rank 1 >"$T/rank-1" &
    exits 0 "two ranks under DeepLearningExamples' overlay" rank 0
    wait $!
    is "$? $(grep -c 'is not here' "$T/rank-1")" "0 4" "DALI, AMP and FP16 can be named, and say that they are not here when they are used"
    is "$(grep gradient "$T/out")" "gradient 1.5" "gradients are averaged over the ranks"
    is "$("$REPERF" measure --json --format dllogger-pytorch --rule summary "$T/out" | jq -r '"\(.verdict) \(.value) \(.records) " + ([.facts[] | select(.name | test("gpus|precision|model|batch|iterations")) | .value] | join(" "))')" \
        "ok 3 1 2 fp32 resnet50 2 3" "its log is read, with what it states"
    is "$(grep -c DLLL "$T/report.json") $(grep -c data_time "$T/out")" "6 0" "what is verbose goes into its file alone"
fi

# --- mpi/nodes.py ---
if ! command -v mpiexec >/dev/null; then
    skip "one MPI job over nodes without sshd" "openmpi-bin is not installed"
    tap_done
fi
MASTER_PORT=$(free_port)
export MASTER_PORT NODE_IPS=127.0.0.1,127.0.0.2,127.0.0.3 NPROC_PER_NODE=2 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# RANK COMMAND...; each has a folder of its own for temporary files, as containers have: Open MPI's daemons remove a common one under each other.
node() { TMPDIR=$(mktemp -d -p "$T") NODE_RANK=$1 exec timeout 300 /usr/bin/python3 "$O/mpi/nodes.py" mpiexec --oversubscribe -np 6 "${@:2}"; }
job() { # COMMAND...: its status and those of the other nodes
    local idx statuses others=()
    for idx in 1 2; do
        (node $idx "$@") >"$T/node-$idx" 2>&1 &
        others[idx]=$!
    done
    (node 0 "$@") >"$T/node-0" 2>&1
    statuses=$?
    for idx in 1 2; do
        wait "${others[idx]}"
        statuses+=" $?"
    done
    echo "$statuses"
}
# shellcheck disable=SC2016 # for each rank
is "$(job sh -c 'echo "rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE, local $OMPI_COMM_WORLD_LOCAL_RANK: $ODD"')" "0 0 0" "six ranks on three nodes"
# On a busy machine Open MPI warns that a child of its was faster than it.
is "$(grep -v 'plm:rsh: Warning: setpgid(.*) failed in parent\|^nodes.py: 127.0.0.1, MPI over 127.0.0.0/8' "$T/node-0" | sort | tr '\n' ';')" "rank 0 of 6, local 0: ;rank 1 of 6, local 1: ;rank 2 of 6, local 0: ;rank 3 of 6, local 1: ;rank 4 of 6, local 0: ;rank 5 of 6, local 1: ;" \
    "each knows its place, and the first node's log has what they say"
# shellcheck disable=SC2016
is "$(job sh -c '[ $OMPI_COMM_WORLD_RANK != 4 ] || exit 3; exec sleep 60')" "3 3 3" "one that fails ends all nodes with its status"
# Nobody but the first node is listened to.
(NODE_RANK=1 exec timeout 300 /usr/bin/python3 "$O/mpi/nodes.py" true) >"$T/node-1" 2>&1 &
alone=$!
/usr/bin/python3 - "$T/planted" <<'EOF'
import os, socket, struct, sys, time
text = ("touch " + sys.argv[1]).encode()
for _ in range(1200):
    sock = socket.socket()
    sock.bind(("127.0.0.9", 0))
    try:
        sock.connect(("127.0.0.2", int(os.environ["MASTER_PORT"]) + 1))
        break
    except OSError:
        time.sleep(0.1)
else:
    sys.exit("nobody waits there")
try:
    sock.sendall(struct.pack("!I", len(text)) + text)
    sock.recv(4)
except OSError:
    pass
EOF
is "$? $(find "$T" -name planted | wc -l)" "0 0" "another's command is not run"
kill -TERM $alone
wait $alone
is $? 143 "a node that waits can be ended"
tap_done
