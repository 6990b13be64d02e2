#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# reperf store: against md5sum, sha256sum and skopeo; several processes at once; kill -9; gc; flipped bytes.
# shellcheck source=tests/tap_lib.sh disable=SC1091
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/faults/lib.sh disable=SC1091
. "$ROOT/tests/faults/lib.sh"
W="$T/work"
mkdir -p "$W"
store() { "$REPERF" store "$@"; }
files_in() { find "$REPERF_STORE/$1" -type f | wc -l; }
hex() { sha256sum "$1" | cut -c1-64; }
head -c 300000 /dev/urandom >"$W/one file"
head -c 5000000 /dev/urandom >"$W/two"
one=$(hex "$W/one file") two=$(hex "$W/two")

# --- add, ls ---
prints 0 "md5 +$(md5sum "$W/one file" | cut -c1-32)" "add" store add "$W/one file"
like "$(cat "$T/out")" "sha256 +$one" "and the SHA-256 that sha256sum finds"
like "$(cat "$T/out")" "size bytes +300000 " "and the size"
documents store-output 0 "add --json of two" store add --json "$W/one file" "$W/two"
is "$(value "$T/document" '[f["sha256"] for f in d["files"]]')" "['$one', '$two']" "both digests are in it"
is "$(value "$T/document" 'd["files"][1]["path"]')" "$REPERF_STORE/blobs/sha256/$two" "and where the blob is"
succeeds "which has the same bytes" cmp -s "$REPERF_STORE/blobs/sha256/$two" "$W/two"
is "$(stat -c %a "$REPERF_STORE/blobs/sha256/$two")" 444 "and is read-only"
echo other >"$W/sub" && mkdir -p "$W/dir" && cp "$W/sub" "$W/dir/two"
prints 0 "name +two@$(hex "$W/sub" | cut -c1-12)" "another file of the same name" store add "$W/dir/two"
prints 0 'file +two +1 +0 +5000000 ' "ls" store ls
documents store-output 0 "ls --json" store ls --json
is "$(value "$T/document" '[r["name"] for r in d["references"]]')" "['one file', 'two', 'two@$(hex "$W/sub" | cut -c1-12)']" "has all names"

# --- usage ---
exits 2 "no verb" store
exits 2 "another verb" store prune
exits 2 "a name that is not there" store drop nothing
exits 2 "a file that is not there" store add "$W/nothing"
exits 10 "a folder is no file" store add "$W/dir"
exits 2 "an option of another verb" store ls --dry-run
fails 2 'expected an empty folder or a store' "somebody else's folder is not made a store" env REPERF_STORE="$W" "$REPERF" store ls

# --- gc ---
documents store-output 0 "drop" store drop file/two --json
prints 0 '^young +1$' "gc" store gc
before=$(files_in blobs/sha256)
documents store-output 0 "gc --dry-run" store gc --grace 0 --dry-run --json
is "$(value "$T/document" 'd["dropped"][0]["name"]')" "blobs/sha256/$two" "names what would go"
is "$(files_in blobs/sha256)" "$before" "drops nothing"
documents store-output 0 "gc" store gc --grace 0 --json
is "$(value "$T/document" 'd["dropped"][0]["name"], d["dropped"][0]["size_bytes"]')" "('blobs/sha256/$two', 5000000)" "says what went"
is "$(ls "$REPERF_STORE/blobs/sha256/$one" "$REPERF_STORE/blobs/sha256/$two" 2>/dev/null)" "$REPERF_STORE/blobs/sha256/$one" "what has a name stays"

# --- verify ---
documents store-output 0 "verify" store verify --json
is "$(value "$T/document" 'd["holds"], d["findings"]')" "(True, [])" "all is whole"
blob="$REPERF_STORE/blobs/sha256/$one"
chmod u+w "$blob" && printf 'damaged!' | dd of="$blob" bs=1 seek=123456 conv=notrunc status=none && chmod a-w "$blob"
documents store-output 5 "a changed byte" store verify --json
is "$(value "$T/document" '[(f["fault"], f["name"]) for f in d["findings"]]')" "[('corrupt', 'sha256:$one'), ('missing', 'sha256:$one')]" "is named, with what misses it"
like "$(value "$T/document" 'd["findings"][1]["where"]')" '^file/one file$' "by its name"
[ ! -e "$blob" ] && [ "$(files_in quarantine)" -eq 1 ]
ok $? "it is out of use, in quarantine"
prints 0 'one file +1 +1 ' "ls says what is missing" store ls
exits 0 "added again" store add "$W/one file"
exits 0 "it is whole again" store verify
: >"$REPERF_STORE/blobs/sha256/oci-put-blob123"
prints 0 '^foreign +oci-put-blob123$' "another tool's file among the blobs does no harm" store verify
rm "$REPERF_STORE/blobs/sha256/oci-put-blob123"
ln -s /etc/passwd "$REPERF_STORE/blobs/sha256/$two"
exits 5 "a link that leads out of the store is an error" store verify
rm "$REPERF_STORE/blobs/sha256/$two"
sleep 2.1 # files that were written a moment ago are not trusted by their times
exits 0 "verify reads all" store verify
documents store-output 0 "verify --quick" store verify --quick --json
is "$(value "$T/document" 'd["not_read_again"] == d["blobs"] and d["blobs"] > 0')" True "reads nothing again"
chmod u+w "$blob" && printf 'damaged!' | dd of="$blob" bs=1 seek=1 conv=notrunc status=none && touch -d '2020-01-01' "$blob"
exits 5 "a change under an old date is seen by --quick" store verify --quick
exits 0 "added again" store add "$W/one file"

