#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: evidence
# archives.sh: makes local.tar.zst, cluster.tar.zst, their cells and signer.pub anew, on a test cluster of its own, by the program in B. The key that signs
# is thrown away. Only where what a run freezes has changed in a way that today's program cannot read; README.md says what must be in them.
# shellcheck source=tests/cluster/lib.sh disable=SC2016,SC2119
. "$(dirname "$0")/../cluster/lib.sh"
G=$ROOT/tests/golden
export REPERF_STATE=$T/state
"$REPERF" keygen "$T/signer" >/dev/null
sealed() { # NAME RUN
    "$REPERF" verify "$REPERF_STATE/runs/$2/$2.tar.zst" --key "$T/signer.pub" || exit 1
    cp "$REPERF_STATE/runs/$2/$2.tar.zst" "$G/$1.tar.zst"
    jq -r '.cells[] | [.case, .verdict, .value // "-", [.repeats[].counts]] | map(tostring) | join(" ")' "$REPERF_STATE/runs/$2/evidence/result.json" >"$G/$1.cells"
}

# One machine, with an override: a case that is not run, one that counts, one with NaN and exit status 3, one whose log ends too early.
cp "$ROOT/tests/integration/fake_train.sh" "$T/train.sh"
printf '%s\n' '#!/bin/sh' 'case " $* " in *" --describe "*) ;; *) echo run >>"$0.n" ;; esac' \
    'case $(wc -l <"$0.n") in 3) echo nan ;; 4) echo fails ;; 5) echo short ;; esac >"${0%/*}/mode"' 'exec "${0%/*}/train.sh" "$@"' >"$T/turns.sh"
chmod +x "$T/turns.sh"
: >"$T/turns.sh.n"
local=20261122T000000.000Z-00000001
REPERF_TRAIN="$T/turns.sh" "$REPERF" run paddle-perf-2020 --case 'resnet50/reperf/fp32/*' --case 'resnet50/paddle/fp32/n1g1/*' --profile smoke \
    --repeats 2 -C 'stacks[reperf].env.OMP_NUM_THREADS=2' --run-id "$local" --key "$T/signer"
is "$?" 7 "a run on one machine, one case of which has no framework"
sealed local "$local"

# Four nodes in containers: three cases with 1, 2 and 4 ranks.
cluster=20261122T000000.000Z-00000004
"$REPERF" run paddle-perf-2020 --case 'resnet50/reperf/fp32/*' --profile smoke --repeats 2 --nodes "$S/inventory.json" \
    --image "reperf-cpu=$HEAD_IP:$REGISTRY_PORT/$(cluster_image)" --run-id "$cluster" --key "$T/signer"
is "$?" 0 "a run on four nodes"
sealed cluster "$cluster"
cp "$T/signer.pub" "$G/signer.pub"
tap_done
