#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# `run -- COMMAND`: a program of one's own is planned, run, read, judged and sealed like a report's case; and a report of one's own with its
# format, overlay, dataset and image beside it, without a container.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016
source "$(dirname "$0")/../tap_lib.sh"
PATH=/usr/bin:$PATH # the distribution's python3: that of a version manager is a script that starts others
export REPERF_STATE="$T/state" REPERF_STORE="$T/store" HOME="$T/home" GIT_CONFIG_GLOBAL="$T/gitconfig"
unset XDG_DATA_HOME REPERF_MANIFESTS REPERF_ROOT
mkdir -p "$T/home" "$T/own folder" && cd "$T/own folder" || exit 1
cat >train.py <<'PY'
import os, sys
print("data from", os.getcwd(), file=sys.stderr)
scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
for step in range(1, 31):
    print("step %d/30: loss %.3f, %.2f samples/s" % (step, 3 - step / 20, scale * (100 + step % 3)))
PY
git init -q . && git add . && git commit -qm first
/usr/bin/python3 train.py >one.log 2>/dev/null
exits 11 "a format is proposed" "$REPERF" measure one.log --suggest mine.json

exits 0 "a command is run" "$REPERF" run --name one --repeats 2 --format mine.json --json -- python3 train.py
cp "$T/out" "$T/one.json"
is "$(jq -r '.cells[0] | "\(.case) \(.verdict) \(.summary.n) \(.unit)"' "$T/one.json")" "train/command/unstated/n1g0/bs0 not_comparable 2 samples/s" "its case, by the name of its script"
is "$(jq '.cells[0].value | . > 100.5 and . < 101.5' "$T/one.json")" true "and the number that measure gives"
E=$(jq -r .folder "$T/one.json")/evidence
L=$(find "$E/logs/raw" -name repeat-1.log)
(/usr/bin/python3 train.py) >"$T/expected" 2>&1
is "$(cmp "$L" "$T/expected" && echo same)" same "the log is kept byte for byte, started in this folder"
is "$(jq -r '.command | "\(.commit) \(.is_changed_since_commit)"' "$E/environment/local.json")" "$(git rev-parse HEAD) false" "its commit is a condition"
is "$(jq -r '.conditions[] | select(.image) // empty' "$E/manifest/plan.json" 2>/dev/null; jq -r '.steps[0].conditions.image' "$E/manifest/plan.json")" none "that it ran in no image is one, too"
exits 0 "verify derives it" "$REPERF" verify --unsigned one
exits 0 "replay too" "$REPERF" replay one
exits 0 "resume knows it as finished" "$REPERF" resume one
omits 0 warning "its page, without a warning of published logs that nobody has published" "$REPERF" report one --html "$T/one.html"
SECRET=sesame OMP_NUM_THREADS=1 "$REPERF" run --name env --repeats 1 --format mine.json -- sh -c 'env >&2; exec python3 train.py' >"$T/out" 2>"$T/err"
L=$(find "$REPERF_STATE/runs" -path '*sh/command*' -name repeat-1.log)
is "$(grep -c SECRET "$L")$(grep -c OMP_NUM_THREADS=1 "$L")" 01 "it gets the environment of the allow-list"
sed 's/step %d/batch_per_gpu=8 step %d/' train.py >stated.py
/usr/bin/python3 stated.py >stated.log 2>/dev/null
"$REPERF" measure stated.log --suggest stated.json >"$T/out" 2>"$T/err"
exits 0 "a log that states its batch" "$REPERF" run --name stated --repeats 1 --format stated.json --json -- python3 stated.py
is "$(jq -c '.cells[0] | [(.differs | map(.condition)), (.not_stated | index("batch_per_gpu") != null)]' "$T/out")" '[[],true]' "differs from no published batch, since none is published"
mkdir code8 && cp stated.py code8/
exits 0 "published" "$REPERF" publish stated -o "$T/stated" --files code8
omits 0 'batch-differs' "and audited: it contradicts no row that prints none" "$REPERF" audit "$T/stated/"
is "$("$REPERF" audit "$T/stated/" --json 2>"$T/err" | jq -r '.reports[0].cells[0].logs[0].path')" stated/command/unstated/n1g0/bs0/repeat-1.log "its logs have paths below the folder"
warns 0 'run \[[.]+\] +0 %  0 repeats' "its steps are not known: the bar counts repeats that are over" "$REPERF" run --repeats 1 --format mine.json -- sh -c 'cat one.log; sleep 2'

