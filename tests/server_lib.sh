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
