#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The first process of a node: node_init.sh STATE NUMBER. Its root is this machine's below a layer of its own, without what is of this machine's
# users; then its own sshd and container engine.
set -eu
# shellcheck source=tests/cluster/env.sh
. "$(dirname "$0")/env.sh"
S=$1 i=$2
N="$S/node$i" R="$S/node$i/root" repository=$(cd "$CLUSTER_DIR/../.." && pwd)
first=
[ -d "$N/upper" ] || first=1
mkdir -p "$N"/{upper,work,root,docker,containerd,containers,home}
mount -t overlay overlay -o "lowerdir=/,upperdir=$N/upper,workdir=$N/work" "$R"
mkdir -p "$R"/{proc,sys,dev,run,tmp,root,home,var/lib/docker,var/lib/containerd,var/lib/containers,var/tmp}
mount -t proc proc "$R/proc"
mount -t sysfs sysfs "$R/sys"
mount -t tmpfs -o mode=755 none "$R/dev"
for device in null zero full random urandom tty fuse; do
    [ ! -e "/dev/$device" ] || { : >"$R/dev/$device" && mount --bind "/dev/$device" "$R/dev/$device"; }
done
ln -s /proc/self/fd "$R/dev/fd"
ln -s fd/0 "$R/dev/stdin"
ln -s fd/1 "$R/dev/stdout"
ln -s fd/2 "$R/dev/stderr"
mkdir "$R/dev/pts" "$R/dev/shm" "$R/dev/mqueue"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$R/dev/pts"
ln -s pts/ptmx "$R/dev/ptmx"
mount -t tmpfs -o mode=1777 none "$R/dev/shm"
mount -t mqueue none "$R/dev/mqueue" 2>/dev/null || :
mount -t tmpfs -o mode=755 none "$R/run"
mkdir -p "$R/run/sshd" "$R/run/lock"
mount -t tmpfs -o mode=1777 none "$R/tmp"
mount -t tmpfs -o mode=755 none "$R/home"
mount -t tmpfs -o mode=1777 none "$R/var/tmp"
for folder in docker containerd containers; do
    mount --bind "$N/$folder" "$R/var/lib/$folder"
done
mount --bind "$N/home" "$R/root"
# The checkout and what it built are this machine's alone: what a node has of them was brought to it.
[ ! -d "$R$repository" ] || mount -t tmpfs -o mode=755 none "$R$repository"
mkdir -p "$R$S/shared"
mount --bind "$S/shared" "$R$S/shared"
mkdir -p "$R/opt/images"
mount --bind "$CLUSTER_IMAGES" "$R/opt/images"
mount -o remount,bind,ro "$R/opt/images"
# Control groups, with this node's own as the root.
mount -t tmpfs -o mode=755 none "$R/sys/fs/cgroup"
cgroup_mount "$R/sys/fs/cgroup" || echo "no control groups" >"$N/no-docker"
if [ "$(ls "$R/sys/fs/cgroup")" = unified ]; then
    umount "$R/sys/fs/cgroup/unified" "$R/sys/fs/cgroup"
    mount -t cgroup2 cgroup2 "$R/sys/fs/cgroup"
fi

hostname "node$i"
echo "node$i" >"$R/etc/hostname"
: >"$R/etc/resolv.conf"
{
    echo "127.0.0.1 localhost"
    echo "$HEAD_IP head"
    for j in $CLUSTER_NODES; do
        echo "$(node_ip "$j") node$j"
    done
} >"$R/etc/hosts"
if [ -n "$first" ]; then
    mkdir -m 700 "$R/root/.ssh"
    cp "$S/ssh/key.pub" "$R/root/.ssh/authorized_keys"
    chmod 600 "$R/root/.ssh/authorized_keys"
    chmod 700 "$R/root"
    mkdir -p "$R/etc/docker" "$R/etc/containers" "$R/opt/cluster"
    cp "$CLUSTER_DIR/runc_wrap.sh" "$R/opt/cluster/runc"
    runtime=
    if ! has_capability 24; then # CAP_SYS_RESOURCE
        runtime=', "runtimes": {"clamped": {"path": "/opt/cluster/runc"}}, "default-runtime": "clamped"'
        printf '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "clamped"\n[engine.runtimes]\nclamped = ["/opt/cluster/runc"]\n' >"$R/etc/containers/containers.conf"
    else
        printf '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "runc"\n' >"$R/etc/containers/containers.conf"
    fi
    printf '{"insecure-registries": ["%s:%s"]%s}\n' "$HEAD_IP" "$REGISTRY_PORT" "$runtime" >"$R/etc/docker/daemon.json"
    printf '[storage]\ndriver = "overlay"\ngraphroot = "/var/lib/containers/storage"\nrunroot = "/run/containers/storage"\n[storage.options]\nadditionalimagestores = ["/opt/images"]\n' >"$R/etc/containers/storage.conf"
    printf '[[registry]]\nlocation = "%s:%s"\ninsecure = true\n' "$HEAD_IP" "$REGISTRY_PORT" >"$R/etc/containers/registries.conf"
fi
mkdir -p "$R/etc/ssh"
rm -f "$R"/etc/ssh/ssh_host_*
install -m 600 "$N/host_key" "$R/etc/ssh/ssh_host_ed25519_key"
cat >"$R/etc/ssh/sshd_config" <<CONFIG
ListenAddress $(node_ip "$i"):22
HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
KexAlgorithms curve25519-sha256
PrintMotd no
PidFile /run/sshd.pid
MaxStartups 200:30:400
MaxSessions 64
Subsystem sftp internal-sftp
CONFIG
install -D "$CLUSTER_DIR/node_boot.sh" "$R/opt/cluster/boot.sh"
cd "$R"
mkdir -p .before
if pivot_root . .before 2>/dev/null; then
    cd /
    umount -l /.before
    rmdir /.before
    exec /opt/cluster/boot.sh
fi
# Where this machine's own root is a chroot, it cannot be moved away.
exec chroot . /opt/cluster/boot.sh
