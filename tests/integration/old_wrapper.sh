#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How jobs were run on nodes before reperf-node was the only one to do it, up to 0.9: $1 is the job's folder, which has the job as the script "job". A run
# that was begun so is gone on with by what is there now (test_node.sh).
# shellcheck disable=SC2086,SC2154
dir=$1
trap : TERM INT HUP
mkdir "$dir/claim" 2>/dev/null || exit 0
bad() {
    rm -f "$dir/pid.part" "$dir/log"
    rmdir "$dir/claim"
    exit 70
}
read -r stat </proc/$$/stat
set -- ${stat##*) }
start=${20}
read -r boot </proc/sys/kernel/random/boot_id
: >"$dir/log" || bad
echo "$$ $start $boot" >"$dir/pid.part" || bad
mv "$dir/pid.part" "$dir/pid" || bad
/bin/sh "$dir/job" >"$dir/log" 2>&1 </dev/null
rc=$?
[ ! -f "$dir/cleanup" ] || /bin/sh "$dir/cleanup" >/dev/null 2>&1 </dev/null
sync "$dir/log" || exit 70
echo "exit $rc" >"$dir/status.part" || exit 70
sync "$dir/status.part" || exit 70
mv "$dir/status.part" "$dir/status"
