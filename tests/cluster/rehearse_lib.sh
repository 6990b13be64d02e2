# shellcheck shell=bash disable=SC2016,SC2034
# SPDX-License-Identifier: Apache-2.0
# `reperf run --rehearse` of a report under the published names: source it after published_lib.sh, once these are up.

# Locks are of the user's data folder; the nodes are those of the reports, at other addresses: no registry of one's own.
mkdir -p "$T/root"
for name in images datasets workloads; do ln -s "$ROOT/$name" "$T/root/$name"; done
cp -R manifests "$T/root/manifests"
export REPERF_ROOT="$T/root"
jq 'del(.registry)' "$S/inventory.json" >"$T/nodes.json"

# What cannot be stood in for under its own name, a commit, and what the stand-ins are: said with -C, kept with the run as what differs. Of the stack $TRAINS
# that is what its smoke recipe number $TRAINS_BY says of itself, and that $TRAINS_RANKS ranks train; with $OWN_CODE its first source is the project's own.
has_capability 24 && CLAMPED='' || CLAMPED=1 # without CAP_SYS_RESOURCE nobody here locks as much memory as the reports ask for
TRAINS='' TRAINS_BY=0 TRAINS_RANKS=0 OWN_CODE='' OWN_PATHS=''
replaced() { # REPORT: into SETTINGS
    mapfile -t SETTINGS < <(jq -r --arg code "$CODE" --arg clamped "$CLAMPED" --arg trains "$TRAINS" --argjson by "$TRAINS_BY" --arg ranks "$TRAINS_RANKS" --arg own "$OWN_CODE" --arg paths "$OWN_PATHS" '
        .stacks[] | select(.full[0].image and .framework != "reperf") | .id as $id | ($id == $trains) as $trains
        | (.full[0].mounts | map(.kind == "source") | index(true)) as $source
        | (if $trains and $own != "" then $source | values | "stacks[\($id)].full[0].mounts[\(.)].paths=\($paths | split(",") | tojson)"
           else (.sources | to_entries[] | select(.value.commit) | "stacks[\($id)].sources[\(.key)].commit=\($code)"),
               (.full[0].mounts | to_entries[] | select(.value.commit) | "stacks[\($id)].full[0].mounts[\(.key)].commit=\($code)") end),
          (if $clamped == "" then empty elif .full[0].container then .full[0].container | "stacks[\($id)].full[0].container=\(gsub("--ulimit memlock=-1"; "") | tojson)"
               else .commands | to_entries[] | select(.value.purpose == "container") | "stacks[\($id)].commands[\(.key)].works=\(.value.works // .value.printed | gsub("--ulimit memlock=-1"; "") | tojson)" end),
          "stacks[\($id)].full[0].conditions=\((.full[0].conditions // {}) + (if $trains then .smoke[$by].conditions + {training_ranks: $ranks}
               else {device: "none: what would use it is stood in for", framework_version: "stand-in"} end) | tojson)"' "manifests/reports/$1.json" | sed 's/^/-C\n/')
}
given() { # REPORT: of GIVEN what its stacks use
    local id
    OWN=()
    for id in $(jq -r '.stacks[] | select(.framework != "reperf") | .full[]?.image | values' "manifests/reports/$1.json" | sort -u); do
        for pair in "${GIVEN[@]}"; do [ "${pair%%=*}" != "$id" ] || OWN+=(--image "$pair"); done
    done
}
rehearse_once() { # REPORT GLOB...
    local report=$1 cases=()
    for glob in "${@:2}"; do cases+=(--case "$glob"); done
    replaced "$report"
    given "$report"
    published "$REPERF" run "$report" --rehearse --nodes "$T/nodes.json" "${OWN[@]}" "${SETTINGS[@]}" "${cases[@]}" --repeats "${REPEATS:-1}" --deadline "${DEADLINE_S:-300}" --json
}
rehearse() { # STATUS REPORT NAME GLOB...
    exits "$1" "$3" rehearse_once "$2" "${@:4}"
    E=$(jq -r .folder "$T/out")/evidence
}
holds() { # REPORT WANTED
    is "$(/usr/bin/python3 tests/cluster/check_ranks.py "manifests/reports/$1.json" "$E")" "$2" "each rank's number, node, words, environment, GPU and data are the report's"
    is "$(jq -c '[.cells[] | select(.verdict != "not_comparable" or .value == null)]' "$T/out")" "[]" "each log is read by the report's rule, and claims nothing"
}
