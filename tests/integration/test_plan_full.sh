#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# The full profile on the reports' own cluster: what each case needs, each command that provides it, and, with fake pins, code and data, what would be started.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
REPORTS=(airank-mmseg-deeplabv3plus dlperf-paddle-resnet50 dlperf-tf2-resnet50 paddle-perf-2020 paddle-perf-deeplabv3p paddle-perf-hrnetw18)
mkdir "$T/bin"
ln -s "$REPERF" "$T/bin/reperf"

# --- every case of every report ---
for report in "${REPORTS[@]}"; do
    "$REPERF" plan "$report" --profile full --nodes v100-4x8 --json 2>/dev/null
    "$REPERF" plan "$report" --profile full --nodes v100-4x8 2>/dev/null | sed -n 's/^ *[0-9]* *[$] //p' >>"$T/as-text"
done | jq -s '[.[].steps[]]' >"$T/steps"
is "$(jq 'length' "$T/steps")" 179 "cases of six reports"
is "$(jq '[.[] | select(.case | contains("/reperf/") | not)] | length' "$T/steps")" 126 "of published frameworks"
is "$(jq '[.[].needs[] | select(.what | contains("has no recipe"))] | length' "$T/steps")" 0 "none of them without a recipe"
is "$(jq '[.[] | select(.cause and (.needs | length) == 0)] | length' "$T/steps")" 0 "what cannot be run says what it needs"
is "$(jq '[.[].needs[] | select(.command == null) | .what] | length' "$T/steps")" 0 "each need has a command that brings it"

is "$(sort -u "$T/as-text")" "$(jq -r '[.[].needs[].command | values] | unique | .[]' "$T/steps" | sort -u)" "the text has the same commands"

# --- how it reads, and how long it takes ---
"$REPERF" plan paddle-perf-hrnetw18 --nodes v100-4x8 >"$T/out" 2>/dev/null
is "$(sed -n '/^first/,/^$/p' "$T/out" | grep -c 'images/build.sh [^ ]* --store\|^      source; 6 cases; to fetch: size not stated$\|^      image [^ ]* is built, not pulled; 6 cases$')" 7 "and no line repeats the command above it"
is "$(grep -c '^ *[0-9]*  [$] ' "$T/out") $(grep -c '^hrnetw18/.* needs [1-6]' "$T/out")" "6 18" "what to do is said once, then a line a case"
is "$(($(wc -l <"$T/out") < 45))" 1 "and no more"
is "$("$REPERF" plan paddle-perf-hrnetw18 --nodes v100-4x8 -v 2>/dev/null | grep -c '^           deadline 86400 s')" 18 "details on demand"
is "$(jq '[.[] | select(.estimate_s == null)] | length' "$T/steps")" 0 "each case has an estimate from a published rate"
long='bert-base/ngc-pytorch/fp32/n1g1/bs32'
is "$(jq -c --arg c "$long" '.[] | select(.case == $c) | [.estimate_s, .deadline_s]' "$T/steps")" "[131456,394368]" \
    "250 steps of 67,584 sequences at 128.53 a second; the deadline is three times that"
is "$(jq '[.[] | select(.deadline_s and .deadline_s <= 86400 or (.deadline_s == null and .estimate_s * 3 > 86400))] | length' "$T/steps")" 0 "and 86,400 s where that is more"
bert() { "$REPERF" plan paddle-perf-2020 --nodes v100-4x8 --case 'bert-base/ngc-*' "$@" 2>/dev/null; }
is "$(bert --deadline 100 --json | jq -c '[.deadline_s, (.steps | map(.deadline_s) | unique)]')" '[100,[null]]' "a deadline of the user's is the deadline"
like "$(bert)" 'warning  a repeat of 4 cases takes more than a day' "a warning"
bert --steps as-logged --json >"$T/logged"
is "$(jq -c '[.steps[] | select(.env.REPERF_STEPS) | [.conditions.iterations, .env.REPERF_STEPS, (.steps | tostring)] | unique] | unique' "$T/logged")" '[["46"],["50"],["51"]]' \
    "the published logs' numbers of steps, as a condition"
