#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# Registries with authentication: a login (docker-registry with htpasswd, TLS, a CA of the test's own), and tokens (docker-registry that
# trusts a token server: nginx, which returns a JWT signed here). Logins go only where they must.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/image_lib.sh disable=SC1091
source "$ROOT/tests/integration/image_lib.sh"
for tool in docker-registry skopeo gcc nginx htpasswd openssl; do
    command -v "$tool" >/dev/null || [ -x "/usr/sbin/$tool" ] || { skip "registries with logins" "$tool is not installed"; tap_done; }
done
make_layer one 30000
L="$T/layout"
one=$(add_manifest "$L" amd64 oci gzip one)
REFS=(one)
write_index "$L/index.json" "$one"
finish_layout "$L"
fresh() { rm -rf "$REPERF_STORE"; }
SECRET='pa:ss "word" 4711'
auth_file() { # FILE HOST USER PASSWORD
    printf '{"auths":{"%s":{"auth":"%s"}}}' "$2" "$(printf '%s:%s' "$3" "$4" | base64 -w0)" >"$1"
    chmod 600 "$1"
}

# --- a certificate authority, and a registry with TLS and a login -------------------------------------
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=test CA" -keyout "$T/ca.key" -out "$T/ca.pem" 2>/dev/null
certificate() { # NAME: $T/NAME.key, $T/NAME.pem for 127.0.0.1
    openssl req -newkey rsa:2048 -nodes -subj "/CN=127.0.0.1" -keyout "$T/$1.key" -out "$T/$1.csr" 2>/dev/null
    openssl x509 -req -in "$T/$1.csr" -CA "$T/ca.pem" -CAkey "$T/ca.key" -CAcreateserial -days 2 -out "$T/$1.pem" \
        -extfile <(echo "subjectAltName=IP:127.0.0.1") 2>/dev/null
}
certificate server
htpasswd -Bbn -C 5 reader "$SECRET" >"$T/htpasswd"
start_registry secure "  tls: {certificate: $T/server.pem, key: $T/server.key}
auth: {htpasswd: {realm: test, path: $T/htpasswd}}"
R=127.0.0.1:$PORT
push "$L:one" "$R/team/img:v1" --dest-creds "reader:$SECRET"
auth_file "$T/auth.json" "$R" reader "$SECRET"
with=(--ca "$T/ca.pem" --auth-file "$T/auth.json")

exits 5 "a certificate nobody vouches for" img fetch "$R/team/img:v1" --auth-file "$T/auth.json"
like "$(cat "$T/err")" '[Cc]ertificate' "says so"
exits 5 "and no plain HTTP instead, even where it would be allowed" img fetch "$R/team/img:v1" --insecure-registry "$R"
exits 5 "no login" img fetch "$R/team/img:v1" --ca "$T/ca.pem"
like "$(cat "$T/err")" 'not allowed' "is not allowed, not gone"
exits 0 "CA and login" img fetch "$R/team/img:v1" "${with[@]}"
fresh
sed "s#\"$R\"#\"https://$R/v2/\"#" "$T/auth.json" >"$T/auth2.json"
chmod 600 "$T/auth2.json"
exits 0 "a key with scheme and path" img fetch "$R/team/img:v1" --ca "$T/ca.pem" --auth-file "$T/auth2.json"
fresh
chmod 644 "$T/auth2.json"
exits 5 "a login file that others may read" img fetch "$R/team/img:v1" --ca "$T/ca.pem" --auth-file "$T/auth2.json"
like "$(cat "$T/err")" 'chmod 600' "is refused"
auth_file "$T/wrong.json" "$R" reader "not it 0815"
exits 5 "a wrong password" img fetch "$R/team/img:v1" --ca "$T/ca.pem" --auth-file "$T/wrong.json"
is "$(grep -c '0815\|4711' "$T/err" "$T/out" | xargs)" "$T/err:0 $T/out:0" "is not repeated"
printf '{"auths":{"%s":{}},"credHelpers":{"%s":"keyring"}}' "$R" "$R" >"$T/helper.json"
chmod 600 "$T/helper.json"
exits 5 "a credential helper" img fetch "$R/team/img:v1" --ca "$T/ca.pem" --auth-file "$T/helper.json"
like "$(cat "$T/err")" '"keyring", which is not started' "is named, not started"
auth_file "$T/other.json" "127.0.0.1:1" reader "$SECRET"
exits 5 "a login for another host" img fetch "$R/team/img:v1" --ca "$T/ca.pem" --auth-file "$T/other.json"
exits 2 "a login file that is not there" img fetch "$R/team/img:v1" --auth-file "$T/none.json"

