/* SPDX-License-Identifier: Apache-2.0 */
/* The check inside a container. Plain /bin/sh with what any image has (df; readlink or ls): bash, dash and busybox run it. */
#include "base/base.h"

#include "fleet/runtime_impl.h"

/* Words NAME=VALUE up to "--", then the workload's argv. Limits are those of this shell itself, which the workload inherits; "at
   least" is enough, but for the memory limit, which must be no more. */
static const char INSIDE[] =
    "required= shm=0 memlock=0 stack=0 files=0 procs=0 memory=0 net=0 gpus=0 devices= wrong=\n"
    "while [ \"$1\" != -- ]; do\n"
    "  case $1 in\n"
    "  required) required=1 ;;\n"
    "  shm=*) shm=${1#*=} ;;\n"
    "  memlock=*) memlock=${1#*=} ;;\n"
    "  stack=*) stack=${1#*=} ;;\n"
    "  files=*) files=${1#*=} ;;\n"
    "  procs=*) procs=${1#*=} ;;\n"
    "  memory=*) memory=${1#*=} ;;\n"
    "  net) net=1 ;;\n"
    "  gpus) gpus=1 ;;\n"
    "  device=*) devices=\"$devices ${1#*=}\" ;;\n"
    "  esac\n"
    "  shift\n"
    "done\n"
    "shift\n"
    "note() { wrong=\"$wrong${wrong:+,}\\\"$1\\\"\"; }\n"
    "is_number() { case $1 in '' | *[!0-9]*) return 1 ;; esac; }\n"
    "least() {\n" /* NAME FOUND ASKED */
    "  [ \"$3\" != 0 ] && [ \"$2\" != unlimited ] || return 0\n"
    "  if ! is_number \"$2\"; then note \"$1 cannot be read\"\n"
    "  elif [ \"$3\" = -1 ]; then note \"$1 is $2, asked for unlimited\"\n"
    "  elif [ \"$2\" -lt \"$3\" ]; then note \"$1 is $2, asked for $3\"; fi\n"
    "}\n"
    "shown() {\n" /* a limit that no JSON number holds is none */
    "  if [ \"$1\" = unlimited ] || [ \"$1\" = max ]; then echo -1\n"
    "  elif ! is_number \"$1\"; then echo null\n"
    "  elif [ ${#1} -gt 15 ]; then echo -1\n"
    "  else echo \"$1\"; fi\n"
    "}\n"
    "l_memlock= l_stack= l_files= l_procs=\n"
    "while read -r m a b c rest; do\n"
    "  case \"$a $b\" in\n"
    "  'locked memory') l_memlock=$c ;;\n"
    "  'stack size') l_stack=$c ;;\n"
    "  'open files') l_files=$c ;;\n"
    "  'processes '*) l_procs=$b ;;\n"
    "  esac\n"
    "done </proc/self/limits\n"
    "least 'locked memory' \"$l_memlock\" \"$memlock\"\n"
    "least stack \"$l_stack\" \"$stack\"\n"
    "least 'open files' \"$l_files\" \"$files\"\n"
    "least processes \"$l_procs\" \"$procs\"\n"
    "h_shm=$(df -Pk /dev/shm 2>/dev/null | while read -r d kib rest; do case $rest in */dev/shm) "
    "echo $((kib * 1024)) ;; "
    "esac; done)\n"
    "least /dev/shm \"$h_shm\" \"$shm\"\n"
    "h_memory=\n"
    "for f in /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes; do\n"
    "  [ ! -r $f ] || { read -r h_memory <$f; break; }\n"
    "done\n"
    "if [ \"$memory\" != 0 ]; then\n"
    "  if ! is_number \"$h_memory\"; then note \"memory limit is ${h_memory:-not to be seen}, "
    "asked for $memory\"\n"
    "  elif [ \"$h_memory\" -gt \"$memory\" ]; then note \"memory limit is $h_memory, asked for "
    "$memory\"; fi\n"
    "fi\n"
    "is_host=null here=$(readlink /proc/self/ns/net 2>/dev/null || ls -l /proc/self/ns/net)\n"
    "here=${here##* }\n"
    "if [ -n \"$here\" ] && [ -n \"$" RUNTIME_ENV_NETNS "\" ]; then\n"
    "  is_host=false\n"
    "  [ \"$here\" != \"$" RUNTIME_ENV_NETNS "\" ] || is_host=true\n"
    "fi\n"
    "[ $net = 0 ] || [ $is_host = true ] || note \"network is not the node's own\"\n"
    "n_gpus=0\n"
    "for f in /dev/nvidia[0-9]*; do [ ! -e \"$f\" ] || n_gpus=$((n_gpus + 1)); done\n"
    "[ $gpus = 0 ] || [ $n_gpus -gt 0 ] || note 'no GPU'\n"
    "for f in $devices; do [ -e \"$f\" ] || note \"no $f\"; done\n"
    "holds=true\n"
    "[ -z \"$wrong\" ] || holds=false\n"
    "printf "
    "'{\"event\":\"container\",\"holds\":%s,\"wrong\":[%s],\"shm_bytes\":%s,\"memlock_bytes\":%s,"
    "\"stack_bytes\":%s,"
    "\"n_files\":%s,\"n_processes\":%s,\"memory_bytes\":%s,\"is_host_net\":%s,\"gpus\":%s}\\n' "
    "$holds \"$wrong\" "
    "\"$(shown \"$h_shm\")\" \"$(shown \"$l_memlock\")\" \"$(shown \"$l_stack\")\" \"$(shown "
    "\"$l_files\")\" "
    "\"$(shown \"$l_procs\")\" \"$(shown \"$h_memory\")\" $is_host $n_gpus >&2\n"
    "[ $holds = true ] || [ -z \"$required\" ] || exit 125\n"
    "unset " RUNTIME_ENV_NETNS "\n"
    "ooms() {\n"
    "  n=0\n"
    "  for f in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do\n"
    "    [ -r $f ] || continue\n"
    "    while read -r k v; do [ \"$k\" != oom_kill ] || n=$v; done <$f\n"
    "  done\n"
    "  echo $n\n"
    "}\n"
    "before=$(ooms)\n"
    "pid= early=\n"
    "trap 'if [ -n \"$pid\" ]; then kill -TERM $pid 2>/dev/null; else early=1; fi' HUP INT TERM\n"
    "\"$@\" &\n"
    "pid=$!\n"
    "[ -z \"$early\" ] || kill -TERM $pid 2>/dev/null\n"
    "while :; do\n"
    "  wait $pid\n"
    "  rc=$?\n"
    "  kill -0 $pid 2>/dev/null || break\n"
    "done\n"
    "killed=$(($(ooms) - before))\n"
    "if [ $killed -gt 0 ]; then\n"
    "  printf "
    "'\\n{\"event\":\"container_oom\",\"oom_kills\":%s,\"memory_bytes\":%s,\"status\":%s}\\n' "
    "$killed "
    "\"$(shown \"$h_memory\")\" $rc >&2\n"
    "  [ $rc -ne 0 ] || rc=137\n"
    "fi\n"
    "exit $rc\n";

