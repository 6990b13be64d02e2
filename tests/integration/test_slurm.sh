#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# Jobs by a real Slurm of two nodes: ranks, statuses, signals, the queue, a job whose submitter died, and connections to the login node that
# are lost.
# shellcheck source=tests/tap_lib.sh
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/slurm_lib.sh disable=SC2317
. "$(dirname "$0")/slurm_lib.sh"
# shellcheck source=tests/integration/ssh_lib.sh
. "$(dirname "$0")/ssh_lib.sh"
if why=$(slurm_missing); then
    skip "jobs by Slurm" "$why"
    tap_done
fi
succeeds "a Slurm of two nodes is up" slurm_up
cat >"$T/rank.sh" <<'EOF'
#!/bin/bash
echo "rank $RANK local $LOCAL_RANK of $WORLD_SIZE/$LOCAL_WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT on $SLURMD_NODENAME args $#:$1"
echo "odd $RANK <$ODD>"
eval "$DO"
EOF
chmod +x "$T/rank.sh"
W="$T/shared folder"
mkdir -p "$W"
RUN=20261121T000000.000Z-00000001
n=0
job() { # a new one
    n=$((n + 1))
    export LAUNCH_JOB=$RUN/a/case/repeat-1/attempt-$n
    F="$W/jobs/$LAUNCH_JOB"
}
DO=''
slurm() { # VERB
    timeout 300 "$B/servers/remote_one" work="$W" ${LOGIN:+port="$LOGIN"} slurm "$1" 2 "${NODES:-2}" 2 x "ODD=x 'y' \"z\" \$HOME; %j"$'\n'"next" "DO=$DO" -- "$T/rank.sh" $'a \'b\'\nc'
}
slurm_id() { cat "$F/slurm" 2>/dev/null; }

job
is "$(slurm poll)" "absent 0 - none " "nothing there"
slurm start
slurm start
is "$(squeue -h --states=all --format=%A | wc -l)" 1 "started twice, submitted once"
is "$(slurm wait)" "ended 0 - none " "it ends well"
is "$(grep -vc -e '^#!/bin/sh$' -e "^exec '$W/bin/reperf-node-[0-9a-f]*' batch '$F'\$" "$F/batch") $(ls "$F")" "0 batch
claim
log
pid
slurm
status" "its script is one exec of reperf-node, which leaves no copy of the job's environment"
slurm log >"$T/log"
for r in 0 1 2 3; do
    is "$(grep -c "^rank $r local $((r % 2)) of 4/2 at node1:29500 on node$((r / 2 + 1)) args 1:a 'b'\$" "$T/log")" 1 "rank $r knows its place"
done
is "$(grep -c "^odd [0-3] <x 'y' \"z\" \$HOME; %j\$" "$T/log")" 4 "values arrive as they are"
is "$(slurm reap)" "$(sha256sum <"$T/log" | cut -c1-64)" "the log's digest there and here"
slurm forget
succeeds "forgotten" test ! -e "$F"

job
# shellcheck disable=SC2016
DO='[ $RANK != 2 ] || exit 7; sleep 600'
slurm start
like "$(slurm wait)" "^ended (7|143) - none \$" "one rank that fails ends the others"
like "$(cat "$F/log")" "task 2: Exited with exit code 7" "and is named"

job
# None ends before all were signalled, since srun then also signals those that are left.
DO="trap '[ -e $T/all ] || echo asked; : >$T/asked.\$RANK' TERM; echo ready
until [ -e $T/all ] || { [ -e $T/asked.0 ] && [ -e $T/asked.1 ] && [ -e $T/asked.2 ] && [ -e $T/asked.3 ]; }; do sleep 0.2; done
: >$T/all; exit 3"
slurm start
# shellcheck disable=SC2317
ready() { [ "$(grep -c ready "$F/log" 2>/dev/null)" = "$1" ]; }
waiting_for 120 ready 4
like "$(slurm poll)" '^running 0 - none Slurm job [0-9]+: RUNNING' "it runs"
rm -f "$F/slurm" # as if the orchestrator had died before it could write the number down
like "$(slurm poll)" '^running 0 - none Slurm job [0-9]+: RUNNING' "found again by its name"
slurm start
is "$(squeue -h --format=%A | wc -l)" 1 "and not submitted again"
slurm 15
is "$(slurm wait)" "ended 3 - none " "TERM reaches the ranks; their status is the job's"
is "$(grep -c asked "$F/log")" 4 "all of them"

job
DO='trap "" TERM; echo ready; while :; do sleep 0.2; done'
slurm start
waiting_for 120 ready 4
slurm 15
slurm 9
is "$(slurm wait)" "ended 137 - none " "ranks that do not listen are killed"

job
NODES=1 DO='sleep 600'
slurm start
# shellcheck disable=SC2317
is_running() { squeue -h -j "$(slurm_id)" -o %T | grep -q RUNNING; }
waiting_for 120 is_running
first=$(slurm_id)
job
slurm start
like "$(slurm poll)" '^running 0 waiting none Slurm job [0-9]+: PENDING' "one that waits in the queue says so"
slurm 15
like "$(slurm wait)" '^lost 0 - none Slurm job [0-9]+: CANCELLED' "and leaves it when told to end"
scancel "$first"
n=$((n - 2))
job
n=10
# Cancelled while srun begins, srun says 1.
like "$(slurm wait)" '^(ended [1-9][0-9]*|lost 0) - none' "one cancelled by somebody else has not ended well"

