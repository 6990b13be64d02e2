#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A dress rehearsal: each published framework's case of the full profile, by its own script, up to the first call of a device in upstream's own program, over
# mirrors of the real repositories (SOURCES=DIR, as `reperf data fetch --mirror` takes it); and, without mirrors, that a fault is seen, and the launchers on
# nodes as sites have them.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
REPORTS=(paddle-perf-2020 paddle-perf-hrnetw18 paddle-perf-deeplabv3p airank-mmseg-deeplabv3plus dlperf-tf2-resnet50 dlperf-paddle-resnet50)
if ! unshare -n -m -p -f true 2>/dev/null; then
    skip "a dress rehearsal" "needs root and namespaces"
    tap_done
fi

# --- MPI over nodes of which each has a docker0 of the same address, a /tmp of its own, and no sshd ---
if ! command -v mpicc >/dev/null; then
    skip "Open MPI on four nodes" "libopenmpi-dev is not installed"
else
    cat >"$T/sum.c" <<'EOF'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    static double here[1 << 18], all[1 << 18];
    const char *name = getenv("NCCL_SOCKET_IFNAME");
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    here[0] = rank;
    MPI_Allreduce(here, all, 1 << 18, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d: %g by %s\n", rank, size, all[0], name ? name : "nothing");
    MPI_Finalize();
    return 0;
}
EOF
    mpicc -o "$T/sum" "$T/sum.c"
    # shellcheck disable=SC2016 # for the nodes
    cat >"$T/mpi.sh" <<'EOF'
rank=0
for pid in $DRESS_NODES; do
    NODE_RANK=$rank NODE_IPS=10.11.0.2,10.11.0.3,10.11.0.4,10.11.0.5 NPROC_PER_NODE=2 MASTER_PORT=26001 OMPI_MCA_rmaps_base_oversubscribe=1 nsenter -t "$pid" -n -u -- \
        unshare -m --propagation private sh -c 'mount --bind "$1" /mnt && mount -t tmpfs none /tmp && exec timeout 120 python3 "$2" mpiexec --allow-run-as-root -np 8 /mnt/sum' sh "$1" "$2" &
    rank=$((rank + 1))
done
wait
EOF
    timeout 300 tests/dress/nodes.sh bash "$T/mpi.sh" "$T" "$ROOT/workloads/competitors/mpi/nodes.py" >"$T/said" 2>"$T/err"
    is "$(grep '^rank' "$T/said" | sort -n -k2)" "$(for rank in 0 1 2 3 4 5 6 7; do echo "rank $rank of 8: 28 by =ib0"; done)" "Open MPI's ranks of four nodes add up, over the inventory's network"
    [ "$(grep -c '^rank' "$T/said")" = 8 ] || tail -n 20 "$T/err" | sed 's/^/# /'
fi

# --- a fault is seen ---
# An upstream project of our own, with a report of one case a fault.
mkdir -p "$T/code/configs" "$T/made/sources" "$T/reports" "$T/data/trees/few.synthetic/images" && touch "$T/data/trees/few.synthetic/images/1"
echo '{"width": 64}' >"$T/code/configs/net.json"
cat >"$T/code/train.py" <<'EOF'
import argparse, json
import torch
from torch import nn
parser = argparse.ArgumentParser()
parser.add_argument("--config")
parser.add_argument("--data")
parser.add_argument("--batch", type=int)
parser.add_argument("--strange", action="store_true")
args = parser.parse_args()
config = json.load(open(args.config))
if args.strange:
    torch.something_of_tomorrow()