static void add_number(struct argv_words *words, const char *name, int64_t value)
{
    if (value != 0) {
        words_addf(words, "%s=%lld", name, (long long)value);
    }
}

int runtime_inside_check(struct arena *arena, const struct container_flags *flags, bool is_required,
                         const char *const *argv, const char *const **ret_argv, struct err *err)
{
    struct argv_words words;
    words_init(&words, arena);
    words_add(&words, "/bin/sh");
    words_add(&words, "-c");
    words_add(&words, INSIDE);
    words_add(&words, "reperf-inside");
    if (is_required) {
        words_add(&words, "required");
    }
    add_number(&words, "shm", flags->shm_bytes);
    add_number(&words, "memlock", flags->memlock_bytes);
    add_number(&words, "stack", flags->stack_bytes);
    add_number(&words, "files", flags->n_files);
    add_number(&words, "procs", flags->n_processes);
    add_number(&words, "memory", flags->memory_bytes);
    if (flags->is_host_net) {
        words_add(&words, "net");
    }
    if (flags->wants_gpus) {
        words_add(&words, "gpus");
    }
    for (size_t idx = 0; idx < flags->n_devices; idx++) {
        /* HOST:INSIDE:RIGHTS */
        struct str rest = flags->devices[idx], host, inside;
        (void)str_next(&rest, ':', &host);
        inside = rest.ptr && rest.len && rest.ptr[0] == '/' && str_next(&rest, ':', &inside)
                     ? inside
                     : host;
        words_addf(&words, "device=%.*s", STR_ARG(inside));
    }
    words_add(&words, "--");
    words_add_all(&words, argv);
    return words_end(&words, ret_argv, err);
}
