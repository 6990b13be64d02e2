#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# reperf new --from: tables of a made-up repository (Markdown, HTML, CSV) and its logs, of a known kind and of none; what fits, what does not,
# what has no log and what has no row; the draft is linted and audited at once.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016
source "$(dirname "$0")/../tap_lib.sh"
export HOME="$T/home" GIT_CONFIG_NOSYSTEM=1
unset XDG_DATA_HOME REPERF_MANIFESTS REPERF_ROOT
mkdir -p "$T/home" "$T/repo/resnet50/logs/a100" "$T/repo/bert/logs" "$T/repo/docs"
git() { command git -c user.name=n -c user.email=e@example.org -c init.defaultBranch=main "$@"; }

loop() { # FILE RATE: a home-made loop's log whose mean rate is RATE
    for i in 1 2 3 4; do printf 'step %d/40 | loss 0.5 | %s img/s\n' "$((10 * i))" "$(awk -v r="$2" -v i="$i" 'BEGIN {print r + (i % 2 ? 1 : -1)}')"; done >"$1"
}
seg() { # FILE RATE: PaddleSeg's, of one GPU
    for i in 1 2 3; do
        printf '2023-07-27 12:48:42 [INFO]\t[TRAIN] epoch: 1, iter: %s/3, loss: 1.6502, lr: 0.009345, batch_cost: 0.4109, reader_cost: 0.00346, ips: %s samples/sec | ETA 00:02:32\n' "$i" "$2"
    done >"$1"
}
loop "$T/repo/resnet50/logs/a100/fp32_bs64_gpu1.log" 1234
loop "$T/repo/resnet50/logs/a100/amp_bs64_gpu1.log" 2500
loop "$T/repo/resnet50/logs/a100/amp_bs64_gpu8.log" 19000
seg "$T/repo/bert/logs/run_bs8_fp32_gpu1.txt" 19.428
cat >"$T/repo/resnet50/README.md" <<'END'
# ResNet-50 of PyTorch

## Training throughput (images/s), batch size 64

| GPUs | FP32 | AMP | Accuracy |
|:----:|-----:|----:|---------:|
| 1    | **1,234** | [2,500.0](logs/a100/amp_bs64_gpu1.log) | 76.1 |
| 8    | 9,000 | 18,000 | 76.2 |

## Versions

| name | version |
|---|---|
| cuda | 11.2 |
END
cat >"$T/repo/bert/README.md" <<'END'
<h2>Speed of Paddle, FP32</h2>
<table><tr><th>GPUs</th><th>Batch size</th><th>samples/sec</th></tr>
<tr><td>1</td><td rowspan="2">8</td><td>19.428</td></tr>
<tr><td>8</td><td>117.2</td></tr></table>
END
printf 'model,train_samples_per_sec,train_batch_size,param_count\nvit,512.5,128,86.6\n' >"$T/repo/docs/results.csv"
git -C "$T/repo" init -q && git -C "$T/repo" add . && git -C "$T/repo" commit -qm one
git clone -q --bare "$T/repo" "$T/bare"

cd "$T" || exit 1
exits 0 "a draft" "$REPERF" new mine --from "$T/bare" --repository https://example.org/mine.git
cp out said
R="$T/home/.local/share/reperf/manifests/reports/mine.json"
cell() { jq -r --arg id "$1" '.cases[] | select(.id == $id) | "\(.cells[0].printed) \(.cells[0].unit) \(.rule) \(.logs | join(","))"' "$R"; }
is "$(cell resnet50/pytorch/fp32/n1g1/bs64)" "1234 images/s mine-1/window resnet50/logs/a100/fp32_bs64_gpu1.log" "a number with a thousands separator, a log of no known kind"
is "$(cell resnet50/pytorch/amp/n1g1/bs64)" "2500.0 images/s mine-1/window resnet50/logs/a100/amp_bs64_gpu1.log" "a cell that links its log"
is "$(cell resnet50/pytorch/amp/n1g8/bs64)" "18000 images/s mine-1/window resnet50/logs/a100/amp_bs64_gpu8.log" "a number that its log does not give"
is "$(cell resnet50/pytorch/fp32/n1g8/bs64)" "9000 images/s null " "a number without log"
is "$(cell bert/paddle/fp32/n1g1/bs8 | cut -d' ' -f1,2,4)" "19.428 samples/s bert/logs/run_bs8_fp32_gpu1.txt" "an HTML table, a log of a known kind"
is "$(cell bert/paddle/fp32/n1g8/bs8)" "117.2 samples/s null " "a cell that reaches over two rows"
is "$(jq '.cases | length' "$R")" 6 "neither accuracies nor versions"
like "$(cat said)" 'no row +docs/results.csv:1 +512.5 samples/s +not said: framework precision GPUs' "what a CSV does not say is named"
like "$(cat said)" '^3 numbers fit, 1 differ, 2 without log, 1 without a row' "what fits, what does not, what was not found"
is "$(jq -r '.source | "\(.repository) \(.commit)"' "$R")" "https://example.org/mine.git $(git -C "$T/repo" rev-parse HEAD)" "repository and commit"
exits 0 "the draft is valid against its schema" /usr/bin/python3 "$ROOT/tests/integration/validate.py" "$ROOT/manifests/schema/report.json" "$R"
"$REPERF" lint mine >out 2>err
like "$?" '^[01]$' "it is linted"
exits 1 "it is audited at once, by the series kept beside it" "$REPERF" audit mine
like "$(cat out)" '6 cells: 3 exact, 0 match, 1 differ, 2 without log' "with the same result"
exits 1 "and from the clone" "$REPERF" audit mine --logs "$T/bare"
like "$(cat out)" '6 cells: 3 exact, 0 match, 1 differ, 2 without log' "with the same result"
exits 2 "a report that is there is not overwritten" "$REPERF" new mine --from "$T/bare"
exits 0 "what the tables do not say can be said" "$REPERF" new other --from "$T/repo" --below docs --framework pytorch --precision amp --gpus 8 --manifests "$T/home/.local/share/reperf/manifests"
is "$(jq -r '.cases[].id' "$T/home/.local/share/reperf/manifests/reports/other.json")" vit/pytorch/amp/n1g8/bs128 "and makes a row"
like "$(cat err)" 'names no https remote' "an address that is not known is said to be none"
exits 1 "nothing below a folder" "$REPERF" new none --from "$T/repo" --below nowhere
[ ! -e "$T/home/.local/share/reperf/manifests/reports/none.json" ]
ok $? "and nothing is written"
exits 0 "a repository by its URL" "$REPERF" new by-url --from "file://$T/bare" --manifests "$T/home/.local/share/reperf/manifests"
is "$(jq '.cases | length' "$T/home/.local/share/reperf/manifests/reports/by-url.json")" 6 "gives the same rows"
is "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'reperf-new.*' -newer "$T/bare" | wc -l)" 0 "nothing is left behind"
exits 2 "a folder that is no repository" "$REPERF" new x --from "$T/home"
exits 2 "no name" "$REPERF" new --from "$T/repo"
exits 2 "a name that is none" "$REPERF" new '../x' --from "$T/repo"
tap_done
