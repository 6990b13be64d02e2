#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# The scripts of the full profile's recipes, each run once a node in a root of its own with fake code, data and frameworks: folders, links, edits of the
# report's own scripts, and what is started at the end. (Whether the frameworks then work is not tested here.)
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
R="$T/root"
mkdir -p "$R"/{dev,stubs,etc,reperf/{source,cityscapes-data/cityscapes,bert-data/top/training,imagenet,mpi,vocab,weights/resnet50_vd_ssld_v2}} "$R"/mmsegmentation/configs/_base_/models
if ! unshare -m true 2>/dev/null; then
    skip "recipes' scripts" "needs root and mount namespaces"
    tap_done
fi

# --- frameworks ---
# Each records its arguments, its folder, and how many of the possible data folders exist; an install is recorded, and needs its list.
cat >"$R/stubs/stub" <<'EOF'
#!/bin/sh
case "${0##*/} $*" in
"pip"* | *" -m pip "* | *" -c import "*)
    echo "would ${0##*/} $*"
    for word; do
        [ "$before" != -r ] || [ -e "$word" ] || exit 1
        before=$word
    done
    ;;
"git "*) ;;
*"/reperf/imagenet/layout.py "*) mkdir -p "$3/train" ;;
*) exec /usr/bin/python3 -S /stubs/note.py "${0##*/}" "$@" ;;
esac
EOF
cat >"$R/stubs/note.py" <<'EOF'
import json, os, sys
hdf5 = "data/hdf5_lower_case_1_seq_len_128_max_pred_20_masked_lm_prob_0.15_random_seed_12345_dupe_factor_5"
places = ["data/cityscapes", "test_tipc/data/cityscapes", "/data/train", "/data/tfrecords", "/data/imagenet/train-val-recordio-passthrough", "/imagenet/train", "/datasets/ImageNet/tfrecord",
          os.environ.get("DATA_DIR", "data") + "/part_training.hdf5", "data/tfrecord/lower_case_1_seq_len_128_max_pred_20_masked_lm_prob_0.15_random_seed_12345_dupe_factor_5_shard_1472_test_split_10/wikicorpus_en/training/sequences", hdf5 + "/wikicorpus_en/training/part.hdf5"]
configs = [word.split("=", 1)[1] for word in sys.argv if word.startswith("--config_file=")]
told = [word.split("=", 1)[1] for word in sys.argv if word.startswith(("--input_dir=", "--input_files_dir="))]
hosts = sum(line.count(":11111") for name in configs for line in open(name))
with open("/note", "a") as note:
    note.write(json.dumps({"words": sys.argv[1:], "cwd": os.getcwd(), "data": sum(map(os.path.exists, places)), "absent": [place for place in told if not os.path.exists(place)], "hosts": hosts}) + "\n")
EOF
chmod +x "$R/stubs/stub"
for name in python python3 python3.7 pip3.7 fleetrun mpiexec git; do ln -s stub "$R/stubs/$name"; done

# --- code ---
# shellcheck source=tests/integration/made_up_code.sh
source tests/integration/made_up_code.sh
made_up_code "$R/reperf/source"
for name in perf dlperf; do ln -s source "$R/reperf/$name"; done

# --- data ---
# As reperf keeps them: the tree's own two files are next to what was unpacked.
touch "$R"/reperf/{cityscapes,bert}-data/{tree.json,tree.sha256} "$R"/reperf/bert-data/top/{part_training.hdf5,part.hdf5,training/sequences} "$R"/reperf/{bert-data/{train,validation}-00000-of-00001,vocab/bert-base-uncased-vocab.txt,weights/some.pth} "$R"/mmsegmentation/configs/_base_/models/{fcn_hr18,deeplabv3plus_r50-d8}.py

# --- what would be started ---
jq '.registry = "registry.example:5000"' manifests/inventories/v100-4x8.json >"$T/nodes.json"
for report in airank-mmseg-deeplabv3plus dlperf-tf2-resnet50 paddle-perf-2020 paddle-perf-deeplabv3p paddle-perf-hrnetw18; do
    given=()
    for id in $(jq -r '.stacks[].full[]?.image | values' "manifests/reports/$report.json" | sort -u); do given+=(--image "$id=docker.io/made/up@sha256:$(printf 'c%.0s' {1..64})"); done
    for stack in $(jq -r '.stacks[] | select(.full[0].image) | .id' "manifests/reports/$report.json"); do given+=(-C "stacks[$stack].full[0].mounts=[]"); done
    "$B/servers/plan_commands" "$report" --profile full --nodes "$T/nodes.json" "${given[@]}" 2>/dev/null
done | jq -s '[.[] | (.steps | map({key: .case, value: .conditions}) | from_entries) as $of | .commands[] | .conditions = $of[.case]]' >"$T/commands"
cat >"$T/in-root.sh" <<EOF
mount --bind /dev $R/dev && mkdir -p $R/usr && mount --bind /usr $R/usr || exit 70
for name in bin lib lib64 sbin; do [ ! -e /\$name ] || { [ -L /\$name ] && cp -P /\$name $R/\$name; } || { mkdir $R/\$name && mount --bind /\$name $R/\$name; }; done
exec /usr/bin/python3 tests/integration/rehearse.py $R
EOF
unshare -m sh "$T/in-root.sh" <"$T/commands" >"$T/said" 2>&1
is "$? $(tail -n 1 "$T/said")" "0 158 scripts of 115 cases, 0 faults" "every script gets its framework started as its case says"
[ "$(wc -l <"$T/said")" = 1 ] || sed 's/^/# /' "$T/said" | cut -c1-400 | head -n 40

# The check can fail.
jq '[.[] | select(.case | endswith("bert-base/ngc-pytorch/fp32/n4g8/bs32")) | .argv[-1] |= sub("fp32 8 0.2843"; "fp32 4 0.2843")]' "$T/commands" >"$T/few"
unshare -m sh "$T/in-root.sh" <"$T/few" >"$T/said" 2>&1
is "$? $(grep -c '16 ranks, expected 32' "$T/said")" "1 2" "too few ranks are seen"
tap_done
