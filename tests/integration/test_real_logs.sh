#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: judge
# Logs written by eleven tools, measured as in the README: from the sealed runs in logs/verified and from tests/integration/real.
# shellcheck source=tests/tap_lib.sh disable=SC1091
. "$(dirname "$0")/../tap_lib.sh"
for archive in logs/verified/*/*.tar.zst; do tar --zstd -C "$T" -xf "$archive" logs/raw || ok 1 "$archive opens"; done
measured() { # FILE FORMAT UNIT SAMPLES
    is "$("$REPERF" measure --json "$1" 2>/dev/null | jq -r '"\(.verdict) \(.format) \(.unit) \(.records) \(.value > 0)"')" "ok $2 $3 $4 true" "$2 reads what its tool wrote"
}
while read -r file format unit records; do measured "$T/logs/raw/$file/repeat-1.log" "$format" "$unit" "$records"; done <<'END'
hrnetw18/mmseg/fp32/n1g1/bs8 mmseg s 20
hrnetw18/paddle/fp32/n1g1/bs8 paddleseg samples/s 20
hrnetw18/reperf/fp32/n1g1/bs8 reperf samples/s 20
bert-base/ngc-tf/fp32/n1g1/bs32 ngc-tf-bert sequences/s 9
resnet50/ngc-mxnet/fp32/n1g1/bs96 mxnet images/s 1
resnet50/paddle/fp32/n1g1/bs96 paddleclas-static images/s 30
resnet50/tf2/fp32/n1g1/bs128 tf2-timehistory images/s 6
END
measured tests/integration/real/hf-trainer.log hf-trainer samples/s 1
measured tests/integration/real/mmengine.log mmengine s 20
measured tests/integration/real/lightning.log lightning steps/s "$(tr '\r' '\n' <tests/integration/real/lightning.log | grep -E '[0-9.]+it/s' | grep -oE 'Epoch [0-9]+|\| [0-9]+/20' | paste - - | sort -u | wc -l)"
exits 11 "a loop with tqdm, which no format knows" "$REPERF" measure tests/integration/real/tqdm.log --suggest "$T/loop.json"
tap_done
