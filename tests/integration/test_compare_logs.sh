#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# `compare` of logs: of two, of a log and a run; rate, ratio, interval by batch means, facts that differ, the gate. One repeat has no spread.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016
source "$(dirname "$0")/../tap_lib.sh"
cd "$T" || exit 1
cat >make.py <<'PY'
import random, sys # SEED RATE STEPS [SPREAD [CORRELATION]]
random.seed(int(sys.argv[1]))
rate, n = float(sys.argv[2]), int(sys.argv[3])
spread, rho = [float(x) for x in (sys.argv[4:] + ["0.02", "0"])[:2]] if len(sys.argv) > 4 else (0.02, 0)
at = 0
for step in range(1, n + 1):
    at = rho * at + (1 - rho * rho) ** 0.5 * random.gauss(0, spread)
    print("step %d/%d | loss %.3f | %.2f samples/s" % (step, n, 2 - step / n, rate * (1 + at)))
PY
for log in "a 1 100 400" "b 2 90 400" "c 3 100 400" "short 4 100 8"; do
    read -r name seed rate n <<<"$log"
    /usr/bin/python3 make.py "$seed" "$rate" "$n" >"$name.log"
done
"$REPERF" measure a.log --suggest mine.json >/dev/null 2>&1
fails 9 'a.log: no_metric: .*reperf measure LOG --suggest' "logs of no known format" "$REPERF" compare a.log b.log
answers 0 '"\(.a.log) \(.b.format) \(.a.steps) \(.cells | length)"' "a.log mine 400 1" "two logs are one row" "$REPERF" compare a.log b.log --format mine.json --json
is "$(jq '.cells[0] | .rel_diff < -0.09 and .rel_diff > -0.11 and .ci95_low < .rel_diff and .ci95_high > .rel_diff and .ci95_high < -0.08' "$T/out")" true "the ratio and its interval"
is "$(jq -r .a.sha256 "$T/out")" "$(sha256sum <a.log | cut -d' ' -f1)" "by their digests"
prints 0 'from 10 means of batches of its steps, since steps that follow each other are not independent' "in text" "$REPERF" compare a.log b.log --format mine.json
is "$(grep -c 'verdict A' "$T/out")" 0 "nothing was judged"
fails 1 'mine: slower: slower by .*from 10 and 10 batches of steps' "--fail-slower 5%: slower by 10 %" "$REPERF" compare a.log b.log --format mine.json --fail-slower 5%
exits 0 "faster is not slower" "$REPERF" compare b.log a.log --format mine.json --fail-slower 5%
exits 0 "equal ones pass" "$REPERF" compare a.log c.log --format mine.json --fail-slower 5%
prints 0 'too few steps +10 and 1' "a short log" "$REPERF" compare a.log short.log --format mine.json
exits 1 "and leaves the gate undecided" "$REPERF" compare a.log short.log --format mine.json --fail-slower 5%
exits 0 "--markdown" "$REPERF" compare a.log b.log --format mine.json --markdown m.md

# Steps of a log that hang together: intervals of equal logs hold 0 nearly as often as they say; those of the steps alone do not
cat >hold.py <<'PY'
import json, os, subprocess, sys
reperf, n, held = sys.argv[1], 40, 0
for i in range(n):
    for side in (0, 1):
        with open("x%d.log" % side, "w") as f:
            subprocess.run([sys.executable, "make.py", str(1000 + 2 * i + side), "100", "600", "0.05", "0.7"], stdout=f, check=True)
    d = json.loads(subprocess.run([reperf, "compare", "x0.log", "x1.log", "-f", "mine.json", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    c = d["cells"][0]
    held += c["ci95_low"] <= 0 <= c["ci95_high"]
print(held)
PY
H=$(/usr/bin/python3 hold.py "$REPERF")
is "$([ "$H" -ge 34 ] && echo enough)" enough "40 pairs of equal logs of correlated steps: $H intervals hold 0"

# Times: less is faster
sed 's/| [0-9.]* samples/| x samples/; s/samples\/s/s/' a.log >/dev/null
/usr/bin/python3 - <<'PY'
for name, ms in (("slow", 220.0), ("fast", 200.0)):
    with open(name + ".log", "w") as f:
        for step in range(1, 101):
            f.write("step %d/100 | loss 1.5 | step time %.2f ms\n" % (step, ms + step % 3))
PY
"$REPERF" measure fast.log --suggest time.json >/dev/null 2>&1
exits 1 "more time is slower" "$REPERF" compare fast.log slow.log -f time.json --fail-slower 5%
exits 0 "less time is faster" "$REPERF" compare slow.log fast.log -f time.json --fail-slower 5%

# What the logs state
(echo "batch_size: 8"; cat "$ROOT/tests/integration/formats/timm.log") >t1.log
prints 0 '^timm +113' "logs of a known format" "$REPERF" compare t1.log "$ROOT/tests/integration/formats/timm.log"

# A log and a run
exits 0 "a run" "$REPERF" run --name r --repeats 3 --format mine.json -- cat a.log
answers 0 '.cells[0].case' "cat/command/unstated/n1g0/bs0" "a log and a run, by the run's one case" "$REPERF" compare b.log r -f mine.json --json
exits 0 "an archive and a log" "$REPERF" compare "$(find "$T/state/runs" -name '*.tar.zst')" b.log -f mine.json
exits 0 "with one repeat a side" "$REPERF" run --name s1 --repeats 1 --format mine.json -- cat a.log
omits 0 spread "two such runs: no spread is spoken of" "$REPERF" compare s1 s1
exits 0 "another time" "$REPERF" run --name s2 --repeats 1 --format mine.json -- cat a.log
omits 0 incidental "two runs: what can hardly matter is not listed" "$REPERF" compare s1 s2
like "$(cat "$T/out")" 'that can hardly matter: -v' "but counted"
prints 0 'incidental +collected_at' "-v" "$REPERF" compare -v s1 s2
exits 2 "--format of no format" "$REPERF" compare -f none-such a.log b.log
tap_done
