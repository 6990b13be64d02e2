#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# Data anywhere is checked in place (verify PATH --as); a damaged tree never counts as present, and repair fetches or unpacks
# again what is missing or damaged and nothing else; --dry-run lists files and bytes.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2317
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/nginx_lib.sh disable=SC1091
source "$ROOT/tests/integration/nginx_lib.sh"
trap 'nginx_stop; chmod -R u+w "$T"; rm -rf "$T"' EXIT
export REPERF_STORE="$T/store" REPERF_ROOT="$T/root" no_proxy='*'
WWW="$T/www"
TREE="$REPERF_STORE/trees/mini"

# ---- what is served: a tree of text files under one folder, in two archives, and a file
mkdir -p "$WWW" "$T/root/datasets/mini" "$T/root/images" "$T/a/mini/img" "$T/b/mini/lab"
ln -s "$ROOT/manifests" "$T/root/manifests"
for n in $(seq 30); do echo "picture $n" >"$T/a/mini/img/$n.txt" && echo "label $n" >"$T/b/mini/lab/$n.txt"; done
tar -C "$T/a" -czf "$WWW/img.tar.gz" mini
tar -C "$T/b" -cf "$WWW/lab.tar" mini
echo "what it is" >"$WWW/README"
nginx_start "$WWW" || { ok 1 "nginx starts"; tap_done; }
file() { # NAME UNPACK INTO
    echo "{\"name\": \"$1\", \"urls\": [\"$NGINX_URL/$1\"], \"bytes\": $(stat -c %s "$WWW/$1"), \"md5\": \"$(md5sum <"$WWW/$1" | cut -c1-32)\", \"sha256\": null, \"unpack\": $2, \"nested\": false, \"into\": $3, \"source\": null}"
}
group() { # NAME GLOB
    echo "{\"name\": \"$1\", \"split\": \"train\", \"role\": \"other\", \"glob\": \"$2\", \"files\": 30, \"folders\": 1, \"folder_files\": null, \"format\": \"any\", \"width\": null, \"height\": null, \"channels\": null, \"pair\": null}"
}
cat >"$T/root/datasets/mini/dataset.json" <<JSON
{"schema_version": 1, "id": "mini", "title": "test", "synthetic": false, "licence": null, "login": false, "derived_from": null,
 "files": [$(file img.tar.gz '"tar.gz"' null), $(file lab.tar '"tar"' null), $(file README null '"mini"')],
 "splits": [{"name": "train", "samples": 30, "classes": null}], "groups": [$(group images 'mini/img/*.txt'), $(group labels 'mini/lab/*.txt')],
 "others": true, "list": null, "pack": null, "twin": null, "note": null, "layout_source": null, "source": null}
JSON
valid dataset "the test's description is valid" "$T/root/datasets/mini/dataset.json"
value() { jq -r "$1" "$T/out"; }
verify() { "$REPERF" verify "$@"; }
repair() { "$REPERF" repair "$@"; }

# ---- what would be done
documents noun-output 0 "fetch --dry-run" "$REPERF" fetch mini --dry-run --json
is "$(value '.items[0].files_to_get')/$(value '.items[0].bytes_to_get')" "3/$(cat "$WWW"/* | wc -c)" "three files and their bytes are to be got"
is "$(n_requests)" 0 "and nobody was asked"
prints 0 "lab.tar +$(stat -c %s "$WWW/lab.tar") .*network +$NGINX_URL" "as text" "$REPERF" fetch mini --dry-run
exits 0 "fetch" "$REPERF" fetch mini
exits 0 "fetch --dry-run again" "$REPERF" fetch mini --dry-run --json
is "$(value '.items[0].bytes_to_get')/$(value '.items[0].unpacked')" 0/true "nothing is to be got then"
exits 0 "fetch --dry-run of an image that is not there" "$REPERF" fetch mini --dry-run
exits 0 "bundle --dry-run" "$REPERF" bundle mini --dry-run --json
is "$(value .command)/$(value .missing[])" "bundle-dry-run/" "lacks nothing"
foreseen=$(value .bytes)
exits 0 "bundle" "$REPERF" bundle mini -o "$T/bundle.tar"
whole=$(tar -tvf "$T/bundle.tar" | awk '{n += $3} END {print n}')
ok "$((whole - foreseen < 0 || whole - foreseen > 400000))" "its bytes were foreseen, but for its own lists"

