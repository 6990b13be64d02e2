# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
# Jobs of several ranks, real processes on this machine. Source it after tap_lib.sh; the script says how one rank is started:
# start RANK N ARGUMENTS..., in the background, output into $T/out.RANK and $T/err.RANK, variables from `with`, its pid into pids[RANK].
export OMP_NUM_THREADS=1
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT REPERF_JOB REPERF_DIST_IFACE
unset "${!OMPI_@}" "${!SLURM_@}" 2>/dev/null
pids=()
trap 'kill -9 "${pids[@]}" 2>/dev/null; rm -rf "$T"' EXIT
with=()

all_of() { # N: waits; statuses joined by blanks in $statuses
    local r
    statuses=
    for ((r = 0; r < $1; r++)); do
        wait "${pids[r]}"
        statuses="$statuses${statuses:+ }$?"
    done
    pids=()
}
job() { # N ARGUMENTS...
    local n=$1 r
    shift
    port=$(free_port)
    for ((r = 0; r < n; r++)); do start "$r" "$n" "$@"; done
    all_of "$n"
}
# close A B TOLERANCE: relative, number by number
close() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { n = split(a, x, " "); m = split(b, y, " "); bad = n != m || n == 0
    for (i = 1; i <= n; i++) { d = x[i] - y[i]; d = d < 0 ? -d : d; if (!(d <= t * y[i])) bad = 1 } exit bad }'; }
