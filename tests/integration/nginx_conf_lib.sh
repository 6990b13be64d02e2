# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Starts nginx on 127.0.0.1 with ports that are free. start_nginx FOLDER N_PORTS: reads the http block's content from stdin, in which
# @P1@, @P2@, ... are the ports and @D@ is FOLDER; leaves $nginx_pid and the array $ports. Whoever calls it ends that pid.
start_nginx() {
    local folder=$1 n_ports=$2 block port nginx
    block=$(cat)
    nginx=$(command -v nginx || echo /usr/sbin/nginx)
    mkdir -p "$folder/tmp"
    for _ in $(seq 20); do
        ports=()
        local text=${block//@D@/$folder}
        for ((port = 1; port <= n_ports; port++)); do
            ports+=("$(free_port)")
            text=${text//@P$port@/${ports[-1]}}
        done
        {
            echo "worker_processes 1; daemon off; pid $folder/nginx.pid; error_log $folder/error.log;"
            [ "$(id -u)" -ne 0 ] || echo "user root;"
            echo "events { worker_connections 256; } http {"
            for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $folder/tmp;"; done
            echo "$text }"
        } >"$folder/nginx.conf"
        rm -f "$folder/nginx.pid"
        "$nginx" -c "$folder/nginx.conf" 2>>"$folder/start.log" &
        nginx_pid=$!
        while kill -0 "$nginx_pid" 2>/dev/null; do # it ends where another has one of its ports
            [ -s "$folder/nginx.pid" ] && return 0
            sleep 0.05
        done
        wait "$nginx_pid"
    done
    cat "$folder/start.log" >&2
    return 1
}
