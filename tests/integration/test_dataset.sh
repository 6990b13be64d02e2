#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# fetch, verify and lock of datasets against a real nginx: success, a kill in the middle, wrong bytes, files that are missing,
# extra, truncated or of a wrong number, a gated dataset put in place by hand, drift from a lock, a mirror folder, no network.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2317
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/nginx_lib.sh disable=SC1091
source "$ROOT/tests/integration/nginx_lib.sh"
# shellcheck source=tests/faults/lib.sh disable=SC1091
source "$ROOT/tests/faults/lib.sh"
trap 'nginx_stop; chmod -R u+w "$T"; rm -rf "$T"' EXIT
export REPERF_STORE="$T/store" REPERF_ROOT="$T/root" no_proxy='*'
WWW="$T/www"
RGB=iVBORw0KGgoAAAANSUhEUgAAAAgAAAAECAIAAAA8r+mnAAAAbElEQVR42mNgkLdjV3Pl0/URNQmWsY5SdkrU8swwDMhn4NXxFjEOkraKVHJM0PRIN/DPMw8rtYutYZCyjFB0iNdwT9P3yzULLbGNqXZJbvLO6mRQd0vV880xDSm2ia5yTmr0yuwILOiPKJ8GALVwHCFv9a0iAAAAAElFTkSuQmCC
GREY=iVBORw0KGgoAAAANSUhEUgAAAAgAAAAECAAAAACWpiEsAAAALElEQVR42mNgYOcTlVHWMmTgFZFW0jQwt2OQUtTQN7N18WZQ1zO1cfYKjAAATEQFgVw1MBYAAAAASUVORK5CYII=

# ---- what is served: a tree of six pictures with labels, in two archives and a file
mkdir -p "$T/tree/img/a" "$T/tree/img/b" "$T/labels/lab/a" "$T/labels/lab/b" "$WWW" "$T/root/datasets" "$T/root/images"
ln -s "$ROOT/manifests" "$T/root/manifests"
for n in a/1 a/2 a/3 b/4 b/5 b/6; do
    { base64 -d <<<"$RGB" && echo "$n"; } >"$T/tree/img/$n.png"
    base64 -d <<<"$GREY" >"$T/labels/lab/${n}_l.png"
done
tar -C "$T/tree" -czf "$WWW/img.tar.gz" img
tar -C "$T/labels" -cf "$WWW/lab.tar" lab
echo "what it is" >"$WWW/README"
head -c 12000000 /dev/urandom >"$WWW/big.bin"
nginx_start "$WWW" || { ok 1 "nginx starts"; tap_done; }

md5() { md5sum <"$1" | cut -c1-32; }
null() { if [ -n "$1" ]; then echo "\"$1\""; else echo null; fi; }
file() { # NAME URL MD5 UNPACK INTO
    echo "{\"name\": \"$1\", \"urls\": [${2:+\"$2\"}], \"bytes\": null, \"md5\": $(null "$3"), \"sha256\": null, \"unpack\": $(null "$4"), \"nested\": false, \"into\": $(null "$5"), \"source\": null}"
}
group() { # NAME ROLE GLOB FILES CHANNELS PAIR
    echo "{\"name\": \"$1\", \"split\": \"train\", \"role\": \"$2\", \"glob\": \"$3\", \"files\": $4, \"folders\": 2, \"folder_files\": [3, 3], \"format\": \"png\", \"width\": 8, \"height\": 4, \"channels\": $5, \"pair\": $6}"
}
dataset() { # ID LOGIN FILES GROUPS
    mkdir -p "$T/root/datasets/$1"
    cat >"$T/root/datasets/$1/dataset.json" <<JSON
{"schema_version": 1, "id": "$1", "title": "test", "synthetic": false, "licence": null, "login": $2, "derived_from": null,
 "files": [$3], "splits": [{"name": "train", "samples": 6, "classes": null}], "groups": [$4], "others": true, "list": null, "pack": null,
 "twin": null, "note": null, "layout_source": null, "source": null}
JSON
}
PAIR='{"of": "images", "from": "img", "to": "lab", "from_end": ".png", "to_end": "_l.png"}'
GROUPS_OK="$(group images image 'img/*/*.png' 6 3 null), $(group labels label 'lab/*/*.png' 6 1 "$PAIR")"
U=$NGINX_URL
FILES="$(file img.tar.gz "$U/img.tar.gz" "$(md5 "$WWW/img.tar.gz")" tar.gz ""), $(file lab.tar "$U/lab.tar" "" tar ""), $(file README "$U/README" "" "" doc)"
dataset mini false "$FILES" "$GROUPS_OK"
valid dataset "the test's description is valid against the schema" "$T/root/datasets/mini/dataset.json"

