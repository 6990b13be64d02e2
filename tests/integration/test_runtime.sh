#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# The commands of fleet/runtime, run by a real docker and a real podman: statuses, flags that hold inside, mounts, environment, memory, signals, cleanup.
# shellcheck disable=SC2016 # what is in single quotes is for the shell inside
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/engines_lib.sh disable=SC1091
source "$ROOT/tests/integration/engines_lib.sh"
JOB="$B/servers/runtime_job"
NONE=sha256:1111111111111111111111111111111111111111111111111111111111111111
mkdir -p "$T/in" "$T/empty"
echo hello >"$T/in/file"

# run STATUS NAME CHECK LINE [-v ...|-e ...] -- ARGV...: the log is $T/log
n=0
run() {
    local want=$1 name=$2 check=$3 line=$4
    shift 4
    n=$((n + 1))
    (cd "$T/empty" && exec "$JOB" run "$E" "job-$n" "$ID" "$check" "$line" "$@") >"$T/log" 2>&1 </dev/null
    RC=$?
    is "$RC" "$want" "$E: $name"
    [ "$RC" = "$want" ] || tail -n 5 "$T/log" | cut -c1-300 | sed 's/^/# /'
}
cause() { # ERE NAME: what runtime_exit_check says of the last run
    like "$("$JOB" exit "$E" "$RC" <"$T/log")" "$1" "$E: $2"
}
line() { grep -m1 "^{\"event\":\"$1\"" "$T/log"; } # EVENT
field() { line "$1" >"$T/event.json" && value "$T/event.json" "d.get('$2')"; }
names() { "$T/bin/$E" ps -a --format '{{.Names}}' | xargs; }

statuses() {
    run 0 "status 0" check "docker run --net=host i" -- /bin/echo hi
    is "$(grep -c -x hi "$T/log")" 1 "$E: its output is the log"
    cause '^none$' "is no error"
    run 3 "status 3" check "docker run --net=host i" -- /bin/sh -c 'echo to stderr >&2; exit 3'
    like "$(cat "$T/log")" '^to stderr$' "$E: so is what it says on stderr"
    cause '^workload: status 3: to stderr' "is the workload's"
    run 127 "no such program" plain "docker run --net=host i" -- /nope
    cause '^container: the container could not be started: .*/nope' "is named"
    ID=$NONE run 125 "an image that is not there" check "docker run --net=host i" -- /bin/true
    cause '^container: the container could not be started: ' "is the engine's failure, and it is not pulled"
    is "$(names)" "" "$E: no container is left"
    [ "$E" = podman ] && return # the rest is the same script
    run 125 "the workload's own 125" check "docker run --net=host i" -- /bin/sh -c 'echo mine; exit 125'
    cause '^workload: status 125: mine' "is not taken for the engine's"
    run 127 "no such program, with the check before it" check "docker run --net=host i" -- /nope
    cause '^container: no such program' "likewise"
    run 126 "what cannot be executed" check "docker run --net=host i" -- /data
    cause '^container: cannot be run' "is said"
    run 137 "killed" check "docker run --net=host i" -- /bin/sh -c 'kill -9 $$'
    cause '^workload: ended by signal 9' "by a signal, not for memory"
    is "$(names)" "" "$E: no container is left"
}

