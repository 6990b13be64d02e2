#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# `make deb`: what the package contains and declares, that two builds are equal, and that the program runs from where it is unpacked,
# with only what it declares. test-all: it is installed in a bare root, where two commands are enough.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016
. "$(dirname "$0")/../tap_lib.sh"
for tool in dpkg-deb readelf strip; do
    command -v "$tool" >/dev/null || { skip "make deb" "$tool is not here"; tap_done; }
done
mode=$(basename "$B")
exits 0 "make deb" make -s MODE="$mode" DEB_DIR="$T/one" DEB_LEVEL=0 deb
deb=$(tail -n 1 "$T/out")
ok "$([ -s "$deb" ]; echo $?)" "names the package"
if [ "${TIER:-everyday}" = all ]; then
    exits 0 "make deb again" make -s MODE="$mode" DEB_DIR="$T/two" DEB_LEVEL=0 deb
    is "$(sha256sum <"$deb")" "$(sha256sum <"$T/two/$(basename "$deb")")" "gives the same bytes"
else
    echo "# test-all: the package made twice"
fi
is "$(dpkg-deb -f "$deb" Package)/$(dpkg-deb -f "$deb" Version)" "reperf/$("$REPERF" --version | cut -d' ' -f2)" "it is of the program's version"
is "$(dpkg-deb -c "$deb" | awk '$2 != "root/root" || $1 ~ /^-....w|^-.......w/' | wc -l)" 0 "every file is root's, and nobody else may write it"
mkdir "$T/x" && dpkg-deb -x "$deb" "$T/x"
R="$T/x/usr/bin/reperf"
is "$(cd / && "$R" --version)" "$("$REPERF" --version)" "the program runs from where it is unpacked"
(cd / && "$R" audit --all --json) >"$T/installed" 2>/dev/null
"$REPERF" audit --all --json >"$T/here" 2>/dev/null
ok "$([ -s "$T/here" ] && cmp -s "$T/installed" "$T/here"; echo $?)" "it finds manifests and kept series, and audits as it does here"
is "$(cd / && "$R" list datasets --ids)" "$("$REPERF" list datasets --ids)" "and the datasets"
exits 0 "the manual is there" gzip -t "$T/x/usr/share/man/man1/reperf.1.gz"

# Every library that a program names is in a package that is declared.
declared=" $(dpkg-deb -f "$deb" Depends | sed 's/([^)]*)//g; s/,//g') "
needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; } # PROGRAM
for program in "$T/x/usr/bin"/*; do
    while read -r library; do
        path=$(ldd "$program" | awk -v name="$library" '$1 == name { print $3 }')
        [ -n "$path" ] || path=$(gcc -print-file-name="$library")
        echo "$(basename "$program") $library $(realpath "$path")"
    done < <(needed "$program")
done >"$T/needed"
cut -d' ' -f3 "$T/needed" | sort -u | sed 'p; s,^/usr/,/,' | xargs dpkg-query -S >"$T/owners" 2>/dev/null # /lib is /usr/lib
while read -r program library path; do
    package=$(awk -v path="$path" '{ at = $2; sub(/^\/usr/, "", at); sub(/^\/usr/, "", path) } at == path { sub(/:.*/, "", $1); print $1; exit }' "$T/owners")
    [[ $declared == *" ${package:-none} "* ]]
    ok $? "$program: $library is of a package that is declared (${package:-none})"
done <"$T/needed"
[[ $declared == *" libarchive"* && $declared == *" libcurl"* ]]
ok $? "so are those of libarchive and libcurl"
is "$(readelf -d "$T/x/usr/bin/reperf-node" | grep -c NEEDED)" 0 "reperf-node needs none"

# ---- a bare root ----
if [ "${TIER:-everyday}" != all ]; then
    echo "# test-all: the package installed in a bare root"
    tap_done
fi
if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
    skip "a bare root" "root and debootstrap make one"
    tap_done
fi
mirror=$(awk '/^URIs:/ { print $2; exit } $1 == "deb" { print $2; exit }' /etc/apt/sources.list.d/* /etc/apt/sources.list 2>/dev/null)
suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
bare="$T/bare"
exits 0 "a bare root" debootstrap --variant=minbase "$suite" "$bare" "$mirror"
cp -r /etc/apt/sources.list.d/. "$bare/etc/apt/sources.list.d/"
cp /etc/apt/apt.conf.d/99* "$bare/etc/apt/apt.conf.d/" 2>/dev/null
cp /etc/resolv.conf /etc/hosts "$bare/etc/" 2>/dev/null
mkdir -p "$bare/etc/ssl/certs" && cp /etc/ssl/certs/ca-certificates.crt "$bare/etc/ssl/certs/"
cp "$deb" "$bare/root/"
inside() { # COMMAND...: in the bare root, with a proc of its own
    unshare -m --propagation private bash -c 'mount -t proc proc "$0/proc" && exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root ${http_proxy:+http_proxy=$http_proxy} ${https_proxy:+https_proxy=$https_proxy} "$@"' "$bare" "$@"
}
exits 0 "its lists of packages" inside apt-get update -qq
exits 0 "one command installs it" inside apt-get install -y --no-install-recommends "/root/$(basename "$deb")"
exits 1 "the next audits all reports" inside reperf audit --all --json
is "$(sha256sum <"$T/out")" "$(sha256sum <"$T/here")" "as it does here"
is "$(inside sh -c 'command -v cc gcc make git' | wc -l)" 0 "without a compiler"
exits 0 "it trains" inside reperf run paddle-perf-2020 --profile smoke --case 'resnet50/reperf/fp32/n1g1/*' --repeats 1 "${SHORT[@]}"
exits 0 "it is removed again" inside apt-get remove -y reperf
is "$(find "$bare/usr/share/reperf" "$bare/usr/bin" -name 'reperf*' 2>/dev/null | wc -l)" 0 "without a rest"
tap_done
