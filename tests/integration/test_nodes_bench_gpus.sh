#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# nodes bench of GPUs, where there is none: a real dockerd, a real registry, three sshds as nodes, and an image whose reperf-bench has emulated
# devices and a fake NCCL between them. An emulator's figures say nothing about a GPU; the code that gets them is the real one.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/ssh_lib.sh disable=SC1091
source "$ROOT/tests/integration/ssh_lib.sh"
# shellcheck source=tests/integration/nodes_lib.sh disable=SC1091
source "$ROOT/tests/integration/nodes_lib.sh"
# shellcheck source=tests/integration/image_lib.sh disable=SC1091
source "$ROOT/tests/integration/image_lib.sh"
# shellcheck source=tests/integration/engines_lib.sh disable=SC1091
source "$ROOT/tests/integration/engines_lib.sh"
export REPERF_ROOT="$ROOT"
unset SSH_AUTH_SOCK
BENCH="$B/emu/reperf-bench"
[ -x "$BENCH" ] || {
    skip "nodes bench of emulated GPUs" "built without the CUDA toolkit and cuDNN's headers"
    tap_done
}
q() { jq -r "$1" "$T/out"; }
valid() { # SCHEMA NAME: the document in $T/out, which stays
    cp "$T/out" "$T/valid.json"
    exits 0 "$2" /usr/bin/python3 tests/integration/validate.py "manifests/schema/$1.json" "$T/valid.json"
    cp "$T/valid.json" "$T/out"
}

# ---- reperf-bench gpus ----
export REPERF_EMU_DEVICES=3 REPERF_FAKE_NCCL_DIR="$T"
REPERF_NCCL_DIR="$(cd "$B/fake" && pwd)"
export REPERF_NCCL_DIR
SMALL=(--memory-mib 1 --sample-ms 1 --repeats 3)
exits 0 "three GPUs" "$BENCH" gpus "${SMALL[@]}"
valid node-bench-answer "what they can do is as its schema says"
is "$(q '[.gpus, (.series[] | "\(.measure):\(.ns | length)")] | join(" ")')" "3 gpu.hbm:3 gpu.matmul:3 gpu.matmul.fp32:3 gpu.allreduce:3" "everything, with its repeats"
like "$(q .notes[0])" '^3 x CUDA emulator; driver CUDA 13.0; cudnn [0-9.]+, cublaslt [0-9.]+$' "and what was measured"
lacks() { # NAME MEASURES ERE
    exits 0 "$1" "$BENCH" gpus "${SMALL[@]}"
    is "$(q '[.not_measured[].measure] | join(" ")') $(q '.series | length')" "$2" "has no number"
    like "$(q '.not_measured[-1].why')" "$3" "and says why"
}
REPERF_EMU_DEVICES=1 lacks "one GPU" "gpu.allreduce 3" '^there is one GPU$'
REPERF_FAKE_NCCL=version lacks "NCCL that is too old" "gpu.allreduce 3" '^GPU [012]: .*NCCL'
REPERF_FAKE_NCCL=wrong lacks "sums that are wrong" "gpu.allreduce 3" '^GPU [012]: element 0 of the sum is 7, not 6$'
REPERF_CUBLAS_DIR="$T" lacks "a GPU that does not open" "gpu.hbm gpu.matmul gpu.matmul.fp32 gpu.allreduce 0" '^GPU 0: cuBLASLt from .* is needed'
REPERF_EMU_FAULT=no_device:1 exits 8 "no GPU" "$BENCH" gpus
unset REPERF_EMU_DEVICES REPERF_NCCL_DIR REPERF_FAKE_NCCL_DIR

# ---- three nodes ----
have_sshd "nodes bench of GPUs" || tap_done
for tool in skopeo docker-registry jq; do
    command -v "$tool" >/dev/null || { skip "GPUs of nodes" "$tool is not installed"; tap_done; }
