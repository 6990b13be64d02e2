#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: net
# net/fetch against a server that misbehaves on demand (tests/servers/fault_http.py): each fault ends in the right bytes, or in an error
# that names it. Bytes received twice are counted on both sides.
. "$(dirname "$0")/../tap_lib.sh"
one="$B/servers/fetch_one"
size=20000000
head -c $size /dev/zero | openssl enc -aes-128-ctr -nosalt -K 00112233445566778899aabbccddeeff -iv 00000000000000000000000000000000 >"$T/file"
sha=$(openssl dgst -sha256 -r "$T/file" | cut -d' ' -f1)
md5=$(openssl dgst -md5 -r "$T/file" | cut -d' ' -f1)
tests/servers/fault_http.py "$T/file" >"$T/port" &
server=$!
trap 'kill "$server"; rm -rf "$T"' EXIT
served "$server" "the server says its port" test -s "$T/port"
base="http://127.0.0.1:$(cat "$T/port")"
stats() { curl -s --noproxy '*' "$base/stats"; }

# fetch FOLDER ARG...: output into $T/out, $T/err. The server's counters start at 0. Silence is not noticed soon but where it is meant: a busy machine is silent, too.
fetch() {
    local folder=$1
    shift
    curl -s --noproxy '*' "$base/reset" >"$T/reset"
    "$one" folder="$T/$folder" proxy= backoff_ms=20 stall_ms=60000 "$@" >"$T/out" 2>"$T/err"
}
value() { awk -v key="$1" '$1 == key { print $2 }' "$T/out"; }
n=0
good() { # NAME ARG...: fetched whole
    local name=$1 got
    shift
    n=$((n + 1))
    fetch "f$n" sha256="$sha" md5="$md5" "$@"
    got=$?
    cmp -s "$T/file" "$T/f$n/data" && [ $got -eq 0 ]
    ok $? "$name"
    [ $got -eq 0 ] || sed 's/^/# /' "$T/err"
    rm -f "$T/f$n/data"
}
bad() { # STATUS ERE NAME ARG...
    n=$((n + 1))
    fails "$1" "$2" "$3" fetch "f$n" "${@:4}"
}
at_most() { # NUMBER MAX NAME
    succeeds "$3 ($1 <= $2)" test "$1" -le "$2"
}

good "a server that does nothing wrong" url="$base/ok/0/f"
read -r asked _ < <(stats)
is "$(($(value received) - $(value again))) $((asked > 2))" "$size 1" "over many streams, and what came twice is counted"
at_most "$(value again)" $((size / 20)) "next to nothing came twice"
good "one connection" connections=1 url="$base/ok/0/f"
good "connections that are cut, again and again" url="$base/cut/300000/f"
at_most "$(value again)" $((size / 20)) "a cut costs next to nothing twice"
good "cut after fewer bytes than count as progress" url="$base/cut/300000/f" retries=2
good "silence ends, and another connection goes on" stall_ms=1000 retries=1000 url="$base/stall/200000/f"
good "a connection that drips is not waited for" stall_ms=1000 retries=1000 url="$base/drip/4/f"
at_most "$(value again)" 1000000 "and little comes twice"
good "503 some times" url="$base/busy/3/f"
good "429 with Retry-After" url="$base/toomany/1/f"
good "more connections than the server wants" url="$base/limit/3/f"
good "parts smaller than asked for" url="$base/part/700000/f"
good "a redirect" url="$base/redirect/0/f"
good "another ETag each time, the same time and size, and a known digest" url="$base/etags/0/f"
good "no ranges" url="$base/norange/0/f"
is "$(stats | cut -d' ' -f1)" 2 "no ranges: after the request that shows it, one stream"
good "chunks without a length" url="$base/chunked/0/f"
good "chunks without a length, the size known" size=$size url="$base/chunked/0/f"
good "HTTP/1.0 without a length, a digest known" url="$base/open/0/f"
good "Content-Encoding, a digest known" url="$base/gzip/0/f"
good "file://" url="file://$T/file"
at_most "$(value again)" $((size / 20)) "file://: next to nothing twice"
good "the second mirror, where the first is gone" url="$base/gone/0/f" url="$base/ok/0/f"
good "the second mirror, where the first wants a login" url="$base/login/0/f" url="$base/ok/0/f"
good "the second mirror, where the first is no server" url=http://127.0.0.1:1/f url="$base/ok/0/f" retries=1
good "the second mirror, where the first is no URL" url=hush url="$base/ok/0/f"
good "the second mirror, where the first is silent" url="$base/mute/1000/f" url="$base/ok/0/f" stall_ms=1000 retries=1
is "$(value url)" "$base/ok/0/f" "which gave most of it"
good "the second mirror where the first is gone, and nothing is known" url="$base/gone/0/f" url="$base/ok/0/f"
good "the second mirror, where the first has another size" url="$base/lie/5/f" url="$base/ok/0/f" size=$size
good "the mirror with ranges is taken" url="$base/norange/0/f" url="$base/ok/0/f"
is "$(value url)" "$base/ok/0/f" "the mirror with ranges is taken: it gives most"
good "a mirror that is always wrong, and a right one" url="$base/corrupt_always/5/f" url="$base/ok/0/f"
is $(($(value again) / size)) 1 "without pieces: everything again, from the next mirror"

