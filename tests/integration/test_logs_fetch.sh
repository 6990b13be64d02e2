#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# fetch logs:REPORT from git's own server by TLS, and --logs store, which reads them.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2317
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/nginx_lib.sh disable=SC1091
source "$ROOT/tests/integration/nginx_lib.sh"
export HOME="$T" GIT_CONFIG_NOSYSTEM=1 REPERF_STORE="$T/store" no_proxy='*'
# shellcheck source=tests/integration/own_report_lib.sh disable=SC1091
source "$ROOT/tests/integration/own_report_lib.sh"
pids=()
stop() {
    [ "${#pids[@]}" -eq 0 ] || { kill "${pids[@]}"; wait "${pids[@]}"; } 2>/dev/null
    pids=()
}
cleanup() {
    stop
    chmod -R u+w "$T"
    rm -rf "$T"
}
trap cleanup EXIT

own_logs < <(own_log)
mkdir "$T/served"
echo later >"$T/made/runs/a/train.log"
git -C "$T/made" commit -qam two
git clone -q --bare "$T/made" "$T/served/ours.git"

port=$(free_port)
mkdir -p "$T/nginx"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout "$T/nginx/key" -out "$T/ca.pem" 2>/dev/null
nginx_conf <<NGINX
    server {
        listen 127.0.0.1:$port ssl;
        ssl_certificate $T/ca.pem;
        ssl_certificate_key $T/nginx/key;
        location / { $(git_by_nginx "$T/cgi.sock" "$T/served" "\$uri") }
    }
NGINX
git_serve "$port"
url=https://127.0.0.1:$port/ours.git
own_report "$url"

fails 2 "the store does not have $url at $commit; reperf data fetch logs:my-report gets it" "not fetched yet" "$REPERF" audit my-report --logs store
exits 4 "offline" "$REPERF" fetch logs:my-report --ca "$T/ca.pem" --offline
exits 4 "the server's certificate is not trusted" "$REPERF" fetch logs:my-report
exits 0 "a dry run" "$REPERF" fetch logs:my-report --ca "$T/ca.pem" --dry-run
exits 2 "gets nothing" "$REPERF" audit my-report --logs store
answers 0 '.items[0] | .noun + " " + .commit + " " + (.fetched | tostring)' "source:$url@$commit $commit 1" "fetch is of the pinned commit" "$REPERF" fetch logs:my-report --ca "$T/ca.pem" --json
prints 0 "1 cell: 1 exact" "audit" "$REPERF" audit my-report --logs store
exits 0 "report" "$REPERF" report my-report --logs store
prints 0 "step 40/40" "explain" "$REPERF" explain resnet50/torch/fp32/n1g8/bs32 --logs store
answers 0 '.items[0].fetched' 0 "again: fetches nothing" "$REPERF" fetch logs:my-report --ca "$T/ca.pem" --json
exits 0 "verify reads every object" "$REPERF" verify logs:my-report

stop
mv "$T/store" "$T/mirror"
exits 4 "the server is gone" "$REPERF" fetch logs:my-report --ca "$T/ca.pem"
exits 0 "a mirror has it" "$REPERF" fetch logs:my-report --ca "$T/ca.pem" --mirror "$T/mirror"
exits 0 "and the audit it" "$REPERF" audit my-report --logs store
repo=$(find "$T/store/sources" -maxdepth 1 -name '*.git')
chmod -R u+w "$repo" && find "$repo/objects" -type f -delete
exits 5 "a repository without its objects" "$REPERF" audit my-report --logs store
exits 2 "a report that is not there" "$REPERF" fetch logs:no-such
exits 3 "a report without logs" "$REPERF" fetch logs:dlperf-paddle-resnet50
exits 2 "a folder of that name is said with its place" "$REPERF" audit my-report --logs ./store
tap_done
