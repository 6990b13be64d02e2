#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: net
# net/fetch and net/http against a real nginx: ranges, HTTP/2 over TLS with a self-made certificate authority, logins from a netrc and a
# cookie file, limits of rate and connections, a proxy, and a tunnel through one.
. "$(dirname "$0")/../tap_lib.sh"
. tests/integration/nginx_conf_lib.sh
one="$B/servers/fetch_one"
size=30000000
mkdir -p "$T/www/secret" "$T/tls"
head -c $size /dev/zero | openssl enc -aes-128-ctr -nosalt -K 00112233445566778899aabbccddeeff -iv 00000000000000000000000000000002 >"$T/www/file"
sha=$(openssl dgst -sha256 -r "$T/www/file" | cut -d' ' -f1)
ln "$T/www/file" "$T/www/secret/file"

# An authority, and a certificate of it for 127.0.0.1.
(cd "$T/tls" && openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj /CN=authority -days 2 &&
    openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=127.0.0.1 &&
    openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out server.pem \
        -extfile <(echo subjectAltName=IP:127.0.0.1)) >"$T/tls/log" 2>&1
printf 'ann:%s\n' "$(openssl passwd -apr1 hush)" >"$T/htpasswd"
start_nginx "$T/nginx" 4 <<EOF || exit 1
limit_conn_zone \$server_port zone=one:1m; root $T/www;
log_format all '\$server_protocol \$status \$connection \$http_range'; access_log @D@/access.log all;
server { listen 127.0.0.1:@P1@; location = /logged { access_log off; return 204; }
  location /secret/ { auth_basic x; auth_basic_user_file $T/htpasswd; }
  location /cookie/ { alias $T/www/; if (\$cookie_session != crumb) { return 403; } }
  location /slow/ { alias $T/www/; limit_rate 3m; limit_rate_after 1; }
  location /few/ { alias $T/www/; limit_conn one 2; limit_rate 8m; }
  location /away/ { return 302 http://localhost:@P3@/secret/file; }
  location /plain/ { return 302 http://127.0.0.1:@P1@/file; } }
server { listen 127.0.0.1:@P2@ ssl http2; ssl_certificate $T/tls/server.pem; ssl_certificate_key $T/tls/server.key;
  location /plain/ { return 302 http://127.0.0.1:@P1@/file; } }
server { listen 127.0.0.1:@P3@; location /secret/ { auth_basic x; auth_basic_user_file $T/htpasswd; } }
server { listen 127.0.0.1:@P4@; location / { proxy_pass http://\$http_host\$request_uri; proxy_buffering off; } }
EOF
tests/servers/connect_proxy.py >"$T/tunnel" 2>"$T/tunnel.log" &
tunnel_pid=$!
tests/servers/connect_proxy.py "Basic YW5uOmh1c2g=" >"$T/tunnel2" 2>"$T/tunnel2.log" &
tunnel2_pid=$!
trap 'kill "$nginx_pid" "$tunnel_pid" "$tunnel2_pid"; wait; rm -rf "$T"' EXIT
served "$tunnel_pid" "the proxy says its port" test -s "$T/tunnel"
served "$tunnel2_pid" "the proxy with a login says its port" test -s "$T/tunnel2"
plain="http://127.0.0.1:${ports[0]}" tls="https://127.0.0.1:${ports[1]}"
log="$T/nginx/access.log"

fetch() { # ARG...: output into $T/out, $T/err
    rm -rf "$T/f"
    : >"$log"
    "$one" folder="$T/f" sha256="$sha" backoff_ms=20 retries=2 "$@" >"$T/out" 2>"$T/err"
    set -- $?
    log_is_whole "${ports[0]}"
    return "$1"
}
value() { awk -v key="$1" '$1 == key { print $2 }' "$T/out"; }
good() {
    local name=$1
    shift
    fetch "$@" && cmp -s "$T/www/file" "$T/f/data"
    ok $? "$name"
    sed 's/^/# /' "$T/err"
}
bad() { fails "$1" "$2" "$3" fetch "${@:4}"; } # STATUS ERE NAME ARG...

good "ranges" proxy= url="$plain/file"
is "$(awk '{ print $1, $2 }' "$log" | sort -u)" "HTTP/1.1 206" "every answer is a part"
succeeds "over several connections" test "$(cut -d' ' -f3 "$log" | sort -u | wc -l)" -gt 1
good "HTTP/2 over TLS" proxy= ca="$T/tls/ca.pem" url="$tls/file"
is "$(awk '{ print $1, $2 }' "$log" | sort -u)" "HTTP/2.0 206" "every answer is a part, by HTTP/2"
bad 5 'integrity: .*certificate' "a certificate of nobody we know" proxy= url="$tls/file"
bad 4 'fetch: .*redirected' "from TLS to none" proxy= ca="$T/tls/ca.pem" url="$tls/plain/"
good "a redirect" proxy= url="$plain/plain/"

printf 'machine 127.0.0.1 login ann password hush\n' >"$T/netrc"
printf 'machine 127.0.0.1 login ann password wrong\n' >"$T/netrc2"
printf '127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\tcrumb\n' >"$T/cookies"
chmod 600 "$T/netrc" "$T/netrc2" "$T/cookies"
cp "$T/cookies" "$T/cookies.before"
good "a login from a netrc" proxy= netrc="$T/netrc" url="$plain/secret/file"
bad 5 'auth: .*401' "no login" proxy= url="$plain/secret/file"
bad 5 'auth: .*401' "a wrong login" proxy= netrc="$T/netrc2" url="$plain/secret/file"
is "$(grep -cE 'wrong|hush' "$T/err")" 0 "the password is not said"
bad 5 'auth: .*401' "a login is for its host alone" proxy= netrc="$T/netrc" url="$plain/away/"
good "a cookie" proxy= cookies="$T/cookies" url="$plain/cookie/file"
bad 5 'auth: .*403' "no cookie" proxy= url="$plain/cookie/file"
succeeds "the cookie file is only read" cmp -s "$T/cookies" "$T/cookies.before"

good "a limit on each connection's rate" proxy= url="$plain/slow/file"
good "a limit on connections" proxy= url="$plain/few/file"
succeeds "which the server did refuse" grep -q ' 503 ' "$log"
good "a proxy" proxy="http://127.0.0.1:${ports[3]}" url="$plain/file"
http_proxy="http://127.0.0.1:${ports[3]}" no_proxy='' good "a proxy from the environment" url="$plain/file"
is "$(awk '$1 == "HTTP/1.0" { print $1 }' "$log" | sort -u)" "HTTP/1.0" "nginx was asked by the proxy"
http_proxy="http://127.0.0.1:1" no_proxy=127.0.0.1 good "no_proxy" url="$plain/file"
bad 4 'net: ' "a proxy that is not there" proxy="http://ann:hush@127.0.0.1:1" url="$plain/file"
is "$(grep -c hush "$T/err")" 0 "the proxy's password is not said"
good "a tunnel" proxy="http://127.0.0.1:$(cat "$T/tunnel")" ca="$T/tls/ca.pem" url="$tls/file"
like "$(sort -u "$T/tunnel.log")" "^CONNECT 127.0.0.1:${ports[1]} " "by CONNECT"
good "a tunnel with a login" proxy="http://ann:hush@127.0.0.1:$(cat "$T/tunnel2")" ca="$T/tls/ca.pem" url="$tls/file"
bad 5 'auth: .*: the proxy requires a login$' "a tunnel without the login" proxy="http://127.0.0.1:$(cat "$T/tunnel2")" ca="$T/tls/ca.pem" url="$tls/file"
bad 5 'auth: .*: the proxy does not allow it .403.$' "a tunnel that the proxy forbids" proxy="http://127.0.0.1:$(cat "$T/tunnel")" ca="$T/tls/ca.pem" url="https://127.0.0.1:9/file"

# A file that is replaced between two tries is fetched again from the start: nginx reports it by ETag.
{ "$one" folder="$T/g" proxy= kinds=2 rate=6000000 kill_at=3000000 url="$plain/file" >"$T/out" 2>"$T/err"; } 2>"$T/said"
is $? 137 "a fetch is killed in the middle"
tac -s a "$T/www/file" >"$T/www/file.new" && touch -d 2020-01-01 "$T/www/file.new" && mv "$T/www/file.new" "$T/www/file"
"$one" folder="$T/g" proxy= kinds=2 url="$plain/file" >"$T/out" 2>"$T/err"
is "$? $(value kept)" "0 0" "another file on the server: begun anew"
succeeds "the new bytes" cmp -s "$T/www/file" "$T/g/data"
"$one" folder="$T/g" proxy= kinds=2 url="$plain/file" >"$T/out" 2>"$T/err"
is "$? $(value received)" "0 $(grep -aoE '"block": ?[0-9]+' "$T/g/state" | grep -oE '[0-9]+')" "all is there: one block is asked for, to see whether the file is the same"
tap_done