is "$(jq '[.steps[] | select(.env.REPERF_STEPS == null)] | length' "$T/logged")" 11 "only where a log says it"
is "$(bert --steps 7 --json | jq -c '[.steps[].conditions.iterations] | unique')" '["7"]' "or a number of one's own"
exits 2 "which is a number" "$REPERF" plan paddle-perf-2020 --steps few
exits 2 "of the full profile" "$REPERF" plan paddle-perf-2020 --steps 5 --profile smoke
like "$("$REPERF" plan node-health --nodes v100-4x8 2>/dev/null)" ' cases?: no rate is known' "where no rate is known, the plan says so"
# The last step of a log may have no rate of its own.
is "$(command jq -n --slurpfile r manifests/reports/paddle-perf-2020.json --slurpfile s logs/published/paddle-perf-2020/series.json \
    '($s[0].logs | map({key: .log, value: ([.series[].step // [] | _nwise(3) | select(length == 3) | .[0] + .[1] * (.[2] - 1)] | max)}) | from_entries) as $last
    | [$r[0].cases[] | select(.logged_steps) | select((.logged_steps - $last[.logs[0]]) | . != 0 and . != 1) | .id] | length')" 0 "the numbers of steps are those of the published series"

exits 0 "what is known of the sizes" "$REPERF" plan paddle-perf-2020 --nodes v100-4x8 --checklist --case 'resnet50/ngc-tf/*'
like "$(cat "$T/out")" "imagenet-2012-tfrecord, made from imagenet-2012, for registered users only; 9 cases; disk: at least 154.6 GB" "of data that are made from others"
like "$(cat "$T/out")" "disk: 464 GB of images and data whose size is stated" "and of all, though one file's size is not stated"
exits 0 "a checklist, whatever is missing" "$REPERF" plan paddle-perf-hrnetw18 --nodes v100-4x8 --checklist
for line in 'nodes: 4 of the 4 of v100-4x8, 8 GPUs each' 'ports open between them' 'driver 525.60.13 or newer for image reperf-cuda12 .CUDA 12.9.' \
    'driver 450.80.02 or newer for image mmseg-0.30.0' '32 GB of memory' 'LimitMEMLOCK=infinity' '/dev/infiniband' '[$] images/build.sh mmseg-0.30.0 --store' \
    'nodes doctor v100-4x8 --report paddle-perf-hrnetw18' '--rehearse' '^time     1 h' 'what only a GPU can show: .*NCCL'; do
    like "$(cat "$T/out")" "$line" "it has: $line"
done

# --- what a site adds, and the image that its driver runs ---
"$REPERF" plan paddle-perf-hrnetw18 --nodes v100-4x8 --json >"$T/out" 2>/dev/null
is "$(jq -c '[.steps[] | select(.nodes == 4) | [.image.flags.devices, .image.flags.memlock_bytes]] | unique' "$T/out")" '[[["/dev/infiniband"],-1]]' \
    "every column on several nodes gets the site's InfiniBand, and may lock memory for it"
is "$(jq -c '[.steps[] | select(.nodes == 1) | .image.flags.devices] | unique' "$T/out")" '[[]]' "on one node there is no use for it"
is "$(jq -c '[.steps[] | .image.flags | [.shm_bytes > 1e9, .memlock_bytes]] | unique' "$T/out")" '[[true,-1]]' "our own column has what its rivals have"
site() { # JQ [OPTION]...: the cluster, changed
    jq "$1" manifests/inventories/v100-4x8.json >"$T/site.json"
    "$REPERF" plan paddle-perf-hrnetw18 --nodes "$T/site.json" --case '*/fp32/n4g8/*' --json "${@:2}" >"$T/out" 2>"$T/err"
}
site 'del(.devices) | .env = {"NCCL_SOCKET_IFNAME": "eth1"} | .proxy = "http://proxy.example:3128" | .engine_flags = ["--cap-add=IPC_LOCK", "--shm-size=2g"]'
is "$(jq -c '[.steps[] | .env | [.NCCL_SOCKET_IFNAME, .https_proxy, (.no_proxy | contains("10.11.0.3"))]] | unique' "$T/out")" '[["eth1","http://proxy.example:3128",true]]' "a site's environment and proxy reach every job"
is "$(jq -c '[.steps[] | .image.flags | [.shm_bytes, .caps, .devices]] | unique' "$T/out")" '[[2147483648,["IPC_LOCK"],[]]]' "its engine's words replace and add"
is "$(jq -c '[.steps[] | .conditions | [.site_env, .site_proxy, .site_engine_flags, .site_devices]] | unique' "$T/out")" \
    '[["NCCL_SOCKET_IFNAME=eth1","http://proxy.example:3128","--cap-add=IPC_LOCK --shm-size=2g",null]]' "each is a condition"
