#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# The schemas of manifests/schema are those that the documents' own tables give (`make schemas`). BY_HAND names those whose documents are not written as
# tables yet: it may only become shorter.
# shellcheck source=tests/tap_lib.sh disable=SC1091
. "$(dirname "$0")/../tap_lib.sh"
BY_HAND="bench-kernels bench bundle-output compare-output doctor-output event explain-output format image-output list-output measure-folder-output measure-output nodes-clean-output nodes-copy-output nodes-exec-output noun-output pack-output pack provision-output run-output status store-output tree-output tree unpack-output"
mkdir "$T/written"
exits 0 "the schemas are written" "$B/write_schemas" "$T/written"
for schema in manifests/schema/*.json; do
    name=$(basename "$schema" .json)
    case " $BY_HAND " in
    *" $name "*) [ ! -e "$T/written/$name.json" ] || ok 1 "$name: has a table, and is not in BY_HAND" ;;
    *) ok "$(cmp -s "$schema" "$T/written/$name.json"; echo $?)" "$name is what its table gives" ;;
    esac
done
for written in "$T"/written/*.json; do
    [ -e "manifests/schema/${written##*/}" ] || ok 1 "${written##*/}: is in manifests/schema"
done
for name in $BY_HAND; do
    [ -e "manifests/schema/$name.json" ] || ok 1 "$name: is in BY_HAND, and there"
done
tap_done
