#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# Every format on a log of its own (tests/integration/formats): recognised among all, its number, with tags and other line ends, and not `ok` where the log is damaged.
# What is particular to one is in tests/logs/formats.want.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016,SC2317
. "$(dirname "$0")/../tap_lib.sh"
F=tests/integration/formats

TOLD='(.files // [.])[] | [.format, .verdict, .value, .unit, .records] | map(tostring) | join(" ")'
told() { # FILE... ARGS...: format, verdict, value, unit, samples; a line each
    "$REPERF" measure --json "$@" 2>"$T/err" | jq -r "$TOLD"
}
options() { # of the current row: $args
    args=()
    [ "$opts" = - ] || read -ra args <<<"$opts"
}
rows() { # COMMAND: once for each row, with its columns as variables
    local file format rule opts value unit records lines
    while IFS=$'\t' read -r file format rule opts value unit records lines <&3; do
        options
        "$@"
    done 3<"$F/expected.tsv"
}

# As it is, and with line ends, colours and tags that others put there.
whole() {
    local want="$format ok $value $unit $records" got idx logs=("$F/$file") as=("found, whole, its number by $rule")
    if [ "$file" != hf-trainer-state.json ]; then
        sed 's/$/\r/' "$F/$file" >"$T/dos.log"
        sed $'s/^/\033[32m/; s/$/\033[0m/' "$F/$file" >"$T/colour.log"
        tr '\r' '\n' <"$F/$file" | sed 's/^/[1,0]<stdout>:/' >"$T/tag.log"
        logs+=("$T"/{dos,colour,tag}.log) as+=("with the line ends of another system" coloured "with mpirun's tags")
    fi
    mapfile -t got < <(told "${logs[@]}" --rule "$rule" "${args[@]}")
    for idx in "${!as[@]}"; do is "${got[idx]-}" "$want" "$file: ${as[idx]}"; done
}
rows whole

# --- no log is another format's ------------------------------------------------------------------------
"$REPERF" list formats --ids >"$T/ids"
mapfile -t files < <(cut -f1 "$F/expected.tsv" | sed "s,^,$F/," | sort -u)
while read -r id; do
    "$REPERF" measure --json --format "$id" "${files[@]}" 2>"$T/err" | jq -r --arg id "$id" '.files[] | select(.verdict != "no_metric" or .records != 0) | "\(.file | sub(".*/"; ""))\t\($id)"'
done <"$T/ids" | sort >"$T/taken"
while read -r file format; do
    taken=$(awk -F'\t' -v file="$file" -v own="$format" '$1 == file && $2 != own { printf " %s", $2 }' "$T/taken")
    case $file in airank-in-*) taken=${taken/ airank/} ;; mlperf-*) taken=${taken/ mlperf-training/} ;; tf-cnn-* | gluon-lm.log) taken=${taken/ csv/} ;; nvidia-ssd-dllogger.log) taken=${taken/ nvidia-ssd/} ;; esac # asked for by name alone; a table's head; the newer one counts, and is read first
    is "$taken" "" "$file: no other format reads anything in it"
    succeeds "$file: its own does" grep -q "^$file$(printf '\t')$format\$" "$T/taken"
done < <(cut -f1,2 "$F/expected.tsv" | sort -u)
known=$(cut -f2 "$F/expected.tsv" | sort -u | tr '\n' ' ')
for id in paddleclas paddlenlp-transformer mxnet-dllogger dle-transformer paddlerec mmengine hf-trainer hf-trainer-state torchvision pytorch-imagenet timm lightning nanogpt megatron; do
    like " $known" " $id " "$id has a log of its own"
done

