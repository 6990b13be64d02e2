# shellcheck shell=bash disable=SC2016
# SPDX-License-Identifier: Apache-2.0
# For tests of what a run does when the cluster fails: source it after lib.sh. A run has a name, a state of its own, and a workload that does what is
# asked of it (fake_rank.sh), so that several can go on at once, each on nodes of its own.
# shellcheck disable=SC2034
ONE='resnet50/reperf/fp32/n1g1/bs96' FOUR='resnet50/reperf/fp32/n4g8/bs96'
mkdir -p "$S/shared/runs"
runs_id() { echo "20261121T000000.000Z-$(cksum <<<"$1" | awk '{ printf "%08x", $1 }')"; } # NAME
control() { echo "$S/shared/runs/$1"; }
run_dir() { echo "$T/$1/state/runs/$(runs_id "$1")"; }
world() { # NAME MODE: a fresh state and workload
    rm -rf "${T:?}/$1" "$(control "$1")"
    mkdir -p "$T/$1/bin" "$(control "$1")"
    echo "$2" >"$(control "$1")/mode"
    sed "s|FOLDER|$(control "$1")|" "$CLUSTER_DIR/fake_rank.sh" >"$T/$1/bin/reperf-train"
    chmod +x "$T/$1/bin/reperf-train"
}
begin() { # NAME CASE NODES OPTION...: in the background
    local name=$1 case=$2 nodes=$3
    shift 3
    case " $* " in *" --repeats "*) ;; *) set -- "$@" --repeats 2 ;; esac
    REPERF_STATE="$T/$name/state" REPERF_TRAIN="$T/$name/bin/reperf-train" "$REPERF" run paddle-perf-2020 --case "$case" --profile smoke --nodes "$nodes" \
        --run-id "$(runs_id "$name")" "$@" >"$T/$name/out" 2>"$T/$name/err" &
    echo $! >"$T/$name/pid"
}
# Silence is noticed after three times so many seconds, and a node that does not come back is given up after three more: begin ... with the product's own
# settings, so that nobody waits a minute for what is sure.
ssh_notices() { # SECONDS COMMAND...
    local file="$T/ssh_config_$1"
    [ -e "$file" ] || { printf 'Host *\n  ServerAliveInterval %s\n  ServerAliveCountMax 3\n' "$1" && cat "$S/ssh_config"; } >"$file"
    REPERF_SSH_CONFIG="$file" "${@:2}"
}
gives_up_soon() { REPERF_OUTAGE=3 ssh_notices 2 "$@"; } # COMMAND...
finish() { # NAME STATUS TEXT: it ends with that status
    wait "$(cat "$T/$1/pid")" 2>/dev/null
    ends "$1" $? "$2" "$3"
}
ends() { # NAME STATUS-GOT STATUS TEXT
    is "$2" "$3" "$4"
    [ "$2" = "$3" ] || tail -n 8 "$T/$1/err" | sed 's/^/# /'
}
take_up() { # NAME STATUS TEXT: resume
    REPERF_STATE="$T/$1/state" REPERF_TRAIN="$T/$1/bin/reperf-train" "$REPERF" resume "$(runs_id "$1")" >"$T/$1/out" 2>"$T/$1/err"
    ends "$1" $? "$2" "$3"
}
says() { like "$(tr '\n' ' ' <"$T/$1/err")" "$2" "$3"; } # NAME ERE TEXT
go() { : >"$(control "$1")/go"; }
count() { [ -e "$(control "$1")/$2" ] && wc -l <"$(control "$1")/$2" || echo 0; } # NAME begun|ended
have_begun() { [ "$(count "$1" begun)" -ge "$2" ]; }                              # NAME N
waits_for_ranks() { # NAME N
    succeeds "$1: $2 ranks have begun" wait_for 240 have_begun "$1" "$2"
    [ "$(count "$1" begun)" -ge "$2" ] || tail -n 5 "$T/$1/err" | sed 's/^/# /'
}
# Both repeats with the fixed value, each once; whatever was lost is kept apart.
whole() { # NAME RANKS [REPEATS]: rank 0 says the rate of the job
    local dir n
    dir=$(run_dir "$1") n=${3:-2}
    is "$(jq -c '[.cells[] | .verdict, .value, (.repeats | length)]' "$dir/evidence/result.json" 2>/dev/null)" "[\"not_comparable\",8,$n]" "$1: the cell, from $n repeats"
    is "$(jq -r 'select(.state == "parsed") | "\(.case) \(.repeat)"' "$dir/journal.jsonl" 2>/dev/null | sort | uniq -c | awk '$1 != 1' | wc -l)" 0 "$1: every repeat is counted once"
    REPERF_STATE="$T/$1/state" "$REPERF" verify "$dir/$(runs_id "$1").tar.zst" --unsigned >"$T/$1/verify" 2>&1
    ok $? "$1: the archive holds"
}
no_success() { # NAME: nothing that looks like one
    [ ! -e "$(run_dir "$1")/evidence/result.json" ] || [ -z "$(jq -r '.cells[] | select(.value != null)' "$(run_dir "$1")/evidence/result.json")" ]
    ok $? "$1: no value is claimed"
}
# Nothing of any run goes on on the nodes named: no container, no process, no lease. `nothing_left`: no job's folder either, since the runs are over.
nothing_left() { nothing_runs "$@" jobs; } # TEXT NODE...
nothing_runs() { # TEXT NODE... [jobs]
    local node text=$1 left='' jobs=''
    shift
    [ "${!#}" != jobs ] || { jobs=1 && set -- "${@:1:$#-1}"; }
    for node in "$@"; do
        left="$left$(node_do "$node" /bin/bash -c '
            [ -S /run/docker.sock ] && docker ps -aq 2>/dev/null | sed "s/^/container /"
            [ ! -d /var/lib/containers/storage ] || podman ps -aq 2>/dev/null | sed "s/^/container /"
            pgrep -fa "reperf-(train|ranks)" | grep -v pgrep
            [ -z "$1" ] || find /var/lib/reperf/jobs -type f 2>/dev/null | head -n 3
            [ -e /var/lib/reperf/lease ] && echo lease of $(cat /var/lib/reperf/lease)' bash "$jobs" | sed "s/^/node$node: /")"
    done
    is "$left" "" "$text: the nodes are clean"
}
# How a run ends, or goes on, and what of it there is then.
ends_well() { # NAME RANKS TEXT [REPEATS]
    finish "$1" 0 "$3"
    whole "$1" "$2" "${@:4}"
}
nothing_lost() { # NAME TEXT: of two repeats on one node
    ends_well "$1" 1 "$2"
    is "$(count "$1" begun)" 2 "$1: no repeat is made twice"
}
breaks() { # NAME STATUS ERE TEXT
    finish "$1" "$2" "$4"
    says "$1" "$3" "$1: and what failed is named"
    no_success "$1"
}
heals() { # NAME RANKS TEXT [REPEATS]
    take_up "$1" 0 "$3"
    whole "$1" "$2" "${@:4}"
}
kill_run() { # NAME: its orchestrator
    kill -9 "$(cat "$T/$1/pid")"
    wait "$(cat "$T/$1/pid")" 2>/dev/null
}
N="$S/inventory-none.json"
cluster_reset || exit 1
