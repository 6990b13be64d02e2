#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: fleet
# nodes bench over four real sshds on this machine: every measure, a node that is slow on purpose, nodes that lie, leftovers. Other work on this
# machine may make a healthy node look slow, so no test here requires that there is no outlier; tests/unit/test_node_bench.c does, with seeded
# noise.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/ssh_lib.sh disable=SC1091
source "$ROOT/tests/integration/ssh_lib.sh"
# shellcheck source=tests/integration/nodes_lib.sh disable=SC1091
source "$ROOT/tests/integration/nodes_lib.sh"
export REPERF_ROOT="$ROOT"
have_sshd "nodes bench" || tap_done
unset SSH_AUTH_SOCK
trap 'stop_sshds; rm -rf "$T"' EXIT
ssh_keys
export REPERF_SSH_CONFIG="$T/ssh/config"
for n in n1 n2 n3 n4; do start_sshd "$n" || exit 1; done
nodes_inventory n1 n2 n3 n4 >"$T/four.json"
port=$(free_port)
bench() { # INVENTORY ARG...
    local inventory=$1
    shift
    "$REPERF" nodes bench "$inventory" --fanout 1 --memory-mib 12 --disk-mib 2 --sample-ms 3 --repeats 3 --confirm 0 --port "$port" "$@"
}
valid() { # SCHEMA NAME: the document in $T/out, which stays
    cp "$T/out" "$T/valid.json"
    exits 0 "$2" /usr/bin/python3 tests/integration/validate.py "manifests/schema/$1.json" "$T/valid.json"
    cp "$T/valid.json" "$T/out"
}
q() { jq -r "$1" "$T/out"; }
left() { # what is left on the nodes beside the program
    find "$T"/work-n?/jobs -mindepth 1 2>/dev/null
    find "$T"/work-n? -maxdepth 1 -name '.bench*' 2>/dev/null
    pgrep -f "$T/work-n[1-4]/bin/reperf-node-[0-9a-f]* bench"
}

# ---- the limits, and wrong uses ----
exits 0 "the limits are as their schema says" /usr/bin/python3 tests/integration/validate.py manifests/schema/node-bench.json manifests/node-bench.json
exits 2 "no inventory" "$REPERF" nodes bench
exits 6 "nodes of which nothing can be measured" "$REPERF" nodes bench local --only net
like "$(cat "$T/out" "$T/err" | xargs)" '1 node: 0 within, .* 1 not measured as asked.*local: nothing was measured: there is one node' "are no success"
exits 2 "an unknown measure" "$REPERF" nodes bench local --only speed
like "$(cat "$T/err")" 'expected memory, flops, disk, clock, net or gpu' "says which there are"
exits 2 "two forms at once" "$REPERF" nodes bench local --json --junit
sed 's/"share": 0.1/"share": 2/' manifests/node-bench.json >"$T/limits.json"
exits 3 "invalid limits" bench local --limits "$T/limits.json"
like "$(cat "$T/err")" 'limits.json:\$.measures\[0\]' "name the place"
REPERF_NODE=/no/such exits 6 "without reperf-node nothing is measured" bench local
like "$(cat "$T/err")" 'reperf-node: /no/such: No such file' "and it says why"

# ---- what reperf-node does ----
node="$B/reperf-node"
for what in "memory 12582912 3" "flops 2 3" "disk $T 1048576 3" "loop 3"; do
    # shellcheck disable=SC2086
    exits 0 "reperf-node bench ${what%% *}" "$node" bench 300 $what
    valid node-bench-answer "is as its schema says"
done
exits 0 "a folder that is not there" "$node" bench 300 disk "$T/none" 1048576 3
is "$(q '.not_measured | map(.measure) | join(" ")') $(q '.series | length')" "disk.write disk.read disk.fsync 0" "has no figures, and says so"
for wrong in "30" "0 loop 3" "30 loop" "30 loop 0" "30 loop 3 4" "30 memory -1 3" "30 nothing 3" "30 listen 127.0.0.1 99999"; do
    # shellcheck disable=SC2086
    exits 2 "bench $wrong: no such measurement" "$node" bench $wrong