job
NODES=2 DO='sleep 600'
slurm start
waiting_for 120 is_running
scontrol update nodename=node2 state=down reason=test
like "$(slurm wait)" '^(ended [1-9][0-9]*|lost 0) - node Slurm job [0-9]+: NODE_FAIL' "a node that goes down is the node's fault"
echo exit 1 >"$F/status" # as where srun ended before its ranks
like "$(slurm poll)" "^ended 1 - node Slurm job [0-9]+: NODE_FAIL" "whatever srun's own status is"
# shellcheck disable=SC2317
is_back() { # it may have come back by itself
    are_idle || { scontrol update nodename=node2 state=resume 2>/dev/null; false; }
}
succeeds "the node is back" waiting_for 120 is_back

# --- through a login node over SSH, whose connection is lost during a script ---
if have_sshd "Slurm through a login node"; then
    ssh_keys
    trap 'touch "$T/go"; stop_sshds; slurm_down; rm -rf "$T"' EXIT
    mkdir -p "$T/login"
    # What `held` names waits, once, until it is let go; sbatch when it has submitted, where that was asked.
    for tool in squeue sbatch; do
        cat >"$T/login/$tool" <<EOF
#!/bin/sh
wait_for_go() { mv "$T/held" "$T/met"; while [ ! -e "$T/go" ]; do sleep 0.05; done; }
read -r held when 2>/dev/null <"$T/held"
[ "\$held \$when" != "$tool before" ] || wait_for_go
[ "\$held \$when" = "$tool after" ] || exec $(command -v $tool) "\$@"
said=\$($(command -v $tool) "\$@") || exit
wait_for_go
echo "\$said"
EOF
        chmod +x "$T/login/$tool"
    done
    succeeds "a login node is up" start_sshd login "SetEnv HOME=$T/home PATH=$T/login:$PATH SLURM_CONF=$SLURM_CONF"
    by_login() { LOGIN=${ssh_port[login]} slurm "$@"; }
    # shellcheck disable=SC2317
    is_met() { [ -e "$T/met" ]; }
    # shellcheck disable=SC2317
    is_let_go() { # no script is left on the login node
        local file
        while IFS= read -r file; do
            grep -qsz '^SLURM_JOB_ID=' "$file" || return 1
        done < <(grep -lszF "PATH=$T/login:" /proc/[0-9]*/environ)
    }
    loses() { # TOOL BEFORE|AFTER VERB: the connection, while the tool runs in the verb's script, which is had again; its output in $T/said
        local pid
        rm -f "$T/go" "$T/met"
        echo "$1 $2" >"$T/held"
        by_login "$3" >"$T/said" 2>&1 &
        pid=$!
        succeeds "$1 of $3 runs" waiting_for 120 is_met
        kill_sshd login
        start_sshd login "SetEnv HOME=$T/home PATH=$T/login:$PATH SLURM_CONF=$SLURM_CONF"
        wait "$pid"
        is "$?" 0 "lost in $1 of $3: it is asked again"
    }
    let_go() { # the script that nobody listens to goes on
        touch "$T/go"
        succeeds "the script that was lost ends" waiting_for 120 is_let_go
    }
    once() { # NAME CANCELLED: one job is there, but for so many that left the queue again; its ranks run once
        local name states
        name=$(squeue -h --states=all -j "$(slurm_id)" --format=%j)
        states=$(squeue -h --states=all --name="$name" --format=%T)
        is "$(grep -c CANCELLED <<<"$states") $(grep -vc CANCELLED <<<"$states")" "$2 1" "$1: one job"
        is "$(by_login wait)" "ended 0 - none " "$1: it ends well"
        is "$(grep -c '^rank ' "$F/log")" 4 "$1: its ranks ran once"
    }
    job
    DO="while [ ! -e '$T/go_on' ]; do sleep 0.1; done"
    by_login start
    # shellcheck disable=SC2317
    has_claimed() { [ -s "$F/claim/job" ]; }
    waiting_for 120 has_claimed
    is "$(cat "$F/claim/job")" "$(slurm_id)" "who runs the job is who was submitted"
    loses squeue before poll
    like "$(cat "$T/said")" '^running 0 - none Slurm job [0-9]+: RUNNING' "a poll"
    let_go
    rm "$F/slurm" "$F/claim/job"
    loses squeue before poll
    like "$(cat "$T/said")" '^running 0 - none Slurm job [0-9]+: RUNNING' "a poll by name"
    let_go
    touch "$T/go_on"
    is "$(by_login wait)" "ended 0 - none " "it ends well"
    DO='sleep 1'
    job
    loses sbatch after start
    let_go
    once "submitted before the connection was lost" 0
    job
    loses sbatch before start
    let_go
    once "submitted again after it" 1
fi

job
DO='exit 0'
# TERM: with KILL it would forget the last seconds, and start jobs that were cancelled in them.
ctld=$(cat "$SL/ctld.pid")
kill "$ctld"
# shellcheck disable=SC2317
is_gone() { ! kill -0 "$ctld" 2>/dev/null; }
waiting_for 120 is_gone
slurm start &
starter=$!
sleep 1.5
setsid slurmctld </dev/null >/dev/null 2>&1
wait $starter
ok $? "a controller that is restarted is waited for"
is "$(slurm wait)" "ended 0 - none " "and the job runs"
# shellcheck disable=SC2317
is_empty() { [ "$(squeue -h --format=%A | wc -l)" = 0 ]; }
waiting_for 120 is_empty # the last one is COMPLETING for a moment
ok $? "nothing is left in the queue"
tap_done
