#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# A rehearsal in which the framework trains: under the published names lie the images that images/build.sh has made, with pip, git and one layer more
# (published/trainee.py). Every rank is started by the framework's own launcher by the report's command, and says how; then four of them (of BERT two), evenly
# over the nodes, go on as a job of their own, as the stack's smoke recipe says. In make test-all; with SOURCES=DIR, a mirror as `reperf data fetch --mirror`
# takes it, by the projects' own programs at the reports' commits.
# shellcheck source=tests/cluster/lib.sh disable=SC2016,SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/fault_lib.sh
. "$(dirname "$0")/fault_lib.sh"
# shellcheck source=tests/cluster/published_lib.sh
. "$(dirname "$0")/published_lib.sh"
in_test_all "rehearsals in which four ranks train: PaddleSeg, mmsegmentation, ResNet-50 and BERT in PyTorch" || tap_done
if no_docker "rehearsals in which ranks train"; then tap_done; fi
trap 'published_down; rm -rf "$T"' EXIT
succeeds "the published names are served" published_up
GIVEN=()
code_up && packages_up
ok $? "and repositories and packages under them"
# shellcheck source=tests/cluster/rehearse_lib.sh
. "$(dirname "$0")/rehearse_lib.sh"

stack_of() { jq -c --arg id "$2" '.stacks[] | select(.id == $id)' "manifests/reports/$1.json"; } # REPORT STACK
# The published image of a stack's recipe: what $1 is made of, and over it the tools, this stack's overlay and how its ranks train.
image_trains() { # LAYOUT REPORT STACK
    local root=$P/layer stack overlay inside id
    stack=$(stack_of "$2" "$3") site=usr/local/lib/python3.11/dist-packages
    rm -rf "$root" "$P/layout"
    tools_root "$root"
    install -m 755 /usr/bin/git "$root/usr/bin/git"
    libraries "$root" /usr/bin/git
    mkdir -p "$root/$site" "$root/usr/lib/python3.11" "$root/reperf/data"
    : >"$root/usr/lib/python3.11/.wh.EXTERNALLY-MANAGED"
    cp -a "$root/lib" "$root/usr/" && rm -r "${root:?}/lib" # which is a link in the image
    [ ! -d /usr/lib/python3.11/distutils ] || cp -a /usr/lib/python3.11/distutils "$root/usr/lib/python3.11/"
    cp "$CLUSTER_DIR"/published/{standin,option_value}.py "$root/$site/"
    cp "$CLUSTER_DIR/published/trainee.py" "$root/usr/lib/python3.11/sitecustomize.py"
    while IFS=$'\t' read -r overlay inside; do
        cp -R "workloads/competitors/$overlay" "$root$inside"
    done < <(jq -r --argjson by "$TRAINS_BY" '.smoke[$by].mounts[] | select(.kind == "overlay") | "\(.name)\t\(.inside)"' <<<"$stack")
    # On one GPU, else what starts one rank of several.
    jq --argjson by "$TRAINS_BY" --argjson ranks "$TRAINS_RANKS" '.smoke[$by] | {ranks: $ranks, env, before: (.before // ""),
        command: first((.commands[] | select(.per == "rank" and (.gpus == 8 or .gpus == 0))), (.commands[] | select(.gpus == 1))).works}' <<<"$stack" >"$root/reperf/trains.json"
    if [ "$3" = mmseg ]; then
        mkdir -p "$root"/workspace/mmsegmentation/{tools,configs/_base_/models}
        touch "$root"/workspace/mmsegmentation/{tools/train.py,configs/_base_/models/fcn_hr18.py}
        [ -z "$OWN_CODE" ] || git --git-dir="$OWN_CODE" archive a00a3b652282a20bdf294206587b604a18fc0d43 configs mmseg tools | tar -xf - -C "$root/workspace/mmsegmentation"
        ln -s /workspace/mmsegmentation "$root/reperf/source"
    fi
    /usr/bin/python3 "$CLUSTER_DIR/published/add_layer.py" "$1" "$root" "$P/layout" || return 1
    skopeo copy -q --preserve-digests --dest-tls-verify=false "oci:$P/layout" "docker://$HEAD_IP:$REGISTRY_PORT/standin/framework:latest" || return 1
    id=$(jq -r '.full[0].image' <<<"$stack")
    GIVEN=()
    tag_as_published "$id" "$(jq -r '.manifests[0].digest' "$P/layout/index.json")"
}
column() { # NAME REPORT STACK IMAGE CASE RANKS
    local name=$1 report=$2 stack=$3 image=$4 case=$5 layout wanted ranks i
    TRAINS=$stack TRAINS_RANKS=$6 DEADLINE_S=900
    if ! layout=$(images/build.sh "$image" --cached 2>"$T/err"); then
        skip "$name trains in a rehearsal" "$(tail -n 1 "$T/err")"
        return
    fi
    succeeds "$name: its published image holds the framework" image_trains "$layout" "$report" "$stack"
    rehearse 0 "$report" "$name: all ranks start, $TRAINS_RANKS train" "$case"
    ranks=$(jq -r --arg case "$case" '.cases[] | select(.id == $case) | .id | capture("/n(?<n>[0-9]+)g(?<g>[0-9]+)/") | (.n | tonumber) * (.g | tonumber)' "manifests/reports/$report.json")
    [ "$(jq -r '.cells[0].verdict' "$T/out")" = not_comparable ] || tail -n 20 "$E/logs/raw/$case"/*.log | cut -c1-300 | sed 's/^/# /'
    holds "$report" "1 cases, $ranks processes on $ranks GPUs"
    is "$(cat "$E/logs/raw/$case"/*.log | grep -c '^STAND-IN rank .*"trains": true')" "$TRAINS_RANKS" "$name: as many train as were meant"
    # The version is the one that the framework says of itself.
    wanted=$(stack_of "$report" "$stack" | jq -c --argjson by "$TRAINS_BY" '.smoke[$by].conditions | [.device, .batch_per_gpu]')
    is "$(jq -c '[.cells[0].differs[] | {key: .name, value: .run}] | from_entries | select(.framework_version) | [.device, .batch_per_gpu]' "$T/out")" "$wanted" "$name: what was replaced is among what differs"
    is "$(jq -c '.cells[0].not_stated | index("training_ranks") != null' "$T/out") $(jq -r '.steps[0].conditions.training_ranks' "$E/manifest/plan.json")" "true $TRAINS_RANKS" "$name: so is the number of ranks"
    is "$(jq -c '[.rehearsal, .cells[0].verdict, .cells[0].rel_diff, .cells[0].value > 0]' "$T/out")" '[true,"not_comparable",null,true]' "$name: its rate is a rehearsal's, and claims nothing"
    jq -r '.cells[0] | "# \(.case): \(.value) \(.unit) of the ranks that train"' "$T/out"
    exits 0 "$name: the archive replays" "$REPERF" replay "$(jq -r .archive "$T/out")"
    for i in $CLUSTER_NODES; do node_do "$i" docker image prune -af >/dev/null 2>&1; done
}
# The project's own code, where $SOURCES has it: into the store, from where the run takes it, and its recipe is the smoke recipe's first.
from_source() { # URL COMMIT PATH,...: sets OWN_CODE, OWN_PATHS and TRAINS_BY
    OWN_CODE='' OWN_PATHS=$3 TRAINS_BY=1
    [ -n "${SOURCES:-}" ] || return
    if "$REPERF" fetch "source:$1@$2:$3" --mirror "$SOURCES" >/dev/null 2>"$T/err"; then
        OWN_CODE=$(find -L "$SOURCES/sources" -maxdepth 1 -name "$(sed 's,https://,,; s,[.]git$,,; s,/,-,g' <<<"$1")-*.git" | head -n 1) TRAINS_BY=0
    else
        echo "# $1: $(tail -n 1 "$T/err")"
    fi
}
R=paddle-perf-hrnetw18
from_source https://github.com/PaddlePaddle/PaddleSeg.git f3cec7982aa68c517c524fa70253a9856b823876 configs,paddleseg,requirements.txt,test_tipc/configs,tools
column "PaddleSeg's HRNet-W18${OWN_CODE:+ by its tools/train.py}" $R paddle paddle-cpu hrnetw18/paddle/fp32/n4g8/bs8 4
from_source https://github.com/sljlp/mmsegmentation.git a00a3b652282a20bdf294206587b604a18fc0d43 configs,mmseg,tools
column "mmsegmentation's HRNet-W18${OWN_CODE:+ by its tools/train.py}" $R mmseg mmseg-cpu hrnetw18/mmseg/fp32/n1g8/bs8 4
R=paddle-perf-2020
from_source https://github.com/NVIDIA/DeepLearningExamples 99b1c898cead5603c945721162270c2fe077b4a2 PyTorch/Classification/ConvNets
if [ -n "$OWN_CODE" ]; then
    column "DeepLearningExamples' ResNet-50 by its main.py" $R resnet50-ngc-pytorch mmseg-cpu resnet50/ngc-pytorch/fp32/n1g8/bs128 4
else
    skip "DeepLearningExamples' ResNet-50 trains in a rehearsal" "SOURCES=DIR names no mirror of DeepLearningExamples, and no package has its main.py"
fi
OWN_CODE='' TRAINS_BY=0
column "PyTorch's BERT" $R bert-ngc-pytorch bert-torch-cpu bert-base/ngc-pytorch/fp32/n1g8/bs32 2
published_down
nothing_left "at the end" 1 2 3 4
tap_done