# ---- data outside the store
mkdir -p "$T/data" && cp -R "$T/a/mini" "$T/data/" && cp -R "$T/b/mini/lab" "$T/data/mini/" && cp "$WWW/README" "$T/data/mini/"
documents noun-output 0 "a folder of one's own, by the list of the store" verify "$T/data" --as mini --json
is "$(value '.items[0].files')/$(value '.items[0].verdict')" 61/partly "every file; that the list is right is not known"
exits 0 "the folder that all paths begin with" verify "$T/data/mini" --as mini --json
is "$(value '.items[0].files')" 61 "is the same data"
printf X | dd of="$T/data/mini/img/3.txt" conv=notrunc status=none
rm "$T/data/mini/lab/4.txt"
documents noun-output 5 "damaged" verify "$T/data/mini" --as mini --json
is "$(value '.items[0].faults[] | select(.kind == "missing").path')" lab/4.txt "the missing file is named"
is "$(value '.items[0].faults[] | select(.kind == "corrupt") | .expected_sha256 + .found_sha256 + (.found_bytes|tostring)')" \
    "$(sha256sum <"$T/a/mini/img/3.txt" | cut -c1-64)$(sha256sum <"$T/data/mini/img/3.txt" | cut -c1-64)10" "the other with both digests and its size"
prints 5 "$(sha256sum <"$T/data/mini/img/3.txt" | cut -c1-64) +10" "as text" verify "$T/data" --as mini
exits 0 "a folder of archives" verify "$WWW" --as mini --json
is "$(value '.items[0].archives | map(.holds) | tostring')" '[true,true,true]' "holds"
cp -R "$WWW" "$T/www2" && truncate -s 100 "$T/www2/lab.tar"
documents noun-output 5 "one of them truncated" verify "$T/www2" --as mini --json
is "$(value '.items[0].archives[] | select(.holds | not) | .name + (.expected_bytes|tostring) + "/" + (.found_bytes|tostring)')" \
    "lab.tar$(stat -c %s "$WWW/lab.tar")/100" "is named with both sizes"
exits 0 "a single archive" verify "$WWW/lab.tar" --as mini
exits 2 "a file of another name" verify "$WWW/README.txt" --as mini
mkdir "$T/empty"
exits 5 "an empty folder is no such data" verify "$T/empty" --as mini
exits 2 "--as something that is no dataset" verify "$T/empty" --as paddle-perf-2020
mv "$TREE" "$T/tree.away"
exits 5 "without any list an empty folder is none, either" verify "$T/empty" --as mini
cp "$T/a/mini/img/3.txt" "$T/data/mini/img/3.txt" && cp "$T/b/mini/lab/4.txt" "$T/data/mini/lab/4.txt"
exits 0 "and a whole one holds by names and numbers" verify "$T/data" --as mini --json
is "$(value '.items[0].verdict')" partly "which is said to be less"
like "$(value '.items[0].not_checked[]')" 'the bytes of the files: no list' "with the reason"
mv "$T/tree.away" "$TREE"

# ---- a damaged tree
prints 0 'was whole +yes' "repair of what is whole" repair mini
ref=$(find "$REPERF_STORE/refs" -name 'mini*') && cp "$ref" "$T/ref" && echo '{' >"$ref"
fails 3 'reference of mini' "what a damaged reference says is not known to be whole" repair mini
cp "$T/ref" "$ref"
n=$(n_requests)
inode=$(stat -c %i "$TREE/mini/img/7.txt")
rm "$TREE/mini/img/1.txt" && printf X | dd of="$TREE/mini/lab/2.txt" conv=notrunc status=none && echo other >"$TREE/mini/README"
fails 5 '1 missing.*2 corrupt.*reperf data repair mini' "fetch of a damaged tree" "$REPERF" fetch mini
fails 5 'reperf data repair mini$' "verify" verify mini
documents noun-output 0 "repair" repair mini --json
is "$(value '.items[0].files | join(" ")')" "mini/img/1.txt mini/lab/2.txt mini/README" "three files, and no other"
is "$(stat -c %i "$TREE/mini/img/7.txt")/$(n_requests)" "$inode/$n" "the rest was not touched, nobody was asked"
exits 0 "it holds" verify mini --deep
is "$(find "$REPERF_STORE/tmp" -name 'repair*' | wc -l)" 0 "and nothing is left behind"
blob="$REPERF_STORE/blobs/sha256/$(sha256sum <"$WWW/lab.tar" | cut -c1-64)"
chmod u+w "$blob" && printf X | dd of="$blob" bs=1 seek=700 conv=notrunc status=none
rm "$TREE/mini/lab/9.txt"
exits 0 "repair where the archive is damaged, too" repair mini --json
is "$(value '.items[0].bad_archives')/$(value '.items[0].archives | map(select(.from == "network").name) | join(" ")')" 1/lab.tar \
    "fetches that one again"
exits 0 "it holds" verify mini --deep
echo more >"$TREE/mini/extra"
fails 5 '--remove-extra' "a file too many" repair mini
exits 0 "with --remove-extra it is" repair mini --remove-extra
sed -i 1d "$TREE/tree.sha256"
exits 0 "a damaged list" repair mini --json
is "$(value '.items[0].made_anew')" true "has the tree made anew"
chmod -R u+w "$TREE" && rm -rf "$TREE"
exits 0 "no tree at all" repair mini
exits 0 "it holds in the end" verify mini --deep
exits 2 "repair of what is not known" repair nothing
tap_done
