#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# 10,000 files of 60 to 160 KB, 1.1 GB, in memory: unpacked with the archive's and each file's SHA-256, against bsdtar that only unpacks;
# the same as tar.gz; 100 tars in a tar, against the shell loop.
# shellcheck source=tests/bench/bench_lib.sh disable=SC1091
. "$(dirname "$0")/bench_lib.sh"
reperf="$B/reperf"
memory=/dev/shm
[ -w "$memory" ] || memory=${TMPDIR:-/tmp}
work=$(mktemp -d "$memory/reperf-bench.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
/usr/bin/python3 - "$work/in" <<'EOP'
import os, random, sys
sizes = random.Random(1)
for i in range(10000):
    folder = "%s/n%03d" % (sys.argv[1], i // 100)
    os.makedirs(folder, exist_ok=True)
    with open("%s/f%05d.JPEG" % (folder, i), "wb") as file:
        file.write(os.urandom(sizes.randint(60000, 160000)))
EOP
tar -C "$work/in" -cf "$work/flat.tar" .
mkdir "$work/tars"
for d in "$work"/in/*; do tar -C "$d" -cf "$work/tars/${d##*/}.tar" .; done
rm -rf "$work/in"
(cd "$work/tars" && tar -cf ../nested.tar ./*.tar)
rm -rf "$work/tars"
fresh="rm -rf '$work/out' && mkdir '$work/out' &&"
pair "unpack + SHA-256 of all / bsdtar -x" "" "$fresh '$reperf' unpack '$work/flat.tar' '$work/out/x'" \
    "$fresh bsdtar -xf '$work/flat.tar' -C '$work/out'"
pair "the same / bsdtar -x, then sha256sum" 1.2 "$fresh '$reperf' unpack '$work/flat.tar' '$work/out/x'" \
    "$fresh bsdtar -xf '$work/flat.tar' -C '$work/out' && find '$work/out' -type f -print0 | xargs -0 -P2 -n500 sha256sum && sha256sum '$work/flat.tar'"
pair "100 tars in a tar + SHA-256 / shell loop" 1.0 "$fresh '$reperf' unpack '$work/nested.tar' '$work/out/x' --nested" \
    "$fresh cd '$work/out' && tar -xf '$work/nested.tar' && for f in *.tar; do mkdir \${f%.tar} && tar -xf \$f -C \${f%.tar} && rm \$f; done"
rm -rf "$work/out" "$work/nested.tar"
gzip -1 "$work/flat.tar"
pair "tar.gz + SHA-256 / bsdtar -x" 1.25 "$fresh '$reperf' unpack '$work/flat.tar.gz' '$work/out/x'" \
    "$fresh bsdtar -xf '$work/flat.tar.gz' -C '$work/out'"