# What fails
prints 8 'ended with exit status 3' "its exit status counts" "$REPERF" run --repeats 1 -- sh -c 'exit 3'
prints 9 'measure LOG --suggest FILE' "a log without a number" "$REPERF" run --repeats 1 -- echo hello
exits 2 "a format that is not there" "$REPERF" run --format none-such -- true
exits 2 "a report with --format" "$REPERF" run --format mine.json node-health
exits 2 "neither report nor command" "$REPERF" run --repeats 1 --
exits 2 "both" "$REPERF" run node-health -- true
exits 2 "--data is a report's" "$REPERF" run --data synthetic -- true
prints 7 'names no image .*, and so needs nodes with runtime none' "an inventory whose nodes run containers" "$REPERF" run --nodes local-docker -- true
exits 0 "an uncommitted change" sh -c 'echo "# more" >>train.py'
answers 0 '.cells[0].value | floor' 113 "a log of a known format needs no --format, and gives what measure gives" "$REPERF" run --name known --repeats 1 --json -- cat "$ROOT/tests/integration/formats/timm.log"
is "$(jq .command.is_changed_since_commit "$(jq -r .folder "$T/out")/evidence/environment/local.json")" true "a changed tree is said"
exits 0 "its page" "$REPERF" report known --html "$T/known.html"
like "$(cat "$T/known.html")" '<p class="headline">1[0-9.]* samples/s, from 1 repeat: measured' "does not speak of reproducing"
is "$(grep -cE '<th[^>]*>(audited|difference)</th>' "$T/known.html")" 0 "and has no column for what nobody published"
exits 0 "its archive is whole" "$REPERF" verify --unsigned known

# More repeats until the interval is narrow
cat >noisy.sh <<'SH'
#!/bin/sh
n=$(cat count 2>/dev/null || echo 0); n=$((n + 1)); echo "$n" >count
[ "$n" -gt 4 ] && d=0 || d=$((n % 2 * 8))
exec python3 train.py "1.$d"
SH
chmod +x noisy.sh
answers 0 '.cells[0].repeats | length' 2 "equal repeats: no more than asked for" "$REPERF" run --within 1% --repeats 2 --format mine.json --json -- python3 train.py
exits 0 "repeats that differ: more of them" "$REPERF" run --name more --within 30% --repeats 2 --repeats-max 9 --format mine.json --json -- ./noisy.sh
N=$(jq '.cells[0].repeats | length' "$T/out")
is "$([ "$N" -gt 2 ] && [ "$N" -lt 9 ] && echo between)" between "until it is narrow ($N)"
like "$(jq -r '.cells[0].why' "$T/out")" "after $N repeats; --within asked for 30 %\$" "which the evidence says"
exits 0 "and the archive derives" "$REPERF" verify --unsigned more
is "$("$REPERF" status more --json | jq "[.. | .repeats? // empty | numbers][0]")" "$N" "status counts those that were needed"
rm -f count
prints 0 'which was not reached' "never narrow enough" "$REPERF" run --name wide --within 0.1% --repeats 2 --repeats-max 3 --format mine.json -- ./noisy.sh
exits 2 "--within with one repeat" "$REPERF" run --within 1% --repeats 1 -- true
exits 2 "fewer at most than at least" "$REPERF" run --within 1% --repeats-max 2 -- true

# All repeats are of one code: it is looked at before each of them, and at resume.
mkdir -p "$T/edited" && cp train.py mine.json "$T/edited/" && cd "$T/edited" || exit 1
exits 5 "a script that changes after its first repeat" "$REPERF" run --name edited --repeats 3 --format mine.json -- sh -c 'python3 train.py && echo "# more" >>train.py' train.py
like "$(cat "$T/err")" 'repeat 2: train.py: not what it was when the run was made: a repeat now would be of another program; put it back and resume, or start a new run' "no second repeat is made of another program"
is "$(grep -c 'given up' "$T/err")" 0 "which is said once"
fails 5 'repeat 2: train.py: not what it was' "nor by resume" "$REPERF" resume edited
E=$(find "$REPERF_STATE/runs" -path "*$(readlink "$REPERF_STATE/names/edited")/evidence")
is "$(find "$E/logs/raw" -name 'repeat-*.log' | wc -l)" 1 "one repeat was made"
is "$(jq -c '[.command.folder, .command.commit, (.command.files | map(.name)), .command.changed]' "$E/environment/local.json")" "[\"$T/edited\",null,[\"train.py\"],[]]" "what its words name is a condition"
git init -q . && git add train.py && git commit -qm first
fails 5 'repeat 2: train.py: not what it was' "in a git folder also a file that no word names is named" "$REPERF" run --name module --repeats 2 --format mine.json -- sh -c 'python3 train.py && echo "# more" >>train.py'
git checkout -q train.py
exits 0 "put back, it goes on" "$REPERF" resume module
E=$(find "$REPERF_STATE/runs" -path "*$(readlink "$REPERF_STATE/names/module")/evidence")
is "$(find "$E/logs/raw" -name 'repeat-*.log' | wc -l)" 2 "to its end"
# Whatever keeps git from seeing a change: what is said of the tree holds.
git reset -q --hard
while IFS='|' read -r name hides; do
    rm -rf "$T/hidden" && cp -r "$T/edited" "$T/hidden" && cd "$T/hidden" && eval "$hides"
    "$REPERF" run --repeats 1 --format "$T/edited/mine.json" --json -- python3 "$T/edited/train.py" >"$T/out" 2>"$T/err"
    is "$(jq -c '.command | [.commit, .is_changed_since_commit]' "$(jq -r .folder "$T/out")/evidence/environment/local.json")" "${expected:-["\"$(git rev-parse HEAD)\"",true]}" "$name"