flags() {
    local hard=$(($(ulimit -H -l | sed s/unlimited/-1/)))
    run 0 "flags hold" required "docker run --net=host --shm-size=96m --ulimit nofile=1024 --ulimit stack=67108864 --ulimit memlock=65536 -m 256m i" -- \
        /bin/sh -c 'ulimit -n; df -Pk /dev/shm | tail -n 1; readlink /proc/self/ns/net'
    like "$(cat "$T/log")" '^1024$' "$E: the workload itself has 1024 files"
    like "$(cat "$T/log")" ' 98304 ' "$E: and 96 MiB of /dev/shm"
    is "$(grep '^net:' "$T/log")" "$(readlink /proc/self/ns/net)" "$E: and the node's network"
    is "$(field container shm_bytes) $(field container n_files) $(field container stack_bytes) $(field container memlock_bytes) $(field container memory_bytes) $(field container is_host_net)" \
        "100663296 1024 67108864 65536 268435456 True" "$E: the one line says the same"
    run 0 "memlock without limit" check "docker run --net=host --ulimit memlock=-1 i" -- /bin/true
    if [ "$hard" = -1 ]; then
        is "$(field container memlock_bytes) $(field container holds)" "-1 True" "$E: holds"
    else
        is "$(field container memlock_bytes) $(field container holds)" "$((hard * 1024)) False" "$E: is clamped here, and that is said"
        run 125 "and where it is required" required "docker run --net=host --ulimit memlock=-1 i" -- /bin/echo never
        is "$(grep -c never "$T/log")" 0 "$E: the workload does not begin"
        cause '^container: a flag of the launch does not hold .*locked memory is [0-9]+, asked for unlimited' "for that reason"
    fi
    [ "$E" = podman ] && return
    run 0 "a device" required "docker run --net=host --device=/dev/full:/dev/mine i" -- /bin/sh -c 'echo x >/dev/mine || echo full'
    like "$(cat "$T/log")" '^full$' "$E: is there under its name"
    [ -e /dev/nvidia0 ] && return
    run 125 "GPUs of a machine that has none" required "docker run --net=host --gpus all i" -- /bin/true
    cause '^container: the container could not be started: ' "are the engine's to refuse"
}

wiring() {
    run 0 "mounts and environment" check "docker run --net=host -e FROM_LINE=1 -e BOTH=line -w /data i" -v "$T/in:/data" \
        -e "BOTH=job" -e "TEXT=a b\"c'd \$x" -e "API_TOKEN=hush" -- \
        /bin/sh -c 'cat file; touch file 2>/dev/null || echo read-only; echo "$FROM_LINE $BOTH $TEXT $API_TOKEN"; pwd; echo "[$REPERF_HOST_NETNS]"'
    is "$(grep -v '^{' "$T/log" | tr '\n' '|')" "hello|read-only|1 job a b\"c'd \$x hush|/data|[]|" "$E: are what was asked for"
    run 0 "a cache" check "docker run --net=host i" -v cache -- /bin/sh -c 'echo made >/reperf/cache/plan'
    run 0 "that another container has" check "docker run --net=host i" -v cache -- /bin/sh -c 'cat /reperf/cache/plan'
    is "$(grep -v '^{' "$T/log")" made "$E: with what the first wrote"
    run 0 "and one that asked for none" check "docker run --net=host i" -- /bin/sh -c 'ls /reperf || echo none'
    like "$(cat "$T/log")" '^none$' "$E: has not"
    is "$("$JOB" show "$E" x "$ID" plain "docker run i" -e API_TOKEN=hush -- /bin/true | grep -c hush)" 0 "$E: a secret is not in argv"
    run 125 "a mount whose source is not there" check "docker run --net=host i" -v "$T/nothing:/data" -- /bin/true
    is "$([ -e "$T/nothing" ] && echo made)" "" "$E: is not made"
    like "$("$JOB" show "$E" x "$ID" plain "docker run i" -- /bin/true)" '^--label=reperf.run=run-test$' "$E: its label is the run"
}

memory() {
    run 137 "out of memory" check "docker run --net=host -m 32m i" -- /bin/sh -c 'a=x; while :; do a=$a$a; done'
    cause '^container: out of memory \(limit 33554432 bytes\)' "is said with the limit"
    run 137 "a part of it out of memory, and status 0" check "docker run --net=host -m 32m i" -- \
        /bin/sh -c '/bin/sh -c "a=x; while :; do a=\$a\$a; done"; exit 0'
    cause '^container: out of memory' "is no success"
    is "$(ls "$T/empty")" "" "$E: and nothing is left where it was started"
}

of_run() { "$T/bin/$E" ps --filter label=reperf.run=run-test --format '{{.Names}}'; }

