#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# A run on four nodes is published, pushed to a bare repository, and reproduced on four nodes by somebody else from its address.
# shellcheck source=tests/cluster/lib.sh disable=SC2016
. "$(dirname "$0")/lib.sh"
export HOME="$T/home" GIT_CONFIG_GLOBAL="$T/gitconfig"
mkdir -p "$T/home" "$S/shared/ours"
git config --global init.defaultBranch main
jq '.nodes |= map(.gpus = 0)' "$S/inventory-none.json" >"$T/nodes.json"
cat >"$S/shared/ours/train.sh" <<'SH'
echo "node $NODE_RANK of $NNODES is $(cat /etc/hostname), home $HOME, omp ${OMP_NUM_THREADS:-none}"
i=1
while [ $i -le 30 ]; do echo "step $i/30: loss 2.$((90 - i)), 20$((i % 3)).50 samples/s"; i=$((i + 1)); done
SH
cd "$S/shared/ours" || exit 1
NNODES=1 NODE_RANK=0 sh train.sh >one.log
"$REPERF" measure one.log --suggest "$T/mine.json" >/dev/null 2>&1
export OMP_NUM_THREADS=3
exits 0 "a command on four nodes" "$REPERF" run --nodes "$T/nodes.json" --name ours --repeats 2 --format "$T/mine.json" -- sh train.sh
exits 0 "is published" "$REPERF" publish ours -o "$T/pub" --files .
cd "$T" && rm -rf "$S/shared/ours"
(cd "$T/pub" && git init -q . && git add -A && git commit -qm publish)
git init -q --bare "$S/git/ours.git" && git -C "$S/git/ours.git" config uploadpack.allowAnySHA1InWant true
exits 0 "and pushed" git -C "$T/pub" push -q "$S/git/ours.git" main
touch "$S/git/ours.git/git-daemon-export-ok"
C=$(git -C "$T/pub" rev-parse HEAD)
U="git://$HEAD_IP/ours.git@$C"

export REPERF_STATE="$T/other/state" REPERF_STORE="$T/other/store"
exits 2 "somebody else runs it only when it is trusted" "$REPERF" run "$U" --nodes "$T/nodes.json"
exits 0 "audit URL@COMMIT" "$REPERF" audit "$U"
exits 0 "run URL@COMMIT on four nodes" "$REPERF" run "$U" --trust "$C" --nodes "$T/nodes.json" --repeats 2 --name again --json
is "$(jq -r '.cells[0] | "\(.case) \(.verdict) \(.summary.n)"' "$T/out")" "train/command/unstated/n4g0/bs0 reproduced 2" "its number is reproduced"
E=$(jq -r .folder "$T/out")/evidence
is "$(cat "$E"/logs/raw/train/command/unstated/n4g0/bs0/* | grep -c '^node . of 4 is node')" 8 "each repeat ran on each of the nodes"
is "$(find "$E" -name nodes.json -o -name 'node[1-4].json' | wc -l)" 4 "each node is in the evidence"
is "$(cat "$E"/logs/raw/train/command/unstated/n4g0/bs0/* | grep -c 'omp 3')" 0 "nothing of the caller's environment got there"
exits 0 "and its archive verifies" "$REPERF" verify --unsigned again
rm -rf "$S/git/ours.git"
tap_done
