# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A framework's column of a report, on nodes of the cluster: source it after lib.sh. $nodes is the inventory; by nodes_share, podman runs it on all of them from
# one store of images that they share, into which an image is unpacked once, instead of by each node's docker, which pulls it.
nodes=$S/inventory.json shared='' SETTINGS=()
nodes_share() {
    nodes=$T/shared.json shared=1
    jq '.runtime = "podman"' "$S/inventory.json" >"$nodes"
}
brings() { # IMAGE: what images/build.sh has made, to where the nodes have it from; prints the pin
    local layout name="$HEAD_IP:$REGISTRY_PORT/reperf/$1"
    if [ -z "$shared" ]; then
        images/build.sh "$1" --cached --push "$name" --plain-http
        return
    fi
    layout=$(images/build.sh "$1" --cached) &&
        skopeo copy -q --preserve-digests "oci:$layout" "containers-storage:[overlay@$CLUSTER_IMAGES+$T/podman]$name:latest" >&2 &&
        echo "$name@$(jq -r '.manifests[0].digest' "$layout/index.json")"
}
# Of the disk that the cluster is on, in MB: what it has less than when this was read, and the most that was.
disk_free() { df --block-size=1MB --output=avail "$S" | tail -n 1; }
disk_began=$(disk_free) disk_peak=0
disk_taken() {
    local taken=$((disk_began - $(disk_free)))
    [ "$taken" -le "$disk_peak" ] || disk_peak=$taken
    echo "$taken"
}
wanted() { [[ $1 =~ ${ONLY:-} ]]; } # NAME: with ONLY=ERE, columns of that name alone
fetch_synthetic() { for id; do exits 0 "synthetic $id" "$REPERF" fetch "$id" --synthetic; done; } # NAME...
column() { # REPORT IMAGE NAME CASES N [TARGETS [RECIPE]]: what images/build.sh has made, by digest; of N cases, how many come to their target; by the recipe that the text begins; SETTINGS: -C ...
    local pin name="$3 itself" targets=${6:-0} began=$SECONDS
    wanted "$3" || return 0
    if ! pin=$(brings "$2" 2>"$T/err"); then
        skip "$name" "$(tail -n 1 "$T/err")"
        return
    fi
    exits 0 "$name" "$REPERF" run "$1" --profile smoke --nodes "$nodes" --image "$2=$pin" --case "$4" --repeats 1 --offline --json "${SETTINGS[@]}"
    jq -r '.folder as $folder | .cells[] | select(.value == null) | "\($folder)/evidence/logs/raw/\(.case)"' "$T/out" | while IFS= read -r raw; do tail -n 20 "$raw"/*.log | cut -c1-300 | sed 's/^/# /'; done
    is "$(jq -r '[.cells[] | select(.verdict == "not_comparable" and .value > 0 and (.unit | test("^(samples|images|sequences)/s$")))] | length' "$T/out")" "$5" "$name: every case has its rate, and claims nothing"
    is "$(jq -r '[.cells[] | select(.time_to_target.step > 0 and .time_to_target.value > 0)] | length' "$T/out")" "$targets" "$name: the time to its target beside it"
    is "$(jq '[.cells[].also | values | .[] | select(.value == null)] | length' "$T/out")" 0 "$name: and the accuracy, where it evaluates"
    jq -r '.cells[] | "# \(.case): \(.value) \(.unit)\(if .time_to_target then .time_to_target | ", \(.value) s to the target, step \(.step) \(.why // "")" else "" end)\(.also // [] | map(", \(.rule) \(.value)") | add // "")"' "$T/out"
    [ -z "${7:-}" ] || like "$(jq -r '.steps[].recipe' "$(jq -r .folder "$T/out")/evidence/manifest/plan.json" | sort -u)" "^$7" "$name: by the program that was meant"
    exits 0 "$name: the archive replays" "$REPERF" replay "$(jq -r .archive "$T/out")"
    disk_taken >"$T/taken"
    echo "# $name: $((SECONDS - began)) s; $(cat "$T/taken") MB of disk taken since the start"
}
from_source() { # NAME REPORT STACK COMMAND...: by the project's own code at the report's commit, where $SOURCES names a mirror of it (reperf data fetch --mirror)
    local name=$1 source
    wanted "$name" || return 0
    source=$(jq -r --arg stack "$3" '.stacks[] | select(.id == $stack) | .sources as $own | first(.smoke[].mounts[] | select(.kind == "source")) | .name as $url
        | "\($url)@\(.commit // first($own[] | select(.repository == $url) | .commit))\(if .paths then ":" + (.paths | join(",")) else "" end)"' "manifests/reports/$2.json")
    shift 3
    if [ -z "${SOURCES:-}" ]; then
        skip "$name itself" "SOURCES=DIR names no mirror of ${source%@*}"
    elif ! "$REPERF" fetch "source:$source" --mirror "$SOURCES" >"$T/out" 2>"$T/err"; then
        skip "$name itself" "$(grep -m 1 'mirror' "$T/err" || tail -n 1 "$T/err")"
    else
        "$@"
    fi
}