fetch() { "$REPERF" fetch "$@"; }
verify() { "$REPERF" verify "$@"; }
fresh() { chmod -R u+w "$REPERF_STORE" 2>/dev/null; rm -rf "$REPERF_STORE"; }
TREE="$REPERF_STORE/trees/mini"

# ---- success
fails 4 'mini is not in the store .*: reperf data fetch mini first' "verify of what was never fetched" verify mini
documents noun-output 0 "fetch" fetch mini --json
like "$(cat "$T/out")" '"digest_was_known": false' "a file without a known digest is said to be so"
is "$(cd "$TREE" && sha256sum --quiet -c tree.sha256 && wc -l <tree.sha256)" 13 "sha256sum checks the tree by its list"
valid tree "the tree's record is valid" "$TREE/tree.json" "$REPERF_STORE/refs/dataset/mini.json"
is "$(cat "$TREE/doc/README")" "what it is" "a file that is no archive lies in its folder"
documents noun-output 0 "verify" verify mini --json
like "$(cat "$T/out")" '"verdict": "partly"' "without a lock it holds only as far as it could be checked"
like "$(cat "$T/out")" 'lab.tar is its authors.* no digest' "the archive without a digest is named as not checked"
prints 0 'that the list of files is right' "verify as text" verify mini
n_before=$(n_requests)
made=$(stat -c %i "$TREE")
exits 0 "fetch again" fetch mini
is "$(n_requests)/$(stat -c %i "$TREE")" "$n_before/$made" "asks nobody and makes nothing"

# ---- lock
documents noun-output 0 "lock" "$REPERF" lock mini --locks "$T/locks" --json
valid lock "the lock is valid" "$T/locks/dataset/mini.json"
like "$(cat "$T/locks/dataset/mini.json")" "\"url\": \"$U/lab.tar\"" "it says where a file came from"
prints 0 '"lock_changed": false' "lock again" "$REPERF" lock mini --locks "$T/locks" --json
prints 0 '"verdict": "holds"' "verify against the lock" verify mini --locks "$T/locks" --json
prints 0 '"verdict": "holds"' "verify --deep" verify mini --locks "$T/locks" --deep --json
prints 0 'headers of images' "verify --quick" verify mini --locks "$T/locks" --quick

# ---- a tree of other archives than description and lock know
sed -i "s/$(md5 "$WWW/img.tar.gz")/11111111111111111111111111111111/" "$T/root/datasets/mini/dataset.json"
fails 5 'was made of another file: img.tar.gz.*MD5' "a tree of another archive than the description knows" verify mini
dataset mini false "$FILES, $(file MORE "$U/README" "" "" more)" "$GROUPS_OK"
fails 5 'it was not made of MORE: reperf data fetch mini again' "a tree without one of the description's files" verify mini
dataset mini false "$FILES" "$GROUPS_OK"
sed -i 's/"sha256": "[0-9a-f]*"/"sha256": "'"$(sha256sum <"$WWW/README" | cut -c1-64)"'"/' "$TREE/tree.json"
fails 5 'was made of another file' "a tree whose record names other archives than the lock" verify mini --locks "$T/locks"
rm -rf "$TREE" && "$REPERF" fetch mini --locks "$T/locks" >/dev/null 2>&1
exits 0 "made again it holds" verify mini --locks "$T/locks"