# --- damaged -------------------------------------------------------------------------------------------
bad() { # WHAT: $T/bad.log is not ok, as is seen by all_bad
    whats+=("$1")
    mv "$T/bad.log" "$T/bad${#whats[@]}.log"
}
all_bad() { # those of one row, by one program
    local got idx
    [ ${#whats[@]} -gt 0 ] || return
    mapfile -t got < <(told "${bad_logs[@]:0:${#whats[@]}}" --format "$format" --rule "$rule" "${args[@]}" | cut -d' ' -f2)
    for idx in "${!whats[@]}"; do
        [ "${got[idx]-}" != ok ] && [ -n "${got[idx]-}" ]
        ok $? "$file: ${whats[idx]}: ${got[idx]:-nothing}"
    done
}
bad_logs=("$T"/bad{1..9}.log)
begin_unknown=" $(jq -r 'select(.begin.unknown == true) | .id' manifests/formats/*.json | tr '\n' ' ')"
damaged() {
    local whats=()
    damages
    all_bad
}
damages() {
    local at middle
    case $file in lightning* | mlperf-run.log | airank*) return ;; esac
    mapfile -t at < <(grep -anE "$lines" "$F/$file" | cut -d: -f1)
    middle=${at[records > 3 ? 2 : 0]}
    head -n "${at[-1]}" "$F/$file" | head -c -9 >"$T/bad.log"
    case $file in paddlenlp-transformer.log | paddlerec.log | paddlenlp-tobal.log | dlperf-*) bad "cut within its last number" ;; esac
    { head -n "$middle" "$F/$file"; printf 'Traceback (most recent call last):\n'; } >"$T/bad.log"
    case $format in hf-trainer | horovod-benchmark | tf-cnn-benchmarks) ;; *) bad "cut in its midst by an error" ;; esac
    [ "$records" -gt 3 ] || return
    case $file in deepspeed-chat.log | tf-estimator* | stable-baselines3.log | olmo.log | modded-nanogpt.log | mindspore.log) # their figures stand without a step, or at any
        sed -E 's/([lL]oss[^0-9]{0,4} ?)[0-9.]+/\1nan/' "$F/$file" >"$T/bad.log"
        cmp -s "$T/bad.log" "$F/$file" || bad "losses on other lines that are no numbers"
        return
        ;;
    esac
    sed "${at[0]}d" "$F/$file" >"$T/bad.log"
    case $file in ngc-tf-bert.log | pytorch-imagenet.log | fairseq-json.log | paddle-reprod.log) ;; # theirs may be of a later step, as where the format says so
    *) [[ $begin_unknown == *" $format "* ]] || bad "its first line missing" ;; esac
    sed "${middle}{p}" "$F/$file" >"$T/bad.log"
    [ "$format" = ngc-tf-bert ] || bad "a line twice" # loss scaling repeats an iteration
    sed "${middle}d" "$F/$file" >"$T/bad.log"
    bad "a line missing"
    sed -E "${middle}s/((^|[^_])(lm |total_|train.)?loss[^0-9]{0,4} ?)[0-9.]+/\1nan/" "$F/$file" >"$T/bad.log"
    cmp -s "$T/bad.log" "$F/$file" || bad "a loss that is no number"
}
rows damaged

like "$("$REPERF" measure "$F/table.csv")" 'end not known: the log says neither how many steps its run makes nor that it is over' "that the end is not known is said below the table"
is "$("$REPERF" measure "$F/table.csv" "$F/keras.log" "$F/timm.log" 2>&1 >"$T/out" | grep -c ': end not known: ')" 2 "and of each of several, next to their rows"
is "$("$REPERF" measure "$F/timm.log" | grep -c 'end not known')" 0 "but of no log that states it"

mapfile -t used < <(jq -r '.cases[].format // empty' manifests/reports/{paddle-perf-,dlperf-,airank-}*.json | sort -u)
is "$(for format in "${used[@]}"; do jq -r '[.facts[] | select(.name == "nccl_transport")] | length' "manifests/formats/$format.json"; done | sort -u)" 1 \
    "every format of a case that is launched reads NCCL's transport"
"$REPERF" measure --json "$F/airank-in-paddleseg.log" >"$T/doc.json" 2>"$T/err"
valid measure-output "a document of two formats is valid" "$T/doc.json"
is "$(jq '.beside[0] | length' "$T/doc.json")" 6 "of six keys each"
like "$("$REPERF" measure "$F/airank-in-paddleseg.log" 2>/dev/null)" 'in the same log, airank, avg_ips: ok, 24.5 images/s' "as text too"
tap_done
