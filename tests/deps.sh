#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs those of the named packages that are missing, by the distribution's own client, and names them on stderr: stdout is the caller's, as in
# C=$(make -s cluster-up).
set -eu
missing=()
for package in "$@"; do
    if ! dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii'; then
        missing+=("$package")
    fi
done
if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi
echo "installing: ${missing[*]}" >&2
if ! command -v apt-get >/dev/null; then
    echo "this machine has no apt-get; please install the packages above by hand" >&2
    exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
log=build/deps.log
if ! { "${as_root[@]}" apt-get update -q && "${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "installing failed; the whole output is in $log" >&2
    exit 1
fi
