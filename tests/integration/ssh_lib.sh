# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Real sshds on 127.0.0.1, each with its own port, host key and config, for tests and benches that source tap_lib.sh or set $T.
# ssh_keys once, then start_sshd NAME [CONFIG LINE...]: leaves ${ssh_port[NAME]}, ${ssh_pid[NAME]}; stop_sshds ends all.
declare -A ssh_port ssh_pid
mounted=
ssh_user=$(id -un)

have_sshd() { # NAME of the test: false, and a named skip, where there is no sshd that we can run
    if [ ! -x /usr/sbin/sshd ] || ! command -v ssh-keygen >/dev/null; then
        skip "$1" "there is no sshd here (openssh-server)"
        return 1
    fi
    if [ "$(id -u)" = 0 ] && [ ! -d /run/sshd ]; then
        mkdir -m 0755 /run/sshd || {
            skip "$1" "/run/sshd cannot be made, without which sshd does not start"
            return 1
        }
    fi
}

# The user's key, an empty known_hosts, and a config by which nobody is given up for being slow. At the script's end the sshds are ended, and $mounted, if any, is
# unmounted.
ssh_keys() {
    unset SSH_AUTH_SOCK
    export REPERF_SSH_CONFIG="$T/ssh/config"
    trap 'stop_sshds; [ -z "$mounted" ] || umount "$mounted"; rm -rf "$T"' EXIT
    mkdir -p "$T/ssh" "$T/home" && chmod 700 "$T/ssh"
    ssh-keygen -q -t ed25519 -N '' -C user -f "$T/ssh/id"
    cp "$T/ssh/id.pub" "$T/ssh/authorized_keys"
    : >"$T/ssh/known_hosts"
    cat >"$T/ssh/config" <<CONFIG
Host *
    User $ssh_user
    IdentityFile $T/ssh/id
    IdentityAgent none
    UserKnownHostsFile $T/ssh/known_hosts
    GlobalKnownHostsFile /dev/null
    ConnectTimeout 300
    ServerAliveCountMax 60
CONFIG
}

start_sshd() { # NAME [CONFIG LINE...]
    local name=$1 port key said dir="$T/sshd-$1"
    shift
    mkdir -p "$dir" && : >>"$dir/log"
    [ -e "$dir/host" ] || ssh-keygen -q -t ed25519 -N '' -C host -f "$dir/host"
    while :; do
        port=${ssh_port[$name]-}
        [ -n "$port" ] || port=$(free_port)
        cat >"$dir/config" <<CONFIG
Port $port
ListenAddress 127.0.0.1
HostKey $dir/host
AuthorizedKeysFile $T/ssh/authorized_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 512:30:1024
CONFIG
        printf '%s\n' "$@" >>"$dir/config"
        # sshd obeys the first line given for a keyword.
        grep -q '^KexAlgorithms' "$dir/config" || echo "KexAlgorithms curve25519-sha256" >>"$dir/config" # OpenSSH's first is ten times as long
        grep -q '^SetEnv' "$dir/config" || echo "SetEnv HOME=$T/home" >>"$dir/config"
        said=$(wc -l <"$dir/log")
        /usr/sbin/sshd -D -e -f "$dir/config" 2>>"$dir/log" &
        ssh_pid[$name]=$!
        while kill -0 "${ssh_pid[$name]}" 2>/dev/null; do # it ends where another has its port
            if tail -n +$((said + 1)) "$dir/log" | grep -q '^Server listening on'; then
                ssh_port[$name]=$port
                key="[127.0.0.1]:$port $(cut -d' ' -f1,2 "$dir/host.pub")"
                # One that is back is known all the time: whoever lost it may be there at once.
                grep -qxF "$key" "$T/ssh/known_hosts" || {
                    sed -i '/^\[127.0.0.1\]:'"$port"' /d' "$T/ssh/known_hosts"
                    echo "$key" >>"$T/ssh/known_hosts"
                }
                return 0
            fi
            sleep 0.02
        done
        kill "${ssh_pid[$name]}" 2>/dev/null
        [ -z "${ssh_port[$name]-}" ] || return 1 # it was to have this port again
        grep -q 'in use' "$dir/log" || {
            cat "$dir/log" >&2
            return 1
        }
    done
}

children_of() { # PID: its descendants, deepest last
    local child
    for child in $(pgrep -P "$1"); do
        echo "$child"
        children_of "$child"
    done
}

kill_sshd() { # NAME: with all its connections
    local pid=${ssh_pid[$1]}
    # shellcheck disable=SC2046
    kill -9 "$pid" $(ps -o pid=,comm= --ppid "$pid" | awk '$2 ~ /^sshd/ { print $1 }') 2>/dev/null
    wait "$pid" 2>/dev/null
    unset "ssh_pid[$1]"
}

stop_sshds() {
    local name
    for name in "${!ssh_pid[@]}"; do
        kill_sshd "$name"
    done
}

# What tests of remotes share: `one` is the script's own, a call of servers/remote_one.
gives() { tells "$1" "$2" "$3" one "${@:4}"; } # STATUS ERE NAME ARG...: the exit status, and what is said
wait_for() { waiting_for 120 "$@"; } # COMMAND...
# What a job or a script does until `go NAME`: so none ends before it was checked, however busy this machine is.
held() { echo "until [ -e '$T/go-$1' ]; do sleep 0.05; done"; } # NAME
go() { : >"$T/go-$1"; }
