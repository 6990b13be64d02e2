/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/remote_scripts.h"

/* A full disk is told by cat, whose message names the reason: a shell's own printf says "I/O error" alone. */
const char REMOTE_PRELUDE[] =
    "LC_ALL=C; export LC_ALL\n"
    "w=$1\n"
    "if [ -z \"$w\" ]; then\n"
    "  if [ -z \"$XDG_STATE_HOME$HOME\" ]; then echo 'HOME is not set there'; exit 74; fi\n"
    "  w=${XDG_STATE_HOME:-$HOME/.local/state}/reperf\n"
    "fi\n"
    "d=$w/jobs/$2\n"
    "probe() {\n"
    "  p=$1/.probe.$$; s=0\n"
    "  dd if=/dev/zero bs=4096 count=4 2>/dev/null | cat >\"$p\" || s=1\n"
    "  rm -f \"$p\"; return $s\n"
    "}\n"
    "nap() { sleep 0.05 2>/dev/null || sleep 1; }\n"
    /* Sets state, and pid and rc where there are any. */
    "look() {\n"
    "  state=absent pid= rc=\n"
    "  if read -r pid start boot 2>/dev/null <\"$d/pid\"; then\n"
    "    state=lost\n"
    "    read -r now </proc/sys/kernel/random/boot_id\n"
    "    if [ \"$now\" = \"$boot\" ] && read -r stat 2>/dev/null <\"/proc/$pid/stat\"; then\n"
    "      set -- ${stat##*) }\n"
    "      if [ \"${20}\" = \"$start\" ] && [ \"$1\" != Z ]; then state=running; fi\n"
    "    fi\n"
    "  elif [ -d \"$d/claim\" ]; then\n"
    "    state=running pid=\n"
    "    [ -z \"$(find \"$d/claim\" -prune -mmin +1 2>/dev/null)\" ] || state=lost\n"
    "  fi\n"
    /* Last: a wrapper that was alive a moment ago may have written it since. */
    "  if read -r word rc 2>/dev/null <\"$d/status\" && [ \"$word\" = exit ]; then\n"
    "    state=ended\n"
    "  fi\n"
    "}\n";

/* $1 is the job's folder. As in remote_local.c; the job itself is a script there that takes itself away and becomes the
   program. It outlives a SIGTERM to the session, so as to tell how the program ended. What fails before the program runs takes the claim back, so that the job can be started once the trouble is over. */
const char REMOTE_WRAPPER[] =
    "dir=$1\n"
    "trap : TERM INT HUP\n"
    "mkdir \"$dir/claim\" 2>/dev/null || exit 0\n"
    "bad() { rm -f \"$dir/pid.part\" \"$dir/log\"; rmdir \"$dir/claim\"; exit 70; }\n"
    "read -r stat </proc/$$/stat\n"
    "set -- ${stat##*) }; start=${20}\n"
    "read -r boot </proc/sys/kernel/random/boot_id\n"
    ": >\"$dir/log\" || bad\n"
    "echo \"$$ $start $boot\" >\"$dir/pid.part\" || bad\n"
    "fine=; if sync \"$dir/pid.part\" 2>/dev/null; then fine=1; fi\n"
    "mv \"$dir/pid.part\" \"$dir/pid\" || bad\n"
    "if [ -f \"$dir/beside\" ] && mkdir -p \"$dir/monitor\"; then\n"
    "  /bin/sh \"$dir/beside\" \"$dir\" >\"$dir/monitor/log\" 2>&1 </dev/null &\n"
    "fi\n"
    "/bin/sh \"$dir/job\" >\"$dir/log\" 2>&1 </dev/null\n"
    "rc=$?\n"
    "[ ! -f \"$dir/cleanup\" ] || /bin/sh \"$dir/cleanup\" >/dev/null 2>&1 </dev/null\n"
    "if [ \"$fine\" ]; then sync \"$dir/log\" || exit 70; else sync; fi\n"
    "echo \"exit $rc\" >\"$dir/status.part\" || exit 70\n"
    "if [ \"$fine\" ]; then sync \"$dir/status.part\" || exit 70; else sync; fi\n"
    "mv \"$dir/status.part\" \"$dir/status\"\n";

/* A start whose connection was lost may still be ending when it is made again: each has file names of its own. */
/* tail --pid sleeps without making processes; where it is not GNU's, look again every 50 ms. Lost, and the disk is full: then that is
   why it has no status. */