# ---- faults of a tree
cp -R "$TREE" "$T/good"
restore() { chmod -R u+w "$TREE"; rm -rf "$TREE" && cp -R "$T/good" "$TREE"; }
fault() { # NAME KIND PATH WHY-ERE: verify exits 5 and names it, and nothing else of another kind
    documents noun-output 5 "$1" verify mini --locks "$T/locks" --json
    like "$(tr -d '\n' <"$T/out")" "\"kind\": \"$2\", *\"path\": \"$3\", *\"why\": $4" "$1: named"
    restore
}
rm "$TREE/img/a/2.png"
prints 5 '^missing +img/a/2.png' "a missing file" verify mini --locks "$T/locks"
like "$(cat "$T/err")" '1 missing' "and counted"
restore
rm "$TREE/img/a/2.png"
fault "a missing file (JSON)" missing img/a/2.png null
echo more >"$TREE/img/a/extra.txt"
fault "a file too many" extra img/a/extra.txt null
printf 'damaged!' | dd of="$TREE/lab/b/5_l.png" bs=1 seek=60 conv=notrunc status=none
fault "a bad byte" corrupt lab/b/5_l.png '"its digest differs'
truncate -s 60 "$TREE/img/b/4.png"
fault "a truncated picture" corrupt img/b/4.png '"its digest differs; .*the file ends before its IEND chunk'
rm "$TREE/lab/a/1_l.png"
fault "a label that is gone" missing lab/a/1_l.png '"the partner of img/a/1.png"'
sed -i '1d' "$TREE/tree.sha256"
fails 5 'not the list that tree.json names' "a list that was changed" verify mini --locks "$T/locks"
restore
for n in $(seq 30); do echo "$n" >"$TREE/img/a/more$n"; done
prints 5 'and 10 more \(--json has all\)' "many files too many" verify mini --locks "$T/locks"
exits 5 "the JSON has all" verify mini --locks "$T/locks" --json
is "$(grep -c '"kind": "extra"' "$T/out")" 30 "all 30 of them"
restore

