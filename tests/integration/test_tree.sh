#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: codec
# reperf data tree against sha256sum and md5sum: the same lists, and each difference named.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC1003,SC2317
. "$(dirname "$0")/../tap_lib.sh"
D="$T/tree"
tree() { "$REPERF" tree "$@"; }
peer() { # PROGRAM: its list of the tree, sorted by path
    (cd "$D" && find . \( -type f -o -type l \) -printf '%P\0' | LC_ALL=C sort -z | xargs -0 "$1")
}
mkdir -p "$D/a/deep/er" "$D/a-b" "$D/ü ber"
for i in {0..150}; do head -c $((i * 997)) /dev/urandom >"$D/a/f$i"; done
for i in {0..70}; do head -c "$i" /dev/urandom >"$D/a-b/s$i"; done
head -c 3000000 /dev/urandom >"$D/a/deep/er/large"
echo x >"$D/ü ber/ä"
echo x >"$D/a.b"
echo new >"$D/$(printf 'new\nline\\')"
ln -s ../a.b "$D/a/link"

exits 0 "SHA-256 of a tree" tree "$D"
cp "$T/out" "$T/sha256"
is "$(cut -d' ' -f1,3- "$T/sha256" | cksum)" "$(peer sha256sum | cut -d' ' -f1,3- | cksum)" "is what sha256sum writes, sorted by path"
(cd "$D" && sha256sum --strict --quiet -c "$T/sha256")
ok $? "and sha256sum -c takes it"
exits 0 "MD5 of a tree" tree --md5 "$D"
cp "$T/out" "$T/md5"
is "$(cut -d' ' -f1,3- "$T/md5" | cksum)" "$(peer md5sum | cut -d' ' -f1,3- | cksum)" "is what md5sum writes"
documents tree-output 0 "--json" tree --json "$D"
is "$(value "$T/document" 'd["list_sha256"]')" "$(sha256sum "$T/sha256" | cut -c1-64)" "it has the digest of the list"
is "$(value "$T/document" 'd["holds"]')" None "and says nothing of what was not compared"

(cd "$D" && find . -type f -print0 | shuf -z --random-source=/dev/zero | xargs -0 md5sum -b) >"$T/published"
(cd "$D" && md5sum -b a/link) >>"$T/published"
for list in sha256 md5 published; do
    prints 0 '^holds +yes$' "compared with $list" tree "$D" --list "$T/$list"
done
printf 'damaged!' | dd of="$D/a/deep/er/large" bs=1 seek=2000000 conv=notrunc status=none
rm "$D/a/f7"
echo more >"$D/more"
for list in sha256 published; do
    documents tree-output 5 "a tree that differs from $list" tree "$D" --list "$T/$list" --json
    is "$(value "$T/document" '[(x["fault"], x["path"]) for x in d["differences"]]')" "[('corrupt', 'a/deep/er/large'), ('missing', 'a/f7'), ('extra', 'more')]" "each is named"
done
prints 5 '^corrupt +a/deep/er/large$' "in text" tree "$D" --list "$T/sha256"
like "$(cat "$T/out")" '^missing +a/f7$' "missing"
like "$(cat "$T/out")" '^extra +more$' "extra"

rm "$D/more"
sleep 2.1 # files that were written a moment ago are not trusted by their times
exits 0 "--quick, first" tree --quick "$D"
cp "$T/out" "$T/first"
documents tree-output 0 "--quick, again" tree --quick --json "$D"
is "$(value "$T/document" 'd["read_bytes"], d["not_read_again"] == d["files"]')" "(0, True)" "nothing is read again"
exits 0 "--quick, as a list" tree --quick "$D"
succeeds "it is the same" cmp -s "$T/first" "$T/out"
printf 'damaged!' | dd of="$D/a/f150" bs=1 seek=5 conv=notrunc status=none && touch -d 2020-01-01 "$D/a/f150"
prints 5 '^corrupt +a/f150$' "--quick sees a change under an old date" tree --quick "$D" --list "$T/first"
printf 'damage' | dd of="$REPERF_STORE/cache/digests" bs=1 seek=100 conv=notrunc status=none
fails 5 'it is dropped' "a damaged cache" tree --quick "$D" --list "$T/first"
is "$(grep -c '^corrupt' "$T/out")" 1 "and the tree is judged as before"

ln -s /etc/passwd "$D/out"
fails 5 'tree/out: a link that leads out' "a link that leads outside" tree "$D"
rm "$D/out" && mkfifo "$D/pipe"
fails 5 'tree/pipe: ' "a pipe" tree "$D"
rm "$D/pipe"
exits 2 "no folder" tree
exits 2 "a folder that is not there" tree "$T/nothing"
exits 2 "--md5 with a list" tree --md5 --list "$T/md5" "$D"
: >"$T/none" && mkdir "$T/hollow"
fails 9 "none: names no file" "a list of nothing, to which an empty folder would hold" tree --list "$T/none" "$T/hollow"
exits 9 "an invalid list" tree --list "$D/a/f20" "$D"
# shellcheck disable=SC2016
exits 10 "an output that cannot be written" bash -c 'exec "$@" >/dev/full' - "$REPERF" tree "$D"
tap_done
