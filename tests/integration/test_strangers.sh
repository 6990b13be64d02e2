#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: log
# Public logs that nobody here had seen, where they are at hand: status, verdict, value and scope of each, and no number with status 0 that is wrong.
# shellcheck source=tests/tap_lib.sh disable=SC1091
. "$(dirname "$0")/../tap_lib.sh"
S=${REPERF_SHARED:-../shared}/strangers
if [ ! -d "$S" ]; then
    echo "1..0 # SKIP the strangers' logs are not part of the repository: REPERF_SHARED=DIR names their folder"
    exit 0
fi
while IFS='|' read -r file way wanted; do
    args=()
    [ "$way" = suggest ] && args=(--suggest "$T/made.json")
    rm -f "$T/made.json"
    "$REPERF" measure "$S/$file" "${args[@]}" --json >"$T/out" 2>"$T/err"
    status=$?
    is "$status $(jq -r '"\(.verdict) \(.value) \(.series[0].scope // "None")"' "$T/out" | awk '{ if ($2 != "null") $2 = sprintf("%.4g", $2); print }')" "$wanted" "$file"
done <<'END'
K01-gluon-ssd.log|-|0 ok 66.62 job
K01-maxtext-async.log|-|0 ok 6614 rank
K02-gnmt-8-ranks.log|suggest|11 proposed 3.787e+06 None
K02-llmperf-requests.json|suggest|11 proposed 39.53 None
K02-rnnt-2-tiles.log|suggest|11 proposed 113.1 rank
K02-sglang-dp.log|suggest|11 proposed 3.83 rank
K02-torchtitan-all-ranks.log|-|0 ok 1.003e+04 rank
K03-bandwidth-by-size.log|-|9 ambiguous null None
K03-collectives.log|-|9 ambiguous null None
K03-ior-write-read.log|-|9 ambiguous null None
K03-reframe-two-tests.log|-|9 ambiguous null None
K03-serving-runs.csv|-|9 ambiguous null job
K03-stream-kernels.log|-|9 ambiguous null None
K04-ncf-best.log|suggest|11 proposed 1.575e+08 None
K04-serving-peak.log|suggest|0 ok 149 None
K05-gluonnlp-eval.log|suggest|9 no_metric null None
K05-nemo-validation-bar.log|suggest|9 incomplete 1.9 job
K06-last-partial-batch.log|suggest|9 incomplete 9.957 None
K06-megatron-first-iteration.log|-|0 ok 5.411 job
K06-mmcls-first-line.log|-|0 ok 0.1687 job
K07-dllogger-tacotron.log|-|0 ok 3.037e+05 job
K08-dt-seconds.log|suggest|9 no_metric null None
K08-espnet.log|-|0 ok 0.0135 job
K08-latency-of-step.log|suggest|11 proposed 0.001902 job
K08-oneflow-bert.log|suggest|9 no_metric null None
K08-sec-per-batch.log|-|9 ambiguous null None
K09-gpu-burn.log|-|9 ambiguous null None
K09-osu-bw.log|-|9 ambiguous null None
K09-stream.log|-|9 ambiguous null None
K10-epoch-time.log|-|0 ok 31.4 job
K10-lightgbm.log|suggest|11 proposed 0.3854 job
K10-llamafactory-elapsed.jsonl|suggest|11 proposed 5.886 job
K11-epochs-not-runs.log|-|9 incomplete 411.3 job
K12-horovod-192.log|-|0 ok 1074 job
K13-gpu-stream-peak.log|suggest|9 no_metric null None
K13-nvlink-status.txt|-|9 ambiguous null None
K14-mlperf-first-eval-later.log|-|0 ok 2.024 job
K15-tool-line-and-bar.log|suggest|9 no_metric null None
K17-dlio-summary.json|suggest|11 proposed 2448 None
K18-diary.md|suggest|9 no_metric null None
K19-quoted-newlines.csv|-|9 ambiguous null job
K20-bar-1-of-1164.log|suggest|9 incomplete 162.4 job
K20-bar-228-of-25880.log|suggest|9 contradicts_itself null job
K20-nemo-9000-of-301500.log|suggest|9 nan null job
K21-running-average.log|suggest|11 proposed 1299 None
K22-vllm-bar.log|suggest|11 proposed 2.82 None
K23-fairseq-wps-0.log|-|0 ok 32.26 job
K24-aiperf.csv|-|9 ambiguous null None
K25-reframe-fail.log|suggest|9 no_metric null None
K26-llama-bench-old.log|-|0 ok 127.4 job
K27-llamafactory-resume.jsonl|suggest|9 no_metric null None
K27-verl.log|suggest|11 proposed 96.55 job
K28-vllm-with-logger-prefix.log|-|0 ok 1549 job
K29-tf-synthetic-nan.log|-|0 ok 504.1 job
K31-clock-contradicts.log|-|9 contradicts_itself null job
K31-hf-arithmetic.log|-|9 contradicts_itself null job
K31-serving-arithmetic.log|-|9 contradicts_itself null job
END
tap_done
