#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# What nodes, logs, archives and names say is plain text on a terminal: no escape sequence, no C1 control, nothing that changes
# the direction of text. Our own colours are kept.
# shellcheck source=tests/tap_lib.sh
. "$(dirname "$0")/../tap_lib.sh"
cat >"$T/on_terminal.py" <<'EOF'
"""Runs a command on a terminal of its own; what it wrote there to standard output."""
import fcntl, os, pty, struct, subprocess, sys, termios

main, side = pty.openpty()
fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(os.environ.get("WIDTH", "200")), 0, 0))
child = subprocess.Popen(sys.argv[1:], stdin=side, stdout=side, stderr=side if os.environ.get("BOTH") else subprocess.DEVNULL)
os.close(side)
while True:
    try:
        part = os.read(main, 65536)
    except OSError:
        break
    if not part:
        break
    sys.stdout.buffer.write(part)
sys.exit(child.wait())
EOF
cat >"$T/fits.py" <<'EOF'
"""WIDTH WHOLE SHOWN: what is wrong with SHOWN, the text of file WHOLE on a terminal of WIDTH columns."""
import re, sys

width, whole, shown = int(sys.argv[1]), open(sys.argv[2]).read(), open(sys.argv[3]).read()
for line in shown.splitlines():
    if len(line) > width and "$ " not in line and len(line.split()) > 1:
        print("too wide:", line)
plain = re.sub(r"[\s;]", "", shown)
words = {word.rstrip(";") for word in shown.split()}
for word in whole.split():
    word = word.rstrip(";")
    # A word that is longer than its column goes on in the next line.
    parts = [part[:12] for part in re.findall(r"[^-/_,:;=#]+", word)]
    if word not in words and word not in plain and not all(part in plain for part in parts):
        print("dropped:", word)
EOF
on_tty() { /usr/bin/python3 "$T/on_terminal.py" "$@" | tr -d '\r'; }
steers() { # how many bytes of standard input would steer a terminal, beside its own colours
    /usr/bin/python3 -c '
import re, sys
text = re.sub(rb"\x1b\[(0|1|31|32|33|90)m", b"", sys.stdin.buffer.read()).decode("utf-8", "replace")
print(len(re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffd]", text)) if text.strip() else "nothing was written")'
}
EVIL=$(printf 'a\033]0;x\007\033[31mb\302\2331mc\342\200\256d\377e')
say="printf 'a\\033]0;x\\007\\033[31mb\\302\\2331mc\\342\\200\\256d\\377e\\r\\n'"

is "$(on_tty "$REPERF" nodes exec local -- "$say")" 'local: a?]0;x??[31mb??1mc???d?e' "what a node says, on a terminal"
is "$("$REPERF" nodes exec local -- "$say" | od -An -c | tr -d ' \n')" "$( (printf 'local: ' && bash -c "$say") | od -An -c | tr -d ' \n')" "in a pipe it is what it said"
is "$(on_tty "$REPERF" nodes exec local -b -- "$say" | steers)" 0 "gathered"
is "$(on_tty "$REPERF" nodes exec local --json -- "$say" | steers)" 0 "as JSON on a terminal"

# Names of files and numbers of logs.
mkdir "$T/tree" && : >"$T/tree/$EVIL"
is "$(on_tty "$REPERF" tree "$T/tree" | steers)" 0 "tree"
cp tests/integration/formats/torchvision.log "$T/$EVIL.log"
is "$(on_tty "$REPERF" measure "$T/$EVIL.log" | steers)" 0 "measure: its name"
printf 'speed %s 3 samples/s\n%.0s' "$EVIL" 1 2 3 4 5 >"$T/own.log"
is "$(BOTH=1 on_tty "$REPERF" measure "$T/own.log" | steers)" 0 "measure: lines of a log that nothing reads"
is "$(BOTH=1 on_tty "$REPERF" measure "$T/none-$EVIL" | steers)" 0 "an error that names a file"
/usr/bin/python3 - "$T/evil.tar" "$EVIL" <<'EOF'
import io, os, sys, tarfile

with tarfile.open(sys.argv[1], "w", format=tarfile.GNU_FORMAT) as tar:
    tar.addfile(tarfile.TarInfo(os.fsencode(sys.argv[2]).decode("utf-8", "surrogateescape")), io.BytesIO())
EOF
is "$(BOTH=1 on_tty "$REPERF" unpack "$T/evil.tar" "$T/out-tar" | steers)" 0 "unpack: names in an archive"
is "$(BOTH=1 on_tty "$REPERF" nodes exec "no-$EVIL" -- true | steers)" 0 "the name of an inventory"
is "$(BOTH=1 on_tty "$REPERF" status "no-$EVIL" | steers)" 0 "status"
is "$(BOTH=1 on_tty "$REPERF" nodes doctor local | steers)" 0 "doctor"
like "$(BOTH=1 on_tty env -u NO_COLOR "$REPERF" lint airank-mmseg-deeplabv3plus | cat -v)" '^\^\[\[31merror\^\[\[0m ' "our own colours are there"
like "$(BOTH=1 on_tty env -u NO_COLOR "$REPERF" audit airank-mmseg-deeplabv3plus | cat -v)" '\^\[\[32m exact ' "those of an audit, too"
is "$(BOTH=1 on_tty env NO_COLOR=1 "$REPERF" lint airank-mmseg-deeplabv3plus | grep -c $'\033')" 0 "and not with NO_COLOR"
# Tables and lines fit the terminal, and have all words of what a pipe gets.
fits() { # WIDTH COMMAND...
    local width=$1
    shift
    NO_COLOR=1 "$REPERF" "$@" >"$T/whole" 2>"$T/err"
    NO_COLOR=1 WIDTH=$width on_tty "$REPERF" "$@" >"$T/shown"
    is "$(/usr/bin/python3 "$T/fits.py" "$width" "$T/whole" "$T/shown")$([ -s "$T/whole" ] || echo empty)" "" "$width columns: $*"
}
A=(logs/verified/*/*.tar.zst)
for kind in reports cases datasets images formats rules findings inventories; do
    fits 80 list $kind
done
fits 80 audit mlperf-training-1.0
for width in 80 50; do
    fits $width status
    fits $width nodes list v100-4x8
    fits $width audit paddle-perf-deeplabv3p --like-for-like -v
    fits $width compare -v "${A[0]}" "${A[2]}"
    fits $width report "${A[0]}"
    fits $width plan paddle-perf-hrnetw18 --profile full
done
WIDTH=80 on_tty "$REPERF" nodes doctor local >"$T/shown"
is "$(awk 'length > 80' "$T/shown")" "" "80 columns: nodes doctor"
is "$(WIDTH=80 on_tty "$REPERF" list --json | jq -c .)" "$("$REPERF" list --json | jq -c .)" "JSON on a terminal is not folded"
tap_done
