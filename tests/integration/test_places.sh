#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: load
# Where manifests are looked for, and in which order; the example of manifests/README.md, unchanged.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016
source "$(dirname "$0")/../tap_lib.sh"
export HOME="$T/home" PATH="$B:$PATH"
unset XDG_DATA_HOME REPERF_MANIFESTS REPERF_ROOT
mkdir -p "$T/home" "$T/example" "$T/elsewhere"

sed -n "/^## Your own report/,/^## [^Y]/p" manifests/README.md | sed -n '/^```sh/,/^```/p' | sed '/^```/d' >"$T/example.sh"
is "$(grep -c '^reperf ' "$T/example.sh")" 3 "the example has its three commands"
(cd "$T/example" && bash -e "$T/example.sh") >"$T/out" 2>"$T/err"
is "$?" 0 "the example runs"
like "$(cat "$T/out")" '1 cell: 1 exact' "and its number follows"
like "$(cat "$T/out")" 'seed-not-stated|not-stated' "lint reads it"

ids() { "$REPERF" "$@" list reports --json | jq -r '[.reports[].id] | join(" ")' | tr ' ' '\n' | grep -c '^my-report$'; }
cd "$T/elsewhere" || exit 1
is "$(ids)" 0 "elsewhere it is not known"
is "$(ids --manifests "$T/example/manifests")" 1 "--manifests names it"
is "$(REPERF_MANIFESTS="$T/none-such:" "$REPERF" list reports >/dev/null 2>&1; echo $?)" 2 "a folder that is not there is an error"
is "$(REPERF_MANIFESTS="$T/example/manifests" ids)" 1 "the variable names it"
mkdir -p "$T/home/.local/share/reperf"
cp -R "$T/example/manifests" "$T/home/.local/share/reperf/"
is "$(ids)" 1 "the user's data folder is looked at"
is "$(REPERF_ROOT="$ROOT" ids)" 0 "with REPERF_ROOT it is not"
is "$(XDG_DATA_HOME="$T/elsewhere" ids)" 0 "nor with another XDG_DATA_HOME"

# The first place that has the name wins; a user's format replaces the program's
mkdir -p "$T/first/reports" "$T/first/formats"
sed 's/A table of ours/Another table/' "$T/example/manifests/reports/my-report.json" >"$T/first/reports/my-report.json"
is "$("$REPERF" list reports --manifests "$T/first" --json | jq -r '.reports[] | select(.id == "my-report").title')" "Another table" "the first place wins"
sed 's/"id": "mine"/"id": "timm"/' "$T/example/manifests/formats/mine.json" >"$T/first/formats/timm.json"
is "$("$REPERF" --manifests="$T/first" measure "$T/example/logs/mine/train.log" --json | jq -r .verdict)" ambiguous "two of one's own that fit are both named"
is "$("$REPERF" --manifests="$T/first" measure "$T/example/logs/mine/train.log" --format timm --json | jq -r '.records')" 4 "a format named like one of the program's is the user's own"
cp "$T/first/reports/my-report.json" "$T/first/reports/other.json"
fails 3 "$T/first/reports/other.json" "a name that is not the id's" "$REPERF" --manifests "$T/first" lint other

# The kept series of a user's report are next to it
exits 0 "kept series are written" "$REPERF" audit my-report --logs "$T/example/logs" --write-series "$T/home/.local/share/reperf/manifests/series"
sha=$(grep -o '[0-9a-f]\{64\}' "$T/err")
sed -i "s/\"path\": \"mine\"/&, \"series_sha256\": \"$sha\"/" "$T/home/.local/share/reperf/manifests/reports/my-report.json"
prints 0 '1 cell: 1 exact' "and the audit needs no logs" "$REPERF" audit my-report
cd "$ROOT" || exit 1
is "$("$REPERF" list reports --json | jq -r '[.reports[].id] | length')" "$(find manifests/reports -maxdepth 1 -name '*.json' | awk 'END {print NR + 1}')" "in the source tree ./manifests is the program's own"
is "$("$REPERF" audit paddle-perf-deeplabv3p --json | jq '[.reports[].cells[] | select(.verdict == "no_log")] | length')" 0 "whose kept series are its own"
mkdir -p "$T/copy/logs" && cp -R manifests "$T/copy/" && cp -R logs/published "$T/copy/logs/" && cd "$T/copy" || exit 1
is "$("$REPERF" audit paddle-perf-deeplabv3p --json | jq '[.reports[].cells[] | select(.verdict == "no_log")] | length')" 0 "in the source tree of another copy they are that copy's"
# An image and an overlay beside one's own manifests
mkdir -p "$T/site/reports" "$T/site/images/my-image" "$T/site/overlays/my-overlay"
echo 'print("mine")' >"$T/site/overlays/my-overlay/train.py"
jq '.id = "my-image" | .name = "reperf/my-image" | .used_for = []' "$ROOT/images/mmseg-0.30.0/image.json" >"$T/site/images/my-image/image.json"
jq '.id = "my-hrnet" | (.stacks[] | select(.id == "paddle") | .smoke) = [{"title": "mine", "image": "my-image",
    "mounts": [{"kind": "overlay", "name": "my-overlay", "inside": "/reperf/overlay"}],
    "commands": [{"purpose": "run", "nodes": 0, "gpus": 0, "precision": null, "per": "node", "printed": null, "works": "python3 /reperf/overlay/train.py"}]}]' \
    "$ROOT/manifests/reports/paddle-perf-hrnetw18.json" >"$T/site/reports/my-hrnet.json"
cd "$T/elsewhere" || exit 1
"$REPERF" plan my-hrnet --manifests "$T/site" --profile smoke --nodes local-docker --case '*/paddle/fp32/n1g1/*' --json >"$T/out" 2>"$T/err"
is "$(jq -r '.steps[0] | .mounts[0].folder, .needs[0].command' "$T/out" | xargs)" "$T/site/overlays/my-overlay images/build.sh $T/site/images/my-image --store" \
    "an image and an overlay of one's own lie beside one's own manifests"
# A colon in a folder's name; no HOME
cp -R "$T/site" "$T/a:b"
is "$("$REPERF" --manifests "$T/a:b" list reports --json | jq '[.reports[].id] | index("my-hrnet") != null')" true "a folder's name may hold a colon"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    fails 2 'no home folder' "no HOME, and none that the system knows" env -u HOME -u REPERF_STATE setpriv --reuid 54321 --clear-groups "$REPERF" history
else skip "no HOME" "this is not root, or setpriv is missing"; fi
exits 2 "--manifests without a folder" "$REPERF" list reports --manifests
tap_done
