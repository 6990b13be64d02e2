/* SPDX-License-Identifier: Apache-2.0 */
/* One job a node: its rank, or its ranks, started there by a small script that waits for them all. */
#include "base/base.h"

#include "run/launch_impl.h"

/* $1: number of the first rank, or "" for $REPERF_NODE_RANK * $2; $2: how many; $3: seconds between TERM and KILL; then the program.
   A rank's output is the script's own, byte for byte; what the shell itself would say ("Terminated") goes nowhere. Each rank is a
   direct child, so that its status is its own and a signal reaches it and not a shell around it. The script waits for the first of
   them; ALRM once a second lets it look at the others. (CHLD would be told at once, but with a trap for it bash answers `wait` with
   145 for ever.) Ended with the status of the first rank that failed; of several found at once, that of one which a signal ended:
   the others then mostly followed it. */
static const char STARTER[] =
    "base=$1 count=$2 grace=$3\n"
    "shift 3\n"
    "exec 3>&2 2>/dev/null\n"
    "ranks='' status=0 stopping=0 ticks=0 ticker='' i=0 caught=' '\n"
    "say() {\n"
    "    echo "
    "\"{\\\"event\\\":\\\"fatal\\\",\\\"rank\\\":$1,\\\"device\\\":\\\"\\\",\\\"where\\\":"
    "\\\"launcher\\\",\\\"what\\\":\\\"$2\\\"}\"\n"
    "}\n"
    "signal_all() {\n"
    "    for entry in $ranks; do kill -\"$1\" \"${entry#*:}\"; done\n"
    "}\n"
    "stop() {\n"
    "    stopping=1\n"
    "    signal_all \"$1\"\n"
    "}\n"
    "tick() {\n"
    "    [ $stopping = 0 ] || ticks=$((ticks + 1))\n"
    "    [ $ticks -lt \"$grace\" ] || signal_all KILL\n"
    "}\n"
    "has_ended() {\n"
    "    while read -r key value; do\n"
    "        [ \"$key\" = State: ] || continue\n"
    "        case $value in Z* | X*) return 0 ;; esac\n"
    "        return 1\n"
    "    done <\"/proc/$1/status\"\n"
    "    return 0\n"
    "}\n"
    "any_ended() {\n"
    "    for entry in $ranks; do ! has_ended \"${entry#*:}\" || return 0; done\n"
    "    return 1\n"
    "}\n"
    /* A signal that a trap catches ends `wait` with 128 and its number: asked again then. A program may end with just that number:
       hence not for ever. */
    "status_of() {\n"
    "    tries=0\n"
    "    while [ $tries -lt 20 ]; do\n"
    "        caught=' '\n"
    "        wait \"$1\"\n"
    "        rc=$?\n"
    "        case $caught in *\" $rc \"*) ;; *) return 0 ;; esac\n"
    "        tries=$((tries + 1))\n"
    "    done\n"
    "}\n"
    "scan() {\n"
    "    left='' worst=0\n"
    "    for entry in $ranks; do\n"
    "        if [ \"$entry\" = \"$known\" ]; then\n"
    "            rc=$known_rc\n"
    "        elif has_ended \"${entry#*:}\"; then\n"
    "            status_of \"${entry#*:}\"\n"
    "        else\n"
    "            left=\"$left $entry\"\n"
    "            continue\n"
    "        fi\n"
    "        if [ $rc -gt 0 ] && [ $worst -le 128 ] && { [ $worst = 0 ] || [ $rc -gt 128 ]; }; "
    "then\n"
    "            worst=$rc culprit=${entry%%:*}\n"
    "        fi\n"
    "    done\n"
    "    ranks=$left\n"
    "    [ $worst != 0 ] && [ $status = 0 ] || return 0\n"
    "    status=$worst\n"
    "    [ $stopping = 1 ] || say \"$culprit\" \"ended with status $worst\"\n"
    "    stop TERM\n"
    "}\n"
    "trap 'caught=\"${caught}143 \"; stop TERM' TERM\n"
    "trap 'caught=\"${caught}130 \"; stop TERM' INT\n"
    "trap 'caught=\"${caught}129 \"; stop HUP' HUP\n"
    "trap 'caught=\"${caught}138 \"; signal_all USR1' USR1\n"
    "trap 'caught=\"${caught}140 \"; signal_all USR2' USR2\n"
    "trap 'caught=\"${caught}142 \"; tick' ALRM\n"
    "if [ -z \"${OMP_NUM_THREADS:-}\" ]; then\n"
    "    cores=$(nproc || getconf _NPROCESSORS_ONLN || grep -c ^processor /proc/cpuinfo)\n"
    "    OMP_NUM_THREADS=$((${cores:-1} / count))\n"
    "    [ \"$OMP_NUM_THREADS\" -gt 0 ] || OMP_NUM_THREADS=1\n"
    "    export OMP_NUM_THREADS\n"
    "fi\n"
    "[ -n \"$base\" ] || base=$((REPERF_NODE_RANK * count))\n"
    "(\n"
    "    trap '' TERM INT HUP USR1 USR2\n"
    "    while sleep 1; do kill -ALRM $$ || exit; done\n"
    ") </dev/null >/dev/null 3>&- &\n"
    "ticker=$!\n"
    "while [ $i -lt \"$count\" ] && [ $stopping = 0 ]; do\n"
    "    (\n"
    "        export RANK=$((base + i)) LOCAL_RANK=$i\n"
    "        exec \"$@\" 2>&3 3>&-\n"
    "    ) </dev/null &\n"
    "    ranks=\"$ranks $((base + i)):$!\"\n"
    "    i=$((i + 1))\n"
    "done\n"
    /* A signal between two of them: those that were never started did not end well. */
    "[ $i = \"$count\" ] || status=143\n"
    "while [ -n \"$ranks\" ]; do\n"
    "    known='' first=${ranks# }\n"
    "    first=${first%% *}\n"
    "    if ! any_ended; then\n"
    "        caught=' '\n"
    "        wait \"${first#*:}\"\n"
    "        known_rc=$?\n"
    "        case $caught in *\" $known_rc \"*) ;; *) known=$first ;; esac\n"
    "    fi\n"
    "    scan\n"
    "done\n"
    "kill -KILL \"$ticker\"\n"
    "exit $status\n";

