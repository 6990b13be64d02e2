#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: base
# Temporary names (base/temp.h has the table): at each place a command is killed while one is there, and the next command leaves nothing of it. What a process
# that lives has made is nobody else's to remove.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2119,SC2317
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/run_lib.sh disable=SC1091
. "$ROOT/tests/integration/run_lib.sh"
# shellcheck source=tests/integration/tiny_lib.sh disable=SC1091
. "$ROOT/tests/integration/tiny_lib.sh"
# shellcheck source=tests/faults/lib.sh disable=SC1091
. "$ROOT/tests/faults/lib.sh"
trap 'chmod -R u+w "$T" 2>/dev/null; rm -rf "$T"' EXIT
export TMPDIR="$T/tmp" REPERF_STORE="$T/store" REPERF_ROOT="$T/root"
W="$T/w"
mkdir "$TMPDIR" "$W"
tiny_dataset 2
left() { find "$TMPDIR" "$W" "$REPERF_STATE" "$REPERF_STORE" \( -name 'reperf-tmp-??????' -o -name '*.reperf-tmp-??????' \) 2>/dev/null | wc -l; }
killed() { # WHAT CALL NUMBER PATH COMMAND...
    { at_call KILL "$2" "$3" "$4" "${@:5}" >"$T/out" 2>"$T/err"; } 2>"$T/said"
    is $? 137 "$1, killed"
    [ "$(left)" -gt 0 ]
    ok $? "$1: it leaves a temporary name"
}
swept() { # WHAT: the one before was the next command
    is "$(left)" 0 "$1: the next command leaves nothing"
    [ "$(left)" -eq 0 ] || find "$T" -name '*reperf-tmp-??????' | sed 's/^/# /'
}

# ---- the state folder ----
killed "run, before its run is frozen" rename 1 "$REPERF_STATE/runs/reperf-tmp-" "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --repeats 1
"$REPERF" list reports >"$T/out"
swept "run, before its run is frozen"
smoke --repeats 1 >"$T/out" 2>&1
archive=$(echo "$(run_folder)"/*.tar.zst)
mkdir -p "$T/pub/manifests/reports" && cp "$ROOT/manifests/reports/paddle-perf-2020.json" "$T/pub/manifests/reports/"
tar -C "$T/pub" -czf "$T/pub.tar.gz" .
killed "an archive as an address" open 2 "$REPERF_STATE/addresses/reperf-tmp-" "$REPERF" audit "$T/pub.tar.gz"
"$REPERF" list reports >"$T/out"
swept "an archive as an address"
"$REPERF" audit "$T/pub.tar.gz" >"$T/out" 2>&1
"$REPERF" status >"$T/out"
swept "what an archive unpacked for a command that has ended"
mkdir "$REPERF_STATE/reperf-tmp-abcdef" && touch "$REPERF_STATE/reperf-tmp-abcdef/half"
"$REPERF" status >"$T/out"
swept "files on their way to nodes"
id=$(basename "$(run_folder)")
touch "$(run_folder)/metrics.prom.reperf-tmp-abcdef"
exits 0 "store gc" "$REPERF" store gc
swept "a file of a run that is over: store gc"

# ---- the store ----
killed "a file on its way into the store" write 1 "$REPERF_STORE/tmp/" "$REPERF" store add "$archive"
mkdir "$REPERF_STORE/tmp/of-a-program" && touch "$REPERF_STORE/tmp/of-a-program/half"
exits 0 "the store is opened" "$REPERF" store ls
swept "a file on its way into the store"
is "$(find "$REPERF_STORE/tmp" -mindepth 1 | wc -l)" 0 "nor what programs left that died with it"

# ---- elsewhere ----
killed "verify of an archive" open 3 "$TMPDIR/reperf-tmp-" "$REPERF" verify "$archive" --unsigned
exits 0 "verify again" "$REPERF" verify "$archive" --unsigned
swept "verify of an archive"
killed "report of an archive" open 3 "$TMPDIR/reperf-tmp-" "$REPERF" report "$archive"
exits 0 "another command" "$REPERF" list reports
swept "report of an archive"
"$REPERF" fetch tiny --offline --mirror "$T/www" >"$T/out" 2>&1
killed "a bundle" open 3 "$W/b" "$REPERF" bundle tiny --output "$W/b"
exits 0 "the bundle again" "$REPERF" bundle tiny --output "$W/b"
swept "a bundle"
killed "unpack" open 3 "$W/out" "$REPERF" unpack "$T/www/tree.tar.gz" "$W/out"
exits 0 "unpacked again" "$REPERF" unpack "$T/www/tree.tar.gz" "$W/out"
swept "unpack"
killed "a page" rename 1 "$W/r.html" "$REPERF" report "$id" --html "$W/r.html"
exits 0 "the page again" "$REPERF" report "$id" --html "$W/r.html"
swept "a page"
{ at_call KILL fsync 1 "$W/a.tar.zst.partial" "$REPERF" seal "$id" -o "$W/a.tar.zst" --force >"$T/out" 2>"$T/err"; } 2>"$T/said"
is $? 137 "seal, killed"
exits 0 "sealed again" "$REPERF" seal "$id" -o "$W/a.tar.zst" --force
is "$(ls "$W")" "$(printf 'a.tar.zst\nb\nout\nr.html')" "leaves nothing but what was asked for"

# ---- what is alive, and what is not ours ----
at_call STOP open 3 "$TMPDIR/reperf-tmp-" "$REPERF" verify "$archive" --unsigned >"$T/stopped.out" 2>&1 &
stopped=$!
stands() { # sets standing
    for standing in "$stopped" $(pgrep -P "$stopped"); do grep -q '^State:.*T' "/proc/$standing/status" && return 0; done
    return 1
}
served "$stopped" "verify has begun, and stands" stands
exits 0 "another command meanwhile" "$REPERF" verify "$archive" --unsigned
is "$(left)" 1 "leaves what that one has in use"
kill -CONT "$standing"
wait "$stopped"
is $? 0 "which then ends as it should"
swept "both"
echo mine >"$W/r.html.backup"
echo mine >"$W/r.html.reperf-tmp-abc"
ln -s "$T/pub" "$W/r.html.reperf-tmp-abcdef"
exits 0 "a page beside files of similar names" "$REPERF" report "$id" --html "$W/r.html"
is "$(cat "$W/r.html.backup" "$W/r.html.reperf-tmp-abc") $(readlink "$W/r.html.reperf-tmp-abcdef")" "mine
mine $T/pub" "which stay, and a link too"
[ -d "$T/pub/manifests" ]
ok $? "and what it leads to"
tap_done