site '.proxy = "http://me:secret@proxy:3128"'
like "$(cat "$T/err")" 'proxy: expected http://HOST:PORT, without a login' "a proxy with a login is refused"
ours() { jq -r '[.steps[] | select(.case | contains("/reperf/")) | .image.id // .why] | unique | join(" ")' "$T/out"; }
site '.nodes[0].driver = "450.80.02"'
is "$(ours)" "reperf-cuda11" "a driver of the reports' nodes gets the image that it runs"
site '.nodes[0].driver = "525.60.13"'
is "$(ours)" "reperf-cuda12" "one that runs CUDA 12 gets it"
site '.nodes[0].driver = "390.46"'
is "$(jq -r '[.steps[].needs[].what | select(contains("too old"))] | unique | .[]' "$T/out")" "driver 390.46 is too old for image mmseg-0.30.0, which needs 450.80.02
driver 390.46 is too old for image paddleseg-f3cec79, which needs 450.80.02
driver 390.46 is too old for image reperf-cuda12, which needs 525.60.13" "one that runs none is told so, of every column"
# The same for later GPUs, of a manifest of one's own that names the image with CUDA 13.
mkdir -p "$T/later/reports"
sed 's/"image": "reperf-cuda12"/"image": "reperf-cuda13"/' manifests/reports/paddle-perf-hrnetw18.json >"$T/later/reports/paddle-perf-hrnetw18.json"
for row in '580.65.06 reperf-cuda13' '525.60.13 reperf-cuda12' '450.80.02 reperf-cuda11'; do
    site ".nodes[0].driver = \"${row% *}\"" --manifests "$T/later"
    is "$(ours)" "${row#* }" "driver ${row% *} of newer images: the newest that it runs"
done

# --- each command, as it is printed ---
# An engine that records its calls, prints a digest, and saves an image of one small file; nothing is built.
mkdir "$T/saved" && tar -C "$T/bin" --owner=0 --group=0 --mtime=@0 -cf "$T/saved/layer.tar" reperf
printf '{"architecture":"amd64","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' "$(sha256sum "$T/saved/layer.tar" | cut -d' ' -f1)" >"$T/saved/config.json"
echo '[{"Config":"config.json","RepoTags":null,"Layers":["layer.tar"]}]' >"$T/saved/manifest.json"
cat >"$T/bin/docker" <<EOF
#!/bin/sh
printf '%s\n' "\$*" >>"\$NOTES"
case \$1 in
image) echo "\$(printf %s "\$5" | sed 's/:latest\$//')@sha256:0" ;;
save) tar -C '$T/saved' -cf "\$3" manifest.json config.json layer.tar ;;
esac
EOF
chmod +x "$T/bin/docker"
has_skopeo=0
command -v skopeo >/dev/null || has_skopeo=$?
export NOTES="$T/notes"
n=0
while read -r command; do
    n=$((n + 1))
    case $command in
    images/build.sh*)
        id=$(cut -d' ' -f2 <<<"$command")
        if [ "$has_skopeo" != 0 ]; then
            skip "$command" "skopeo is not installed"
            continue
        fi
        out=$(PATH="$T/bin:$PATH" sh -c "$command" 2>"$T/err")
        like "$? $out" "^0 reperf/[a-z0-9.-]*@sha256:[0-9a-f]{64}$" "$command"
        like "$(cat "$NOTES")" "build -f .*images/$id/Dockerfile -t reperf/$id:latest" "builds that image"
        exits 0 "and what it prints is in the store, from where nodes without a registry get it" "$REPERF" verify "image:docker.io/$out"
        out=$(PATH="$T/bin:$PATH" sh -c "images/build.sh $id --push registry.example:5000/$id" 2>"$T/err")
        is "$? $out" "0 registry.example:5000/$id@sha256:0" "$id for a registry"
        like "$(cat "$NOTES")" "push registry.example:5000/$id:latest" "is pushed there"
        ;;
    *) # Without a network, as far as it gets: the command is valid, and what it would request is known.
        PATH="$T/bin:$PATH" sh -c "$command --offline" >"$T/out" 2>"$T/err"
        is $? 4 "$command: only the network is missing"
        ;;
    esac
