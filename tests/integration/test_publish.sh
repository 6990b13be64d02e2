#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# publish, and a report by its address: a run becomes a folder, is pushed to a bare repository, audited and run from there by somebody else;
# what an address may not do.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016,SC2317
source "$(dirname "$0")/../tap_lib.sh"
PATH=/usr/bin:$PATH # the distribution's python3: that of a version manager is a script that starts others
export REPERF_STATE="$T/state" REPERF_STORE="$T/store" HOME="$T/home" GIT_CONFIG_GLOBAL="$T/gitconfig"
unset XDG_DATA_HOME REPERF_MANIFESTS REPERF_ROOT
mkdir -p "$T/home" "$T/work" && cd "$T/work" || exit 1
git config --global init.defaultBranch main
cat >train.py <<'PY'
import os, sys
print("home", os.environ.get("HOME"), "omp", os.environ.get("OMP_NUM_THREADS"), file=sys.stderr)
slow = float(os.environ.get("SLOW", "1"))
for step in range(1, 41):
    print("step %d/40: loss %.3f, %.2f samples/s" % (step, 3 - step / 20, slow * (100 + step % 3)))
PY
/usr/bin/python3 train.py >one.log 2>/dev/null
"$REPERF" measure one.log --suggest mine.json >/dev/null 2>&1
exits 0 "a run" "$REPERF" run --name one --repeats 2 --format mine.json -- python3 train.py
fails 2 '--files FOLDER names the files' "a command's files are not in its run" "$REPERF" publish one -o "$T/pub"
is "$([ -e "$T/pub" ] && echo there)" "" "and nothing is written"
echo "# faster now" >>train.py
fails 5 '--files .: train.py: not what it was when the run was made' "code that was changed since it made the number" "$REPERF" publish one -o "$T/pub" --files .
mkdir empty
fails 5 'train.py .not there.' "files without the command's own" "$REPERF" publish one -o "$T/pub" --files empty
exits 2 "one file is no folder" "$REPERF" publish one -o "$T/pub" --files train.py
is "$([ -e "$T/pub" ] && echo there)" "" "nothing was written"
sed -i '$d' train.py
warns 0 ': published: mine.json, one.log, train.py' "publish" "$REPERF" publish one -o "$T/pub" --files . --title "Ours" --author "A. Author"
for f in README.md index.html picture.svg CITATION.cff .github/workflows/audit.yml manifests/reports/train.json manifests/formats/mine.json \
    manifests/overlays/code/train.py logs/train/command/unstated/n1g0/bs0/repeat-2.log; do
    is "$([ -s "$T/pub/$f" ] && echo there)" there "$f"
done
like "$(cat "$T/pub/README.md")" 'A key that lies beside its archive proves nothing' "what a key proves is said"
like "$(cat "$T/pub/README.md")" 'archives/.*: not signed' "and that nobody signed this run"
like "$(cat "$T/pub/README.md")" '^. train . command . unstated . - . - . 10[01][.].* . ± [0-9.]+ % . samples/s . 2 .$' "its table has value and interval"
is "$(jq -r '.files[].name' "$T"/pub/locks/*.json | grep -c manifest/report.json)" 1 "what ran is pinned by digest"
like "$(cat "$T/pub/picture.svg")" '1 exact|exact' "the picture is of the folder's own audit"
exits 0 "its archive verifies" "$REPERF" verify --unsigned "$(find "$T/pub/archives" -name '*.tar.zst')"
exits 2 "not over what is there" "$REPERF" publish one -o "$T/pub" --files .
is "$(grep -rl "$T/work" "$T/pub" --include=*.json --include=*.md --include=*.yml | wc -l)" 0 "no path of its author's machine is in its manifests"

# In a git folder: what is not git's, and what was changed since the run.
mkdir "$T/ours" && cd "$T/ours" && cp "$T/work/train.py" "$T/work/mine.json" . || exit 1
echo "lr: 1" >used.yaml && git init -q . && git add . && git commit -qm first
exits 0 "a run of a git folder's command" "$REPERF" run --name tracked --repeats 1 --format mine.json -- python3 train.py
echo "lr: 2" >used.yaml
fails 5 'used.yaml: not what it was' "another file of git's was changed since" "$REPERF" publish tracked -o pub --files .
git commit -qam second
exits 5 "committed or not" "$REPERF" publish tracked -o pub --files .
echo "lr: 1" >used.yaml && git commit -qam third && for n in 01 02 03 04 05 06 07 08 09 10 11 12; do echo "$n" >note$n.txt; done
exits 0 "the same files at a later commit are the same code" "$REPERF" publish tracked -o pub --files .
like "$(cat "$T/err")" 'warning: .: git does not have these, and they are published: note01.txt, .*note10.txt and 2 more' "files that git does not have are named"
is "$(find pub/manifests/overlays/code -path '*pub*/*' -name '*.log' | wc -l)" 0 "what it writes is not among what it publishes"
cd "$T/work" || exit 1