# ---- faults within the archive
dataset count false "$FILES" "$(group images image 'img/*/*.png' 7 3 null)"
exits 0 "fetch of a dataset whose description says another number" fetch count
prints 5 'images +expected 7 files, found 6' "verify sees the number" verify count
dataset shape false "$FILES" "$(group images image 'lab/*/*.png' 6 3 null)"
exits 0 "fetch of a dataset whose description says other channels" fetch shape
prints 5 'lab/a/1_l.png +expected 3 channels, found 1' "verify reads headers" verify shape
mkdir -p "$T/cut/img/a" && base64 -d <<<"$RGB" | head -c 120 >"$T/cut/img/a/1.png" && tar -C "$T/cut" -cf "$WWW/cut.tar" img
dataset cut false "$(file cut.tar "$U/cut.tar" "" tar "")" "$(group images image 'img/*/*.png' 1 3 null)"
exits 0 "fetch of an archive that holds a truncated picture" fetch cut
prints 5 'img/a/1.png +byte 120: the file ends before its IEND chunk' "verify sees it without any digest" verify cut
dataset wrong false "$(file lab.tar "$U/lab.tar" "00000000000000000000000000000000" tar "")" "$GROUPS_OK"
exits 5 "an archive that is not the one with the known MD5" fetch wrong
is "$(find "$REPERF_STORE/trees" -maxdepth 1 -name 'wrong*' | wc -l)" 0 "leaves no tree"
mkdir -p "$T/ours" && echo '{}' >"$T/ours/tree.json" && tar -C "$T/ours" -cf "$WWW/ours.tar" tree.json
dataset ours false "$(file ours.tar "$U/ours.tar" "" tar "")" "$GROUPS_OK"
exits 5 "an archive with a tree.json of its own" fetch ours
is "$(find "$REPERF_STORE/trees" "$REPERF_STORE/tmp" -maxdepth 1 -name '*ours' | wc -l)" 0 "leaves nothing"
rm "$T/ours/tree.json" && mkdir "$T/ours/tree.json" && echo x >"$T/ours/tree.json/x" && tar -C "$T/ours" -cf "$WWW/ours2.tar" tree.json
dataset ours2 false "$(file ours2.tar "$U/ours2.tar" "" tar "")" "$GROUPS_OK"
fails 5 'holds "tree.json/x", a name that is ours' "an archive with a folder of that name" fetch ours2
dataset login false "$(file lab.tar "http://me:geheim@${U#http://}/lab.tar" "" tar "")" "$GROUPS_OK"
fails 3 'a URL must not contain a login' "a URL with a login in it" fetch login
is "$(grep -c geheim "$T/err")" 0 "and not repeated"
dataset mirrored false "$(file nowhere.tar "" "" tar "")" "$GROUPS_OK"
exits 4 "a mirror with a login, which lacks the file" fetch mirrored --retries 1 --mirror "http://me:geheim@${U#http://}"
is "$(grep -c geheim "$T/err")$(find "$REPERF_STORE" -name '*geheim*' | wc -l)" 00 "leaves no password in messages or names"
dataset gone false "$(file nowhere.tar "$U/nowhere.tar" "" tar "")" "$GROUPS_OK"
exits 4 "a file that is gone" fetch gone
documents noun-output 4 "a list of names continues after a failure" fetch gone mini --json
is "$(grep -c '"noun":' "$T/out")" 2 "two items"

# ---- drift
fresh
cp "$WWW/lab.tar" "$T/lab.tar"
echo changed >>"$T/labels/lab/a/1_l.png" && tar -C "$T/labels" -cf "$WWW/lab.tar" lab
exits 5 "a file that is not what was locked" fetch mini --locks "$T/locks"
exits 0 "without the lock it is taken as it is" fetch mini
exits 5 "lock refuses to change its mind" "$REPERF" lock mini --locks "$T/locks"
cp "$T/lab.tar" "$WWW/lab.tar"
exits 0 "the locked file is fetched again, once it is there again" fetch mini --locks "$T/locks"
exits 0 "and the tree is made again of it" verify mini --locks "$T/locks"

# ---- a kill in the middle
dataset big false "$(file big.bin "$U/big.bin" "$(md5 "$WWW/big.bin")" "" "")" "$GROUPS_OK"
# Of 732 writes of at most 16 KiB; it notes what it has after 160 of them at most (ten answers of 256 KiB).
exits 137 "a fetch is killed in the middle" at_call KILL write 300 "$REPERF_STORE/partial/*/data" "$REPERF" fetch big --connections 2
is "$(find "$REPERF_STORE/trees" -maxdepth 1 -name 'big*' | wc -l)" 0 "a fetch that was killed leaves no tree"
exits 0 "the next call resumes" fetch big --json
kept=$(sed -n 's/.*"kept_bytes": \([0-9]*\).*/\1/p' "$T/out")
received=$(sed -n 's/.*"received_bytes": \([0-9]*\).*/\1/p' "$T/out")
ok $((kept > 0 && received < 12000000 ? 0 : 1)) "with what it had ($kept bytes kept, $received received)"
is "$(md5 "$REPERF_STORE/trees/big/big.bin")" "$(md5 "$WWW/big.bin")" "and ends in the right bytes"
is "$(find "$REPERF_STORE/partial" -mindepth 1 -maxdepth 1 | wc -l)" 0 "nothing partial is left"
for call in "mkdir 1" "open 2" "write 3" "fsync 1" "open 9" "rename 1"; do # of what it does below tmp and trees
    rm -rf "$REPERF_STORE/trees/mini"
    read -r what at <<<"$call"
    exits 137 "killed at its call $call while it unpacks" at_call KILL "$what" "$at" "$REPERF_STORE/t" "$REPERF" fetch mini --locks "$T/locks"
    ok "$([ ! -d "$REPERF_STORE/trees/mini" ]; echo $?)" "there is no tree"