nn.Linear(config["width"], 2)
EOF
git init -q "$T/code" && git -C "$T/code" add . && git -C "$T/code" commit -q -m 1
git clone -q --bare "$T/code" "$T/made/sources/example.org-made-up-0.git"
commit=$(git -C "$T/code" rev-parse HEAD)
python3 - "$T" "$commit" <<'EOF'
import json, sys
folder, commit = sys.argv[1:]
right = "train.py --config configs/net.json --data /reperf/data/images --batch 8"
launch = "python -m paddle.distributed.launch --gpus 0,1 "
wanted = [("n1g2", launch + right, "holds"), ("n1g2", launch + right.replace("8", "9"), "batch"), ("n1g2", launch + right.replace("net", "no"), "path"),
          ("n1g2", launch + right + " --nobody", "option"), ("n1g2", launch + right + " --strange", "question"), ("n1g2", launch.replace("0,1", "0") + right, "ranks"),
          ("n1g2", launch + right.replace("images", "none"), "data"),
          ("n2g2", launch + "--ips $NODE_IPS " + right, "address"), ("n2g2", launch + "--ips $NODE_IPS --host $(echo $NODE_IPS | cut -d, -f$((NODE_RANK + 1))) " + right, "host")]
recipe = {"title": "own", "image": "none", "mounts": [{"kind": "source", "name": "https://example.org/made-up.git", "commit": commit, "inside": "/reperf/source"},
                                                      {"kind": "dataset", "name": "few", "inside": "/reperf/data"}]}
listed = dict(recipe, title="listed", image="own")
right_list = dict(recipe, title="right", image="right")
lost = dict(recipe, title="lost", mounts=[{"kind": "source", "name": "https://example.org/lost.git", "commit": commit, "inside": "/reperf/source"}])
dry = {"report": "made", "steps": [], "commands": []}
report = {"id": "made", "stacks": [{"id": "own", "framework": "torch", "sources": [], "full": [recipe, lost, listed, right_list]}], "cases": []}
for at, (size, command, name) in enumerate(wanted + [("n1g2", "true", "mirror"), ("n1g2", "true", "list")]):
    case = "net/torch/fp32/%s/bs8/%s" % (size, name)
    report["cases"].append({"id": case, "stack": "own"})
    dry["steps"].append({"case": case, "recipe": {"mirror": "lost", "list": "listed", "holds": "right"}.get(name, "own"), "conditions": {"batch_per_gpu": "8"}})
    for node in range(int(size[1])):
        env = ["NODE_RANK=%d" % node, "NODE_IPS=10.11.0.2" + (",10.11.0.3" if size == "n2g2" else "")]
        argv = ["docker", "run"] + sum((["--env", word] for word in env), []) + ["image", "/bin/sh", "-c", "set -e\ncd /reperf/source\n" + command]
        dry["commands"].append({"case": case, "node": "node%d" % (node + 1), "argv": argv})
json.dump(report, open(folder + "/reports/made.json", "w"))
json.dump(dry, open(folder + "/dry.json", "w"))
json.dump({"made/own": {"batch": "args.batch", "missing": "lacks(args.data)"}}, open(folder + "/asks.json", "w"))
EOF
mkdir -p "$T/work" "$T/images/own" "$T/images/right"
# shellcheck disable=SC2016 # for the Dockerfile
printf 'ARG CODE=%s\nRUN git clone https://example.org/made-up.git /code \\\n && git -C /code checkout ${CODE} \\\n && pip install -r /code/requirements.txt\n' "$commit" >"$T/images/own/Dockerfile"
sed 's/requirements.txt/train.py/' "$T/images/own/Dockerfile" >"$T/images/right/Dockerfile"
ONLY='' DRESS_IMAGES="$T/images" DRESS_REPORTS="$T/reports" DRESS_ASKS_OF="$T/asks.json" tests/dress/nodes.sh python3 -B tests/dress/dress.py "$T/work" "$T/made" "$T/data" "$T/dry.json" >"$T/said" 2>"$T/err"
is "$?" 1 "a rehearsal with faults fails"
said() { grep -P "\tmade net/torch/fp32/n.g2/bs8/$1\t" "$T/said" | cut -f1,3; }
like "$(said holds)" "^ok.2 programs to torch.nn.Linear at source/train.py:13, .*\"batch\": 8" "what holds passes, and says how far it came"
like "$(said batch)" "^not ok.batch_per_gpu: the program has 9, the case says 8$" "another batch"
like "$(said path)" "^not ok.*No such file or directory: 'configs/no.json'" "a file that is not there"
like "$(said option)" "^not ok.*unrecognized arguments: --nobody" "an option that the program does not know"
like "$(said question)" "^not ok.stopped early at /reperf/source/train.py:12: nothing is known of torch.something_of_tomorrow$" "a question without an answer is no pass"
like "$(said ranks)" "^not ok.ranks \[0\] came to a device, expected 0 to 1" "too few ranks"
like "$(said data)" "^not ok.there is no /reperf/data/none$" "data that are not there"
like "$(said address)" "^not ok.*Can't find your local ip .127.0.1.1." "Paddle's nodes whose name is 127.0.1.1"
like "$(said host)" "^ok.4 programs" "which --host mends"
like "$(said mirror)" "^skip.no mirror of https://example.org/lost.git@" "a case without a mirror is skipped, and says why"
like "$(said list)" "^not ok.the image installs what requirements.txt lists, which https://example.org/made-up.git does not have" "an image that installs a list which is not there"
is "$(tail -n 1 "$T/said")" "$(printf 'counted\t2 ok, 8 not ok, 1 skipped')" "all are counted"
[ "$tap_bad" = 0 ] || sed 's/^/# /' "$T/said" "$T/err" | cut -c1-400
if ! in_test_all "each case of the published frameworks by its own script over mirrors of their repositories (SOURCES=DIR)"; then tap_done; fi