done < <(jq -r '[.[].needs[].command | values] | unique | .[]' "$T/steps")
is "$n" 37 "commands in all"
if [ "$has_skopeo" = 0 ]; then
    for report in paddle-perf-hrnetw18 paddle-perf-2020; do "$REPERF" plan $report --profile full --nodes v100-4x8 --json 2>/dev/null; done >"$T/out"
    is "$(jq -r '.steps[].needs[].what | select(test("is built"))' "$T/out" | wc -l)" 0 "what was built once is found by its id"
    is "$(jq -r '.steps[].image | select(.id == "paddleseg-f3cec79") | .digest' "$T/out" | sort -u)" \
        "$(jq -r .digest "$REPERF_STORE/refs/image/paddleseg-f3cec79.json")" "and pinned by its digest"
    like "$(cd "$T" && "$REPERF" bundle paddle-perf-hrnetw18 --dry-run --json -o "$T/b" 2>/dev/null | jq -r '.parts | tostring')" 'image paddleseg-f3cec79' "and carried to a site without a network"
fi
mkdir "$T/none"
PATH="$T/none:/usr/bin:/bin" sh -c 'command -v docker podman' >/dev/null || {
    exits 7 "an image on top of another, without an engine" env PATH="$T/none:/usr/bin:/bin" images/build.sh mmseg-0.30.0
}
fails 3 'images/build.sh reperf-cuda12 --store makes it$' "an image that is built has no lock" "$REPERF" lock image:reperf-cuda12
exits 2 "a Dockerfile has no --relock" images/build.sh mmseg-0.30.0 --relock
jq '.registry = "registry.example:5000"' manifests/inventories/v100-4x8.json >"$T/with-registry.json"
"$REPERF" plan paddle-perf-hrnetw18 --profile full --nodes "$T/with-registry.json" --case '*/mmseg/*' >"$T/out" 2>"$T/err"
like "$(cat "$T/out")" '[$] images/build.sh mmseg-0.30.0 --push registry.example:5000/mmseg-0.30.0' "an inventory's registry stands in the command"

# --- every recipe's commands ---
# With fake images and nothing to mount: each script is one that a shell can read, and ends in no redirection, since its log is what it prints.
for report in "${REPORTS[@]}"; do
    given=()
    for id in $(jq -r '[.stacks[] | .image, .full[]?.image | values] | unique | .[]' "manifests/reports/$report.json"); do
        given+=(--image "$id=docker.io/made/up@sha256:$(printf 'b%.0s' {1..64})")
    done
    for stack in $(jq -r '.stacks[] | select(.full[0].image) | .id' "manifests/reports/$report.json"); do given+=(-C "stacks[$stack].full[0].mounts=[]"); done
    "$B/servers/plan_commands" "$report" --profile full --nodes "$T/with-registry.json" "${given[@]}" 2>/dev/null
done >"$T/all"
is "$(jq -s '[.[].steps[] | select(.cause == null)] | length' "$T/all")" 179 "cases that images, code and data alone keep from being run"
jq -c '.commands[] | [.case, .argv[-1]] | select(.[1] | contains("\n"))' "$T/all" | sort -u >"$T/scripts"
# What the rows and logs say, where an upstream default, a moving branch or an image without its framework would say otherwise.
jq -s '[.[] | .report as $report | .steps[] | {case, recipe, conditions, image: .image.id, report: $report}]' "$T/all" >"$T/of"
is "$(jq -r -s '.[].commands[] | select(.case | test("/mmseg/fp16/")) | .argv[-1] | [scan("data[.]samples_per_gpu=[0-9]+")] | join(" ")' "$T/all" | sort | uniq -c | xargs)" "8 data.samples_per_gpu=4" \
    "AI-Rank's FP16 rows of 1, 8, 16 and 32 GPUs, eight nodes in all, override the batch of 2 in their configurations"
for id in mmseg-0.21.1 mmseg-0.30.0; do
    is "$(sed -n 's/^ARG FORK=//p' "images/$id/Dockerfile")" "$(jq -r '.stacks[] | select(.id == "mmseg").smoke[0].mounts[] | select(.kind == "source").commit' manifests/reports/paddle-perf-hrnetw18.json)" \
        "$id: the fork of mmsegmentation is at the commit that smoke runs have"
done
is "$(jq -r '.[] | select(.report == "paddle-perf-2020" and (.case | test("/paddle/"))) | "\(.image) \(.conditions.framework_version)"' "$T/of" | sort -u)" \
    "$(for id in paddleclas-b0904fd paddlenlp-5b4aef8; do echo "$id $(sed -n 's/.*"paddlepaddle-gpu==\([^"]*\)".*/\1/p' "images/$id/Dockerfile")"; done)" "Paddle of 2020 is the wheel that its image installs"