done
exits 0 "after six deaths while unpacking the next call makes the tree" fetch mini --locks "$T/locks"
exits 0 "and it holds" verify mini --locks "$T/locks" --deep

# ---- handed out to registered users only
dataset gated true "$(file lab.tar "$U/private/lab.tar" "$(md5 "$WWW/lab.tar")" tar "")" "$(group labels label 'lab/*/*.png' 6 1 null)"
fresh
exits 4 "a gated dataset is not asked for without a login" fetch gated
like "$(cat "$T/err")" "lab.tar: its owner gives it to registered users only .*MD5 $(md5 "$WWW/lab.tar").*Put it at $REPERF_STORE/incoming/lab.tar" "the message says what, where from and where to"
like "$(cat "$T/out")" "put +$REPERF_STORE/incoming/lab.tar" "so does the text"
echo nonsense >"$REPERF_STORE/incoming/lab.tar"
documents noun-output 4 "a wrong file put there is not taken" fetch gated --json
like "$(cat "$T/err")" "incoming/lab.tar: not the file that is expected \(size not known, MD5 $(md5 "$WWW/lab.tar"), SHA-256 not known\): it has 9 bytes" "and said to be wrong, beside what was expected"
is "$(cat "$REPERF_STORE/incoming/lab.tar")" nonsense "it is left there"
cp "$WWW/lab.tar" "$REPERF_STORE/incoming/lab.tar"
exits 0 "the right file put there is taken" fetch gated
exits 0 "and its tree holds" verify gated
fresh
printf 'machine 127.0.0.1 login user password wrong\n' >"$T/netrc" && chmod 600 "$T/netrc"
exits 5 "a wrong login is refused by the server" fetch gated --netrc "$T/netrc"
printf 'machine 127.0.0.1 login user password secret\n' >"$T/netrc"
exits 0 "with a netrc it is fetched" fetch gated --netrc "$T/netrc" --json
is "$(grep -c secret "$T/out" "$T/err" | grep -vc ':0$')" 0 "the password is nowhere"

# ---- no network
fresh
fails 4 'offline, and it is not in the store' "offline, and not in the store" fetch mini --offline
mkdir "$T/mirror dir" && cp "$WWW/img.tar.gz" "$WWW/lab.tar" "$WWW/README" "$T/mirror dir/"
n_before=$(n_requests)
leaves 0 n_requests "$n_before" "offline with a mirror folder asks nobody" fetch mini --offline --mirror "$T/mirror dir"
exits 0 "offline with all in the store" fetch mini --offline
fresh
exits 0 "a mirror that has only some of the files" fetch mini --mirror "$NGINX_URL/nowhere"

# ---- usage
exits 2 "a name of nothing" fetch nobody-knows
exits 2 "no name" fetch
exits 2 "--samples without --synthetic" fetch mini --samples train=2
exits 2 "a synthetic version of what has none" fetch mini --synthetic
exits 2 "--quick and --deep" verify mini --quick --deep
exits 2 "--key with a name" verify mini --key x
exits 2 "an invalid rate" fetch mini --rate fast
exits 2 "a mirror that is not there" fetch mini --mirror "$T/no-such-folder"
sed -i 's/"others"/"colour"/' "$T/root/datasets/cut/dataset.json"
fails 3 'datasets/cut/dataset.json:\$: unknown key "colour"' "a description with an unknown key" fetch cut
tap_done
