#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# 180 MB of real logs (the published ones, ten times) to series with unit, scope and window, against one grep that only prints the rates.
# shellcheck source=tests/bench/bench_lib.sh disable=SC1091
. "$(dirname "$0")/bench_lib.sh"
ROUNDS="${ROUNDS_MEASURE:-9}" # short runs: more of them
reperf="$PWD/${B:-build/release}/reperf"
logs="${REPERF_SHARED:-../shared}/published/logs"
if [ ! -d "$logs" ]; then
    echo "measure: skipped, the published logs ($logs) are not here"
    exit 0
fi
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
for copy in 0 1 2 3 4 5 6 7 8 9; do
    cp -r "$logs" "$T/$copy"
done
find "$T" -mindepth 2 -type f | sort >"$T/files"
find "$T" -path '*ResNet50V1.5/logs*' -type f | sort >"$T/paddleclas"
bytes() { xargs -a "$1" cat | wc -c | awk '{ printf "%.0f MB", $1 / 1e6 }'; }
rates="grep -aohP '[0-9.]+ ?(samples|images|sequences|img|seq)/s'"
# Status 9: among the published logs are incomplete and ambiguous ones, and measure says so. Output goes to a file, as a tool's does.
ours() { echo "xargs -x -s 1000000 -a '$1' '$reperf' measure $2 >'$T/out' 2>/dev/null; s=\$?; [ \$s -eq 0 ] || [ \$s -eq 123 ]"; }
peer() { echo "xargs -a '$1' $rates >'$T/rates'"; }
# Each log with its format, one process a format, against grep, which is given its pattern too.
given="{"
while read -r format where; do
    find "$T" -mindepth 2 -type f | grep -E "$where" | sort >"$T/of-$format"
    given+=" $(ours "$T/of-$format" "--format $format");"
done <<'FORMATS'
paddleclas-static ResNet50V1.5/logs/
dllogger-pytorch ResNet50V1.5/OtherReports/PyTorch/
dllogger-tf ResNet50V1.5/OtherReports/TensorFlow/
mxnet OtherReports/MxNet/
paddlenlp Bert/logs/
ngc-tf-bert Bert/OtherReports/TensorFlow/
ngc-pytorch-bert Bert/OtherReports/PyTorch/
paddleseg /logs/paddle/
mmseg (HRNetW18|DeepLabV3P)/OtherReports/PyTorch/|airank
tf2-timehistory dlperf
FORMATS
given+=" }"
[ "$(cat "$T"/of-* | wc -l)" -eq "$(wc -l <"$T/files")" ] || { echo "bench: the formats do not cover the logs" >&2; exit 1; }
size="$(wc -l <"$T/files") logs of $(bytes "$T/files")"
pair "measure, format given, $size" 1 "$given" "$(peer "$T/files")"
pair "measure, format found (auto), $size" 1 "$(ours "$T/files" '')" "$(peer "$T/files")"
pair "measure, every sample as JSON, $(bytes "$T/paddleclas")" "" "$(ours "$T/paddleclas" '--format paddleclas-static --json')" "$(peer "$T/paddleclas")"
echo "series read: $(awk 'NR > 2 && $3 > 0 { n += $3 } END { print n }' <(xargs -s 1000000 -a "$T/files" "$reperf" measure 2>/dev/null)) samples; grep printed $(xargs -a "$T/files" grep -aohP '[0-9.]+ ?(samples|images|sequences|img|seq)/s' | wc -l) rates, without unit, step, rank or run"
peak_of() { # NAME COMMAND...: its resident set at most, looked at while it runs
    local name=$1 pid peak=0 seen
    shift
    "$@" >/dev/null 2>&1 &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        seen=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status" 2>/dev/null)
        peak=${seen:-$peak}
        sleep 0.01
    done
    wait "$pid"
    echo "$name: peak resident memory $peak kB, wanted < 65536 kB"
}
mapfile -t files <"$T/files"
peak_of "one process, all logs" "$reperf" measure "${files[@]}"
for _ in 1 2 3 4; do xargs -a "$T/paddleclas" cat; done >"$T/big.log"
peak_of "one log of $(wc -c <"$T/big.log" | awk '{ printf "%.0f MB", $1 / 1e6 }')" "$reperf" measure "$T/big.log" --format paddleclas-static
