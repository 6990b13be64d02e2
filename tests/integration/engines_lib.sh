# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
# Container engines of a test's own: a dockerd on a socket in $T, podman with its store in $T, each with a runc that works where root lacks
# CAP_SYS_RESOURCE. $T/bin/docker and $T/bin/podman speak to them and to nothing else.
# shellcheck source=tests/integration/image_lib.sh
. "${BASH_SOURCE[0]%/*}/image_lib.sh"
trap 'end_engines; end_servers; rm -rf "$T"' EXIT
ENGINE_PIDS=()
end_engines() {
    local pid
    for pid in "${ENGINE_PIDS[@]}"; do kill "$pid" 2>/dev/null; done
    for pid in "${ENGINE_PIDS[@]}"; do wait "$pid" 2>/dev/null; done
    ENGINE_PIDS=()
    # Mounts left by a killed container.
    awk -v t="$T/" 'index($2, t) == 1 { print $2 }' /proc/mounts | sort -r | while read -r m; do umount -l "$m" 2>/dev/null; done
}

# Limits above the hard ones in force, and a capability that root itself lacks, cannot be granted: removed from the bundle.
make_runc() {
    cat >"$T/runc" <<'EOF2'
#!/bin/bash
bundle= before=
for arg in "$@"; do
    [ "$before" = --bundle ] && bundle=$arg
    before=$arg
done
if [ -n "$bundle" ] && [ -f "$bundle/config.json" ]; then
    limit() {
        local v
        v=$(ulimit -H"$1")
        if [ "$v" = unlimited ]; then echo 9223372036854775807; else echo $((v * $2)); fi
    }
    has=$((0x$(awk '/^CapBnd/ { print $2 }' /proc/self/status) >> 24 & 1))
    config=$(jq -c --argjson has "$has" --argjson n "$(limit n 1)" --argjson m "$(limit l 1024)" --argjson u "$(limit u 1)" '
        (if $has == 1 then . elif .process.capabilities then
            .process.capabilities |= map_values(map(select(. != "CAP_SYS_RESOURCE"))) else . end)
        | if $has == 0 and .process.rlimits then .process.rlimits |= map(
            ({RLIMIT_NOFILE: $n, RLIMIT_MEMLOCK: $m, RLIMIT_NPROC: $u}[.type]) as $h
            | if $h and .hard > $h then .hard = $h else . end
            | if $h and .soft > $h then .soft = $h else . end) else . end' "$bundle/config.json") &&
        printf %s "$config" >"$bundle/config.json"
fi
exec "$(command -v runc /usr/sbin/runc | head -n 1)" "$@"
EOF2
    chmod +x "$T/runc"
}

start_docker() { # false, and why in $T/why, where none can be started
    local dockerd pid
    dockerd=$(command -v /usr/sbin/dockerd dockerd | head -n 1)
    if [ -z "$dockerd" ] || [ "$(id -u)" != 0 ] || ! command -v jq >/dev/null || ! command -v docker >/dev/null; then
        echo "it needs dockerd, jq and root" >"$T/why"
        return 1
    fi
    mkdir -p "$T/d" "$T/bin"
    [ -e "$T/runc" ] || make_runc
    "$dockerd" --data-root "$T/d/data" --exec-root "$T/d/exec" -H "unix://$T/d/sock" -p "$T/d/pid" --iptables=false --ip-masq=false --bridge=none \
        --storage-driver vfs --add-runtime "reperf=$T/runc" --default-runtime reperf >"$T/d/log" 2>&1 &
    pid=$!
    ENGINE_PIDS+=("$pid")
    DOCKERD_PID=$pid
    printf '#!/bin/sh\nexec %s -H unix://%s "$@"\n' "$(command -v docker)" "$T/d/sock" >"$T/bin/docker"
    chmod +x "$T/bin/docker"
    while kill -0 "$pid" 2>/dev/null && ! "$T/bin/docker" version >/dev/null 2>&1; do sleep 0.1; done
    kill -0 "$pid" 2>/dev/null && return 0
    tail -n 1 "$T/d/log" | cut -c1-160 >"$T/why"
    rm -f "$T/bin/docker"
    return 1
}

start_podman() { # likewise; whether it runs anything here is tried with an image of the test's own
    if [ ! -x /usr/bin/podman ] || [ "$(id -u)" != 0 ] || ! command -v jq >/dev/null; then
        echo "it needs podman, jq and root" >"$T/why"
        return 1
    fi
    mkdir -p "$T/p" "$T/bin"
    [ -e "$T/runc" ] || make_runc
    cat >"$T/bin/podman" <<EOF2
#!/bin/sh
exec /usr/bin/podman --root "$T/p/root" --runroot "$T/p/run" --tmpdir "$T/p/tmp" --storage-driver vfs --cgroup-manager cgroupfs \
    --events-backend none --runtime "$T/runc" "\$@"
EOF2
    chmod +x "$T/bin/podman"
    make_rootfs
    if tar -C "$T/rootfs" -c . | "$T/bin/podman" import - example.org/probe:1 >"$T/p.log" 2>&1 &&
        "$T/bin/podman" run --rm --network=host example.org/probe:1 /bin/true >>"$T/p.log" 2>&1; then
        return 0
    fi
    grep -m1 -i -E "error|fatal" "$T/p.log" | cut -c1-160 >"$T/why"
    return 1
}

# make_rootfs: $T/rootfs, busybox and the names of its programs that the tests use
make_rootfs() {
    local name
    [ -e "$T/rootfs/bin/sh" ] && return
    mkdir -p "$T/rootfs/bin" "$T/rootfs/tmp" "$T/rootfs/data" "$T/rootfs/out"
    cp "$(command -v busybox)" "$T/rootfs/bin/busybox"
    for name in sh ls cat df readlink sleep echo kill env id true head tail test touch dd tr; do
        ln -s busybox "$T/rootfs/bin/$name"
    done
}
import_image() { # ENGINE NAME: prints its id
    make_rootfs
    tar -C "$T/rootfs" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -c . | "$T/bin/$1" import - "$2" >/dev/null 2>&1
    "$T/bin/$1" image inspect --format '{{.Id}}' "$2" | sed 's/^sha256://; s/^/sha256:/'
}