ends() {
    local pid
    "$JOB" run "$E" long "$ID" check "docker run --net=host i" -- /bin/sh -c 'trap "echo got TERM; exit 5" TERM; echo up; while :; do sleep 0.1; done' >"$T/long.$E" 2>&1 &
    pid=$!
    while kill -0 $pid 2>/dev/null && ! grep -sq '^up' "$T/long.$E"; do sleep 0.05; done
    # What it prints may come before its engine calls it running.
    while kill -0 $pid 2>/dev/null && [ -z "$(of_run)" ]; do sleep 0.05; done
    is "$(of_run)" long "$E: a running container is found by its run"
    "$JOB" run "$E" long "$ID" check "docker run --net=host i" -- /bin/echo second >"$T/second" 2>&1
    RC=$?
    is "$RC" 125 "$E: a second one of the same name"
    is "$(names)" long "$E: does not take the first away"
    pkill -TERM -P "$pid" -f "$E" # the engine's client, as the remote does with all processes of a job
    kill -TERM "$pid"
    wait "$pid"
    is "$?" 5 "$E: TERM reaches the workload"
    like "$(cat "$T/long.$E")" '^got TERM' "$E: which says so"
    "$JOB" run "$E" long "$ID" check "docker run --net=host i" -- /bin/sh -c 'trap "" TERM; echo up; while :; do sleep 0.1; done' >"$T/deaf.$E" 2>&1 &
    pid=$!
    while kill -0 $pid 2>/dev/null && ! grep -sq '^up' "$T/deaf.$E"; do sleep 0.05; done
    kill -9 "$pid"
    wait "$pid" 2>/dev/null
    is "$(names)" long "$E: one that is deaf outlives its starter's KILL"
    leaves 0 names "" "$E: cleanup ends it: nothing is left" "$JOB" cleanup "$E" long "$ID" plain "docker run i" -- /bin/true
    exits 0 "$E: cleanup again" "$JOB" cleanup "$E" long "$ID" plain "docker run i" -- /bin/true
}

try_engine() {
    E=$1
    PATH="$T/bin:$PATH"
    ID=$(import_image "$E" example.org/test:1)
    statuses
    flags
    wiring
    memory
    ends
}

if start_docker; then
    try_engine docker
    kill "$DOCKERD_PID"
    wait "$DOCKERD_PID" 2>/dev/null
    run 125 "a daemon that is not there" check "docker run --net=host i" -- /bin/true
    cause '^container: the container could not be started: .*aemon' "is said"
    exits 1 "docker: cleanup cannot know" "$JOB" cleanup docker x "$ID" plain "docker run i" -- /bin/true
else
    skip "docker" "no dockerd can be started here: $(cat "$T/why")"
fi
if start_podman; then
    try_engine podman
else
    skip "podman" "podman runs nothing here: $(cat "$T/why")"
fi
# --- no container ----------------------------------------------------------------------------------
E=none ID=$NONE
run 3 "no container" plain "docker run -w $T/in -e A=1 i" -e "B=2 3" -- /bin/sh -c 'cat file; echo "$A $B"; exit 3'
is "$(tr '\n' '|' <"$T/log")" "hello|1 2 3|" "none: folder and environment"
run 99 "a memory limit" plain "docker run -m 1g i" -- /bin/true
like "$(cat "$T/log")" 'container: runtime none: .*memory limit' "none: is refused"
# The check runs under any /bin/sh.
for shell in dash bash "busybox sh"; do
    command -v "${shell%% *}" >/dev/null || continue
    check=$("$JOB" show none x "$NONE" check "docker run i" -- MARK | sed '1,2d; /^reperf-inside$/,$d')
    # shellcheck disable=SC2086
    is "$($shell -c "$check" reperf-inside required stack=65536 -- /bin/echo hi 2>"$T/err")" hi "the check inside under $shell"
    /usr/bin/python3 -c 'import json, sys; d = json.load(sys.stdin); assert d["holds"] is True and d["stack_bytes"] != None, d' <"$T/err"
    ok $? "its line is JSON"
    # shellcheck disable=SC2086
    $shell -c "$check" reperf-inside required gpus device=/dev/nope shm=999999999999999 net -- /bin/echo never >"$T/out" 2>"$T/err"
    is "$? $(cat "$T/out")" "125 " "what does not hold under $shell"
    wrong=$(/usr/bin/python3 -c 'import json, sys; print("|".join(json.load(sys.stdin)["wrong"]))' <"$T/err")
    like "$wrong" '^/dev/shm is [0-9]+, asked for 999999999999999\|network is not the node.s own\|(no GPU\|)?no /dev/nope$' "each is named"
    # shellcheck disable=SC2086
    $shell -c "$check" reperf-inside -- /bin/sh -c 'trap "exit 4" TERM; kill -TERM "$PPID"; while :; do sleep 0.1; done' 2>/dev/null
    is "$?" 4 "TERM is passed on under $shell"
done
tap_done