# What differs by chance alone says so.
cd "$T/work" || exit 1
cat >"$T/chance.py" <<PY
import itertools, os
n = os.path.getsize("$T/nth") if os.path.exists("$T/nth") else 0
open("$T/nth", "a").write("x")
for step in range(1, 41):
    print("step %d/40: loss %.3f, %.2f samples/s" % (step, 3 - step / 20, [100, 100, 60, 180, 150, 118, 120, 122][n] + step % 3))
PY
mkdir chance && cp "$T/chance.py" chance/ && cd chance || exit 1
exits 0 "a number to be reproduced" "$REPERF" run --name chance --repeats 2 --format ../mine.json -- python3 chance.py
exits 0 "published" "$REPERF" publish chance -o "$T/chance" --files .
P=$("$REPERF" run "$T/chance/" 2>&1 | sed -n 's/.*then --trust //p')
exits 1 "repeats far apart are faster" "$REPERF" run "$T/chance/" --trust "$P" --repeats 3 --json
like "$(jq -r '.cells[0] | .verdict + ": " + .why' "$T/out")" '^faster: the 95 % interval of the mean, [+]- 1[0-9][0-9] %, contains the published number: more repeats would tell$' "and by chance, perhaps"
omits 1 'more repeats' "repeats close together are faster, without a doubt" "$REPERF" run "$T/chance/" --trust "$P" --repeats 3
like "$(cat "$T/out")" ' 3 +12[01][0-9.]* +[+]- 4[.]1[0-9]* % ' "its interval stands beside the value"
cd "$T/work" || exit 1

# A long log is compressed, and read as it is.
sed 's/range(1, 41)/range(1, 40001)/; s#%d/40:#%d/40000:#; s/3 - step/3000 - step/' train.py >long.py
exits 0 "a run with a log of megabytes" "$REPERF" run --name megabytes --format mine.json -- python3 long.py
mkdir code && cp long.py code/
exits 0 "is published" "$REPERF" publish megabytes -o "$T/big" --files code
L=$T/big/logs/long/command/unstated/n1g0/bs0/repeat-1.log
is "$([ -e "$L" ] && echo plain) $(od -An -tx1 -N4 "$L.zst" | tr -d " ")" " 28b52ffd" "its log with zstd"
R=$(find "$REPERF_STATE/runs" -path '*logs/raw*' -name repeat-1.log -size +1M)
exits 0 "byte for byte" cmp <(zstd -dcq "$L.zst") "$R"
exits 0 "audit reads it" "$REPERF" audit "$T/big/" --json
is "$(jq -r '.reports[0].cells[0] | "\(.verdict) \(.logs[0].sha256)"' "$T/out")" "exact $(sha256sum <"$R" | cut -d' ' -f1)" "as the log that it is"
exits 0 "so does measure" "$REPERF" measure --format mine.json "$L.zst" --json
is "$(jq -c '[.value, .records]' "$T/out")" "$("$REPERF" measure --format mine.json "$R" --json | jq -c '[.value, .records]')" "with the same number"
prints 0 'step 1/40000: loss' "explain shows its lines" env REPERF_MANIFESTS="$T/big/manifests" "$REPERF" explain long/command/unstated/n1g0/bs0
exits 0 "and compare takes two of them" "$REPERF" compare --format mine.json "$L.zst" "$R"

# A dataset's description is published with the report that is given it.
mkdir -p seeds/train/a seeds/train/b && for n in 1 2 3; do echo "$n" >seeds/train/a/$n.txt && echo "b$n" >seeds/train/b/$n.txt; done
mkdir -p "$T/mine/manifests"
exits 0 "a dataset of one's own" "$REPERF" --manifests "$T/mine/manifests" data new seeds seeds --licence CC0
cp -R "$T/pub/manifests" "$T/mine/" && cp -R "$T/pub/logs" "$T/mine/"
jq '.stacks[0].full[0].mounts += [{"kind": "dataset", "name": "seeds", "inside": "/data/seeds"}]' "$T/pub/manifests/reports/train.json" >"$T/mine/manifests/reports/train.json"
exits 0 "a report with it" "$REPERF" --manifests "$T/mine/manifests" run "$T/mine/manifests/reports/train.json" --name seeded --repeats 1
exits 0 "is published" "$REPERF" --manifests "$T/mine/manifests" publish seeded -o "$T/seeded"
exits 0 "with the dataset's description" cmp "$T/mine/manifests/datasets/seeds/dataset.json" "$T/seeded/manifests/datasets/seeds/dataset.json"
exits 0 "by which anybody checks a copy" "$REPERF" --manifests "$T/seeded/manifests" data verify seeds --as seeds
S=$T/mine/manifests/datasets/seeds
echo "$(printf x | sha256sum | cut -c1-64)  train/b/9.txt" >>"$S/tree.sha256"
jq --arg d "$(sha256sum <"$S/tree.sha256" | cut -c1-64)" '.list.sha256 = $d' "$S/dataset.json" >"$T/changed.json"
mv "$T/changed.json" "$S/dataset.json"
fails 5 "dataset seeds: its description has changed since the run" "a description that was changed since is another" "$REPERF" --manifests "$T/mine/manifests" publish seeded -o "$T/seeded2"

