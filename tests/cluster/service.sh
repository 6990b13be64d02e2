#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The head's servers, run inside the cluster: service.sh STATE start|stop|pause|resume registry|http|git
set -eu
# shellcheck source=tests/cluster/env.sh
. "$(dirname "$0")/env.sh"
# shellcheck source=tests/server_lib.sh
. "$CLUSTER_DIR/../server_lib.sh"
S=$1 verb=$2 name=$3
answers() { (exec 3<>"/dev/tcp/$HEAD_IP/$1") 2>/dev/null; } # PORT
start() { # NAME COMMAND...: detached, log and process recorded
    local name=$1
    shift
    setsid "$@" </dev/null >>"$S/log/$name.log" 2>&1 &
    record_process "$S/run/$name.pid" $!
}
start_registry() {
    cat >"$S/registry.yml" <<YML
version: 0.1
log: {level: warn, accesslog: {disabled: false}}
storage:
  filesystem: {rootdirectory: $S/registry}
  delete: {enabled: true}
http: {addr: "$HEAD_IP:$REGISTRY_PORT"}
YML
    start registry docker-registry serve "$S/registry.yml"
    wait_for 120 answers "$REGISTRY_PORT"
}
start_http() { # files below http/ (with ranges), repositories below /git/ over both protocols of HTTP
    start fcgi fcgiwrap -c 2 -s "unix:$S/run/fcgi.sock"
    mkdir -p "$S/run/nginx"
    # shellcheck disable=SC2016 # nginx's own
    cat >"$S/nginx.conf" <<NGINX
user root;
daemon off;
master_process off;
pid $S/run/nginx/pid;
error_log $S/log/nginx.log;
events { worker_connections 512; }
http {
    access_log $S/log/access.log;
    client_body_temp_path $S/run/nginx/body; proxy_temp_path $S/run/nginx/proxy; fastcgi_temp_path $S/run/nginx/fastcgi;
    uwsgi_temp_path $S/run/nginx/uwsgi; scgi_temp_path $S/run/nginx/scgi;
    sendfile on;
    server {
        listen $HEAD_IP:$HTTP_PORT;
        root $S/http;
        location ~ ^/git(/.*)\$ {
            $(git_by_nginx "$S/run/fcgi.sock" "$S/git" '$1')
        }
    }
}
NGINX
    start http nginx -c "$S/nginx.conf" -p "$S/run/nginx"
    wait_for 120 answers "$HTTP_PORT"
}
start_git() {
    start git "$(git --exec-path)/git-daemon" --export-all --reuseaddr --listen="$HEAD_IP" --port="$GIT_PORT" --base-path="$S/git" "$S/git"
    wait_for 120 answers "$GIT_PORT"
}
stop() { # NAME
    local pid
    pid=$(recorded_alive "$S/run/$1.pid") || return 0
    kill -9 "$pid"
    is_gone() { ! recorded_alive "$S/run/$1.pid" >/dev/null; }
    wait_for 120 is_gone "$1"
    rm -f "$S/run/$1.pid"
}
case $verb in
start) recorded_alive "$S/run/$name.pid" >/dev/null || "start_$name" ;;
stop)
    stop "$name"
    if [ "$name" = http ]; then
        stop fcgi
        rm -f "$S/run/fcgi.sock"
    fi
    ;;
pause) kill -STOP "$(recorded_alive "$S/run/$name.pid")" ;;
resume) kill -CONT "$(recorded_alive "$S/run/$name.pid")" ;;
*) exit 2 ;;
esac