# --- several processes at once ---
rm -rf "$REPERF_STORE"
for i in {0..11}; do head -c $((200000 + i)) /dev/urandom >"$W/p$i"; done
pids=()
for p in 0 1 2 3; do # each adds all, beginning elsewhere, to a store that is not there yet
    (for i in {0..11}; do store add "$W/p$(((i + 3 * p) % 12))" || exit 1; done) >"$T/p$p.out" 2>&1 &
    pids+=($!)
done
bad=0
for pid in "${pids[@]}"; do wait "$pid" || bad=1; done
is "$bad" 0 "four processes add the same twelve files at once"
is "$(files_in blobs/sha256) $(files_in tmp)" "12 0" "twelve blobs, nothing left over"
exits 0 "all are whole" store verify
(for i in {0..11}; do store add "$W/p$i" >/dev/null || exit 1; done) &
adder=$!
busy=0
while kill -0 "$adder" 2>/dev/null; do
    store gc --grace 0 >/dev/null 2>"$T/err"
    case $? in 0) ;; 2) grep -q 'another process is using it' "$T/err" && busy=1 ;; *) busy=-1 && break ;; esac
done
wait "$adder"
is "$?" 0 "a process adds while another runs gc again and again"
ok "$([ "$busy" -ge 0 ]; echo $?)" "gc ran, or said that the store is in use"
is "$(files_in blobs/sha256)" 12 "no blob that has a name was lost"

# --- kill -9 ---
head -c 5000000 /dev/urandom >"$W/big"
bad=0 killed=0
for call in open write fsync rename; do # at each call that it makes in the store
    for at in {1..99}; do
        { at_call KILL $call "$at" "$REPERF_STORE/" "$REPERF" store add "$W/big" >/dev/null; } 2>"$T/said" # bash says "Killed"
        died=$?
        [ $died -ne 137 ] || killed=$((killed + 1))
        store verify >"$T/out" 2>"$T/err" || { bad=1 && cat "$T/out" "$T/err"; }
        store drop file/big >/dev/null 2>&1 && store gc --grace 0 >/dev/null
        [ $died -eq 137 ] || break
    done
    is "$died" 0 "there is no ${call} number $at"
done
is "$bad" 0 "killed $killed times, at each of its calls, the store is whole each time"
ok "$([ "$killed" -ge 20 ]; echo $?)" "so many are there"
{ at_call KILL write 3 "$REPERF_STORE/tmp/" "$REPERF" store add "$W/big" >/dev/null; } 2>"$T/said"
is "$(files_in tmp)" 1 "one that dies leaves its half"
exits 0 "gc clears up what died" store gc --grace 0
is "$(files_in tmp)" 0 "nothing is left"
exits 0 "and the file can be added" store add "$W/big"
# What says that a folder is a store: after a power cut it is there, or nothing is.
{ REPERF_STORE="$T/made" at_call KILL fsync 1 "$T/made/.lock" "$REPERF" store ls >/dev/null; } 2>"$T/said"
is "$? $(ls -A "$T/made")" "137 .lock" "the mark of a new store is synced before anything else is in it"

# --- a stop, a full disk, a closed output ---
exits 143 "SIGTERM is status 128 + 15" at_call TERM write 3 "$REPERF_STORE/tmp/" "$REPERF" store add "$W/big"
is "$(files_in tmp)" 0 "nothing is left"
head -c 20000000 /dev/urandom >"$W/new"
# shellcheck disable=SC2016
exits 10 "a full disk is status 10" bash -c 'trap "" XFSZ; ulimit -f 8000; exec "$@"' - "$REPERF" store add "$W/new"
is "$(files_in tmp)" 0 "nothing is left"
# shellcheck disable=SC2016
exits 10 "an output that cannot be written" bash -c 'exec "$@" >/dev/full' - "$REPERF" store ls
printf '{"blobs": ["sha2' >"$REPERF_STORE/refs/file/broken.json"
fails 3 'nothing was dropped' "a reference that cannot be read stops gc" store gc --grace 0
tap_done
