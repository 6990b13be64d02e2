# shellcheck shell=sh disable=SC1007,SC2034,SC2086
# SPDX-License-Identifier: Apache-2.0
# The check inside a container. Plain /bin/sh with what any image has (df; readlink or ls): bash, dash and busybox run it.
# Words NAME=VALUE up to "--", then the workload's argv. Limits are those of this shell itself, which the workload inherits; "at least" is
# enough, but for the memory limit, which must be no more. `least NAME FOUND ASKED`; a limit that no JSON number holds is shown as none.

required= shm=0 memlock=0 stack=0 files=0 procs=0 memory=0 net=0 gpus=0 devices= wrong=
while [ "$1" != -- ]; do
  case $1 in
  required) required=1 ;;
  shm=*) shm=${1#*=} ;;
  memlock=*) memlock=${1#*=} ;;
  stack=*) stack=${1#*=} ;;
  files=*) files=${1#*=} ;;
  procs=*) procs=${1#*=} ;;
  memory=*) memory=${1#*=} ;;
  net) net=1 ;;
  gpus) gpus=1 ;;
  device=*) devices="$devices ${1#*=}" ;;
  esac
  shift
done
shift
note() { wrong="$wrong${wrong:+,}\"$1\""; }
is_number() { case $1 in '' | *[!0-9]*) return 1 ;; esac; }
least() {
  [ "$3" != 0 ] && [ "$2" != unlimited ] || return 0
  if ! is_number "$2"; then note "$1 cannot be read"
  elif [ "$3" = -1 ]; then note "$1 is $2, asked for unlimited"
  elif [ "$2" -lt "$3" ]; then note "$1 is $2, asked for $3"; fi
}
shown() {
  if [ "$1" = unlimited ] || [ "$1" = max ]; then echo -1
  elif ! is_number "$1"; then echo null
  elif [ ${#1} -gt 15 ]; then echo -1
  else echo "$1"; fi
}
l_memlock= l_stack= l_files= l_procs=
while read -r m a b c rest; do
  case "$a $b" in
  'locked memory') l_memlock=$c ;;
  'stack size') l_stack=$c ;;
  'open files') l_files=$c ;;
  'processes '*) l_procs=$b ;;
  esac
done </proc/self/limits
least 'locked memory' "$l_memlock" "$memlock"
least stack "$l_stack" "$stack"
least 'open files' "$l_files" "$files"
least processes "$l_procs" "$procs"
h_shm=$(df -Pk /dev/shm 2>/dev/null | while read -r d kib rest; do case $rest in */dev/shm) echo $((kib * 1024)) ;; esac; done)
least /dev/shm "$h_shm" "$shm"
h_memory=
for f in /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes; do
  [ ! -r $f ] || { read -r h_memory <$f; break; }
done
if [ "$memory" != 0 ]; then
  if ! is_number "$h_memory"; then note "memory limit is ${h_memory:-not to be seen}, asked for $memory"
  elif [ "$h_memory" -gt "$memory" ]; then note "memory limit is $h_memory, asked for $memory"; fi
fi
is_host=null here=$(readlink /proc/self/ns/net 2>/dev/null || ls -l /proc/self/ns/net)
here=${here##* }
if [ -n "$here" ] && [ -n "$REPERF_HOST_NETNS" ]; then
  is_host=false
  [ "$here" != "$REPERF_HOST_NETNS" ] || is_host=true
fi
[ $net = 0 ] || [ $is_host = true ] || note "network is not the node's own"
n_gpus=0
for f in /dev/nvidia[0-9]*; do [ ! -e "$f" ] || n_gpus=$((n_gpus + 1)); done
[ $gpus = 0 ] || [ $n_gpus -gt 0 ] || note 'no GPU'
for f in $devices; do [ -e "$f" ] || note "no $f"; done
holds=true
[ -z "$wrong" ] || holds=false
printf '{"event":"container","holds":%s,"wrong":[%s],"shm_bytes":%s,"memlock_bytes":%s,"stack_bytes":%s,"n_files":%s,"n_processes":%s,"memory_bytes":%s,"is_host_net":%s,"gpus":%s}\n' $holds "$wrong" "$(shown "$h_shm")" "$(shown "$l_memlock")" "$(shown "$l_stack")" "$(shown "$l_files")" "$(shown "$l_procs")" "$(shown "$h_memory")" $is_host $n_gpus >&2
[ $holds = true ] || [ -z "$required" ] || exit 125
unset REPERF_HOST_NETNS
ooms() {
  n=0
  for f in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    [ -r $f ] || continue
    while read -r k v; do [ "$k" != oom_kill ] || n=$v; done <$f
  done
  echo $n
}
before=$(ooms)
pid= early=
trap 'if [ -n "$pid" ]; then kill -TERM $pid 2>/dev/null; else early=1; fi' HUP INT TERM
"$@" &
pid=$!
[ -z "$early" ] || kill -TERM $pid 2>/dev/null
while :; do
  wait $pid
  rc=$?
  kill -0 $pid 2>/dev/null || break
done
killed=$(($(ooms) - before))
if [ $killed -gt 0 ]; then
  printf '\n{"event":"container_oom","oom_kills":%s,"memory_bytes":%s,"status":%s}\n' $killed "$(shown "$h_memory")" $rc >&2
  [ $rc -ne 0 ] || rc=137
fi
exit $rc
