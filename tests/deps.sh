#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs those of the named packages that are missing, by the distribution's own client, and says on stderr, before anything is fetched, which, how
# large that is and how long it takes: stdout is the caller's, as in C=$(make -s cluster-up). Services of what is installed (sshd, nginx, docker, Slurm)
# are not started: while packages are set up, policy-rc.d denies it; the file that was there is put back, also after a failure, and by the next
# run if this one is killed with -9.
set -eu
# shellcheck disable=SC2016
installed=" $(dpkg-query -W -f='${db:Status-Abbrev} ${Package}\n' "$@" 2>/dev/null | awk '$1 == "ii" { printf "%s ", $2 }')"
missing=()
for package in "$@"; do
    case $installed in *" $package "*) ;; *) missing+=("$package") ;; esac
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
policy=${POLICY_RC_D:-/usr/sbin/policy-rc.d} kept=${POLICY_RC_D:-/usr/sbin/policy-rc.d}.before-reperf
ours='exit 101 # no service is started while reperf installs packages'
allow_services() {
    grep -qsxF "$ours" "$policy" || return 0
    "${as_root[@]}" rm -f "$policy"
    [ ! -e "$kept" ] || "${as_root[@]}" mv "$kept" "$policy"
}
deny_services() {
    allow_services # of a run that was killed
    [ ! -e "$policy" ] || "${as_root[@]}" mv "$policy" "$kept"
    printf '#!/bin/sh\n%s\n' "$ours" | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
}
size_and_time() { # from what apt-get would do
    awk '
        function bytes(n, unit) { gsub(",", "", n); return n * (unit == "kB" ? 1e3 : unit == "MB" ? 1e6 : unit == "GB" ? 1e9 : 1) }
        / newly installed/ { for (i = 2; i < NF; i++) if ($(i + 1) == "newly") n = $i }
        /^Need to get / { unit = $5; sub(/\/.*/, "", unit); got = bytes($4, unit); is_known = 1 } # "350 MB/476 MB": the rest was fetched before
        /^After this operation/ { disk = bytes($4, $5) }
        # 300 packages a minute are set up; a link of 100 Mbit/s.
        END { if (is_known) printf "%d packages: %.0f MB to fetch, %.0f MB on disk; about %.0f minutes\n", n, got / 1e6, disk / 1e6, 0.5 + n / 300 + got / 12.5e6 / 60 }'
}
install() {
    "${as_root[@]}" apt-get update -q &&
        { LC_ALL=C "${as_root[@]}" apt-get install -q --no-install-recommends --assume-no "${missing[@]}" </dev/null || true; } >"$log.plan" 2>&1 &&
        size_and_time <"$log.plan" >&3 && deny_services &&
        "${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}"
}
exec 9<"$(dirname "$policy")" && flock 9 # one at a time
trap allow_services EXIT
trap 'exit 143' INT TERM HUP
status=0
install 3>&2 >"$log" 2>&1 || status=$?
if [ "$status" -ne 0 ]; then
    tail -n 20 "$log" >&2
    echo "installing failed; the whole output is in $log" >&2
fi
exit "$status"
