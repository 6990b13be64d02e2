#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# Registries that lie, fail, delay, redirect, or stay silent: nginx plays each of them with the files of one image; a pull that is killed or stopped keeps
# the layers that were whole; and a skopeo that lies, or is not there.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/image_lib.sh disable=SC1091
source "$ROOT/tests/integration/image_lib.sh"
needs "registries with faults" nginx skopeo gcc
make_layer one 400000
make_layer two 12000000
L="$T/layout"
one=$(add_manifest "$L" amd64 oci tar one two)
read -r hex _ mt _ <<<"$one"
layer=$(sha "$T/one.tar")
big=$(sha "$T/two.tar")
fresh() { rm -rf "$REPERF_STORE"; }

# --- a silent registry: asked now, checked at the end -----------------------------------------
S=$(free_port)
/usr/bin/python3 - "$S" <<'EOF' &
import socket, sys, time
s = socket.socket()
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen(16)
kept = []
while True:
    kept.append(s.accept())
EOF
PIDS+=("$!")
wait_port "$S" "$!"
mkdir -p "$T/silent-locks"
REPERF_STORE="$T/silent-store" "$REPERF" fetch --locks "$T/silent-locks" "image:127.0.0.1:$S/img:v1" >"$T/silent.out" 2>"$T/silent.err" &
silent=$!