# --- plain HTTP to another machine ----------------------------------------------------------------------
address=$(hostname -I 2>/dev/null | tr ' ' '\n' | grep -E '^[0-9.]+$' | grep -v '^127\.' | head -n 1)
if [ -n "$address" ]; then
    ADDRESS=$address start_registry plain
    push "$L:one" "$address:$PORT/team/img:v1"
    exits 4 "plain HTTP to a machine that is not this one" img fetch "$address:$PORT/team/img:v1"
    exits 0 "is spoken where the user says so" img fetch "$address:$PORT/team/img:v1" --insecure-registry "$address:$PORT"
    fresh
    exits 4 "to that host alone" img fetch "$address:$PORT/team/img:v1" --insecure-registry "$address"
else
    skip "plain HTTP to another address" "this machine has none but 127.0.0.1"
fi

# --- tokens --------------------------------------------------------------------------------------------
b64url() { base64 -w0 | tr '+/' '-_' | tr -d '='; }
certificate signer
jwt() { # SECONDS-VALID ACTIONS
    local now head body
    now=$(date +%s)
    head=$(printf '{"typ":"JWT","alg":"RS256","x5c":["%s"]}' "$(openssl x509 -in "$T/signer.pem" -outform DER | base64 -w0)" | b64url)
    body=$(printf '{"iss":"test-issuer","sub":"reader","aud":"test registry","exp":%d,"nbf":%d,"iat":%d,"jti":"x","access":[{"type":"repository","name":"team/img","actions":[%s]}]}' \
        $((now + $1)) $((now - 60)) "$now" "$2" | b64url)
    printf '%s.%s.%s' "$head" "$body" "$(printf '%s.%s' "$head" "$body" | openssl dgst -sha256 -sign "$T/signer.key" -binary | b64url)"
}
TP=$(free_port)
mkdir -p "$T/tokens"
start_registry token "auth: {token: {realm: 'http://127.0.0.1:$TP/token?x=1', service: 'test registry', issuer: test-issuer, rootcertbundle: $T/ca.pem}}"
K=127.0.0.1:$PORT
cat >"$T/nginx.conf" <<EOF
daemon off; master_process off; pid $T/nginx.pid; error_log $T/nginx.err;
events {}
http {
  log_format who '\$request_uri|\$http_authorization';
  access_log $T/tokens.log who;
  client_body_temp_path $T/n1; proxy_temp_path $T/n2; fastcgi_temp_path $T/n3; uwsgi_temp_path $T/n4; scgi_temp_path $T/n5;
  server { listen 127.0.0.1:$TP; location = /logged { access_log off; return 204; }
    location = /token { default_type application/json; alias $T/tokens/token.json; } }
}
EOF
nginx=$(command -v nginx || echo /usr/sbin/nginx)
"$nginx" -c "$T/nginx.conf" -e "$T/nginx.err" &
PIDS+=("$!")
wait_port "$TP" "$!"
tokens_log() { log_is_whole "$TP" && cat "$T/tokens.log"; }
forget_tokens() { log_is_whole "$TP" && : >"$T/tokens.log"; }
give() { printf '{"token":"%s","expires_in":%d}' "$1" "$2" >"$T/tokens/token.json"; }
give "$(jwt 600 '"pull","push"')" 600
push "$L:one" "$K/team/img:v1"
forget_tokens
fresh
exits 0 "with a token that anybody gets" img fetch "$K/team/img:v1"
is "$(tokens_log | sort -u)" "/token?x=1&service=test%20registry&scope=repository%3Ateam%2Fimg%3Apull|-" "asked for to pull from that repository"
is "$(tokens_log | wc -l)" 1 "once"
auth_file "$T/token-auth.json" "$K" reader "$SECRET"
fresh
exits 0 "with a token for a login" img fetch "$K/team/img:v1" --auth-file "$T/token-auth.json"
is "$(tokens_log | tail -n 1 | cut -d'|' -f2)" "Basic $(printf 'reader:%s' "$SECRET" | base64 -w0)" "the login goes to the token server"
give "$(jwt -120 '"pull"')" 600
fresh
forget_tokens
exits 5 "a token that has ended already" img fetch "$K/team/img:v1"
is "$(tokens_log | wc -l)" 2 "is asked for once more, not for ever"
give "$(jwt 600 '')" 600
exits 5 "a token without the right" img fetch "$K/team/img:v1"
like "$(cat "$T/err")" 'not allowed' "says so"
echo '<html>' >"$T/tokens/token.json"
exits 4 "a token server that speaks something else" img fetch "$K/team/img:v1"
rm "$T/tokens/token.json"
exits 4 "a token server without tokens" img fetch "$K/team/img:v1"
is "$(grep -rlF -e "$SECRET" -e "$(printf 'reader:%s' "$SECRET" | base64 -w0)" "$REPERF_STORE" "$LOCKS" 2>/dev/null)" "" "no login is in the store"
tap_done