bad 4 'fetch: .*gone \(404\)' "gone" url="$base/gone/0/f"
bad 4 'none of 2 mirrors has it.*gone' "gone everywhere" url="$base/gone/0/f" url="$base/gone/1/f"
bad 5 'auth: .*: the proxy requires a login$' "a proxy wants a login" url="$base/toll/0/f"
bad 5 'auth: .*login' "a login is needed" url="$base/login/0/f" url="$base/gone/1/f"
bad 5 'integrity: .*expected SHA-256' "a wrong whole" sha256="$sha" url="$base/corrupt_always/1/f"
is "$(stat -c %s "$T/f$n/data") $(test -e "$T/f$n/state" && echo state)" "0 " "a wrong whole is not kept"
bad 5 'has 20000005 bytes, expected 20000000' "a wrong size" size=$size url="$base/lie/5/f"
bad 5 'sends more than 20000000 bytes' "more than it should be" size=$size url="$base/long/5/f"
bad 5 'ends after 20000000 of 20000001 bytes' "less than it should be" size=20000001 url="$base/chunked/0/f"
bad 4 'net: .*another range' "a wrong Content-Range" url="$base/shift/1/f" retries=2
bad 4 'fetch: .*redirect' "a circle of redirects" url="$base/circle/0/f"
bad 4 'net: ' "no HTTP" url="$base/garbage/0/f" retries=2
bad 4 'net: .*\(503\)' "always 503" url="$base/busy/100/f" retries=2
bad 4 'net: .*too slow' "always silent" stall_ms=1000 url="$base/mute/1000/f" retries=1
bad 4 'net: ' "chunks that are cut, no size known" url="$base/chunkcut/100000/f" retries=2
bad 5 'states no length' "no length and nothing to check it against" url="$base/open/0/f"
bad 4 'Content-Encoding' "encoded, and nothing to check it against" url="$base/gzip/0/f"
bad 4 'net: ' "no server" url=http://127.0.0.1:1/f retries=1
bad 2 'usage: ' "no URL" url=hush
bad 10 'disk: .*needs 9000000000000000000 bytes' "more than the disk has" size=9000000000000000000 url="$base/ok/0/f"
bad 10 'and what comes after it, needs' "no room for what comes after" spare=9000000000000000000 url="$base/ok/0/f"
bad 5 'auth: .*mode 0644' "a netrc that others may read" netrc="$T/port" url="$base/ok/0/f"
bad 4 'fetch: .*gone' "user info and query are not said" url="http://ann:hush@127.0.0.1:$(cat "$T/port")/gone/0/f?key=hush"
is "$(grep -c hush "$T/err")" 0 "no part of a secret is said"

# --- pieces ---
piece_bytes=1048576
split -b "$piece_bytes" --filter='sha256sum | cut -d" " -f1' "$T/file" >"$T/pieces"
known=(pieces="$T/pieces" piece_bytes="$piece_bytes")
good "one corrupt piece" "${known[@]}" url="$base/corrupt/12345678/f"
read -r _ sent < <(stats)
is "$(value bad_pieces) $(($(value received) - $(value again)))" "1 $size" "one piece was bad"
at_most "$(value again)" $((piece_bytes + piece_bytes / 2)) "that piece alone came again"
at_most "$sent" $((size + 3 * piece_bytes)) "and the server sent little more"
good "a corrupt piece from one mirror comes from the other" "${known[@]}" url="$base/corrupt_always/12345678/f" url="$base/ok/0/f"
at_most "$(value bad_pieces)" 1 "asked for there at once"
good "a corrupt piece from a server without ranges" "${known[@]}" url="$base/norange/0/f"
bad 5 'integrity: .*bytes 11534336 to 12582911 do not have the SHA-256 of piece 11' "a piece that is always wrong" "${known[@]}" url="$base/corrupt_always/12345678/f"
bad 5 'digests of' "pieces of another file" pieces="$T/pieces" piece_bytes=$((piece_bytes / 2)) url="$base/ok/0/f"

