#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The control file of Debian's package, on standard output: deb_control.sh TREE VERSION ARCHITECTURE. It depends on the packages that
# hold the libraries which the tree's programs name or open (base/library.h), and on a C library no older than the one that they were
# linked with.
set -euo pipefail
tree=$1 version=$2 arch=$3
owner() { # PATH of a library: its package
    local path
    for path in "$1" "$(realpath "$1")" "/usr$1" "${1#/usr}"; do
        dpkg-query -S "$path" 2>/dev/null | head -n 1 | sed 's/:.*//' | grep . && return
    done
    echo "deb_control.sh: no package has $1" >&2
    return 1
}
needs() { # PROGRAM: the path of a library a line
    local name path
    readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | while read -r name; do
        path=$(LC_ALL=C ldd "$1" | awk -v name="$name" '$1 == name && $3 ~ /^\// { print $3 }')
        [ -n "$path" ] || case $name in
        ld-linux*) path=/lib64/$name ;;
        *)
            echo "deb_control.sh: $1: $name is not found" >&2
            return 1
            ;;
        esac
        echo "$path"
    done
}
opened() { # as needs(), of the libraries that the sources open
    local name path
    grep -rhoE '"lib[a-z0-9]+\.so\.[0-9]+"' --include='*.c' orchestrator | tr -d '"' | sort -u | while read -r name; do
        path=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | awk -v name="$name" '$1 == name { print $NF; exit }')
        [ -n "$path" ] || {
            echo "deb_control.sh: $name is not found" >&2
            return 1
        }
        echo "$path"
    done
}
libraries=$({ for program in "$tree"/usr/bin/*; do needs "$program" || exit; done && opened; } | sort -u)
packages=$(while read -r path; do owner "$path" || exit; done <<<"$libraries" | sort -u)
libc=$(dpkg-query -W -f='${Version}' libc6 | sed 's/-.*//')
depends=$(while read -r package; do [ "$package" = libc6 ] && echo "libc6 (>= $libc)" || echo "$package"; done <<<"$packages" | paste -sd, | sed 's/,/, /g')
cat <<X
Package: reperf
Version: $version
Architecture: $arch
Maintainer: reperf developers <reperf@localhost>
Installed-Size: $(du -sk --apparent-size "$tree/usr" | cut -f1)
Depends: $depends
Recommends: ca-certificates, git, skopeo
Suggests: docker.io | podman, openssh-client, slurm-client
Section: science
Priority: optional
Description: reproduce and audit published deep-learning performance reports
 Computes every published number again from the published logs and says which
 follow, runs the reports' workloads on the user's own machines under the same
 rules, and seals evidence that can be verified later with standard tools.
X
