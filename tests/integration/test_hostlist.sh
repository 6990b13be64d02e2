#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: report
# Node sets against the programs that define them: ClusterShell's NodeSet on random sets, nodeset on what --nodes prints, Slurm's scontrol.
. "$(dirname "$0")/../tap_lib.sh"
LINES="$B/servers/nodeset_lines"

if /usr/bin/python3 -c 'import ClusterShell' 2>/dev/null; then
    seeds=(1)
    ! in_test_all "random node sets of three seeds" || seeds=(1 2 3)
    for seed in "${seeds[@]}"; do
        exits 0 "2000 random sets of seed $seed are what ClusterShell makes of them" \
            /usr/bin/python3 tests/integration/check_nodesets.py "$LINES" "$seed" 2000
        tail -n 5 "$T/out" | cut -c1-300 | sed 's/^#* */# /'
    done
    # The checker can fail: another program's answers.
    printf '#!/bin/sh\nexec "%s" | sed "s/^ok n/ok m/"\n' "$LINES" >"$T/wrong" && chmod +x "$T/wrong"
    exits 1 "wrong answers are seen" /usr/bin/python3 tests/integration/check_nodesets.py "$T/wrong" 1 200
    for set in 'gpu[01-04,7]' 'n[5-7],n10' 'b,a,c1,c2'; do
        is "$("$REPERF" nodes list "$set" | head -n 1 | cut -d: -f1)" "$(nodeset -f "$set")" "$set folds as nodeset says"
    done
else
    skip "random sets against ClusterShell" "clustershell is not installed"
fi

if command -v scontrol >/dev/null; then
    printf 'ClusterName=x\nSlurmctldHost=localhost\nNodeName=localhost\nPartitionName=p Nodes=localhost\n' >"$T/slurm.conf"
    export SLURM_CONF="$T/slurm.conf"
    for list in 'gpu[01-04,7],login' 'rack[0-1]n[00-02]' 'n[098-101]' 'n[09-101]' 'a1,b[2,4-6]'; do
        is "$("$LINES" slurm <<<"$list" | cut -d' ' -f3-)" "$(scontrol show hostnames "$list" | xargs)" "$list is read as Slurm does"
        folded=$("$LINES" slurm <<<"$list" | cut -d' ' -f2)
        is "$(scontrol show hostnames "$folded" | sort | xargs)" "$(scontrol show hostnames "$list" | sort | xargs)" "and its fold $folded is Slurm's too"
    done
    is "$(SLURM_JOB_NODELIST='gpu[02,01]' "$REPERF" nodes list slurm --json | jq -r '.nodes[].name' | xargs)" "gpu02 gpu01" "--nodes slurm reads SLURM_JOB_NODELIST, in its order"
else
    skip "Slurm's lists against scontrol" "slurm is not installed"
fi
exits 2 "slurm outside of an allocation" env -u SLURM_JOB_NODELIST "$REPERF" nodes list slurm
fails 2 'byte 5: expected FIRST-LAST, upwards' "a set that is wrong" "$REPERF" nodes list 'gpu[3-1]'
fails 2 'node set "@v100!node3", byte 1: "@" is not understood: expected names and ranges' "a set of an inventory with ClusterShell's algebra" "$REPERF" nodes list 'v100-4x8:@v100!node3'
tap_done