# --- an earlier process ---
half() { # FOLDER ARG...: it dies once it has a good part of the file, and its state says so
    local folder=$1
    shift
    curl -s --noproxy '*' "$base/reset" >"$T/reset"
    { "$one" folder="$T/$folder" proxy= rate=8000000 kill_at=5000000 "$@" >"$T/out" 2>"$T/err"; } 2>"$T/said" # bash says "Killed"
    [ $? -eq 137 ] || echo "# the fetch into $folder was not killed: $(cat "$T/err")"
}
# A piece whose first part an earlier process had from the good mirror and whose rest, with the error, comes from the bad one: either may be
# wrong. Each is then asked for the whole piece, in turn.
half k0 rate=4000000 connections=1 url="$base/ok/0/f"
cp -r "$T/k0" "$T/k0.copy"
fetch k0.copy connections=1 url="$base/ok/0/f"
kept=$(value kept)
ok $((!(kept % piece_bytes != 0 && kept <= size - 2 * piece_bytes))) "an earlier process came into the midst of a piece ($kept bytes)"
fetch k0 sha256="$sha" "${known[@]}" connections=1 url="$base/corrupt_always/$((kept / piece_bytes * piece_bytes + piece_bytes - 1))/f" url="$base/ok/0/f"
is "$? $(value sha256) $(value bad_pieces)" "0 $sha 1" "a piece of two mirrors that is wrong comes whole from one"
half k1 sha256="$sha" url="$base/ok/0/f"
fetch k1 sha256="$sha" url="$base/ok/0/f"
is $? 0 "resumes after kill -9"
succeeds "with what was there ($(value kept) bytes)" test "$(value kept)" -gt $((size / 10))
at_most "$(value again)" $((size / 20)) "of which next to nothing is fetched again" # an idle connection takes over the half of another's last part
at_most 4000000 "$(value kept)" "and it is a good part"
half k2 connections=1 sha256="$sha" url="$base/ok/0/f"
printf 'xxxxxxxx' | dd of="$T/k2/data" bs=1 seek=70000 conv=notrunc status=none
cp -r "$T/k2" "$T/k2.pieces"
fetch k2 sha256="$sha" url="$base/ok/0/f"
is "$? $(value kept)" "0 0" "kept bytes that are wrong: begun anew"
succeeds "the right bytes" cmp -s "$T/file" "$T/k2/data"
fetch k2.pieces sha256="$sha" "${known[@]}" url="$base/ok/0/f"
is "$? $(($(value kept) > 0)) $(value bad_pieces)" "0 1 1" "with pieces: that piece alone comes again"
half k7 url="$base/ok/0/f"
sed -i '0,/"boot": "/s/"boot": "./"boot": "x/' "$T/k7/state"
fetch k7 kinds=2 url="$base/ok/0/f"
is "$? $(value kept) $(value sha256)" "0 0 $sha" "the machine was down in between, and nothing is known of the file: begun anew"
half k8 sha256="$sha" url="$base/ok/0/f"
sed -i '0,/"boot": "/s/"boot": "./"boot": "x/' "$T/k8/state"
fetch k8 sha256="$sha" url="$base/ok/0/f" && [ "$(value kept)" -gt 1000000 ]
ok $? "likewise, with a digest: what is there is kept"
half k3 url="$base/change/60/f"
curl -s --noproxy '*' -o "$T/reset" -r 0-0 "$base/change/60/[1-60]"
"$one" folder="$T/k3" proxy= kinds=2 url="$base/change/60/f" >"$T/out" 2>"$T/err"
is "$? $(value kept)" "0 0" "another ETag than at the last time: begun anew"
succeeds "with the new bytes" test "$(value sha256)" != "$sha"
bad 4 'changes while it is fetched' "a file that changes all the time" url="$base/etags/0/f"
half k6 url="$base/ok/0/f"
fetch k6 kinds=2 url="$base/ok/1/f"
is "$? $(value kept) $(value sha256)" "0 0 $sha" "another URL, and nothing known of the file: begun anew"
half k4 sha256="$sha" url="$base/ok/0/f"
printf 'garbage' | dd of="$T/k4/state" conv=notrunc status=none
fetch k4 sha256="$sha" url="$base/ok/0/f"
is "$? $(value kept)" "0 0" "a state that cannot be read: begun anew"
half k5 sha256="$sha" url="$base/ok/0/f"
truncate -s -7 "$T/k5/state"
fetch k5 sha256="$sha" url="$base/ok/0/f"
is "$? $(value kept)" "0 0" "a state that was cut off: begun anew"
half k9 sha256="$sha" url="$base/ok/0/f"
truncate -s 1000000 "$T/k9/data"
fetch k9 sha256="$sha" url="$base/ok/0/f"
is "$? $(value kept)" "0 0" "data that was cut off: begun anew"
good "a limit on the rate" rate=20000000 url="$base/ok/0/f"

tap_done
