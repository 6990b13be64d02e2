# shellcheck shell=sh disable=SC2015
# SPDX-License-Identifier: Apache-2.0
# An engine that keeps an image in a file: $6 the file, $7 the digest. The site makes it, and FILE.sha256, as sha256sum writes it, says that
# it is still what was made.

engine=$1 file=$6 id=$7
command -v "$engine" >/dev/null 2>&1 || { echo "$engine: not found on this node"; exit 127; }
[ -f "$file" ] && [ -f "$file.sha256" ] || { echo "$file and its .sha256 are not there: reperf does not make images for $engine"; exit 1; }
(cd "${file%/*}" && sha256sum -c "${file##*/}.sha256" >/dev/null 2>&1) || { echo "$file is not what its .sha256 says: layer verification failed"; exit 1; }
echo "there $id"
