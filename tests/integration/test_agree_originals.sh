#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# Our networks compared with the reports' own, in the images that images/build.sh made: the same parameters and batch, loss, logits and gradient.
# shellcheck source=tests/tap_lib.sh
. "$(dirname "$0")/../tap_lib.sh"
BENCH="$B/reperf-bench"
for image in paddle-cpu mmseg-cpu; do
    printf '#!/bin/sh\nexec %s/images/run.sh %s --bind %s python3 "$@"\n' "$ROOT" "$image" "$T" >"$T/$image"
    chmod +x "$T/$image"
done
agree() { # ORIGINAL IMAGE MODEL SIZE...
    local original=$1 image=$2 model=$3
    shift 3
    if [ "$(id -u)" != 0 ] || ! images/build.sh "$image" --cached >"$T/out" 2>"$T/err"; then
        skip "$model compared with $original's" "image $image was not made here: images/build.sh $image, as root"
        return
    fi
    exits 0 "$model compared with $original's" "$BENCH" agree --model "$model" --device cpu --rivals "$original" --python "$T/$image" --out "$T/bench" "$@"
    like "$(cat "$T/out")" "^$original +[0-9.]+ +[0-9.e-]+ +[0-9.]+ +[0-9.e-]+ +[0-9.e-]+ +[0-9.e-]+ +[0-9.e-]+ +agrees" "$model: loss, gradient, logits and running statistics agree"
}
agree paddleseg paddle-cpu hrnet_w18 --batch 2 --image 64x128
agree torchvision mmseg-cpu resnet50 --batch 4 --image 64
if in_test_all "DeepLabV3+ compared with PaddleSeg's and mmsegmentation's"; then
    agree paddleseg paddle-cpu deeplabv3p --batch 2 --image 64x128
    agree mmseg mmseg-cpu deeplabv3p_mmseg --batch 2 --image 64x128
fi
exits 0 "one that has no such network" "$BENCH" agree --model bert_tiny --device cpu --rivals torchvision --python /usr/bin/python3 --out "$T/bench" --batch 1
like "$(cat "$T/out")" '^torchvision .*(skipped|not_run|not here).*torchvision: has no bert_tiny' "is no agreement, and says why"
tap_done
