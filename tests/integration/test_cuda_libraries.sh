#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# Only: @emu/reperf-train @emu/test_device @emu/test_forms @emu/test_models @faults
# All code that calls cuDNN and cuBLASLt, on the emulated device with fake libraries that compute by loops what the real ones' manuals say
# (tests/cuda_fake): every call against the CPU backend, plans by the library's order and by timing, kept, damaged and foreign choices, missing
# libraries.
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/faults/lib.sh disable=SC1091
. "$ROOT/tests/faults/lib.sh"
program="$B/emu/test_device"
calls=(conv_fwd conv_bwd_data conv_bwd_weight conv_stats_fwd conv_bwd_data_bn norm_conv_bwd_weight linear_fwd linear_bwd_data linear_bwd_weight)
if [ ! -x "$program" ]; then
    skip "calls of cuDNN and cuBLASLt on fake libraries" "built without the CUDA toolkit and cuDNN's headers"
    tap_done
fi
export REPERF_CUDNN_DIR="$B/fake" REPERF_CUBLAS_DIR="$B/fake"
unset REPERF_TEST_PLANS

# An optimising compiler sees more: code that the tests do not run must also build without a warning.
exits 0 "the fake libraries are built with MODE=release" make -s MODE=release build/release/fake/libcudnn.so.9 "build/release/fake/$(cd "$B/fake" && echo libcublasLt*)"

holds() { # CALL NAME: all cases of both precisions, and nothing is left behind
    ${CLOCK_TICK_NS:+at_clock test_device} "$program" "$1" >"$T/out" 2>"$T/err"
    local status=$?
    ok "$status" "$1 $2"
    [ "$status" -eq 0 ] || { grep -hv '^ok' "$T/out" "$T/err" | head -n 10 | cut -c1-400 | sed 's/^/# /'; }
}
for call in "${calls[@]}"; do
    holds "$call" "by the library's first plan"
done

# Volta: the same calls, and no fused ones.
export REPERF_EMU_CC=7.0 REPERF_FAKE_CUDNN=91002
for call in conv_fwd conv_bwd_data conv_bwd_weight; do
    REPERF_TEST_PLANS="$T/volta" holds "$call" "on Volta by the fastest plan"