#define WAIT_FOR_JOB                                                                               \
    "look\n"                                                                                       \
    "if [ $state = running ] && [ \"$3\" -gt 0 ]; then\n"                                          \
    "  r=1\n"                                                                                      \
    "  if [ \"$pid\" ]; then\n"                                                                    \
    "    timeout \"$3\" tail --pid=\"$pid\" -s 0.03 -f /dev/null >/dev/null 2>&1; r=$?\n"          \
    "  fi\n"                                                                                       \
    "  i=0\n"                                                                                      \
    "  while [ $r -ne 0 ] && [ $r -ne 124 ] && [ $state = running ] && [ $i -lt $(($3 * 20)) ]; "  \
    "do\n"                                                                                         \
    "    if sleep 0.05 2>/dev/null; then i=$((i+1)); else sleep 1; i=$((i+20)); fi\n"              \
    "    look\n"                                                                                   \
    "  done\n"                                                                                     \
    "  look\n"                                                                                     \
    "fi\n"                                                                                         \
    "size=$(wc -c 2>/dev/null <\"$d/log\") || size=0\n"                                            \
    "if [ $state = lost ]; then probe \"$d\" || exit 74; fi\n"                                     \
    "echo $state $rc $size\n"

#define DIGEST_OF(path)                                                                            \
    "if command -v sha256sum >/dev/null 2>&1; then r=$(sha256sum <\"" path "\")\n"                 \
    "elif command -v openssl >/dev/null 2>&1; then r=$(openssl dgst -sha256 -r <\"" path "\")\n"   \
    "elif command -v busybox >/dev/null 2>&1; then r=$(busybox sha256sum <\"" path "\")\n"         \
    "else r=; fi || { echo \"" path ": its digest could not be made\"; exit 74; }\n"
#define DIGEST_OF_LOG DIGEST_OF("$d/log")

/* Every process of the session, until there is none or all of them had the signal thrice: one may fork meanwhile. A shell reads
   byte by byte, which is slow on a node with many processes: where there is grep, it says which files are worth reading. */
#define SIGNAL_JOB                                                                                 \
    "if read -r pid start boot 2>/dev/null <\"$d/pid\"; then\n"                                    \
    "  read -r now </proc/sys/kernel/random/boot_id\n"                                             \
    "  stat=; read -r stat 2>/dev/null <\"/proc/$pid/stat\"\n"                                     \
    "  set -- ${stat##*) }\n"                                                                      \
    "  if [ \"$now\" = \"$boot\" ] && { [ -z \"$stat\" ] || [ \"${20}\" = \"$start\" ]; }; then\n" \
    "    round=0\n"                                                                                \
    "    while [ $round -lt 3 ]; do\n"                                                             \
    "      hit=\n"                                                                                 \
    "      files=$(exec 2>/dev/null; grep -ls \") [^Z] [0-9]* [0-9]* $pid \" /proc/[0-9]*/stat)\n" \
    "      [ $? -lt 126 ] || files='/proc/[0-9]*/stat'\n"                                          \
    "      for f in $files; do\n"                                                                  \
    "        read -r stat 2>/dev/null <\"$f\" || continue\n"                                       \
    "        set -- ${stat##*) }\n"                                                                \
    "        if [ \"$4\" = \"$pid\" ] && [ \"$1\" != Z ]; then\n"                                  \
    "          q=${f#/proc/}; kill -\"$n\" \"${q%/stat}\" 2>/dev/null && hit=1\n"                  \
    "        fi\n"                                                                                 \
    "      done\n"                                                                                 \
    "      if [ \"$hit\" ] && [ \"$n\" -eq 9 ]; then round=$((round+1)); else round=3; fi\n"       \
    "    done\n"                                                                                   \
    "  fi\n"                                                                                       \
    "fi\n"                                                                                         \
    "if [ \"$n\" -eq 9 ] && [ -f \"$d/cleanup\" ]; then\n"                                         \
    "  if command -v timeout >/dev/null 2>&1; then timeout 30 /bin/sh \"$d/cleanup\"\n"            \
    "  else /bin/sh \"$d/cleanup\"; fi >/dev/null 2>&1 </dev/null\n"                               \
    "fi\n"

/* The end of a job in one go: nothing of it runs on, then its log is what it will be. One that is not there (any more) is an
   empty one, with the digest of nothing: "-" means that there is no tool for it. The log from $from on follows, $most of it. */
#define REAP_JOB                                                                                   \
    "n=9\n" SIGNAL_JOB "[ -f \"$d/log\" ] || {\n"                                                  \
    "  echo e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 0\n"                  \
    "  exit 0\n"                                                                                   \
    "}\n" DIGEST_OF_LOG "size=$(wc -c <\"$d/log\") || exit 74\n"                                   \
    "r=${r%% *}\n"                                                                                 \
    "echo \"${r:--} $size\"\n"                                                                     \
    "exec 2>/dev/null\n"                                                                           \
    "tail -c +$((from + 1)) \"$d/log\" | head -c \"$most\"\n"                                      \
    "exit 0\n"

const char REMOTE_REAP[] = "from=$3 most=$4\n" REAP_JOB;