is "$(jq -r -s '[.[] | select(.report == "paddle-perf-2020").commands[] | select(.case | test("/paddle/")) | .argv[-1] | contains("import paddle; print")] | unique[]' "$T/all")" true "and is imported before anything runs"
is "$(jq -r '.[] | select(.report == "dlperf-paddle-resnet50" and (.case | test("/reperf/") | not)) | "\(.conditions.dataset_images) of \(.conditions.dataset)"' "$T/of" | sort -u)" \
    "54289 of imagenet-2012, the first 54 or 55 images of each class by name" "DLPerf's subset of ImageNet is a declared condition"
bad=0
while read -r row; do
    jq -r '.[1]' <<<"$row" >"$T/script"
    if ! sh -n "$T/script" || tail -n 1 "$T/script" | grep -q ' >' || ! grep -qE '^(python|python3|pip3.7)( -m pip)? freeze' "$T/script"; then
        bad=$((bad + 1))
        jq -r '"# " + .[0]' <<<"$row"
    fi
done <"$T/scripts"
is "$bad of $(wc -l <"$T/scripts")" "0 of 126" "scripts of published frameworks are whole, print their log and what is installed"
"$REPERF" plan paddle-perf-2020 --profile full --nodes v100-4x8 --case 'bert-base/ngc-tf/fp32/n*g8/bs32' -C 'stacks[bert-ngc-tf].full[0].commands=[]' >"$T/out" 2>&1
like "$(cat "$T/out")" 'the command is typed on the first node alone .*; 1 case' "a command of the first node alone is refused on four nodes"

# What its authors named by a branch is locked first.
"$REPERF" plan dlperf-tf2-resnet50 --profile full --nodes v100-4x8 --case '*/tf2/fp32/n4g8/*' >"$T/out" 2>&1
like "$(cat "$T/out")" '[$] reperf data lock source:https://github.com/tensorflow/models.git@r2.3.0' "a branch without a commit is to be locked"

