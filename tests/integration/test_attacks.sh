#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# Ways to get a secret out, a downgrade in, or the program down, each as somebody tried it: secrets at each door, a lock edited before resume, limits of the
# shell, floods. What a job leaves behind is in test_leftovers.sh, edits of evidence in test_leaves.sh, power cuts in test_power_cut.sh.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2119,SC2016
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/run_lib.sh disable=SC1091
. "$ROOT/tests/integration/run_lib.sh"

# ---- secrets ----
for entry in MY_TOKEN=x MY_PW=hunter2 MYSQL_PWD=hunter2 API_CRED=x DB_PASS=x SSHKEY=x AZURE_PAT=x AWS_ID=AKIAIOSFODNN7EXAMPLE \
    GH=ghp_abcdefghijklmnopqrstuvwxyz0123456789 JWT=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc PROXY=http://me:hush@host/; do
    exits 2 "-C: ${entry%%=*}" smoke --dry-run -C "stacks[reperf].env.$entry"
    [ "${entry#*=}" = x ] || is "$(grep -cF "${entry#*=}" "$T/err")" 0 "and its value is not repeated"
done
exits 0 "what only looks like one" smoke --dry-run -C 'stacks[reperf].env.TOKENIZERS_PARALLELISM=false'
(
    umask 077
    NCCL_TOKEN=S3CR CUDA_SECRET=S3CR OMP_PASSWORD=S3CR NCCL_PAT=S3CR NCCL_DEBUG_FILE=ghp_abcdefghijklmnopqrstuvwxyz0123456789 NCCL_DEBUG=WARN smoke --repeats 1 >"$T/out" 2>&1
)
R=$(run_folder)
is "$(jq -r '.variables.NCCL_DEBUG' "$R/evidence/environment/local.json")" WARN "what decides a measurement is kept of the environment"
is "$(grep -rlaE 'S3CR|ghp_' "$REPERF_STATE" | wc -l)" 0 "and no secret, in no file of the run"
is "$(find "$REPERF_STATE" -type f -perm /077 | wc -l)" 0 "umask 077: nobody else may read any file of it"

# ---- nothing that is judged chooses how strictly ----
forget_runs
echo 'other "model":"resnet50"=>"model":"bert-base"' >"$T/fake/mode"
exits 9 "a log of another model gives no number" smoke --repeats 1
forget_runs
echo 'other "model":"resnet50"=>"model":"bert-base"' >"$T/fake/mode"
exits 137 "killed at once" env REPERF_CRASH_AFTER=1 "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --repeats 1
R=$(run_folder)
sed -i '0,/{/s//{"derivation": 4, /' "$R/evidence/lock/lock.json"
exits 5 "a lock that asks for rules of old" "$REPERF" resume last
forget_runs

# ---- limits ----
mode ''
smoke --repeats 1 >"$T/out" 2>&1
fails 10 'File too large' "a limit of file sizes: a message, and no signal" bash -c 'ulimit -f 1; exec "$0" report last --html "$1"' "$REPERF" "$T/r.html"
exits 0 "a small stack is made larger" bash -c 'ulimit -Ss 64; exec "$@"' _ "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --repeats 1
fails 2 'a stack of 64 KiB [(]ulimit -s[)], expected at least 1024' "where it may not, the command says so" bash -c 'ulimit -s 64; exec "$@"' _ "$REPERF" list reports
forget_runs
mode hangs
bash -c 'ulimit -Sc "$(ulimit -Hc)"; exec "$@"' _ "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --repeats 1 >"$T/hangs.out" 2>&1 &
pid=$!
waiting_for 120 test -d "$REPERF_STATE/runs"
is "$(awk '/^Max core file size/ { print $5 }' "/proc/$pid/limits")" 0 "no core file, which would hold what is secret"
kill -TERM "$pid"
wait "$pid"
mode ''

# ---- folders of others ----
mkdir -m 0777 "$T/open"
exits 5 "a state folder that everybody may write to" env REPERF_STATE="$T/open" "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --repeats 1
like "$(cat "$T/err")" 'open: belongs to user [0-9]*, mode 0777: expected a folder of your own' "is refused"
if [ "$(id -u)" -eq 0 ]; then
    mkdir "$T/theirs" && chown 65534 "$T/theirs"
    exits 5 "one of another user" env REPERF_STATE="$T/theirs" "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --repeats 1
else
    skip "a state folder of another user" "it takes root"
fi

# ---- floods ----
# shellcheck disable=SC2317
within() { (ulimit -t 60; "$@"); } # a minute of the processor, however long this machine takes for it
head -c 4000000 /dev/zero | tr '\0' '\r' >"$T/cr.log"
exits 9 "4 MB of carriage returns: no number" within "$REPERF" measure "$T/cr.log"
head -c 4000000 /dev/zero >"$T/nul.log"
exits 9 "4 MB of NUL: none either" within "$REPERF" measure "$T/nul.log"
tap_done
