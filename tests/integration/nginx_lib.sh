# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# nginx on 127.0.0.1 for tests: nginx_start FOLDER, then $NGINX_URL; log in $T/nginx/access.log. Ended by its pid at the end.
# /private/ serves the same files to user:secret.
nginx_conf() { # the servers, on standard input: the whole configuration
    mkdir -p "$T/nginx"
    cat >"$T/nginx/nginx.conf" <<NGINX
user $(id -un);
daemon off;
master_process off;
pid $T/nginx/pid;
error_log $T/nginx/error.log;
events { worker_connections 256; }
http {
    access_log $T/nginx/access.log;
    client_max_body_size 0;
    client_body_temp_path $T/nginx/body; proxy_temp_path $T/nginx/proxy; fastcgi_temp_path $T/nginx/fastcgi;
    uwsgi_temp_path $T/nginx/uwsgi; scgi_temp_path $T/nginx/scgi;
$(cat)
}
NGINX
}
git_serve() { # PORT: nginx as configured, and git's backend; their pids are added to $pids
    fcgiwrap -s "unix:$T/cgi.sock" 2>"$T/cgi.log" &
    pids+=($!)
    served $! "fcgiwrap" test -S "$T/cgi.sock"
    nginx -c "$T/nginx/nginx.conf" -p "$T/nginx" >"$T/nginx/out" 2>&1 &
    pids+=($!)
    served $! "nginx" port_answers "$1"
}
NGINX_PID=
nginx_start() { # FOLDER
    local port
    mkdir -p "$T/nginx"
    for _ in 1 2 3; do
        port=$(free_port)
        printf 'user:%s\n' "$(openssl passwd -apr1 secret)" >"$T/nginx/users"
        nginx_conf <<NGINX
    server {
        listen 127.0.0.1:$port;
        root $1;
        location = /logged { access_log off; return 204; }
        location /private/ { alias $1/; auth_basic "private"; auth_basic_user_file $T/nginx/users; }
    }
NGINX
        nginx -c "$T/nginx/nginx.conf" -p "$T/nginx" >"$T/nginx/out" 2>&1 &
        NGINX_PID=$!
        while kill -0 "$NGINX_PID" 2>/dev/null && ! port_answers "$port"; do sleep 0.05; done
        if kill -0 "$NGINX_PID" 2>/dev/null; then
            # shellcheck disable=SC2034
            NGINX_URL="http://127.0.0.1:$port"
            return 0
        fi
    done
    cat "$T/nginx/out" "$T/nginx/error.log" >&2
    return 1
}
n_requests() { log_is_whole "${NGINX_URL##*:}" && wc -l <"$T/nginx/access.log"; }
nginx_stop() {
    [ -n "$NGINX_PID" ] && kill "$NGINX_PID" 2>/dev/null && wait "$NGINX_PID" 2>/dev/null
    NGINX_PID=
}
