# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: Apache-2.0
# $3: a word of this put's own; stdin: the file. What puts that were cut off have left goes after an hour, other versions after a month.
# remote_prelude.sh stands before it.

mkdir -p "$w/bin" || exit 74
came=$w/bin/.reperf-node-$word.$$ tried=''
bad() { rm -f "$came"; exit 74; }
(umask 077; cat >"$came") || bad
sum "$came" || { echo 'it did not come whole'; bad; }
for d; do
  part=$d/.reperf-node-$word.$$
  (umask 077; [ -d "$d" ] || mkdir -p "$d"; is_ours "$d" && { [ "$part" = "$came" ] || cat "$came" >"$part"; }) 2>/dev/null &&
    chmod 700 "$part" && runs "$part" && mv -f "$part" "$d/$name" && {
      rm -f "$came"
      find "$d" \( -name '.reperf-node-*' -mmin +60 -o -name 'reperf-node-*' ! -name "$name" -mtime +30 \) -exec rm -f {} + 2>/dev/null
      exit 0
    }
  [ "$part" = "$came" ] || rm -f "$part"
  tried="$tried $d"
done
echo "no folder lets it run there (tried$tried): name a work folder that is not mounted noexec"
bad