mkdir leak && cp train.py leak/ && echo "token = ghp_0123456789abcdefghijABCDEFGHIJ456789" >leak/notes.txt
fails 2 'overlays/code/notes.txt: what looks like a secret' "a secret among the files" "$REPERF" publish one -o "$T/leaked" --files leak
is "$([ -e "$T/leaked" ] && echo there)" "" "nor is anything else left"
cp train.py code/
exits 0 "so that it is tried again in the same folder" "$REPERF" publish one -o "$T/leaked" --files code

mkdir long && cp train.py long/ && { head -c 1048570 /dev/zero | tr '\0' ' ' && echo "token = ghp_0123456789abcdefghijABCDEFGHIJ456789"; } >long/notes.txt
fails 2 'overlays/code/notes.txt: what looks like a secret at byte 10485[0-9][0-9]:' "a secret across the end of what is read at a time" "$REPERF" publish one -o "$T/leaked2" --files long
is "$([ -e "$T/leaked2/manifests/overlays/code/notes.txt" ] && echo there)" "" "nor is it written"

# Audited from the folder and from a bare repository
cd "$T" || exit 1
prints 0 '1 cell: 1 exact' "audit FOLDER" "$REPERF" audit "$T/pub/"
exits 0 "its name alone is enough where no report has it" "$REPERF" audit pub
valid report "its report validates" "$T/pub/manifests/reports/train.json"
(cd "$T/pub" && git init -q . && git add -A && git commit -qm publish)
git clone -q --bare "$T/pub" "$T/pub.git" && git -C "$T/pub.git" config uploadpack.allowAnySHA1InWant true
C=$(git -C "$T/pub" rev-parse HEAD)
U="file://$T/pub.git@$C"
prints 0 '1 cell: 1 exact' "audit URL@COMMIT" "$REPERF" audit "$U"
prints 0 '1 cell: 1 exact' "the same below a state folder with a colon" env REPERF_STATE="$T/a:b" "$REPERF" audit "$U"
exits 0 "the same with the report's path" "$REPERF" audit "$U:manifests/reports/train.json"
"$REPERF" lint "$U" >"$T/out" 2>"$T/err"
is "$(($? < 2))" 1 "lint URL@COMMIT"
exits 0 "report URL@COMMIT" "$REPERF" report "$U"
exits 0 "plan URL@COMMIT" "$REPERF" plan "$U"
prints 0 '1 cell: 1 exact' "the repository's folder is an address, too" "$REPERF" audit "pub.git@$C"
fails 4 'ssh://git@nobody.invalid/me/ours.git|ssh://nobody.invalid/me/ours.git' "and so is what git clones by SSH" "$REPERF" audit "git@nobody.invalid:me/ours.git@$C"
exits 2 "a branch is no pin" "$REPERF" audit "file://$T/pub.git@main"
fails 2 'goes by its address alone' "an address among several names" "$REPERF" audit node-health "$U"
fails 2 'limits needs' "what is wrong with run's options is said before anything is fetched" "$REPERF" run "git@nobody.invalid:me/ours.git@$C" --limits "$T/none"
fails 2 'profile' "and with plan's" "$REPERF" plan "git@nobody.invalid:me/ours.git@$C" --profile none