struct launch_list launch_starter(const struct launch *launch, const char *rank_base)
{
    struct launch_list argv = launch_list_new(launch->arena, launch->program.n + 8);
    launch_add(&argv, "/bin/sh");
    launch_add(&argv, "-c");
    launch_add(&argv, STARTER);
    launch_add(&argv, "reperf-ranks");
    launch_add(&argv, rank_base);
    launch_add(&argv,
               arena_printf(launch->arena, "%lld", (long long)launch->place->ranks_per_node));
    launch_add(&argv, LAUNCH_GRACE_S);
    launch_add_all(&argv, launch->program.items);
    return argv;
}

static const char *number(const struct launch *launch, const char *before, int64_t value)
{
    return arena_printf(launch->arena, "%s%lld", before, (long long)value);
}

int launch_by_ssh(const struct launch *launch, struct launch_job *ret_jobs, struct err *err)
{
    const struct launch_place *place = launch->place;
    for (size_t idx = 0; idx < place->n_nodes; idx++) {
        int64_t rank = (int64_t)idx * place->ranks_per_node;
        struct launch_list argv = launch->program;
        struct launch_list env;
        if (launch_env(launch, &env, err) < 0) {
            return -1;
        }
        if (launch->step->is_per_node) {
            launch_add(&env, number(launch, "NODE_RANK=", (int64_t)idx));
        } else if (place->ranks_per_node == 1) { /* nothing to wait for beside it: no shell */
            launch_add(&env, number(launch, "RANK=", rank));
            launch_add(&env, "LOCAL_RANK=0");
        } else {
            argv = launch_starter(launch, number(launch, "", rank));
        }
        ret_jobs[idx] = (struct launch_job){.place_idx = idx, .has_metric = idx == 0};
        if (launch_wrap(launch, idx, &argv, &env, &ret_jobs[idx].job, err) < 0) {
            return -1;
        }
    }
    return 0;
}
