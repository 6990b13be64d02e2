#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# One run on four nodes by each launcher: started by us over SSH, by mpirun on the first node, by Slurm. The workload's output is fixed: every rank says
# where it is, and the first one what a training run would.
# shellcheck source=tests/cluster/lib.sh disable=SC2016,SC2317
. "$(dirname "$0")/lib.sh"
mkdir "$T/fake"
cat >"$T/fake/train.sh" <<'EOF'
#!/bin/sh
case " $* " in *" --describe "*) echo '{"model": "resnet50", "parameters": 25557032}'; exit 0 ;; esac
echo "rank $RANK of $WORLD_SIZE on $(cat /etc/hostname), $LOCAL_RANK of $LOCAL_WORLD_SIZE there, by $MASTER_ADDR"
[ "$RANK" = 0 ] || exit 0
echo '{"event":"run_start","version":"0.1.0","model":"resnet50","device":"cpu","backend":"fixed","precision":"fp32","dtype":"f32","batch":4,"image":[64,64],"steps":20,"warmup_steps":4,"ranks":'"$WORLD_SIZE"',"rank":0,"threads":1,"seed":0,"parameters":25557032,"data":"synthetic","lr":0.01,"momentum":0.9,"weight_decay":0.0001,"label_smoothing":0}'
i=1
while [ $i -le 20 ]; do
    echo '{"event":"step","step":'$i',"steps":20,"rank":0,"loss":7.5,"step_time_ns":500000000,"samples_per_s":32.0,"lr":0.01}'
    i=$((i + 1))
done
echo '{"event":"run_stop","steps":20,"warmup_steps":4,"rank":0,"elapsed_ns":8000000000,"samples_per_s":32,"loss_first":7.5,"loss_last":7.5}'
EOF
chmod +x "$T/fake/train.sh"
export REPERF_TRAIN="$T/fake/train.sh"
inventory() { # LAUNCHER
    jq --arg l "$1" --arg s "$S/shared" '.registry = null | .runtime = "none" | .launcher = $l | .shared_folder = $s' "$S/inventory.json" >"$T/$1.json"
}
go() { timeout 600 "$REPERF" run paddle-perf-2020 --case 'resnet50/reperf/fp32/n4g8/bs96' --profile smoke --repeats 1 --nodes "$T/$1.json" --json; }
well() { # LAUNCHER
    inventory "$1"
    answers 0 '.cells[0] | "\(.repeats[0].counts) \(.verdict)"' "true not_comparable" "$1: a run on four nodes: its repeat counts" go "$1"
    is "$(cat "$(jq -r .folder "$T/out")"/evidence/logs/raw/resnet50/reperf/fp32/n4g8/bs96/* | grep '^rank' | sort | xargs)" \
        "$(for r in 0 1 2 3; do echo "rank $r of 4 on node$((r + 1)), 0 of 1 there, by $(node_ip 1)"; done | xargs)" "$1: a rank on each node"
}
well ssh

# The first node reaches the others without a question.
node_ssh 1 'umask 077; cat >/root/.ssh/id_ed25519' <"$S/ssh/key"
for i in $CLUSTER_NODES; do echo "$(node_ip "$i") $(cut -d' ' -f1,2 "$S/node$i/host_key.pub")"; done | node_ssh 1 'cat >/root/.ssh/known_hosts'
well mpirun
node_ssh 1 'rm -f /root/.ssh/id_ed25519 /root/.ssh/known_hosts'

if slurm_is_up "a run by Slurm"; then
    well slurm
    is "$(squeue -h | wc -l)" 0 "nothing is left in the queue"
fi
tap_done