# www/v2/NAME/{manifests,blobs}: one tree of files a fault.
site() { # NAME: a repository with good files
    local dir="$T/www/v2/$1" file
    mkdir -p "$dir/manifests" "$dir/blobs"
    cp "$L/blobs/sha256/$hex" "$dir/manifests/v1"
    cp "$L/blobs/sha256/$hex" "$dir/manifests/sha256:$hex"
    for file in "$L"/blobs/sha256/*; do ln "$file" "$dir/blobs/sha256:${file##*/}"; done
}
for name in good lied altered corrupt short cut slow busy later loop elsewhere missing schema1 broken nothing; do site "$name"; done
printf ' ' >>"$T/www/v2/altered/manifests/sha256:$hex"
damage() { # FILE: another byte in the middle
    cp "$1" "$T/copy"
    printf 'damaged!' | dd of="$T/copy" bs=1 seek=5000 conv=notrunc 2>/dev/null
    mv -f "$T/copy" "$1"
}
damage "$T/www/v2/corrupt/blobs/sha256:$layer"
head -c 9999 "$T/one.tar" >"$T/copy" && mv -f "$T/copy" "$T/www/v2/short/blobs/sha256:$layer"
rm -f "$T/www/v2/missing/blobs/sha256:$layer"
echo '{"schemaVersion":1,"name":"x","tag":"v1","fsLayers":[],"history":[],"signatures":[]}' >"$T/www/v2/schema1/manifests/v1"
echo '<html>hello</html>' >"$T/www/v2/broken/manifests/v1"
P=$(free_port)
E=$(free_port)
A=$(free_port)
mkdir -p "$T/elsewhere"
for file in "$T/www/v2/good/blobs"/*; do ln "$file" "$T/elsewhere/${file##*:}"; done
serve_nginx "$P" <<EOF
  log_format who '\$request_method \$uri \$status \$http_authorization';
  default_type $mt;
  server {
    listen 127.0.0.1:$P; root $T/www; access_log $T/access.log who;
    location = /logged { access_log off; return 204; }
    location = /v2/ { return 200 "{}"; }
    location ^~ /v2/lied/manifests/ { add_header Docker-Content-Digest sha256:0000000000000000000000000000000000000000000000000000000000000000; }
    location ^~ /v2/cut/blobs/ { return 444; }
    location ^~ /v2/busy/manifests/ { add_header Retry-After 2 always; if (-e $T/is-busy) { return 429; } }
    location ^~ /v2/later/ { add_header Retry-After 86400 always; return 429; }
    location ^~ /v2/slow/blobs/ { if (-e $T/is-slow) { set \$limit_rate 1000k; } }
    location ^~ /v2/nothing/ { return 503; }
  }
  server {
    listen 127.0.0.1:$A; root $T/www; access_log $T/token.log who;
    add_header WWW-Authenticate 'Bearer realm="http://127.0.0.1:$A/token",service="s"' always;
    location = /logged { access_log off; return 204; }
    location = /v2/ { return 401; }
    location ^~ /v2/loop/ { return 401; }
    location = /token { default_type application/json; return 200 '{"token":"secret-token","expires_in":300}'; }
    location ^~ /v2/elsewhere/ {
      if (\$http_authorization = "") { return 401; }
      location ~ ^/v2/elsewhere/blobs/sha256:(.*)\$ { if (\$http_authorization = "") { return 401; } return 307 http://localhost:$E/\$1?signature=abc; }
    }
  }
  server { listen 127.0.0.1:$E; root $T/elsewhere; access_log $T/elsewhere.log who; }
EOF
R=127.0.0.1:$P

# Both registries are asked now, and checked at the end.
REPERF_STORE="$T/later-store" "$REPERF" fetch --locks "$T/silent-locks" "image:$R/later:v1" >"$T/later.out" 2>"$T/later.err" &
later=$!

exits 0 "nginx as a registry" img fetch "$R/good:v1"
exits 0 "whose image holds" img verify "$R/good:v1"
fresh
answers 0 '.items[0].digest' "sha256:$hex" "a header with another digest counts for nothing: the bytes have their own" img fetch "$R/lied:v1" --json
fresh
fails 5 "expected sha256:$hex, found" "other bytes than the digest that was asked for" img fetch "$R/altered@sha256:$hex"
fails 5 "$(cut -c1-12 <<<"$layer")" "a layer with another byte" img fetch "$R/corrupt:v1"
is "$(find "$REPERF_STORE/blobs" -name "$layer")" "" "and is not in the store"
fresh
for fault in short cut; do
    img fetch "$R/$fault:v1" --retries 1 >"$T/out" 2>"$T/err"
    got=$?
    ok "$([ $got -eq 4 ] || [ $got -eq 5 ]; echo $?)" "a layer that is $fault is an error ($got)"
    is "$(find "$REPERF_STORE/blobs" -name "$layer")" "" "and is not in the store"
    is "$("$REPERF" image ls | grep -c "$fault")" 0 "nor is the image"
done
exits 4 "a layer that is missing" img fetch "$R/missing:v1"
fails 4 "schema 1" "schema 1" img fetch "$R/schema1:v1"
exits 4 "a web page instead of a manifest" img fetch "$R/broken:v1"
exits 4 "503 again and again" img fetch "$R/nothing:v1"
log_is_whole "$P"
n=$(grep -c '/v2/nothing/manifests/v1 503' "$T/access.log")
ok "$([ "$n" -ge 1 ] && [ "$n" -le 6 ]; echo $?)" "ends after a few tries ($n requests)"
exits 5 "401 whatever the token is" img fetch "127.0.0.1:$A/loop:v1"
log_is_whole "$A"
ok "$([ "$(grep -c '/v2/loop/' "$T/token.log")" -le 4 ]; echo $?)" "does not go round and round ($(grep -c '/v2/loop/' "$T/token.log") requests)"
touch "$T/is-busy"
{ "$REPERF" fetch --locks "$LOCKS" "image:$R/busy:v1" & } >"$T/out" 2>"$T/err"
pid=$!
# shellcheck disable=SC2317
is_refused() { log_is_whole "$P" && grep -q "/v2/busy/manifests/v1 429" "$T/access.log"; }
succeeds "retry after two seconds: it is refused" waiting_for 60 is_refused
rm "$T/is-busy"
wait "$pid"
is $? 0 "and then fetches it"
fresh
exits 0 "blobs from another host" img fetch "127.0.0.1:$A/elsewhere:v1"
log_is_whole "$A"
like "$(cat "$T/token.log")" 'GET /v2/elsewhere/blobs/.* 307 Bearer secret-token' "the registry gets the token"
like "$(cat "$T/elsewhere.log")" "GET /$layer 20[06] " "the other host is asked"
is "$(grep -c Bearer "$T/elsewhere.log")" 0 "and never gets it"
is "$(grep -rlF secret-token "$REPERF_STORE")" "" "nor is it in the store"

# --- killed and stopped: one layer has come, the other is on its way ---------------------------------------
slow_fetch() { # sets pid
    fresh
    touch "$T/is-slow"
    "$REPERF" fetch --locks "$LOCKS" "image:$R/slow:v1" >"$T/slow.out" 2>"$T/slow.err" &
    pid=$!
    succeeds "one of two layers is there" waiting_for 60 half_is_there
}
# shellcheck disable=SC2317
half_is_there() { [ -n "$(find "$REPERF_STORE/partial" -name "$layer" 2>/dev/null)" ] && [ -n "$(find "$REPERF_STORE/partial" -name 'oci-put-blob*' -size +100k)" ]; }
slow_fetch
kill -KILL "$pid"
wait "$pid" 2>/dev/null
is "$("$REPERF" image ls | grep -c "/slow")" 0 "killed: no image yet"
rm "$T/is-slow"
exits 0 "again" img fetch "$R/slow:v1" --json
got=$(value "$T/out" "d['items'][0]['kept_bytes']")
all=$(value "$T/out" "d['items'][0]['kept_bytes'] + d['items'][0]['fetched_bytes']")
ok "$([ "$got" -ge 400000 ]; echo $?)" "it kept $got of $all bytes"
exits 0 "and the image holds" img verify "$R/slow:v1"
ok "$([ -e "$REPERF_STORE/blobs/sha256/$big" ]; echo $?)" "the large layer is there"
is "$(find "$REPERF_STORE/partial" -mindepth 1 | wc -l)" 0 "and nothing is left of the way there"
slow_fetch
kill -TERM "$pid"
wait "$pid"
is $? 143 "stopped: 128 and the signal"
ok "$([ -e "$REPERF_STORE/blobs/sha256/$layer" ]; echo $?)" "the whole layer is kept"
is "$(find "$REPERF_STORE/blobs" -name "$big")" "" "the other is not"
exits 0 "and the next one goes on" img fetch "$R/slow:v1" --json
ok "$([ "$(value "$T/out" "d['items'][0]['kept_bytes']")" -ge 400000 ]; echo $?)" "from there"
rm "$T/is-slow"

# --- skopeo itself --------------------------------------------------------------------------------------
fresh
mkdir -p "$T/none" "$T/bin"
fails 4 "install the package skopeo" "no skopeo" env PATH="$T/none" "$REPERF" fetch --locks "$LOCKS" "image:$R/good:v1"
# Whatever it says: a blob with another byte, or none at all, does not get into the store.
# shellcheck disable=SC2016 # the words are the script's
printf '#!/bin/sh\n/usr/bin/skopeo "$@" || exit\ncase " $* " in *" copy "*) for f in %s/partial/*/blobs/sha256/%s; do chmod u+w "$f"; %s; done ;; esac\n' \
    "$REPERF_STORE" "$layer" "echo x >>\"\$f\"" >"$T/bin/skopeo"
chmod +x "$T/bin/skopeo"
fails 5 "what came for sha256:$layer has other bytes" "a skopeo that ends well and has altered a layer" env PATH="$T/bin:$PATH" "$REPERF" fetch --locks "$LOCKS" "image:$R/good:v1"
is "$(find "$REPERF_STORE" -name "$layer")" "" "and it is nowhere in the store"
sed -i 's/echo x >>/rm -f /' "$T/bin/skopeo"
fails 5 "sha256:$layer is missing" "a skopeo that ends well without a layer" env PATH="$T/bin:$PATH" "$REPERF" fetch --locks "$LOCKS" "image:$R/good:v1"
fails 2 "skopeo, which has no such limit" "--rate" img fetch "$R/good:v1" --rate 5M
exits 2 "--connections" img fetch "$R/good:v1" --connections 2

# --- the silent registry ------------------------------------------------------------------------
wait "$silent"
is $? 124 "a registry that takes the connection and says nothing"
like "$(cat "$T/silent.err")" "unreachable" "is unreachable, after a while"
wait "$later"
is $? 124 "one that says to come back tomorrow is not waited for either"
tap_done
