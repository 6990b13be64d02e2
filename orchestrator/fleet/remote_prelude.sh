# shellcheck shell=sh disable=SC2034
# SPDX-License-Identifier: Apache-2.0
# Sets w to the work folder, as $1 or the default, and $@ to the folders in which the program may lie, the first that lets programs run has
# it; sum FILE prints its SHA-256. Those outside the work folder must be ours alone: others may write where they are.

LC_ALL=C; export LC_ALL
w=$1 sum=$2 word=$3
if [ -z "$w" ]; then
  if [ -z "$XDG_STATE_HOME$HOME" ]; then echo 'HOME is not set there'; exit 74; fi
  w=${XDG_STATE_HOME:-$HOME/.local/state}/reperf
fi
name=reperf-node-$sum uid=$(id -u 2>/dev/null)
set -- "$w/bin" ${HOME:+"$HOME/.cache/reperf"} ${XDG_RUNTIME_DIR:+"$XDG_RUNTIME_DIR/reperf"} "/var/tmp/reperf-$uid" "/dev/shm/reperf-$uid"
is_ours() { [ "$1" = "$w/bin" ] || { [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ]; }; }
sum() {
  if command -v sha256sum >/dev/null 2>&1; then r=$(sha256sum <"$1")
  elif command -v openssl >/dev/null 2>&1; then r=$(openssl dgst -sha256 -r <"$1")
  elif command -v busybox >/dev/null 2>&1; then r=$(busybox sha256sum <"$1")
  else
    [ -z "${came-}" ] || rm -f "$came"
    echo 'the node has nothing that computes SHA-256 to check it with: install coreutils, openssl or busybox'; exit 74
  fi
  [ "${r%% *}" = "$sum" ]
}
runs() { "$1" --version >/dev/null 2>&1; }