done
holds conv_fwd "on Volta"
REPERF_TEST_PLANS="$T/volta" holds conv_bwd_data "on Volta by the plans of the run before"
grep -lq '"key":"CUDA emulator; driver CUDA [0-9.]*; cudnn 9.10.2, ' "$T"/volta/*.json && ! grep -lqE '"plan":"cudnn (5|6|8) ' "$T"/volta/*.json
ok $? "its choices are kept; no sums in any order, nothing that fails or wants too much"
"$program" conv_stats_fwd >"$T/out" 2>"$T/err"
like "$(cat "$T/out")" 'amp conv_stats_fwd: 0 cases held, 0 wrong, 16 not supported' "Volta has no fused convolutions"
while read -r engines reason; do
    REPERF_FAKE_ENGINES=$engines "$program" conv_bwd_weight >"$T/out" 2>"$T/err"
    like "$(cat "$T/out")" "f16, plain: cudnn: conv_bwd_weight f16 .*: no engine for it: $reason" "no engine is an error that names the call and the reason, but where a product does it: $engines"
done <<'LIST'
none cuDNN offers none
5 1 add in an order that may vary$
8 1 need more than 268435456 bytes of workspace \(the least: 2199023255552\)$
LIST
REPERF_TEST_PLANS="$T/failing" REPERF_FAKE_ENGINES=failing "$program" conv_bwd_weight >"$T/out" 2>"$T/err"
like "$(cat "$T/out")" 'f16, plain: cudnn: conv_bwd_weight f16 .*: timing plans: none of [0-9]* works' "engines that all fail are one, too"
if in_test_all "ResNet-50 in AMP on Volta"; then
    REPERF_TEST_PRECISION=amp "$B/emu/test_models" resnet50 >"$T/out" 2>"$T/err"
    ok $? "ResNet-50 in AMP on Volta: what is fused is what there is a plan for"
    like "$(cat "$T/out")" 'amp resnet50, fused, 4 streams: [1-9][0-9]* sites fused' "and something is"
fi
tells 1 'compute capability 7\.0 needs cuDNN from 9\.0\.0 to below 9\.11\.0; .*libcudnn\.so\.9 is version 9\.11\.0' "Volta with a cuDNN that has no kernels for it: said" env REPERF_FAKE_CUDNN=91100 "$program" conv_fwd
unset REPERF_EMU_CC REPERF_FAKE_CUDNN
for version in 8905 100000; do
    tells 1 'cuDNN from 9\.0\.0 to below 10\.0\.0 is needed; .* is version (8\.9\.5|10\.0\.0)' "cuDNN of another major version, $version: said" env REPERF_FAKE_CUDNN="$version" "$program" conv_fwd
done

# Plain or fused by time: what is made slow is not chosen, and a choice is kept and used the next time, whatever is slow then. The device's clock goes on with what it
# does, and with what is made slow, not with this machine's.
forms() { # EXPECTED NAME [NAME=VALUE]...: the whole program holds, and all sites come out as EXPECTED
    local expected=$1 name=$2
    shift 2
    CLOCK_TICK_NS=1000 at_clock test_forms env REPERF_TEST_EXPECT="$expected" "$@" "$B/emu/test_forms" >"$T/out" 2>"$T/err"
    local status=$?
    ok "$status" "$name"
    [ "$status" -eq 0 ] || { grep -hv '^ok' "$T/out" "$T/err" | head -n 10 | cut -c1-400 | sed 's/^/# /'; }
}
forms plain "fused convolutions are slow: none is taken" REPERF_FAKE_SLOW=fused REPERF_TEST_PLANS="$T/forms"
grep -hq '"key":"CUDA emulator; .* cudnn [0-9.]*, cublaslt [0-9.]*; forms; conv_stats_fwd+bn_finalize+bn_apply n2 c[0-9]* h9 w8 .*"plan":"plain","time_ns":[1-9]' "$T"/forms/*.json
ok $? "the choice is kept with library, device, calls and shape"
forms plain "and is used by the next run" REPERF_FAKE_SLOW=plain REPERF_TEST_PLANS="$T/forms"
forms fused "plain convolutions are slow: all are fused" REPERF_FAKE_SLOW=plain REPERF_TEST_PLANS="$T/forms2"
sed -i 's/"plan":"fused"/"plan":"fusedd"/' "$T"/forms2/*.json
forms plain "an invalid kept choice is made again" REPERF_FAKE_SLOW=fused REPERF_TEST_PLANS="$T/forms2"
like "$(cat "$T/err")" 'plan cache: fusedd is neither fused nor plain; it is chosen again' "and that is said"
forms unsupported "sums whose last bits may differ from run to run: only where that is allowed" REPERF_TEST_REPEATED=1
forms unsupported "Volta: none is available" REPERF_EMU_CC=7.0 REPERF_FAKE_CUDNN=91002

export REPERF_TEST_PLANS="$T/plans"
for call in conv_bwd_data conv_bwd_weight conv_bwd_data_bn linear_fwd linear_bwd_weight; do
    holds "$call" "by the fastest plan"
done
n_plans=$(find "$T/plans" -name '*.json' | wc -l)
succeeds "choices are kept ($n_plans)" test "$n_plans" -gt 50
! grep -lqE '"plan":"cudnn (5|6|8) ' "$T"/plans/*.json
ok $? "no plan with sums in any order, that fails, or that wants too much"
succeeds "a convolution of 1x1 was timed as a product, too" test "$(grep -l 'linear_bwd_data' "$T"/plans/*.json | wc -l)" -gt 0
grep -hq 'linear_fwd f16 n3 c40 k1008' "$T"/plans/*.json && grep -hq 'linear_bwd_weight f16 n3 c40 k1008' "$T"/plans/*.json &&
    grep -hq 'linear_fwd f32 n3 c40 k1004' "$T"/plans/*.json && ! grep -hq 'k1003' "$T"/plans/*.json
ok $? "a product of 1,003 columns that are rounded up is planned with 16 bytes' multiples"
succeeds "a bias's gradient computed with the product is chosen somewhere" test "$(grep -l '"plan":"cublaslt bgrad ' "$T"/plans/*.json | wc -l)" -gt 0

! grep -lq '"plan":"cudnn 7 ' "$T"/plans/*.json
ok $? "no engine that is compiled when asked for"

if in_test_all "time and memory for plans on fake libraries"; then
    # A time limit: zero, one that the first choices use up, and enough; kept choices cost none of it.
    late() { sed -n 's/^# amp: \([0-9]*\) choices were left untimed$/\1/p' "$T/out"; }
    budget() { # SECONDS FOLDER [NAME=VALUE]...: plans kept and choices left
        REPERF_TEST_TUNE_S=$1 REPERF_TEST_PLANS="$T/$2" holds conv_bwd_data "within $1 s for timing plans ($2)"
        grep -l 'conv_bwd_data f16' "$T/$2"/*.json 2>/dev/null | wc -l >"$T/kept"
        kept=$(cat "$T/kept")
    }
    budget 0 none
    [ "$kept" -eq 0 ] && [ "$(late)" -gt 0 ]
    ok $? "without any time nothing is timed, which is counted ($(late))"
    like "$(cat "$T/err")" 'the 0 s for timing plans are over: from here on the libraries. first choices are taken' "and said"
    is "$(grep -c 'for timing plans are over' "$T/err")" 2 "once for each precision"
    export REPERF_FAKE_SLOW=plain
    CLOCK_TICK_NS=1000 budget 1 some
    some=$kept
    [ "$some" -gt 0 ] && [ "$(late)" -gt 0 ]
    ok $? "a second: $some plans are timed, $(late) are not"
    unset REPERF_FAKE_SLOW
    budget 86400 all
    [ "$kept" -gt "$some" ] && [ "$(late)" -eq 0 ]
    ok $? "time enough: all $kept are"
    budget 0 all
    is "$(late)" 0 "what was kept needs none"

    # Workspace is a part of the memory: the fastest engine wants 100 MB on each of four streams, and the device has less and less.
    room() { # MIB STREAMS WORKSPACE: what it is planned with
        REPERF_FAKE_WORKSPACE=104857600 REPERF_EMU_MEMORY=$(($1 << 20)) exits 0 "a device of $1 MiB" "$B/emu/reperf-train" --device cuda --model hrnet_w18 --image 32 --batch 2 \
            --precision amp --no-tune --no-fuse --describe
        like "$(cat "$T/out")" "\"workspace_bytes\":$3," "plans with that workspace on $2"
    }
    room 900 "four streams" 419430400
    is "$(cat "$T/err")" "" "and has nothing to say"
    room 700 "two" 209715200
    like "$(cat "$T/err")" 'with 4 streams the network needs [0-9]* bytes of the GPU, where [0-9]* are free: it is planned with 2, and 209715200 bytes of workspace in all' "and says so"
    room 480 "one" 104857600
    room 400 "one, with another engine" 4352
    REPERF_FAKE_WORKSPACE=104857600 REPERF_EMU_MEMORY=$((100 << 20)) exits 8 "a device that is too small" "$B/emu/reperf-train" --device cuda --model hrnet_w18 --image 32 --batch 2 \
        --precision amp --no-tune --no-fuse --steps 1
    like "$(cat "$T/err")" 'the network needs 1[0-9]* bytes of the GPU .*; no smaller --batch fits either' "refuses what needs least"

    # The same from reperf-train's option to its run_start.
    trains() { # SECONDS FOLDER NAME: into $untimed and $kept; by the same clock, on which each look takes a millisecond
        CLOCK_TICK_NS=1000000 exits 0 "$3" at_clock reperf-train "$B/emu/reperf-train" --device cuda --model bert_nano --sequence 8 --predictions 2 --batch 2 --precision amp --steps 1 \
            --tune-seconds "$1" --plan-cache "$T/$2"
        is "$(grep -c '"event":"run_stop"' "$T/out")" 1 "$3: it trains to its end"
        untimed=$(sed -n '1s/.*"tuned":true,"untimed":\([0-9]*\),.*/\1/p' "$T/out")
        kept=$(find "$T/$2" -name '*.json' 2>/dev/null | wc -l)
    }
    trains 0 train0 "reperf-train --tune-seconds 0"
    all=$untimed
    [ "$kept" -eq 0 ] && [ "$all" -gt 10 ]
    ok $? "no choice is timed, and run_start counts them ($all)"
    like "$(cat "$T/err")" 'the 0 s for timing plans are over' "which is said"
    trains 1 train "reperf-train --tune-seconds 1"
    some=$kept
    ok $((!(some > 0 && untimed > 0 && (some + untimed) == all))) "some are timed and kept, the others are counted ($some and $untimed of $all)"
    trains 0 train "reperf-train --tune-seconds 0 with these"
    is "$untimed $kept" "$((all - some)) $some" "what was kept is taken, and costs none of the time"
