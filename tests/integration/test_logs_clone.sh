#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: load
# audit --logs of a clone: bare or not, under any name, whatever is checked out; a plain copy; and the message if there is none.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
export HOME="$T" TMPDIR="$T/tmp" GIT_CONFIG_NOSYSTEM=1
mkdir "$TMPDIR"
git() { command git -c init.defaultBranch=main "$@"; }

mkdir -p "$T/made/runs/a" "$T/m/reports" "$T/m/formats"
for step in 10 20 30 40; do echo "step $step/40 | loss 0.5 | $((1000 + step)) img/s"; done >"$T/made/runs/a/train.log"
"$REPERF" measure "$T/made/runs/a/train.log" --suggest "$T/m/formats/mine.json" >/dev/null 2>&1
sed -i '/"proposed": true,/d' "$T/m/formats/mine.json"
printf '# Speed of PyTorch\n\n| GPUs | FP32 images/s |\n|---|---|\n| 1 | 1025 |\n' >"$T/made/README.md"
git -C "$T/made" init -q && git -C "$T/made" add . && git -C "$T/made" commit -qm one
commit=$(git -C "$T/made" rev-parse HEAD)
sed -n "/^cat > manifests.reports/,/^END/p" manifests/README.md | sed '1d;$d' |
    sed "s/0123456789abcdef0123456789abcdef01234567/$commit/; s#\"train.log\"#\"runs/a/train.log\"#" >"$T/m/reports/my-report.json"
export REPERF_MANIFESTS="$T/m"

audit() { # LOGS NAME
    prints 0 "1 cell: 1 exact" "$2" "$REPERF" audit my-report --logs "$1"
}
audit "$T/made" "a clone, under another name"
git clone -q --bare "$T/made" "$T/bare-one"
audit "$T/bare-one" "a bare repository"
echo "step 10/40 | loss 0.5 | 1 img/s" >"$T/made/runs/a/train.log"
audit "$T/made" "a clone whose file has changed: the commit counts"
git -C "$T/made" commit -qam two
audit "$T/made" "a clone that is at a later commit"
mkdir -p "$T/plain/mine"
git -C "$T/made" archive "$commit" | tar -x -C "$T/plain"
audit "$T/plain" "a copy of the files"
mv "$T/plain/runs" "$T/plain/mine/runs"
audit "$T/plain" "below the folder that the manifest names"
git -C "$T" init -q empty && git -C "$T/empty" commit -q --allow-empty -m none
fails 2 "has no commit $commit, of the logs of my-report; git fetch" "a repository without the commit" "$REPERF" audit my-report --logs "$T/empty"
git -C "$T/made" worktree add -q "$T/tree" HEAD
audit "$T/tree" "a work tree of a clone"
mkdir "$T/nothing"
cd "$T" || exit 1
audit bare-one "a bare repository, named from where it stands"
audit made "a clone, named from here"
audit ./bare-one/ "so a bare one"
cd made || exit 1
audit . "a clone that one is in"
exits 0 "a draft from there" "$REPERF" new from-here --from . --unit images/s --manifests "$T/m"
cd "$T" || exit 1
exits 1 "a folder without the logs" "$REPERF" audit my-report --logs nothing
like "$(cat "$T/out")" "tried $T/nothing/mine/runs/a/train.log" "is named from the root on"
is "$(ls -A "$TMPDIR")" "" "nothing is left behind"
tap_done
