#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: codec
# reperf data unpack compared with the tools that made the archives and others that unpack them: the same trees, and nothing left after a failure.
# shellcheck source=tests/tap_lib.sh disable=SC1091
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/faults/lib.sh disable=SC1091
. "$ROOT/tests/faults/lib.sh"
W="$T/work"
left() { find "$W" -maxdepth 1 -name 'out*'; } # of a folder that was not made
mkdir -p "$W/in/train/n01" "$W/in/train/n02" "$W/in/ü ber"
for i in 1 2 3 4 5 6; do head -c $((i * 70001)) /dev/urandom >"$W/in/train/n0$((i % 2 + 1))/f$i.JPEG"; done
head -c 9000000 /dev/urandom >"$W/in/large"
: >"$W/in/empty"
echo text >"$W/in/ü ber/ä.txt"
name=$(printf 'long-%.0s' {1..30})
echo long >"$W/in/$name"
chmod +x "$W/in/empty"
ln "$W/in/large" "$W/in/hard"
ln -s ../large "$W/in/train/link"
truncate -s 3000000 "$W/in/sparse"
echo end >>"$W/in/sparse"
(cd "$W/in" && find . -type f -printf '%P\n' -o -type l -printf '%P\n' | LC_ALL=C sort | tr '\n' '\0' | xargs -0 sha256sum) >"$W/list"

tar -C "$W/in" --format=gnu -cSf "$W/gnu.tar" .
tar -C "$W/in" --format=pax -cSf "$W/pax.tar" .
bsdtar -C "$W/in" --format=pax -cf "$W/bsd.tar" .
bsdtar -C "$W/in" --format=ustar -cf "$W/ustar.tar" --exclude "$name" . 2>/dev/null
tar -C "$W/in" -czf "$W/gz.tar.gz" .
tar -C "$W/in" --zstd -cf "$W/zst.tar.zst" .

for a in gnu.tar pax.tar bsd.tar gz.tar.gz zst.tar.zst; do
    # shellcheck disable=SC2016
    exits 0 "$a: unpacked" bash -c 'umask 077; exec "$@"' - \
        "$REPERF" unpack "$W/$a" "$W/out" --list "$W/list" --write-list "$W/written" --json
    valid unpack-output "$a: its document is valid"
    mkdir "$W/peer"
    bsdtar -C "$W/peer" -xf "$W/$a"
    is "$(diff -r --no-dereference "$W/out" "$W/peer")" "" "$a: the same as bsdtar -x"
    is "$(cmp "$W/written" "$W/list" 2>&1)" "" "$a: the list is that of sha256sum"
    is "$(find "$W/out" -type f ! -perm 0644 ! -name empty -o -type d ! -perm 0755)" "" "$a: modes do not hang on the umask"
    is "$(stat -c %a "$W/out/empty")" 755 "$a: the executable one stays so"
    rm -rf "$W/out" "$W/peer"
done
prints 5 "^missing +$name" "ustar without one file: the list names it" "$REPERF" unpack "$W/ustar.tar" "$W/out" --list "$W/list"
ok "$([ ! -e "$W/out" ]; echo $?)" "and nothing is left"
sed '1{s/^0/x/;t;s/^./0/};s/^x/1/' "$W/list" >"$W/corrupt" # the first digit is another
documents unpack-output 5 "one digest of the list is another" "$REPERF" unpack "$W/gnu.tar" "$W/out" --list "$W/corrupt" --json
is "$(left)" "" "nothing is left, not under another name either"

# Python's writer for zip, with data descriptors too, because it writes to a pipe.
cat >"$T/zip.py" <<'PY'
import os, sys, zipfile
root, out, method = sys.argv[1:4]
with zipfile.ZipFile(sys.stdout.buffer if out == "-" else out, "w", getattr(zipfile, method)) as z:
    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                z.write(path, os.path.relpath(path, root))
PY
for kind in "stored.zip ZIP_STORED" "deflated.zip ZIP_DEFLATED" "piped.zip ZIP_DEFLATED"; do
    read -r file method <<<"$kind"
    if [ "$file" = piped.zip ]; then
        /usr/bin/python3 "$T/zip.py" "$W/in" - "$method" | cat >"$W/$file"
    else
        /usr/bin/python3 "$T/zip.py" "$W/in" "$W/$file" "$method"
    fi
    exits 0 "$file: unpacked" "$REPERF" unpack "$W/$file" "$W/out"
    is "$(diff -r --no-dereference "$W/out" "$W/in" | grep -v 'Only in .*: link')" "" "$file: the same files"
    rm -rf "$W/out"