# --- the reports ---
jq '.registry = "registry.example:5000"' manifests/inventories/v100-4x8.json >"$T/nodes.json"
for report in "${REPORTS[@]}"; do
    given=()
    for id in $(jq -r '[.stacks[] | .image, .full[]?.image | values] | unique | .[]' "manifests/reports/$report.json"); do
        given+=(--image "$id=docker.io/made/up@sha256:$(printf 'd%.0s' {1..64})")
    done
    for stack in $(jq -r '.stacks[] | select(.full[0].image) | .id' "manifests/reports/$report.json"); do given+=(-C "stacks[$stack].full[0].mounts=[]"); done
    exits 0 "$report: what would be started" "$B/servers/plan_commands" "$report" --profile full --nodes "$T/nodes.json" "${given[@]}"
    cp "$T/out" "$T/dry-$report.json"
done
if [ -n "${SOURCES:-}" ]; then
    # shellcheck source=tests/integration/made_up_code.sh
    . tests/integration/made_up_code.sh
    "$REPERF" data gc >"$T/out" 2>&1
    while read -r id flag; do
        [ -n "$flag" ] || made_up_original "$id" "$T/original/$id"
        exits 0 "$id is made${flag:+, synthetic}" "$REPERF" data fetch "$id" ${flag:+"$flag"}
    done < <(jq -r '.stacks[].full[]?.mounts[]? | select(.kind == "dataset") | "\(.name) \(if .original then "" else "--synthetic" end)"' manifests/reports/*.json | sort -u)
fi
rm -rf "$T/work" && mkdir "$T/work"
ONLY="${ONLY:-}" tests/dress/nodes.sh python3 -B tests/dress/dress.py "$T/work" "${SOURCES:--}" "$REPERF_STORE" "$T"/dry-*.json >"$T/said" 2>"$T/err"
while IFS=$'\t' read -r verdict name why; do
    case $verdict in
    ok) ok 0 "$name: $why" ;;
    'not ok') ok 1 "$name: $why" ;;
    skip) skip "$name" "$why" ;;
    *) echo "# $name $why" ;;
    esac
done <"$T/said"
is "$(grep -cP '^(ok|not ok|skip)\t' "$T/said")" \
    "$(jq -sr --arg only "${ONLY:-}" '[.[] | .report as $report | .steps[].case | select(contains("/reperf/") | not) | "\($report) \(.)" | select(test($only))] | length' "$T"/dry-*.json)" \
    "every case of a published framework${ONLY:+ that ONLY names} was tried, or says why not"
sed 's/^/# /' "$T/err" | tail -n 5
tap_done
