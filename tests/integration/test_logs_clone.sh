#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: load
# audit --logs of a clone: bare or not, under any name, whatever is checked out; a plain copy; and the message if there is none.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2119
source "$(dirname "$0")/../tap_lib.sh"
export HOME="$T" TMPDIR="$T/tmp" GIT_CONFIG_NOSYSTEM=1
mkdir "$TMPDIR"
# shellcheck source=tests/integration/own_report_lib.sh disable=SC1091
source "$ROOT/tests/integration/own_report_lib.sh"
mkdir "$T/made"
printf '# Speed of PyTorch\n\n| GPUs | FP32 images/s |\n|---|---|\n| 1 | 1025 |\n' >"$T/made/README.md"
own_logs < <(own_log)
own_report

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
# A clone from somebody else whose log is another under the name that git has of it: git reads it without a word.
cp -r "$T/made" "$T/forged" && blob=$(git -C "$T/forged" rev-parse "$commit:runs/a/train.log") && file=$T/forged/.git/objects/${blob:0:2}/${blob:2} && chmod u+w "$file"
own_log | sed 's/10[1-4]0/1025/' | /usr/bin/python3 -c 'import sys, zlib; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(zlib.compress(b"blob %d\0" % len(d) + d))' >"$file"
is "$(git -C "$T/forged" cat-file blob "$blob" | grep -c 1025)" 4 "a forged clone"
prints 1 'log-missing' "its log is not the commit's" "$REPERF" audit my-report --logs "$T/forged"
mkdir "$T/nothing"
cd "$T" || exit 1
audit bare-one "a bare repository, named from where it stands"
audit made "a clone, named from here"
audit ./bare-one/ "so a bare one"
cd made || exit 1
audit . "a clone that one is in"
exits 0 "a draft from there" "$REPERF" new from-here --from . --unit images/s --manifests "$T/m"
cd "$T" || exit 1
prints 1 "tried $T/nothing/mine/runs/a/train.log" "a folder without the logs is named from the root on" "$REPERF" audit my-report --logs nothing
is "$(ls -A "$TMPDIR")" "" "nothing is left behind"
tap_done
