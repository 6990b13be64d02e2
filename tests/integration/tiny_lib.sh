#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# A small data folder of the program's own: $T/root with manifests, images and the dataset "tiny", whose archive is $T/www/tree.tar.gz.
# shellcheck disable=SC2154
tiny_dataset() { # N: files in each of its two folders
    local folder i
    mkdir -p "$T/in/tree/a" "$T/in/tree/b" "$T/www" "$T/root/datasets/tiny"
    for folder in manifests images; do ln -s "$ROOT/$folder" "$T/root/$folder"; done
    for i in $(seq "$1"); do head -c $((i * 7001)) /dev/urandom >"$T/in/tree/a/$i.bin" && cp "$T/in/tree/a/$i.bin" "$T/in/tree/b/$i.bin"; done
    tar -C "$T/in" -czf "$T/www/tree.tar.gz" tree
    cat >"$T/root/datasets/tiny/dataset.json" <<J
{"schema_version": 1, "id": "tiny", "title": "test", "synthetic": false, "licence": null, "login": false, "derived_from": null,
 "files": [{"name": "tree.tar.gz", "urls": ["http://127.0.0.1:9/tree.tar.gz"], "bytes": null, "md5": null,
  "sha256": "$(sha256sum <"$T/www/tree.tar.gz" | cut -c1-64)", "unpack": "tar.gz", "nested": false, "into": null, "source": null}],
 "splits": [], "groups": [], "others": true, "list": null, "pack": null, "twin": null, "note": null, "layout_source": null, "source": null}
J
}
# The same with few manifests, for what packs them all: a sweep of its calls is then of each kind, and not of three hundred files.
few_manifests() {
    mkdir -p "$T/few/manifests/formats" "$T/few/images"
    ln -s "$T/root/datasets" "$T/few/datasets"
    cp "$ROOT/manifests/formats/reperf.json" "$T/few/manifests/formats/"
}