done <<'HIDES'
a file that git is told to assume unchanged|git update-index --assume-unchanged train.py && echo >>train.py
one that is left out|git update-index --skip-worktree train.py && echo >>train.py
a commit that another replaces|first=$(git rev-parse HEAD) && echo >>train.py && git commit -qam second && git replace "$first" HEAD && git update-ref HEAD "$first"
a monitor that saw nothing|git reset -q --hard && printf '#!/bin/sh\nprintf "t\\0"\n' >"$T/monitor" && chmod +x "$T/monitor" && git config core.fsmonitor "$T/monitor" && git config core.fsmonitorHookVersion 2 && git update-index --fsmonitor && git status >/dev/null && echo >>train.py
a submodule that is ignored|git init -q sub && git -C sub commit -q --allow-empty -m s && git add sub 2>/dev/null && git commit -qm sub && git config diff.ignoreSubmodules all && echo >sub/x
only what lies below|mkdir below && cp mine.json below/ && git add below && git commit -qm below && git config diff.relative true && echo >>train.py && cd below
a tree that lies elsewhere is not this folder's|mkdir -p "$T/other" && git config core.worktree "$T/other" && expected='[null,null]'
HIDES
cd "$T/own folder" || exit 1
head -c 2000000 /dev/zero | tr '\0' x >long.txt
exits 9 "an endless line" "$REPERF" run --repeats 1 --format mine.json --json -- cat long.txt
is "$(jq -r '.cells[0].why' "$T/out")" "repeat 1 of 1: log: no_metric: the line at byte 0 is longer than 1048576 bytes; is this a log?" "is said without where the log lies"
cd "$T/own folder" || exit 1

# A report of one's own, with what it needs beside it
mkdir -p manifests/reports manifests/formats manifests/overlays/tool manifests/datasets/birds manifests/images/box
jq '.id = "mine"' mine.json >manifests/formats/mine.json
echo 'import helper' | cat - train.py >manifests/overlays/tool/train.py
echo >manifests/overlays/tool/helper.py # python writes what it compiled of it beside it
sed 's/"id": *"synthetic"/"id": "birds"/' "$ROOT/datasets/synthetic/dataset.json" >manifests/datasets/birds/dataset.json
sed 's/"id": *"[^"]*"/"id": "box"/' "$ROOT/images/paddle-cpu/image.json" >manifests/images/box/image.json
cat >manifests/reports/ours.json <<'JSON'
{"schema_version": 1, "id": "ours", "title": "ours", "unpublished": true, "source": null, "logs": null, "environments": [],
 "stacks": [{"id": "tool", "framework": "tool", "label": "tool", "image": null, "image_tag": null, "image_digest": null,
   "dataset": "birds", "sources": [], "conditions": {}, "env": {"TOOL": "/our/tool"}, "commands": [],
   "full": [{"title": "without a container", "conditions": {"device": "cpu"},
     "mounts": [{"kind": "overlay", "name": "tool", "inside": "/our/tool"}],
     "commands": [{"purpose": "run", "nodes": 0, "gpus": 0, "precision": null, "per": "node", "printed": null,
       "works": "test -d \"$TOOL\" && exec python3 /our/tool/train.py"}]}]}],
 "cases": [{"id": "net/tool/fp32/n1g0/bs8", "stack": "tool", "environment": null, "group": "tool", "format": "mine", "rule": null,
   "baseline": null, "logs": [], "conditions": {}, "cells": []}]}
JSON
prints 0 'net/tool/fp32/n1g0/bs8 +1 +10[01]' "it runs without an image" "$REPERF" run ours --name ours --repeats 1
exits 0 "and verifies" "$REPERF" verify --unsigned ours
is "$(find "$REPERF_STATE"/runs/*/evidence -path '*tool/train.py' | wc -l)" 1 "the overlay is part of the evidence"
for c in "verify birds" "fetch dataset:birds --dry-run" "list datasets"; do
    # shellcheck disable=SC2086
    "$REPERF" $c >"$T/out" 2>"$T/err"
    is "$(grep -c 'is not a dataset' "$T/err")" 0 "$c finds the dataset of one's own"
done
like "$("$REPERF" list datasets)" 'birds' "list names it"
like "$("$REPERF" list images)" 'box' "and the image"
cd "$T" || exit 1
exits 0 "--manifests names them elsewhere" "$REPERF" --manifests "$T/own folder/manifests" run ours --repeats 1
like "$(REPERF_MANIFESTS="$T/own folder/manifests" "$REPERF" list datasets)" birds "so does the variable"
tap_done