/* A job that is over within its first second needs no operation more: how it ended, and what a reap would say of it. $8: most. */
const char REMOTE_START[] =
    "mkdir -p \"$d\" || exit 74\n"
    "if [ ! -d \"$d/claim\" ]; then\n"
    "  command -v setsid >/dev/null 2>&1 || {\n"
    "    echo 'it has no setsid (util-linux or busybox), without which a job would end with its "
    "connection'\n"
    "    exit 74\n"
    "  }\n"
    "  (umask 077; cat >\"$d/job.$3.$$\") || { rm -f \"$d/job.$3.$$\"; exit 74; }\n"
    "  if [ \"$(wc -c <\"$d/job.$3.$$\")\" -ne \"$4\" ]; then\n"
    "    echo 'the job came incomplete'; rm -f \"$d/job.$3.$$\"; exit 74\n"
    "  fi\n"
    "  if [ \"$6\" ]; then\n"
    "    printf '%s\\n' \"$6\" | cat >\"$d/cleanup.$3.$$\" || exit 74\n"
    "    mv -f \"$d/cleanup.$3.$$\" \"$d/cleanup\" || exit 74\n"
    "  fi\n"
    "  if [ \"$7\" ]; then\n"
    "    printf '%s\\n' \"$7\" | cat >\"$d/beside.$3.$$\" || exit 74\n"
    "    mv -f \"$d/beside.$3.$$\" \"$d/beside\" || exit 74\n"
    "  fi\n"
    "  mv -f \"$d/job.$3.$$\" \"$d/job\" || exit 74\n"
    "  setsid /bin/sh -c \"$5\" reperf-job \"$d\" </dev/null >/dev/null 2>&1 &\n"
    "fi\n"
    "i=0\n"
    "while [ ! -s \"$d/pid\" ] && [ ! -e \"$d/status\" ]; do\n"
    "  i=$((i+1))\n"
    "  if [ $i -gt 2 ]; then\n"
    "    if [ ! -d \"$d/claim\" ]; then probe \"$d\" || exit 74; fi\n"
    "    if [ $i -gt 300 ]; then echo \"$d: the job was claimed, but its wrapper did not start\"; "
    "exit 74; fi\n"
    "    nap\n"
    "  else\n"
    "    sleep 0.01 2>/dev/null || sleep 1\n"
    "  fi\n"
    "done\n"
    "from=0 most=$8\n"
    "set -- \"$1\" \"$2\" 1\n" WAIT_FOR_JOB "[ $state = ended ] || exit 0\n" REAP_JOB;

const char REMOTE_POLL[] = WAIT_FOR_JOB;

const char REMOTE_READ[] = "[ -f \"$d/log\" ] || exit 0\n"
                           "exec 2>/dev/null\n"
                           "tail -c +$(($3 + 1)) \"$d/log\" | head -c \"$4\"\n"
                           "exit 0\n";

const char REMOTE_DIGEST[] =
    "[ -f \"$d/log\" ] || { echo \"$d/log is not there\"; exit 74; }\n" DIGEST_OF_LOG
    "echo \"${r%% *}\"\n";

const char REMOTE_SIGNAL[] = "n=$3\n" SIGNAL_JOB "exit 0\n";

const char REMOTE_FORGET[] =
    "look\n"
    "if [ $state = running ]; then echo \"$d: it still runs\"; exit 74; fi\n"
    "rm -rf \"$d\" || exit 74\n"
    "case $2 in */*) cd \"$w/jobs\" && rmdir -p \"${2%/*}\" 2>/dev/null ;; esac\n"
    "exit 0\n";

const char REMOTE_FOLDER[] = "mkdir -p \"$w\" || exit 74\n"
                             "cd \"$w\" || exit 74\n"
                             "probe . || exit 74\n"
                             "pwd -P\n";

/* A shell takes a program of another machine for a script: it is not even tried. */
const char REMOTE_NODE_LAUNCH[] =
    "f=$w/bin/reperf-node-$2\n"
    "m=$(uname -m)\n"
    "if [ \"$m\" != \"$3\" ]; then echo \"the node is a $m, reperf-node is for $3\"; exit 74; fi\n"
    "[ -f \"$f\" ] || exit 75\n" DIGEST_OF(
        "$f") "[ \"$r\" ] || { echo 'the node has no tool for SHA-256'; exit 74; }\n"
              "[ \"${r%% *}\" = \"$2\" ] || exit 75\n"
              "exec \"$f\" \"$w\"\n";

/* What puts that were cut off left there goes after an hour, what older versions of ours left after a month. */
const char REMOTE_NODE_PUT[] =
    "mkdir -p \"$w/bin\" || exit 74\n"
    "find \"$w/bin\" -name '.reperf-node-*' -mmin +60 -exec rm -f {} \\; 2>/dev/null\n"
    "find \"$w/bin\" -name 'reperf-node-*' -mtime +30 -exec rm -f {} \\; 2>/dev/null\n"
    "t=$w/bin/.reperf-node-$3.$$\n"
    "bad() { rm -f \"$t\"; exit 74; }\n"
    "(umask 077; cat >\"$t\") || bad\n" DIGEST_OF(
        "$t") "[ \"${r%% *}\" = \"$2\" ] || { echo 'it did not come whole'; bad; }\n"
              "chmod 700 \"$t\" || bad\n"
              "mv -f \"$t\" \"$w/bin/reperf-node-$2\" || bad\n";