done
trap 'stop_sshds; end_engines; end_servers; rm -rf "$T"' EXIT
# Replaces NVIDIA's own hook, by which dockerd knows that it can give containers GPUs: there are none.
mkdir -p "$T/bin"
printf '#!/bin/sh\nexit 0\n' >"$T/bin/nvidia-container-runtime-hook"
chmod +x "$T/bin/nvidia-container-runtime-hook"
PATH="$T/bin:$PATH"
start_docker || { skip "GPUs of nodes" "$(cat "$T/why")"; tap_done; }
root="$T/layer.gpus"
mkdir -p "$root/bin" "$root/tmp" "$root/fake"
cp "$BENCH" "$root/bin/emulated"
cp "$(command -v busybox)" "$root/bin/sh"
cp "$B"/fake/lib* "$root/fake/"
ldd "$BENCH" | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }' | while IFS= read -r file; do install -D "$(readlink -f "$file")" "$root$file"; done
cat >"$root/bin/reperf-bench" <<'END'
#!/bin/sh
echo 'a library says something'
export REPERF_EMU_DEVICES=2 REPERF_FAKE_NCCL_DIR=/tmp REPERF_NCCL_DIR=/fake
exec /bin/emulated "$@"
END
chmod +x "$root/bin/reperf-bench"
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$root" -cf "$T/gpus.tar" .
entry=$(add_manifest "$T/layout" amd64 oci gzip gpus)
REFS=(good)
write_index "$T/layout/index.json" "$entry"
finish_layout "$T/layout"
IMAGE="example.org/team/bench@sha256:${entry%% *}"
start_registry main
push "$T/layout:good" "127.0.0.1:$PORT/team/bench:1"
# n3's engine gives its containers a tenth of a processor.
mkdir -p "$T/slow"
# shellcheck disable=SC2016 # of the script that is written
printf '#!/bin/sh\nverb=$1\nshift\n[ "$verb" != run ] || set -- --cpus=0.1 "$@"\nexec %s "$verb" "$@"\n' "$T/bin/docker" >"$T/slow/docker"
chmod +x "$T/slow/docker"
ssh_keys
export REPERF_SSH_CONFIG="$T/ssh/config"
for n in n1 n2; do start_sshd "$n" "SetEnv HOME=$T/home PATH=$PATH" || exit 1; done
start_sshd n3 "SetEnv HOME=$T/home PATH=$T/slow:$PATH" || exit 1
nodes_inventory n1 n2 n3 | jq --arg registry "127.0.0.1:$PORT" '.nodes[].gpus = 2 | .registry = $registry' >"$T/none.json"
jq '.runtime = "docker"' "$T/none.json" >"$T/gpus.json"
jq '.nodes[1].gpus = 3 | .nodes[2].gpus = 0' "$T/gpus.json" >"$T/other.json"
jq '.deviations = 1 | .measures[].share |= (if . == null then null else 0.5 end)' manifests/node-bench.json >"$T/limits.json"
# shellcheck disable=SC2317 # by exits
bench() { "$REPERF" nodes bench "$@" --locks "$LOCKS" --only gpu --fanout 1 --memory-mib 3 --sample-ms 30 --repeats 3 --confirm 0 --limits "$T/limits.json"; }
exits 1 "three nodes, of which one is slow" bench "$T/gpus.json" --image "$IMAGE" --json
valid nodes-bench-output "the document is as its schema says"
is "$(q '[.nodes[] | "\(.node) \(.gpus) \(.error) \([.figures[].repeats] | join(","))"] | join("; ")')" \
    "n1 2 null 3,3,3,3; n2 2 null 3,3,3,3; n3 2 null 3,3,3,3" "each has its GPUs and all figures"
like "$(q '.outliers[] | select(startswith("n3: FP16"))')" '^n3: FP16 products [0-9]+ % of its group.s median \([0-9.]+ of [0-9.]+ GFLOP/s\)' "the slow one is named"
is "$(q '[.nodes[] | select(.notes[0] | test("^2 x CUDA emulator; driver CUDA 13.0; cudnn [0-9.]+, cublaslt [0-9.]+$"))] | length')" 3 "with the GPUs' names"
cp "$T/out" "$T/bench.json"
exits 0 "the document is sealed" "$REPERF" seal -o "$T/bench.tar.zst" "$T/bench.json"
is "$("$T/bin/docker" ps -aq | wc -l)" 0 "no container is left"
exits 6 "GPUs without an image" bench "$T/gpus.json"
like "$(cat "$T/out")" 'not measured: n\[1-3\]: HBM, FP16 products, FP32 products, all-reduce: the image: image reperf-cuda12 is built, not pulled: images/build.sh reperf-cuda12 --push [0-9.:]*/reperf-cuda12 prints' "are not measured, and it says why"
exits 6 "a runtime that takes no image" bench "$T/none.json"
like "$(cat "$T/out")" 'not measured: n\[1-3\]: HBM.*inventory test has runtime none: --runtime says' "likewise"
exits 6 "other GPUs than the inventory has" bench "$T/other.json" --image "$IMAGE" --json
is "$(q '[.nodes[] | "\(.node) \(.error.message)"] | join("; ")')" \
    "n1 null; n2 reperf-bench sees 2 GPUs in its container, expected 3; n3 null" "are no figures"
is "$(q '.nodes[2].figures | map("\(.verdict) \(.message)") | unique | join(" ")')" "not_measured there is no GPU" "nor has one without"
tap_done
