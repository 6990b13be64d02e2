#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# root.sh FOLDER NOTES HERE: FOLDER/script in a root of its own over this machine's, with FOLDER/mounts; in a mount namespace of its own.
set -e
folder=$1 notes=$2 here=$3
root=$folder/root
mkdir -p "$folder/upper" "$folder/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$root"
mkdir -p "$root/dress/notes" "$root/dress/boot" "$root/dress/bin" "$root/tmp"
mount --bind "$notes" "$root/dress/notes"
cp -R "$here/boot/." "$root/dress/boot/"
# shellcheck source=tests/dress/bin.sh
. "$here/bin.sh"
for name in standin option_value; do cp "$here/../cluster/published/$name.py" "$root/dress/boot/"; done
echo "import sys; sys.path.append('/dress/boot'); import dress_boot" >"$root/usr/lib/python3/dist-packages/dress.pth"
printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$(hostname)" >"$root/etc/hosts"
echo 'hosts: files' >"$root/etc/nsswitch.conf"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
tab=$(printf '\t')
while IFS=$tab read -r what where how; do
    mkdir -p "$root$where"
    case $how in
    mounted)
        mount --bind "$what" "$root$where"
        mount -o remount,bind,ro "$root$where"
        ;;
    installed)
        cp -R "$what/." "$root$where"
        echo "$where" >>"$root/usr/lib/python3/dist-packages/dress.pth"
        ;;
    esac
done <"$folder/mounts"
cp "$folder/script" "$root/dress/script"
cd /
exec chroot "$root" /bin/sh /dress/script