fi

# Compiled on request only, though it is the fastest; and kept separately.
export REPERF_FAKE_SLOW=delivered REPERF_TEST_PLANS="$T/compiled"
CLOCK_TICK_NS=1000 # the slow ones are, whatever else this machine does
REPERF_TEST_COMPILED=1 holds norm_conv_bwd_weight "with engines that are compiled"
succeeds "the compiled engine is chosen where it is asked for" grep -hq '; compiled","plan":"cudnn 7 ' "$T"/compiled/*.json
mv "$T/compiled" "$T/compiled1"
holds norm_conv_bwd_weight "without them"
! grep -hq '"plan":"cudnn 7 ' "$T"/compiled/*.json && grep -hq '"plan":"cudnn [234] ' "$T"/compiled/*.json
ok $? "and is not looked at where it is not"
unset REPERF_FAKE_SLOW CLOCK_TICK_NS
export REPERF_TEST_PLANS="$T/plans"

(cd "$T/plans" && sha256sum -- *.json) >"$T/before"
holds linear_bwd_weight "by the plans of the run before"
(cd "$T/plans" && sha256sum -- *.json) >"$T/after"
succeeds "choices that are there are not made again" cmp -s "$T/before" "$T/after"

# Every file damaged in one of four ways: empty, an invalid plan, a plan that is not allowed, another key.
i=0
for file in "$T"/plans/*.json; do
    i=$((i + 1))
    case $((i % 4)) in
    0) : >"$file" ;;
    1) sed -i 's/"plan":"[^"]*"/"plan":"cudnn 77"/' "$file" ;;
    2) sed -i 's/"plan":"[^"]*"/"plan":"cudnn 5 2=7"/' "$file" ;;
    3) sed -i 's/"key":"c/"key":"d/' "$file" ;;
    esac
done
for call in conv_bwd_data linear_bwd_weight; do
    holds "$call" "with damaged choices"
    like "$(cat "$T/err")" 'plan cache: .* is chosen again' "$call: what is damaged is said"
    holds "$call" "after they were made again"
    is "$(grep -c 'chosen again' "$T/err")" 0 "$call: and is whole then"
done
unset REPERF_TEST_PLANS

tells 1 'cuDNN from 9\.0\.0 to below 10\.0\.0 is needed; REPERF_CUDNN_DIR: .*nowhere/libcudnn\.so\.9: no such file' "no cuDNN: said, with where it was looked for" env REPERF_CUDNN_DIR="$T/nowhere" "$program" conv_fwd
tells 1 'cuBLASLt from .* is needed; REPERF_CUBLAS_DIR: .*no such file' "no cuBLASLt: said, with where it was looked for" env REPERF_CUBLAS_DIR="$T/nowhere" "$program" linear_fwd
mkdir "$T/wrong"
cp "$B/fake/libcudnn.so.9" "$T/wrong/$(cd "$B/fake" && echo libcublasLt*)"
tells 1 'has no cublasLtGetVersion' "another library under its name: said" env REPERF_CUBLAS_DIR="$T/wrong" "$program" linear_fwd
tap_done
