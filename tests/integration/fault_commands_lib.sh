# shellcheck shell=bash disable=SC1091,SC2012,SC2015,SC2034,SC2119,SC2317
# SPDX-License-Identifier: Apache-2.0
# What test_faults.sh and test_power_cut.sh do the same way, below $W, where calls fail. Source it after tap_lib.sh.
# shellcheck source=tests/integration/run_lib.sh
. "$ROOT/tests/integration/run_lib.sh"
# shellcheck source=tests/integration/tiny_lib.sh
. "$ROOT/tests/integration/tiny_lib.sh"
# shellcheck source=tests/faults/lib.sh
. "$ROOT/tests/faults/lib.sh"
W="$T/w" SAMPLES=1 SOURCE=
mkdir -p "$T/tmp"
export TMPDIR="$T/tmp" REPERF_ROOT="$T/root"

# A command NAME has: NAME_before, from nothing to where it is tried (kept and copied for each try); NAME, the command; NAME_again, the repair (default:
# NAME); NAME_right, whether the result is right.
same_tree() { diff -r "$T/in/tree" "$1" >/dev/null; } # FOLDER
right_run() { # the newest run is sealed, its archive derives, and the number is the one that was measured
    local folder
    folder=$(run_folder) || return 1
    "$REPERF" verify "$folder"/*.tar.zst --unsigned --json >"$T/verify.json" && "$REPERF" status last --json >"$T/status.json" &&
        [ "$(value "$folder/evidence/result.json" 'd["cells"][0]["value"]')" = 8 ] && [ "$(value "$T/status.json" 'd["runs"][0]["state"]')" = sealed ]
}
run_before() { :; }
run() { one_run; }
run_again() { if ls "$REPERF_STATE"/runs/2* >/dev/null 2>&1; then "$REPERF" resume last; else one_run; fi; } # what is there is gone on with
run_right() { right_run; }
resume_before() { REPERF_CRASH_AFTER=3 one_run; [ -d "$REPERF_STATE/runs" ]; }
resume() { "$REPERF" resume last; }
resume_right() { right_run; }
seal_right() { "$REPERF" verify "$W/sealed/a.tar.zst" --unsigned; }
unpack_before() { cp "$T/www/tree.tar.gz" "$W/"; }
unpack() { "$REPERF" unpack "$W/tree.tar.gz" "$W/out"; }
unpack_right() { same_tree "$W/out/tree"; }
fetch_before() { :; }
fetch() { "$REPERF" fetch tiny --offline --mirror "$T/www" && { [ -z "$SOURCE" ] || "$REPERF" fetch "$SOURCE"; }; }
fetch_right() {
    same_tree "$REPERF_STORE/trees/tiny/tree" && "$REPERF" verify tiny --deep && { [ -z "$SOURCE" ] || "$REPERF" verify "$SOURCE"; } && "$REPERF" store verify
}
bundle_before() { fetch; }
bundle() { REPERF_ROOT="$T/few" "$REPERF" bundle tiny ${SOURCE:+"$SOURCE"} --output "$W/b"; }
bundle_again() { [ -e "$W/b" ] || bundle; }
import_before() { fetch && bundle && mv "$W/b" "$T/carried" && chmod -R u+w "$REPERF_STORE" && rm -rf "$REPERF_STORE"; }
import() { "$REPERF" import "$T/carried" --locks "$W/locks"; }
import_right() { "$REPERF" store verify && "$REPERF" fetch tiny --offline && { [ -z "$SOURCE" ] || "$REPERF" fetch "$SOURCE" --offline; } && fetch_right; }

# COMMAND..., whose calls CALL below $W are counted in $T/mark; with REPERF_FAULT_AT, and _ERRNO or _SIGNAL, one of them fails or is the last.
at_calls() { # CALL COMMAND...
    LD_PRELOAD="$FAULT_CALLS" REPERF_FAULT_BELOW="$W/" REPERF_FAULT_CALL="$1" REPERF_FAULT_DONE="$T/mark" "${@:2}"
}
stride() { # CALLS: from one that is tried to the next
    if [ "$SAMPLES" -eq 0 ]; then echo 1; else echo $((($1 + SAMPLES - 1) / SAMPLES)); fi
}
bad() { # WHAT
    n_bad=$((n_bad + 1))
    echo "# $1"
    tail -n 4 "$T/log" | cut -c1-300 | sed 's/^/#   /'
}