done
exits 142 "its limit ends it" "$node" bench 1 clock 1000 100
REPERF_BENCH_TOKEN=$(printf 'ab%.0s' {1..32}) "$node" bench 120 listen 127.0.0.1 "$port" 2>"$T/listener" &
listener=$!
served "$listener" "reperf-node bench listen" port_answers "$port" # a stranger already: it shows no token
is "$(exec 3<>/dev/tcp/127.0.0.1/"$port" && printf 'cd%.0s' {1..16} >&3 && cat <&3 | wc -c)" 0 "the listener says nothing to a peer with another token"
REPERF_BENCH_TOKEN=$(printf 'ab%.0s' {1..16})$(printf 'cd%.0s' {1..16}) exits 74 "a listener that is another is left alone" "$node" bench 120 ring 127.0.0.1 "$port" 1 3
like "$(cat "$T/err")" 'is not the expected node' "and it says why"
wait "$listener"
is $? 74 "the listener served one peer alone"

# ---- four nodes ----
bench "$T/four.json" --json --html "$T/page.html" >"$T/out" 2>"$T/err"
status=$?
like "$status" '^[01]$' "four nodes, everything: measured"
valid nodes-bench-output "the document is as its schema says"
is "$(q '[.nodes[].figures[] | select(.verdict == "not_measured") | .measure] | unique | join(" ")')" "gpu.allreduce gpu.hbm gpu.matmul gpu.matmul.fp32" "all but what needs a GPU"
is "$(q '[.nodes[].figures[] | select(.verdict == "not_measured") | .message] | unique | join(" ")')" "there is no GPU" "with the reason"
is "$(q '[.nodes[].figures[] | select(.measure == "memory.triad" or .measure == "flops.fp64.all" or .measure == "disk.read") | .repeats] | unique | join(" ")')" 3 "each with its repeats"
is "$(q '[.links[] | "\(.from)\(.to)"] | unique | length') $(q '[.links[] | select(.measure == "net.send") | .size_bytes] | unique | join(" ")')" "12 4096 65536 1048576" "each pair both ways, in three sizes"
is "$(q '[.links[] | select(.measure == "net.ring") | "\(.from)-\(.to)"] | join(" ")')" "n1-n2 n2-n3 n3-n4 n4-n1" "and the ring"
is "$(q '[.nodes[].group] | unique | length')" 1 "one group"
is "$(q '[.nodes[] | select(.clock_offset_min_ms <= 0.001 and .clock_offset_max_ms >= -0.001)] | length')" 4 "the offset of this machine's clock against itself may be 0"
is "$status" "$(q '.exit_status')" "the status is what the document says"
is "$status" "$(q 'if .outliers == [] then 0 else 1 end')" "and what the outliers say"
is "$(left)" "" "nothing is left on the nodes"
is "$(grep -c '<tr class="\(run\|row-differs\)"><th scope="row">n[1-4]</th>' "$T/page.html")" 4 "the page has a row a node"
exits 0 "the page is well-formed" xmllint --html --noout --nowarning "$T/page.html"

