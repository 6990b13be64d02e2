# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Somebody's own report, the example of manifests/README.md, whose one log is committed in $T/made: own_logs, then own_report. Source it after tap_lib.sh.
git() { command git -c init.defaultBranch=main "$@"; }
own_log() { for step in 10 20 30 40; do echo "step $step/40 | loss 0.5 | $((1000 + step)) img/s"; done; }
own_logs() { # its log is standard input; leaves $commit, and in $T/m the format that reperf suggests
    mkdir -p "$T/made/runs/a" "$T/m/reports" "$T/m/formats"
    cat >"$T/made/runs/a/train.log"
    "$REPERF" measure "$T/made/runs/a/train.log" --suggest "$T/m/formats/mine.json" >/dev/null 2>&1
    sed -i '/"proposed": true,/d' "$T/m/formats/mine.json"
    git -C "$T/made" init -q && git -C "$T/made" add . && git -C "$T/made" commit -qm one
    commit=$(git -C "$T/made" rev-parse HEAD)
}
own_report() { # [URL] of the repository
    local url=https://example.org/ours.git
    sed -n "/^cat > manifests.reports/,/^END/p" manifests/README.md | sed '1d;$d' |
        sed "s/0123456789abcdef0123456789abcdef01234567/$commit/; s#$url#${1:-$url}#; s#\"train.log\"#\"runs/a/train.log\"#" >"$T/m/reports/my-report.json"
    export REPERF_MANIFESTS="$T/m"
}
