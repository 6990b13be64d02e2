#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# Registries with authentication: a login (docker-registry with htpasswd, TLS, a CA of the test's own), and tokens (docker-registry that
# trusts a token server: nginx, which returns a JWT signed here). Logins go only where they must.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/image_lib.sh disable=SC1091
source "$ROOT/tests/integration/image_lib.sh"
needs "registries with logins" docker-registry skopeo gcc nginx htpasswd openssl
one_image
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

fails 5 '[Cc]ertificate' "a certificate nobody vouches for" img fetch "$R/team/img:v1" --auth-file "$T/auth.json"
exits 5 "and no plain HTTP instead, even where it would be allowed" img fetch "$R/team/img:v1" --insecure-registry "$R"
fails 5 'not allowed' "no login" img fetch "$R/team/img:v1" --ca "$T/ca.pem"
exits 0 "CA and login" img fetch "$R/team/img:v1" "${with[@]}"
fresh
sed "s#\"$R\"#\"https://$R/v2/\"#" "$T/auth.json" >"$T/auth2.json"
chmod 600 "$T/auth2.json"
exits 0 "a key with scheme and path" img fetch "$R/team/img:v1" --ca "$T/ca.pem" --auth-file "$T/auth2.json"
fresh
chmod 644 "$T/auth2.json"
fails 5 'chmod 600' "a login file that others may read" img fetch "$R/team/img:v1" --ca "$T/ca.pem" --auth-file "$T/auth2.json"
auth_file "$T/wrong.json" "$R" reader "not it 0815"
exits 5 "a wrong password" img fetch "$R/team/img:v1" --ca "$T/ca.pem" --auth-file "$T/wrong.json"
is "$(grep -c '0815\|4711' "$T/err" "$T/out" | xargs)" "$T/err:0 $T/out:0" "is not repeated"
printf '{"auths":{"%s":{}},"credHelpers":{"%s":"keyring"}}' "$R" "$R" >"$T/helper.json"
chmod 600 "$T/helper.json"
fails 5 '"keyring", which is not started' "a credential helper" img fetch "$R/team/img:v1" --ca "$T/ca.pem" --auth-file "$T/helper.json"
auth_file "$T/other.json" "127.0.0.1:1" reader "$SECRET"
# What skopeo is given: the one login, in a file that nobody else reads, and nothing on its command line.
mkdir -p "$T/bin"
cat >"$T/bin/skopeo" <<EOF
#!/bin/sh
printf '%s\\n' "\$*" >>"$T/argv"
for word; do case \$word in *authfile=*) stat -c %a "\${word#*=}" >>"$T/modes"; cat "\${word#*=}" >>"$T/logins"; echo >>"$T/logins" ;; esac; done
exec /usr/bin/skopeo "\$@"
EOF
chmod +x "$T/bin/skopeo"
packed=$(printf '%s:%s' reader "$SECRET" | base64 -w0)
printf '{"auths":{"%s":{"auth":"%s"},"127.0.0.1:1":{"auth":"b3RoZXI6NDcxMg=="}}}' "$R" "$packed" >"$T/two.json"
chmod 600 "$T/two.json"
exits 0 "with a file of two logins" env PATH="$T/bin:$PATH" "$REPERF" fetch --locks "$LOCKS" "image:$R/team/img:v1" --ca "$T/ca.pem" --auth-file "$T/two.json"
is "$(sort -u "$T/logins") $(sort -u "$T/modes")" "{\"auths\":{\"$R\":{\"auth\":\"$packed\"}}} 600" "skopeo gets the one that it needs"
is "$(grep -cF -e 4711 -e "$packed" "$T/argv")" 0 "and no secret on its command line"
is "$(find "$REPERF_STORE" -name 'login-*')" "" "the file is gone afterwards"
is "$(grep -c -e '--src-tls-verify=true' "$T/argv") $(grep -c -e 'tls-verify=false' "$T/argv")" "1 0" "and certificates are checked"
fresh
cat >"$T/bin/skopeo" <<EOF
#!/bin/sh
echo 'time="x" level=fatal msg="Get \\\\"https://me:4712@h.io/v2/?signature=4713\\\\": denied: '"\$(cat "$T/said")"'"' >&2
exit 1
EOF
echo nothing >"$T/said"
fails 5 'Get "https://h.io/v2/": denied: nothing' "a skopeo that tells a URL" env PATH="$T/bin:$PATH" "$REPERF" fetch --locks "$LOCKS" "image:$R/team/img:v1" "${with[@]}"
printf '%s\n' "${SECRET//\"/\\\\\"}" >"$T/said"
omits 5 4711 "a skopeo that tells the password: it is not repeated" env PATH="$T/bin:$PATH" "$REPERF" fetch --locks "$LOCKS" "image:$R/team/img:v1" "${with[@]}"
fresh
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
serve_nginx "$TP" <<EOF
  log_format who '\$request_uri|\$http_authorization';
  access_log $T/tokens.log who;
  server { listen 127.0.0.1:$TP; location = /logged { access_log off; return 204; }
    location = /token { default_type application/json; alias $T/tokens/token.json; } }
EOF
tokens_log() { log_is_whole "$TP" && cat "$T/tokens.log"; }
forget_tokens() { log_is_whole "$TP" && : >"$T/tokens.log"; }
give() { printf '{"token":"%s","expires_in":%d}' "$1" "$2" >"$T/tokens/token.json"; }
give "$(jwt 600 '"pull","push"')" 600
push "$L:one" "$K/team/img:v1"
forget_tokens
fresh
exits 0 "with a token that anybody gets" img fetch "$K/team/img:v1"
is "$(tokens_log | sort -u)" "/token?scope=repository%3Ateam%2Fimg%3Apull&service=test+registry&x=1|-" "asked for to pull from that repository"
auth_file "$T/token-auth.json" "$K" reader "$SECRET"
fresh
exits 0 "with a token for a login" img fetch "$K/team/img:v1" --auth-file "$T/token-auth.json"
is "$(tokens_log | tail -n 1 | cut -d'|' -f2)" "Basic $(printf 'reader:%s' "$SECRET" | base64 -w0)" "the login goes to the token server"
give "$(jwt -120 '"pull"')" 600
fresh
forget_tokens
exits 5 "a token that has ended already" img fetch "$K/team/img:v1"
ok "$([ "$(tokens_log | wc -l)" -le 2 ]; echo $?)" "is not asked for again and again"
give "$(jwt 600 '')" 600
fails 5 'not allowed' "a token without the right" img fetch "$K/team/img:v1"
echo '<html>' >"$T/tokens/token.json"
exits 4 "a token server that speaks something else" img fetch "$K/team/img:v1"
rm "$T/tokens/token.json"
exits 4 "a token server without tokens" img fetch "$K/team/img:v1"
is "$(grep -rlF -e "$SECRET" -e "$(printf 'reader:%s' "$SECRET" | base64 -w0)" "$REPERF_STORE" "$LOCKS" 2>/dev/null)" "" "no login is in the store"
tap_done