# ---- one that is slow ----
# One program for all nodes: n3 is the other one.
other() { # SHELL LINE
    cat >"$T/other" <<END
#!/bin/bash
case \$0:\$1 in
*/work-n3/*:bench) $1 ;;
*) exec -a "\$0" "$(realpath "$node")" "\$@" ;;
esac
END
    chmod +x "$T/other"
}
# shellcheck disable=SC2016 # of the script that is written
# A tenth of the time, and less: its processes are stopped again and again. The limits also hold on a busy machine.
other 'set -m; "'"$(realpath "$node")"'" "$@" & trap "kill -KILL -\$!" EXIT; while kill -STOP -$! && sleep 0.09 && kill -CONT -$! && sleep 0.005; do :; done 2>/dev/null; wait $!; rc=$?; trap - EXIT; exit $rc'
jq '.deviations = 1 | .measures[].share |= (if . == null then null else 0.5 end)' manifests/node-bench.json >"$T/limits.json"
REPERF_NODE="$T/other" exits 1 "a node that runs a tenth of the time" bench "$T/four.json" --only flops --sample-ms 10 --confirm 1 --limits "$T/limits.json" --junit
is "$(grep -c 'measuring: flops again, as it has an outlier' "$T/err")" 1 "is measured again"
mv "$T/out" "$T/junit.xml"
like "$(xmllint --xpath '//testsuite[@name="n3"]//failure/@message' "$T/junit.xml")" \
    'FP(32|64) (core|all) [0-9]+ % of its group.s median \([0-9.]+ of [0-9.]+ GFLOP/s\)' "is named with the figure that gives it away"
exits 0 "JUnit as CI servers read it" xmllint --noout --relaxng tests/integration/junit.rng "$T/junit.xml"

# ---- what is kept, and the gate of a run ----
exits 0 "what was measured is kept" "$REPERF" history --nodes --json
valid history-nodes "the document is as its schema says"
exits 0 "the document" cat "$(q '.benches[-1].file')"
is "$(q '[.nodes[].figures[] | select(.verdict != "not_measured") | .repeats] | unique | join(" ")')" 6 "has the repeats of both times, of each node"
exits 0 "the history again" "$REPERF" history --nodes --json
is "$(q '[.benches[] | select(.inventory == "test")] | length') $(q '.benches[-1] | "\(.inventory) \(.nodes) \(.outliers | contains(["n3"]))"')" "2 test 4 true" "each time, with the outlier"
sick=$(q '.benches[-1].file')
# shellcheck disable=SC2317 # by exits
gated() { "$REPERF" run paddle-perf-2020 --profile smoke --case 'resnet50/reperf/fp32/n1g1/*' --nodes "${2:-$T/four.json}" --dry-run --gate "$1"; } # FILE [INVENTORY]
exits 6 "a run whose gate has something against a node" gated "$sick"
like "$(cat "$T/err")" 'gate .*: n[1-4]: FP(32|64) (core|all) [0-9]+ % of its group' "is refused, with the figure that gives it away"
within='.outliers = [] | .exit_status = 0 | .nodes[].figures[] |= (if .verdict == "outlier" then .verdict = "within" | .message = "" else . end)'
jq ".deviations = 1e6 | $within" "$sick" >"$T/well.json"
exits 0 "a gate that has nothing against any" gated "$T/well.json"
# shellcheck disable=SC2154
ssh_port[n5]=1
nodes_inventory n1 n2 n3 n5 >"$T/other.json"
exits 6 "a node that was not measured" gated "$T/well.json" "$T/other.json"
like "$(cat "$T/err")" 'n5: not measured' "is named"
jq '.inventory = "others"' "$T/well.json" >"$T/others.json"
exits 6 "another inventory" gated "$T/others.json"
exits 6 "a gate with a slow link between two of the nodes" gated tests/fuzz/corpus/bench_doc/link
like "$(cat "$T/err")" "n1 to n2: send 10 % of its group's median" "is refused, with its figure"
mkdir -p "$T/slow/nodes-bench" && cp tests/fuzz/corpus/bench_doc/link "$T/slow/nodes-bench/20260101T000000000Z-test.json"
REPERF_STATE="$T/slow" exits 0 "its history" "$REPERF" history --nodes --json
valid history-nodes "is as its schema says"
is "$(q '.benches[0].slow_links | join(" ")')" "n1 to n2" "and names the link"
forged() { # NAME JQ PATTERN
    jq "$2" "$sick" >"$T/forged.json"
    exits 3 "$1" gated "$T/forged.json"
    like "$(cat "$T/err")" "$3" "and says what follows"
}
forged "a document that contradicts its figures" '.outliers = []' '\.outliers: expected "n[1-4]: FP'
forged "verdicts that do not follow" "$within" 'n[1-4]: flops\.[a-z0-9.]+: within, but outlier follows from the values'
forged "a median that its values do not have" '.nodes[0].figures[0].value *= 2' 'n1: flops\.[a-z0-9.]+: value is .* follows from the values'
forged "an exit status that does not follow" '.exit_status = 6' 'exit_status 6, but 1 follows'
forged "a figure left out" 'del(.nodes[2].figures[0])' 'flops\.[a-z0-9.]+ is listed for only one of n1 and n3'
forged "a figure that was not measured" '.nodes[1].figures[0] |= (.values = [] | .repeats = 0 | .value = null | .verdict = "not_measured")' 'n[12]: flops'

# ---- sealed ----
"$REPERF" keygen "$T/key" >/dev/null 2>&1
exits 0 "what was measured is sealed" "$REPERF" seal --key "$T/key" "$sick"
archive=${sick%.json}.tar.zst
exits 0 "and verified: every figure follows" "$REPERF" verify --key "$T/key.pub" "$archive"
like "$(cat "$T/out")" 'derived from the values of 16 figures' "so many of them"
like "$(cat "$T/out")" 'of test: FAILED' "with its outlier"
exits 0 "the history" "$REPERF" history --nodes --json
is "$(q '.benches[-1].archive')" "$archive" "names the archive"
exits 2 "nothing to replay" "$REPERF" replay "$archive"
exits 3 "what does not follow is not sealed" "$REPERF" seal -o "$T/forged.tar.zst" "$T/forged.json"
mkdir "$T/unpacked"
tar -C "$T/unpacked" --zstd -xf "$archive" 2>/dev/null
cp "$T/forged.json" "$T/unpacked/manifest/nodes-bench.json"
exits 5 "nor from a folder" "$REPERF" seal -o "$T/forged.tar.zst" "$T/unpacked"
cp "$T/well.json" "$T/unpacked/manifest/nodes-bench.json"
exits 5 "nor with another result" "$REPERF" seal -o "$T/forged.tar.zst" "$T/unpacked"
like "$(cat "$T/err")" 'result.json: not what reperf writes there' "which is named"

# ---- doctor --deep ----
"$REPERF" nodes doctor local --deep --allow-unknown --json >"$T/out" 2>"$T/err"
is $? "$(q '.bench.exit_status')" "a doctor that measures, too, ends as the measurement does"
jq .bench "$T/out" >"$T/deep.json"
valid doctor-output "the document is as its schema says"
exits 0 "and what it measured is one of nodes bench" /usr/bin/python3 tests/integration/validate.py manifests/schema/nodes-bench-output.json "$T/deep.json"

# ---- nodes that lie ----
lies() { # NAME ERE SHELL LINE
    other "$3"
    REPERF_NODE="$T/other" exits 6 "$1" bench "$T/four.json" --nodes n1,n3 --only memory --json
    valid nodes-bench-output "likewise"
    like "$(q '.nodes[] | select(.node == "n3") | .error.message')" "$2" "is reported for n3"
    is "$(q '[.nodes[] | select(.figures[0].verdict != "not_measured") | .node] | join(" ")')" "n1" "the other one is measured"
    is "$(left)" "" "nothing is left"
}
head='{\"schema_version\":1,\"what\":\"memory\",\"cpu_model\":\"X\",\"cpus\":2,\"gpus\":0,\"series\":[{\"measure\":\"memory.triad\",\"size_bytes\":0,'
lies "text instead of figures" 'memory: its answer:1:1' 'echo Segmentation fault'
lies "a status" 'ended with status 3: out of luck' 'echo out of luck; exit 3'
lies "figures that no machine reaches" 'no machine reaches' "echo \"$head\\\"work\\\":1000000000000,\\\"ns\\\":[1,1,1]}],\\\"notes\\\":[],\\\"not_measured\\\":[]}\""
lies "more time than it took" 'its repeats add up to 3000.000 s, but all of it took' "echo \"$head\\\"work\\\":1000,\\\"ns\\\":[1000000000000,1000000000000,1000000000000]}],\\\"notes\\\":[],\\\"not_measured\\\":[]}\""
lies "endless output" 'says more than 1048576 bytes' 'head -c 2000000 /dev/zero; sleep 600'

# ---- one that was disturbed ----
# The first time it says, and takes, sixty times as long as it needed; a node may be ten times slower than the others before that counts, so other work on this
# machine makes none of them an outlier.
jq '.measures[].share |= (if . == null then null else 0.9 end)' "$T/limits.json" >"$T/limits10.json"
# shellcheck disable=SC2016 # of the script that is written
other 'if mkdir "'"$T"'/was" 2>/dev/null; then "'"$(realpath "$node")"'" "$@" | jq -c ".series[].ns[] *= 60" >"'"$T"'/answer" && sleep "$(jq "[.series[].ns[]] | add / 1e9" "'"$T"'/answer")" && cat "'"$T"'/answer"; else exec -a "$0" "'"$(realpath "$node")"'" "$@"; fi'
REPERF_NODE="$T/other" exits 0 "a node that was slow once is no outlier when it is measured again" bench "$T/four.json" --only flops --confirm 2 --limits "$T/limits10.json" --json
like "$(q '[.nodes[].figures[] | select(.verdict == "within") | .repeats] | unique | join(" ")')" '^(6|9)$' "with all its repeats"
q '.nodes[] | select(.node == "n3") | .figures[] | select(.measure == "flops.fp64.all") | (.values[:3] | max) < (.values[-3:] | min)' >"$T/slower"
is "$(cat "$T/slower")" true "the first ones too"

# ---- GPUs without an image ----
jq '.nodes[].gpus = 2 | .runtime = "docker"' "$T/four.json" >"$T/gpus.json"
exits 6 "GPUs that the inventory has, and no image" bench "$T/gpus.json" --nodes n1 --only memory --only gpu --json
valid nodes-bench-output "the document is as its schema says"
like "$(q '.nodes[0].figures | map(select(.verdict == "not_measured" and (.measure | startswith("gpu."))) | .message) | unique | join(" ")')" \
    '^the image: image reperf-cuda12 is built, not pulled: images/build.sh reperf-cuda12 --store prints what --image reperf-cuda12= takes; without GPUs: --only memory .*--only net$' \
    "are not measured, with what to do"
is "$(q '.nodes[0].figures[0] | "\(.measure) \(.repeats)"')" "memory.triad 3" "the rest is"
exits 0 "and by itself it is a success" bench "$T/gpus.json" --nodes n1 --only memory --json
is "$(q '.nodes[0].figures | map(.measure) | join(" ")')" "memory.triad" "which claims nothing of GPUs"

# ---- who cannot be reached, and SIGTERM ----
nodes_inventory n1 n5 >"$T/two.json"
exits 6 "a node that is not there" bench "$T/two.json" --only memory --only net
like "$(cat "$T/out")" '^not measured: n5: memory, latency, send, receive, ring: ' "is not measured"
like "$(cat "$T/out")" '^not compared: n1: memory: its group has 1 measured; with fewer than 3' "the other one is not compared"
{ "$REPERF" nodes bench "$T/four.json" --only flops --sample-ms 3000 & } >"$T/out" 2>"$T/err"
pid=$!
served "$pid" "a measurement" pgrep -f "$T/work-n1/bin/reperf-node-[0-9a-f]* bench" >"$T/pids"
kill -TERM $pid
wait $pid
is $? 143 "SIGTERM"
is "$(left)" "" "leaves nothing"
tap_done
