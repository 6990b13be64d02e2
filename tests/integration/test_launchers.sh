#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# The stand-in for a framework's launcher in a rehearsal (tests/cluster/published/standin.py) against the launcher itself, where its image was built: by the
# reports' own words, each rank gets the same numbers, the same GPU and the same words. In make test-all.
# shellcheck source=tests/tap_lib.sh
. "$(dirname "$0")/../tap_lib.sh"
in_test_all "the launchers of Paddle, PyTorch and Open MPI against their stand-ins" || tap_done
mkdir -p "$T/code/tools"
cat >"$T/code/tools/train.py" <<'PY'
import json, os, sys
KEYS = ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", "PADDLE_RANK_IN_NODE", "FLAGS_selected_gpus", "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE")
fd = os.open(os.environ["RECORD"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(fd, (json.dumps([{key: os.environ[key] for key in KEYS if key in os.environ}, sys.argv[1:]], sort_keys=True) + "\n").encode())
PY
cp "$T/code/tools/train.py" "$T/code/main.py"
# PyTorch 1.13 loses the value 0 of its flags under Python 3.11, and then starts nothing.
mkdir "$T/patch"
cat >"$T/patch/sitecustomize.py" <<'PY'
import sys
if "torch.distributed.launch" in sys.orig_argv:
    from torch.distributed.elastic.multiprocessing import api
    of_text = api.Std.from_str
    api.Std.from_str = classmethod(lambda cls, text: of_text(text) or api.Std.NONE)
PY
# The recipe's or the stack's command of these nodes and GPUs, its line that begins a launcher.
command_of() { # REPORT STACK NODES GPUS
    jq -r --arg stack "$2" --argjson nodes "$3" --argjson gpus "$4" '.stacks[] | select(.id == $stack) | first((.full[0].commands // .commands)[] | select(.purpose == "run" and .nodes == $nodes and .gpus == $gpus) | .works // .printed)' \
        "manifests/reports/$1.json" | grep -m 1 -oE '(python3? -m (paddle|torch)[.]distributed[.]launch|mpiexec) .*'
}
# Each node's launcher at once, on this machine: RECORD gets a line a rank. RUN... ends with an env that takes variables.
# shellcheck disable=SC2317 # by succeeds
launch() { # RECORD NODES COMMAND RUN...
    local record=$1 nodes=$2 command=$3 node pids=() status=0
    shift 3
    : >"$record"
    for ((node = 0; node < nodes; node++)); do
        (cd "$T/code" && exec "$@" RECORD="$record" CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 NODE_RANK="$node" NNODES="$nodes" NODE_IPS=127.0.0.1,127.0.0.1,127.0.0.1,127.0.0.1 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" sh -c "$command") >"$T/node$node" 2>&1 &
        pids+=($!)
    done
    for node in "${pids[@]}"; do wait "$node" || status=$?; done
    LC_ALL=C sort -o "$record" "$record"
    return "$status"
}
mkdir "$T/stand-ins"
for of in python python3 mpiexec; do
    cat >"$T/stand-ins/$of" <<PY
#!/usr/bin/python3
import os, sys
words = sys.argv[1:]
if "$of" == "mpiexec" or words[:1] == ["-m"]:
    sys.path.insert(0, "$ROOT/tests/cluster/published")
    import standin
    sys.argv = sys.argv[:1] + (words if "$of" == "mpiexec" else words[2:])
    standin.mpiexec() if "$of" == "mpiexec" else standin.paddle_launch() if "paddle" in words[1] else standin.torch_launch()
else:
    os.execv("/usr/bin/python3", ["python3"] + words)
PY
    chmod +x "$T/stand-ins/$of"
done
same() { # NAME REPORT STACK NODES GPUS IMAGE: "" for this machine's own
    local command real=() name="$1, of $5 ranks"
    command=$(command_of "$2" "$3" "$4" "$5" | sed 's/^python /python3 /')
    if [ -n "$6" ]; then
        if ! images/build.sh "$6" --cached >/dev/null 2>"$T/err" || [ "$(id -u)" != 0 ]; then
            skip "$name" "$(tail -n 1 "$T/err" | grep . || echo "only root can enter an image")"
            return
        fi
        real=("$ROOT/images/run.sh" "$6" --bind "$T" env PYTHONPATH="$T/patch")
    elif ! command -v mpiexec >/dev/null; then
        skip "$name" "openmpi-bin is not installed"
        return
    else
        real=(env OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none)
        command=${command//--bind-to socket/} # there are fewer sockets here than ranks
    fi
    port=$(free_port) first=$port
    succeeds "$name: $command" launch "$T/real" "$4" "$command" "${real[@]}"
    port=$(free_port)
    succeeds "$name: the stand-in, too" launch "$T/stood-in" "$4" "$command" env PATH="$T/stand-ins:$PATH"
    is "$(wc -l <"$T/real")" "$5" "$name: each rank was started"
    sed -i "s/\"MASTER_PORT\": \"$port\"/\"MASTER_PORT\": \"$first\"/" "$T/stood-in"
    is "$(diff "$T/real" "$T/stood-in" | head -n 4)" "" "$name: as the stand-in starts them"
}
same "Paddle's launcher" paddle-perf-hrnetw18 paddle 1 8 paddle-cpu
same "Paddle's launcher" paddle-perf-hrnetw18 paddle 4 32 paddle-cpu
same "PyTorch's launcher" paddle-perf-hrnetw18 mmseg 1 8 mmseg-cpu
same "PyTorch's launcher" paddle-perf-hrnetw18 mmseg 4 32 mmseg-cpu
same "Open MPI" paddle-perf-2020 resnet50-ngc-tf 1 8 ""
tap_done