# Somebody else, elsewhere: shown, and not run unless trusted
export REPERF_STATE="$T/other/state" REPERF_STORE="$T/other/store"
fails 2 "train.py.*" "run URL@COMMIT without a terminal" "$REPERF" run "$U"
like "$(cat "$T/err")" "outside any container, then --trust $C" "and how it is trusted"
is "$([ -d "$REPERF_STATE/runs" ] && echo there)" "" "nothing was run"
exits 2 "another commit" "$REPERF" run "$U" --trust 0000000000000000000000000000000000000000
exits 2 "a login" "$REPERF" run "$U" --trust "$C" --netrc "$T/gitconfig"
exits 2 "--trust of a report of one's own" "$REPERF" run node-health --trust "$C"
OMP_NUM_THREADS=7 "$REPERF" run "$U" --trust "$C" --repeats 2 --name again >"$T/out" 2>"$T/err"
is "$?" 0 "trusted: it is reproduced"
like "$(cat "$T/out")" 'train/command/unstated/n1g0/bs0 +2 +10[01].* reproduced' "against the published number"
L=$(find "$REPERF_STATE/runs" -path '*logs/raw*' -name repeat-1.log)
is "$(grep -c "home $T/other/state.* omp None" "$L")" 1 "without the caller's environment and home"
exits 0 "verify" "$REPERF" verify --unsigned again
is "$(jq -r .address "$(find "$REPERF_STATE/runs" -name plan.json | head -n 1)")" "$C" "the address is in the evidence"
exits 0 "resume" "$REPERF" resume again

# An archive of the folder is an address, too, as hosts of repositories make it: with one folder at its top.
git -C "$T/pub" archive --prefix=ours-main/ -o "$T/pub.tar.gz" HEAD
A=$(sha256sum <"$T/pub.tar.gz" | cut -c1-64)
exits 0 "audit ARCHIVE" "$REPERF" audit "$T/pub.tar.gz"
fails 2 "then --trust $A" "run ARCHIVE is not trusted either" "$REPERF" run "$T/pub.tar.gz"
prints 0 ' reproduced' "run ARCHIVE" "$REPERF" run "$T/pub.tar.gz" --trust "$A" --repeats 1
fails 2 'reperf publish makes a folder' "a sealed run is no such folder" "$REPERF" plan "$(find "$T/pub/archives" -name '*.tar.zst')"
head -c 700 "$T/pub.tar.gz" >"$T/cut.tar.gz"
exits 5 "a truncated archive" "$REPERF" audit "$T/cut.tar.gz"

# In a root that has nothing of its author's, on another path
fresh() { # COMMAND...: reperf at /mnt/tool, its user at /mnt/reader, the repository at /mnt/ours.git
    unshare --mount --propagation private bash -c 'mount -t tmpfs none /mnt && mkdir /mnt/tool /mnt/reader && mount --bind "$1" /mnt/tool &&
        cp -R "$2/pub.git" /mnt/ours.git && mount -t tmpfs none "$2" && cd /mnt/reader && reperf=/mnt/tool/$3 && shift 3 &&
        env -i PATH="$PATH" HOME=/mnt/reader LANG=C.UTF-8 "$reperf" "$@"' bash "$ROOT" "$T" "${REPERF#"$ROOT"/}" "$@"
}
if unshare --mount true 2>/dev/null; then
    exits 0 "run URL@COMMIT in a fresh root" fresh run "file:///mnt/ours.git@$C" --trust "$C" --repeats 2 --json
    is "$(jq -r '.cells[0].verdict' "$T/out") $(jq -r .folder "$T/out" | cut -d/ -f1-3)" "reproduced /mnt/reader" "reproduces it there"
else
    skip "run URL@COMMIT in a fresh root" "this user makes no mount namespace"
fi

# What is shown before anything is trusted cannot rub itself out.
cp -R "$T/pub" "$T/hide"
jq '(.. | strings | select(test("train[.]py"))) |= . + "\u001b[2K\u001b[1A"' "$T/pub/manifests/reports/train.json" >"$T/hide/manifests/reports/train.json"
is "$(grep -c "train.py.*u001b" "$T/hide/manifests/reports/train.json")" 2 "a report whose command has signs for the terminal"
exits 2 "is not run" "$REPERF" run "$T/hide/"
is "$(grep -c 'train.py' "$T/err") $(grep -c "$(printf '\033')" "$T/err")" "1 0" "and is shown without them"

# A report from elsewhere chooses nothing of a container engine
(cd "$T/pub" && jq '.stacks[0].full[0] += {"image": "paddle-cpu", "container": "docker run --privileged --network host -v /:/host img"}' manifests/reports/train.json >r && mv r manifests/reports/train.json)
"$REPERF" plan "$T/pub/" --nodes local-docker --image "paddle-cpu=img@sha256:$(printf '0%.0s' $(seq 64))" --json >"$T/out" 2>"$T/err"
is "$(jq -c '.steps[0].container // .steps[0].flags | [(.privileged // false), (.volumes // .mounts // [] | length)]' "$T/out")" "[false,0]" "no privileged, no mounts"
cp -R "$T/pub" "$T/own"
is "$(cd "$T/own" && "$REPERF" --manifests manifests plan manifests/reports/train.json --nodes local-docker --image "paddle-cpu=img@sha256:$(printf '0%.0s' $(seq 64))" --json 2>/dev/null | grep -c privileged)" 1 "where one's own may"
tap_done