# Locked, in a data folder of the test's own: the lock's commit is fetched.
mkdir -p "$T/data"
for name in images datasets workloads; do ln -s "$ROOT/$name" "$T/data/$name"; done
cp -R manifests "$T/data/manifests"
git init -q "$T/models" && git -C "$T/models" commit -q --allow-empty -m 1 && git -C "$T/models" branch -M main
"$REPERF" lock --locks "$T/locks" "source:file://$T/models@main" >/dev/null 2>&1
mkdir -p "$T/data/manifests/locks/source"
jq '.id = "https://github.com/tensorflow/models.git@r2.3.0"' "$T"/locks/source/*.json >"$T/data/manifests/locks/source/https%3A%2F%2Fgithub.com%2Ftensorflow%2Fmodels.git%40r2.3.0.json"
REPERF_ROOT="$T/data" "$REPERF" plan dlperf-tf2-resnet50 --profile full --nodes v100-4x8 --case '*/tf2/fp32/n4g8/*' >"$T/out" 2>&1
like "$(cat "$T/out")" "[$] reperf data fetch source:https://github.com/tensorflow/models.git@$(git -C "$T/models" rev-parse HEAD)" "locked, that commit is to be fetched"

# --- fake pins, code and data: what would be started ---
git init -q "$T/code"
mkdir "$T/code/tools" "$T/code/docs" && touch "$T/code/tools/train.py" "$T/code/docs/picture"
git -C "$T/code" add . && git -C "$T/code" commit -q -m 1
commit=$(git -C "$T/code" rev-parse HEAD)
source="{\"kind\":\"source\",\"name\":\"file://$T/code\",\"commit\":\"$commit\",\"paths\":[\"tools\"],\"inside\":\"/reperf/source\"}"
data='{"kind":"dataset","name":"bert-sample","synthetic":true,"inside":"/reperf/data"}'
ask=(paddle-perf-hrnetw18 --profile full --nodes "$T/with-registry.json" -C "stacks[paddle].full[0].mounts=[$source,$data]" -C "stacks[mmseg].full[0].mounts=[$data]")
digest=$(printf 'a%.0s' {1..64})
for id in paddleseg-f3cec79 mmseg-0.30.0 reperf-cuda12; do ask+=(--image "$id=docker.io/made/up@sha256:$digest"); done
prints 4 "[$] reperf data fetch source:file://$T/code@$commit:tools$" "without its code and data nothing is ready but our own" "$REPERF" plan "${ask[@]}" --case '*/paddle/*'
"$REPERF" fetch "source:file://$T/code@$commit:tools" >/dev/null && "$REPERF" fetch bert-sample --synthetic >/dev/null
exits 0 "with them" "$REPERF" plan "${ask[@]}" --json
cp "$T/out" "$T/plan.json"
"$B/servers/plan_commands" "${ask[@]}" >"$T/dry.json"
is "$(command jq -cS 'del(.commands)' "$T/dry.json")" "$(command jq -cS . "$T/plan.json")" "what would be started is of the same plan"
is "$(jq '[.steps[] | select(.cause == null)] | length' "$T/dry.json")" 18 "all 18 cases are ready"
is "$(jq -r '.steps[] | select(.case | test("/paddle/")) | .conditions | "\(.dataset_images) x \(.dataset_repeats)"' "$T/dry.json" | sort -u)" "2975 x 1" "on how many images is a declared condition: logs of the report have 300, 500 times"
valid plan "the document validates"
is "$(jq -c 'first(.steps[].mounts[] | select(.kind == "source")) | .version, .part.files, .part.left_out' "$T/dry.json" | xargs)" "$commit:tools 1 1" "it says what part of the code it is, and how much is left out"
is "$(/usr/bin/python3 tests/integration/check_full.py manifests/reports/paddle-perf-hrnetw18.json "$T/dry.json")" "36 nodes, 246 ranks" \
    "launcher, world, argv and environment of every node are what the report's commands say"
# The check can fail.
jq '(.commands[] | select(.node == "node3") | .argv) |= map(if . == "NODE_RANK=2" then "NODE_RANK=3" else . end)' "$T/dry.json" >"$T/forged.json"
/usr/bin/python3 tests/integration/check_full.py manifests/reports/paddle-perf-hrnetw18.json "$T/forged.json" >"$T/out"
is "$? $(grep -c "node 2" "$T/out")" "1 8" "two nodes of one number are seen"
is "$(jq -r '.commands[] | select(.case == "hrnetw18/paddle/fp32/n1g1/bs8") | .argv[]' "$T/dry.json" | sed -n '/^type=bind/p' | sed 's/dataset-[0-9a-f]*@/dataset-LIST@/')" \
    "type=bind,source=/@reperf-source-$commit-$(printf %s "$commit:tools" | sha256sum | cut -c-8)@,target=/reperf/source,readonly
type=bind,source=/@reperf-dataset-LIST@,target=/reperf/data,readonly" "code and data are where they are staged"

# --- a rehearsal ---
"$REPERF" plan paddle-perf-2020 --rehearse --nodes v100-4x8 --case 'resnet50/ngc-pytorch/fp32/n4g8/*' >"$T/out" 2>&1
like "$(cat "$T/out")" 'profile full, a rehearsal: 0 of 1 case' "a rehearsal is of the full profile, and says that it is one"
like "$(cat "$T/out")" '[$] reperf data fetch imagenet-2012 --synthetic' "on synthetic data, which nobody needs a login for"
exits 2 "there is none for smoke" "$REPERF" plan paddle-perf-2020 --rehearse --profile smoke
exits 0 "a rehearsal's plan" "$REPERF" plan "${ask[@]}" --rehearse --json
is "$(jq -c '[.rehearsal, (.steps[] | select(.recipe and .mounts != []) | .conditions.dataset)] | unique' "$T/out")" '[true,"synthetic twin of bert-sample"]' "declares its data"
valid plan "and its document validates"
"$B/servers/plan_commands" "${ask[@]}" --rehearse >"$T/dry.json"
is "$(/usr/bin/python3 tests/integration/check_full.py manifests/reports/paddle-perf-hrnetw18.json "$T/dry.json")" "36 nodes, 246 ranks" "each node's command is that of the full profile"

case_id=hrnetw18/paddle/amp/n4g8/bs8
for launcher in mpirun slurm; do
    jq --arg launcher "$launcher" '.launcher = $launcher | .shared_folder = "/shared" | .login = "node2"' "$T/with-registry.json" >"$T/$launcher.json"
    is "$("$B/servers/plan_commands" "${ask[@]}" --nodes "$T/$launcher.json" --case "$case_id" | jq -r '[.commands[].node] | join(" ")')" node1 "by $launcher one command starts all nodes"
done
succeeds "no run was begun" test ! -e "$REPERF_STATE/runs"
tap_done
