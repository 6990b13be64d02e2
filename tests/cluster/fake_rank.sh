#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A rank whose output is fixed, for tests of what happens around it; fault_lib.sh puts the folder that it listens to in the place of FOLDER. There,
# "mode" says what it does, "begun" gets a line when it begins and "ended" when it ends, and "go" is what it waits for.
dir='FOLDER'
mode=$(cat "$dir/mode" 2>/dev/null)
case " $* " in *" --describe "*)
    echo '{"model": "resnet50", "parameters": 25557032}'
    exit 0
    ;;
esac
rank=${RANK:-0} ranks=${WORLD_SIZE:-1}
begun() { echo "$rank $(hostname) ${REPERF_JOB:-} $$" >>"$dir/$1" 2>/dev/null; }
start() {
    echo '{"event":"run_start","version":"0.1.0","model":"resnet50","device":"cpu","backend":"fixed","precision":"fp32","dtype":"f32","batch":4,"image":[64,64],"steps":20,"warmup_steps":4,"ranks":'"$ranks"',"rank":'"$rank"',"threads":1,"seed":0,"parameters":25557032,"data":"synthetic","lr":0.01,"momentum":0.9,"weight_decay":0.0001,"label_smoothing":0}'
}
steps() { # FROM TO [RATE]
    i=$1
    while [ "$i" -le "$2" ]; do
        echo '{"event":"step","step":'"$i"',"steps":20,"rank":'"$rank"',"loss":7.5,"step_time_ns":500000000,"samples_per_s":'"${3:-8.0}"',"lr":0.01}'
        i=$((i + 1))
    done
}
stop() {
    echo '{"event":"run_stop","steps":20,"warmup_steps":4,"rank":'"$rank"',"elapsed_ns":8000000000,"samples_per_s":8,"loss_first":7.5,"loss_last":7.5}'
}
begun begun
case $mode in
silent)
    exit 0
    ;;
nan)
    start
    steps 1 10
    steps 11 11 nan
    steps 12 20
    stop
    exit 0
    ;;
fails)
    start
    steps 1 20
    stop
    exit 3
    ;;
eats)
    start
    steps 1 5
    tail /dev/zero
    ;;
fills)
    start
    steps 1 5
    head -c 40000000 /dev/zero | tr '\0' '#'
    ;;
naps) # long enough for what is done to its node meanwhile
    start
    steps 1 5
    sleep 20
    steps 6 20
    stop
    exit 0
    ;;
waits)
    start
    steps 1 5
    n=0
    while [ ! -e "$dir/go" ] && [ "$n" -lt 6000 ]; do
        sleep 0.1
        n=$((n + 1))
    done
    steps 6 20
    stop
    begun ended
    exit 0
    ;;
esac
start
steps 1 20
stop
begun ended
