#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: base
# Temporary names (base/temp.h has the table): at each place a command is killed while one is there, and the next command that uses that place leaves nothing
# of it. What a process that lives has made is nobody else's to remove.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2119,SC2317
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/run_lib.sh disable=SC1091
. "$ROOT/tests/integration/run_lib.sh"
# shellcheck source=tests/integration/tiny_lib.sh disable=SC1091
. "$ROOT/tests/integration/tiny_lib.sh"
# shellcheck source=tests/faults/lib.sh disable=SC1091
. "$ROOT/tests/faults/lib.sh"
# shellcheck source=tests/integration/image_lib.sh disable=SC1091
. "$ROOT/tests/integration/image_lib.sh"
trap 'end_servers; chmod -R u+w "$T" 2>/dev/null; rm -rf "$T"' EXIT
export TMPDIR="$T/tmp" REPERF_ROOT="$T/root"
W="$T/w"
mkdir "$TMPDIR" "$W"
tiny_dataset 2
left() { find "$TMPDIR" "$W" "$REPERF_STATE" "$REPERF_STORE" \( -name 'reperf-tmp-??????' -o -name '*.reperf-tmp-??????' \) 2>/dev/null | wc -l; }
have_images() {
    local tool
    for tool in skopeo gcc; do command -v "$tool" >/dev/null || { skip "names of images" "$tool is not installed" && return 1; }; done
}
killed() { # WHAT CALL NUMBER PATH COMMAND...
    { at_call KILL "$2" "$3" "$4" "${@:5}" >"$T/out" 2>"$T/err"; } 2>"$T/said"
    is $? 137 "$1, killed"
    succeeds "$1: it leaves a temporary name" test "$(left)" -gt 0
}
swept() { # WHAT: the one before was the next command that uses the place
    is "$(left)" 0 "$1: the next command there leaves nothing"
    [ "$(left)" -eq 0 ] || find "$T" -name '*reperf-tmp-??????' | sed 's/^/# /'
}

# ---- the state folder ----
killed "run, before its run is frozen" rename 1 "$REPERF_STATE/runs/reperf-tmp-" "$REPERF" run paddle-perf-2020 --case "$CASE" --profile smoke --repeats 1
smoke --repeats 1 >"$T/out" 2>&1
swept "run, before its run is frozen"
archive=$(echo "$(run_folder)"/*.tar.zst)
mkdir -p "$T/pub/manifests/reports" && cp "$ROOT/manifests/reports/paddle-perf-2020.json" "$T/pub/manifests/reports/"
tar -C "$T/pub" -czf "$T/pub.tar.gz" .
killed "an archive as an address" open 2 "$REPERF_STATE/addresses/reperf-tmp-" "$REPERF" audit "$T/pub.tar.gz"
"$REPERF" audit "$T/pub.tar.gz" >"$T/out" 2>&1
is "$(left)" 1 "an archive as an address: the next such command leaves no more than what it reads"
(cd "$T/pub" && git init -q . && git add -A && git commit -qm publish)
commit=$(git -C "$T/pub" rev-parse HEAD) url="file://$T/pub"
url+="@$commit"
killed "a checkout as an address" rename 1 "$REPERF_STATE/addresses/$commit" "$REPERF" audit "$url"
"$REPERF" audit "$url" >"$T/out" 2>&1
swept "a checkout and an archive as addresses"
"$REPERF" audit "$T/pub.tar.gz" >"$T/out" 2>&1
mkdir "$REPERF_STATE/reperf-tmp-abcdef" && touch "$REPERF_STATE/reperf-tmp-abcdef/half"
exits 0 "store gc" "$REPERF" store gc
swept "files on their way to nodes, and what an archive unpacked for a command that has ended: store gc"
id=$(basename "$(run_folder)")
touch "$(run_folder)/cancel.reperf-tmp-abcdef"
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
exits 0 "report again" "$REPERF" report "$archive"
swept "report of an archive"
"$REPERF" fetch tiny --offline --mirror "$T/www" >"$T/out" 2>&1
killed "a bundle" write 3 "$W/b" "$REPERF" bundle tiny --output "$W/b"
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

# ---- images ----
if have_images; then
    make_layer one 3000
    one=$(add_manifest "$T/layout" amd64 oci gzip one)
    REFS=(one)
    write_index "$T/layout/index.json" "$one"
    finish_layout "$T/layout"
    name="example.org/team/img@sha256:${one%% *}"
    exits 0 "an image in the store" img fetch "$name" --offline --layout "$T/layout"
    for to in img.tar img; do
        killed "an image on its way to $to" rename 1 "$W/$to" "$REPERF" image export "$name" -o "$W/$to"
        exits 0 "exported again" "$REPERF" image export "$name" -o "$W/$to"
        swept "an image on its way to $to"
    done
    # A registry that never answers: skopeo waits, with the login in its hands.
    PORT=$(free_port)
    /usr/bin/python3 -c 'import socket, sys, time; s = socket.create_server(("127.0.0.1", int(sys.argv[1]))); time.sleep(3600)' "$PORT" &
    PIDS+=($!)
    wait_port "$PORT" $!
    printf '{"auths":{"127.0.0.1:%s":{"auth":"%s"}}}' "$PORT" "$(printf 'reader:4711' | base64)" >"$T/auth.json"
    chmod 600 "$T/auth.json"
    "$REPERF" fetch --locks "$LOCKS" "image:127.0.0.1:$PORT/team/img:v1" --auth-file "$T/auth.json" --insecure-registry "127.0.0.1:$PORT" >"$T/login.out" 2>"$T/login.err" &
    fetching=$!
    has_login() { grep -rqs "$(printf 'reader:4711' | base64)" "$REPERF_STORE/tmp"; }
    served "$fetching" "a fetch with a login" has_login
    kill -9 "$fetching"
    wait "$fetching" 2>/dev/null
    succeeds "killed, it leaves the login" has_login
    end_servers
    exits 0 "the store is opened" "$REPERF" store ls
    swept "a login"
    has_login
    is $? 1 "which is nowhere then"
fi

# ---- what is alive, and what is not ours ----
at_call STOP open 3 "$TMPDIR/reperf-tmp-" "$REPERF" verify "$archive" --unsigned >"$T/stopped.out" 2>&1 &
stopped=$!
stands() { # sets standing
    for standing in "$stopped" $(pgrep -P "$stopped"); do grep -q '^State:.*T' "/proc/$standing/status" && return 0; done
    return 1
}
served "$stopped" "verify has begun, and stands" stands
leaves 0 left 1 "another command meanwhile leaves what that one has in use" "$REPERF" verify "$archive" --unsigned
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
succeeds "and what it leads to" test -d "$T/pub/manifests"
tap_done
