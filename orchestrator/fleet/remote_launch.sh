# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: Apache-2.0
# $3: what machine it is for. A shell takes a program of another machine for a script: it is not even tried.
# remote_prelude.sh stands before it.

m=$(uname -m 2>/dev/null)
if [ "${m:-$word}" != "$word" ]; then
  echo "the node is a $m, reperf-node is for $word: name one for it (REPERF_NODE)"; exit 74
fi
for d; do
  [ -f "$d/$name" ] && is_ours "$d" && sum "$d/$name" && runs "$d/$name" && exec "$d/$name" "$w"
done
exit 75
