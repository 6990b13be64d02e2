# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Helpers for starting a server, in tests and in benchmarks: a port, and waiting until it answers. $T: a folder of the script's
# own.
waiting_for() { # SECONDS COMMAND...: polls until it holds
    local tries=$(($1 * 20))
    shift
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.05
    done
}
port_answers() { (exec 3<>"/dev/tcp/${2:-127.0.0.1}/$1") 2>/dev/null; } # PORT [ADDRESS]
# nginx writes a request's line after its answer, and before it takes up the next: once it answers this one, which has none, all lines are there. PORT, at which
# /logged is a location without a log.
log_is_whole() { (exec 3<>"/dev/tcp/127.0.0.1/$1" && printf 'GET /logged HTTP/1.0\r\n\r\n' >&3 && read -rt 120 _ <&3); }
free_port() { # nobody listens at it, and it was not given before; below those that the kernel gives to connections, at which nobody can listen for a moment
    local port base=$((10000 + $$ % 560 * 40))
    # Between this look and the listening another script could take it: those of another lane of tap.sh have others.
    [ -z "${TAP_LANE-}" ] || base=$((10000 + TAP_LANE % 10 * 2240 + $$ % 56 * 40))
    while :; do
        printf . >>"$T/ports"
        port=$((base + $(stat -c %s "$T/ports") % 40))
        port_answers "$port" || break
    done
    echo "$port"
}
# What nginx is told to answer for the repositories below a folder, by fcgiwrap at a socket.
git_by_nginx() { # SOCKET FOLDER PATH [PROTOCOL]: the last two as nginx names them
    cat <<NGINX
fastcgi_pass unix:$1;
            fastcgi_param SCRIPT_FILENAME $(git --exec-path)/git-http-backend;
            fastcgi_param GIT_HTTP_EXPORT_ALL 1;
            fastcgi_param GIT_PROJECT_ROOT $2;
            fastcgi_param PATH_INFO $3;
            fastcgi_param QUERY_STRING \$query_string;
            fastcgi_param REQUEST_METHOD \$request_method;
            fastcgi_param CONTENT_TYPE \$content_type;
            fastcgi_param CONTENT_LENGTH \$content_length;
            fastcgi_param HTTP_CONTENT_ENCODING \$http_content_encoding;
            fastcgi_param GIT_PROTOCOL ${4:-\$http_git_protocol};
NGINX
}
slurm_common() { # what every slurm.conf here has, after its nodes
    cat <<CONF
AuthType=auth/munge
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SlurmdParameters=config_overrides
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
}
