#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: cmd
# What `make install` installs works from there, and `make uninstall` removes all of it. The packages that `make` itself installs on a bare machine.
. "$(dirname "$0")/../tap_lib.sh"
to="$T/a folder"
mode=$(basename "$B")
exits 0 "make install" make -s MODE="$mode" DESTDIR="$to" PREFIX=/opt/reperf install
root="$to/opt/reperf"
like "$(cd / && "$root/bin/reperf" --version)" '^reperf [0-9.]+$' "the installed program starts"
is "$(cd / && "$root/bin/reperf" list reports --ids)" "$("$REPERF" list reports --ids)" "and finds its manifests"
(cd / && "$root/bin/reperf" audit --all --json) >"$T/installed" 2>/dev/null
"$REPERF" audit --all --json >"$T/here" 2>/dev/null
ok "$([ -s "$T/here" ] && cmp -s "$T/installed" "$T/here"; echo $?)" "and audits as it does here"
cmp -s "$root/share/man/man1/reperf.1" orchestrator/man/reperf.1
ok $? "the man page is there"
bash -n "$root/share/bash-completion/completions/reperf"
ok $? "the completion parses"
[ ! -e "$root/bin/reperf-train" ] || exits 0 "the workload starts" "$root/bin/reperf-train" --help
is "$(cmp "$root/bin/reperf-node" "$B/reperf-node" 2>&1)" "" "what runs on nodes is there, unchanged"
like "$(cd / && REPERF_STATE="$T/state" "$root/bin/reperf" plan paddle-perf-2020 --profile smoke --case 'resnet50/reperf/fp32/n1g1/*')" \
    'resnet50/reperf/fp32/n1g1/bs96' "and a run can be planned"
exits 0 "make uninstall" make -s MODE="$mode" DESTDIR="$to" PREFIX=/opt/reperf uninstall
is "$(find "$to" ! -type d | head -n 5)" "" "leaves no file"

# ---- packages: a fake distribution that has none of them installed ----
tree="$T/a checkout" bin="$T/bin"
mkdir -p "$tree/tests/cluster" "$bin"
cp Makefile "$tree/"
cp tests/deps.sh "$tree/tests/"
printf '#!/bin/sh\necho /folder\n' >"$tree/tests/cluster/up.sh"
printf '#!/bin/sh\nexit 1\n' >"$bin/dpkg-query"
printf '#!/bin/sh\necho "$*" >>"%s/asked"\necho reading lists\n' "$T" >"$bin/apt-get"
printf '#!/bin/sh\nexec "$@"\n' >"$bin/sudo"
chmod +x "$tree/tests/cluster/up.sh" "$bin"/*
asked() { # GOAL...: what the distribution is asked for, of one package of the build and one of the tests
    rm -rf "$tree/build" "$T/asked"
    PATH="$bin:$PATH" make -s -C "$tree" "$@" >"$T/out" 2>"$T/err"
    grep -owE 'libcjson-dev|libcmocka-dev' "$T/asked" | xargs
}
is "$(asked demo)" "libcjson-dev" "make demo installs what the build needs"
is "$(asked deps)" "libcjson-dev libcmocka-dev" "make deps what the tests need, too"
is "$(asked cluster-up)" "libcjson-dev libcmocka-dev" "as does make cluster-up"
is "$(cat "$T/out")" /folder "which prints the folder of the cluster and nothing else"
like "$(cat "$T/err")" '^installing: .*libcmocka-dev' "what is installed is printed on stderr"
tap_done
