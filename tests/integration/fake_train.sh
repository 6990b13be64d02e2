#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A workload with fixed output, for tests of what happens around it; run as $REPERF_TRAIN. Its fault is in the file "mode" beside it
# (tests copy this script into their own folder); a line is added to "count" each time it really runs.
dir=${0%/*}
mode=$(cat "$dir/mode" 2>/dev/null)
case " $* " in *" --describe "*)
    echo '{"model": "resnet50", "parameters": 25557032}'
    exit 0
    ;;
esac
echo "$*" >>"$dir/count"
start() {
    echo '{"event":"run_start","version":"0.1.0","model":"resnet50","device":"cpu","backend":"fixed","precision":"fp32","dtype":"f32","batch":4,"image":[64,64],"steps":20,"warmup_steps":4,"ranks":'"${WORLD_SIZE:-1}"',"rank":'"${RANK:-0}"',"threads":1,"seed":0,"parameters":25557032,"data":"synthetic","lr":0.01,"momentum":0.9,"weight_decay":0.0001,"label_smoothing":0}'
}
step() { # NUMBER RATE
    echo '{"event":"step","step":'"$1"',"steps":20,"rank":0,"loss":7.5,"step_time_ns":500000000,"samples_per_s":'"$2"',"lr":0.01}'
}
stop() {
    echo '{"event":"run_stop","steps":20,"warmup_steps":4,"rank":0,"elapsed_ns":8000000000,"samples_per_s":8,"loss_first":7.5,"loss_last":7.5}'
}
steps() { # FROM TO
    i=$1
    while [ "$i" -le "$2" ]; do
        step "$i" 8.0
        i=$((i + 1))
    done
}
begins() { # and comes to step 5
    start
    steps 1 5
}
ends() { # as one that had come to there
    steps 6 20
    stop
}
case $mode in
silent) exit 0 ;;
nan)
    begins
    steps 6 10
    step 11 nan
    steps 12 20
    stop
    ;;
other\ *) # a log of another case: "other WORDS=>WORDS"
    begins | sed "s/$(echo "${mode#other }" | sed 's,=>,/,')/"
    ends
    ;;
fails)
    begins
    ends
    exit 3
    ;;
short)
    begins
    steps 6 12
    ;;
killed)
    begins
    kill -9 $$
    ;;
costly) # and a file beside it
    begins
    ends
    cat "$dir/../costly.log"
    ;;
hangs) # what it prints says that it is deaf by then
    trap '' TERM
    begins
    while :; do sleep 1; done
    ;;
saves) # seconds after it is told to end, by the orchestrator's clock, which is "clock" beside it
    trap 'echo 3604 >"$dir/clock"; sleep 1; echo whole >"$dir/checkpoint"; exit 3' TERM
    begins
    while :; do sleep 0.05; done
    ;;
levels) # the machine gets another load in the midst of the run
    begins
    steps 6 12
    for i in 13 14 15 16 17 18 19 20; do step "$i" 4.0; done
    stop
    ;;
ranks) # every tenth step, of two ranks
    start
    for row in '10 8.0 0' '20 8.0 0' '10 0.8 1' '20 8.0 1'; do
        # shellcheck disable=SC2086
        set -- $row
        step "$1" "$2" | sed "s/\"rank\":0/\"rank\":$3/"
    done
    stop
    ;;
waits) # until it is told to go on, for ten minutes at most
    begins
    n=0
    while [ ! -e "$dir/go" ] && [ "$((n += 1))" -le 12000 ]; do sleep 0.05; done
    ends
    ;;
full)
    begins
    dd if=/dev/zero of="$dir/fill" bs=64k 2>/dev/null
    ends
    ;;
*)
    begins
    ends
    ;;
esac
exit 0