done

# Tars in a tar, against the usual shell loop.
mkdir "$W/tars"
for d in n01 n02; do tar -C "$W/in/train/$d" -cf "$W/tars/$d.tar" .; done
tar -C "$W/tars" -cf "$W/nested.tar" n01.tar n02.tar
mkdir "$W/loop"
tar -C "$W/loop" -xf "$W/nested.tar"
for f in "$W"/loop/*.tar; do mkdir "${f%.tar}" && tar -C "${f%.tar}" -xf "$f" && rm "$f"; done
exits 0 "tars in a tar" "$REPERF" unpack "$W/nested.tar" "$W/out" --nested
is "$(diff -r "$W/out" "$W/loop")" "" "the same as the loop makes"
rm -rf "$W/out"
exits 0 "without --nested they are files" "$REPERF" unpack "$W/nested.tar" "$W/out"
is "$(diff -r "$W/out" "$W/tars")" "" "the same as they were"
rm -rf "$W/out"

# Digests, formats, names, usage.
sha=$(sha256sum <"$W/gnu.tar" | cut -d' ' -f1)
md5=$(md5sum <"$W/gnu.tar" | cut -d' ' -f1)
exits 0 "the right digests" "$REPERF" unpack "$W/gnu.tar" "$W/out" --sha256 "$sha" --md5 "$md5"
exits 2 "a folder that is there" "$REPERF" unpack "$W/gnu.tar" "$W/out"
rm -rf "$W/out"
exits 5 "another SHA-256" "$REPERF" unpack "$W/gnu.tar" "$W/out" --sha256 "${sha:0:63}$([ "${sha:63}" = 0 ] && echo 1 || echo 0)"
exits 2 "no hex" "$REPERF" unpack "$W/gnu.tar" "$W/out" --sha256 "$md5"
exits 5 "too many bytes" "$REPERF" unpack "$W/gnu.tar" "$W/out" --max-bytes 100000
exits 2 "one operand" "$REPERF" unpack "$W/gnu.tar"
exits 2 "no such archive" "$REPERF" unpack "$W/none.tar" "$W/out"
tar -C "$W/in" -cPf "$W/absolute.tar" "$W/in/empty"
fails 5 'absolute path' "an absolute path" "$REPERF" unpack "$W/absolute.tar" "$W/out"
is "$(left)" "" "nothing is left of any of them"

# A full disk.
if [ "$(id -u)" = 0 ] && mkdir "$W/small" && mount -t tmpfs -o size=2m tmpfs "$W/small" 2>/dev/null; then
    exits 10 "a full disk" "$REPERF" unpack "$W/gnu.tar" "$W/small/out"
    is "$(ls -A "$W/small")" "" "nothing is left on it"
    umount "$W/small"
else
    skip "a full disk" "a small file system cannot be mounted here"
fi

# Stopped at one of its own writes: where it is by then does not depend on how fast this machine is.
for at in 1 5 40; do
    leaves 130 left "" "^C at its write $at: nothing is left" at_call INT write $at "$W/out*" "$REPERF" unpack "$W/gnu.tar" "$W/out"
done
# A reader that comes from the end must find the same directory: its place, its length, its disk and its count.
/usr/bin/python3 - "$W" <<'P'
import sys, zipfile
path = sys.argv[1] + "/end.zip"
with zipfile.ZipFile(path, "w") as z:
    z.writestr("a", "text")
    z.writestr("b", "more")
data = open(path, "rb").read()
at = data.rindex(b"PK\5\6")
for name, place, size in [("disk", 4, 2), ("start_disk", 6, 2), ("here", 8, 2), ("count", 10, 2), ("bytes", 12, 4), ("offset", 16, 4)]:
    bad = bytearray(data)
    value = int.from_bytes(bad[at + place:at + place + size], "little")
    bad[at + place:at + place + size] = (value + 1).to_bytes(size, "little")
    open(f"{sys.argv[1]}/end-{name}.zip", "wb").write(bad)
P
exits 0 "a zip whose end fits" "$REPERF" unpack "$W/end.zip" "$W/out"
rm -rf "$W/out"
for name in disk start_disk here count bytes offset; do
    exits 5 "a zip whose end does not fit: $name" "$REPERF" unpack "$W/end-$name.zip" "$W/out"
done
tap_done
