#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# The CI examples of orchestrator/cmd/README.md, run unchanged in a checkout of their own; the machine's speed is fixed.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016,SC2317
source "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/run_lib.sh disable=SC1091
source "$(dirname "$0")/run_lib.sh"
export PATH="$B:$PATH" HOME="$T/home"
unset XDG_DATA_HOME REPERF_MANIFESTS REPERF_ROOT
DOC="$ROOT/orchestrator/cmd/README.md" C="$T/checkout"
steps() { /usr/bin/python3 "$ROOT/tests/integration/ci_steps.py" "$@"; } # FILE KIND
in_checkout() { (cd "$C" && bash -e -o pipefail "$T/$1") >"$T/out" 2>"$T/err"; } # SCRIPT

mkdir -p "$C" "$HOME" && git init -q "$C"
sed -n "/^## Your own report/,/^## [^Y]/p" "$ROOT/manifests/README.md" | sed -n '/^```sh/,/^```/p' | sed '/^```/d' >"$T/report"
exits 0 "a report of one's own" in_checkout report
for kind in once github gitlab; do
    steps "$DOC" $kind >"$T/$kind" 2>"$T/$kind.left"
    is "$?" 0 "$kind: the example is one"
done
is "$(cat "$T/github.left")" "left out: uses: actions/checkout@v4
left out: sudo apt-get install -y ./tools/reperf.deb
left out: uses: github/codeql-action/upload-sarif@v3" "github: all but this is run"
is "$(cat "$T/gitlab.left")" "left out: apt-get install -y ./tools/reperf.deb" "gitlab: all but this is run"
is "$(sort "$T/once" "$T/github" "$T/gitlab" | grep -c '^ *reperf ')" 8 "all the commands"
sed 's/^        run: reperf audit/        runs: reperf audit/' "$DOC" >"$T/bad.md"
exits 1 "a step that no service knows is seen" steps "$T/bad.md" github

at_rates 10 10.1 9.9 10.05 9.95
exits 0 "once: the accepted state" in_checkout once
github() { # ATTEMPT RATE...
    local attempt=$1
    shift
    at_rates "$@"
    GITHUB_RUN_ID=7 GITHUB_RUN_ATTEMPT=$attempt GITHUB_STEP_SUMMARY="$T/summary-$attempt.md" in_checkout github
}
exits 0 "github: as fast passes" github 1 9.98 10.08 9.9 10.04 9.97
exits 0 "its SARIF is code scanning's" bash -c "cd '$C' && /usr/bin/python3 '$ROOT/tests/integration/check_output.py' sarif reperf.sarif"
is "$(grep -c "^| $CASE |" "$T/summary-1.md")" 1 "its summary has the cell"
fails 1 "$CASE: slower: slower by 10.00 %" "github: slower by a tenth fails" github 2 9 9.1 8.9 9.05 8.95
fails 1 "$CASE: undecided: .*too few repeats to tell" "github: what varies too much fails" github 3 10 13 8 9 11
at_rates 10 10.1 9.9 10.05 9.95
CI_JOB_ID=1 exits 0 "gitlab: as fast passes" in_checkout gitlab
is "$(jq -r .gate.outcome "$C/compare.json") $(xmllint --xpath 'string(/testsuites/@failures)' "$C/reperf.xml")" "within 0" "with its reports"
at_rates 9 9.1 8.9 9.05 8.95
CI_JOB_ID=2 exits 1 "gitlab: slower fails" in_checkout gitlab
sed -i 's/"1025"/"1100"/' "$C/manifests/reports/my-report.json"
exits 1 "github: a number that does not follow fails" github 4 10 10 10 10 10
is "$(jq -r '.runs[0].results[] | select(.ruleId == "cell-differs").locations[0].physicalLocation.artifactLocation.uri' "$C/reperf.sarif")" manifests/reports/my-report.json "and is a place in the checkout"
tap_done
