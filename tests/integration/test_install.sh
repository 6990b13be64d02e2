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
succeeds "the man page is there" cmp -s "$root/share/man/man1/reperf.1" orchestrator/man/reperf.1
succeeds "the completion parses" bash -n "$root/share/bash-completion/completions/reperf"
[ ! -e "$root/bin/reperf-train" ] || exits 0 "the workload starts" "$root/bin/reperf-train" --help
is "$(cmp "$root/bin/reperf-node" "$B/reperf-node" 2>&1)" "" "what runs on nodes is there, unchanged"
like "$(cd / && REPERF_STATE="$T/state" "$root/bin/reperf" plan paddle-perf-2020 --profile smoke --case 'resnet50/reperf/fp32/n1g1/*')" \
    'resnet50/reperf/fp32/n1g1/bs96' "and a run can be planned"
exits 0 "make uninstall" make -s MODE="$mode" DESTDIR="$to" PREFIX=/opt/reperf uninstall
is "$(find "$to" ! -type d | head -n 5)" "" "leaves no file"

# ---- packages: a fake distribution that has none of them installed ----
tree="$T/a checkout" bin="$T/bin"
mkdir -p "$tree/tests/cluster" "$tree/orchestrator/base" "$bin"
cp Makefile "$tree/" && cp orchestrator/base/base.h "$tree/orchestrator/base/"
cp tests/deps.sh "$tree/tests/"
printf '#!/bin/sh\necho /folder\n' >"$tree/tests/cluster/up.sh"
printf '#!/bin/sh\nexit 1\n' >"$bin/dpkg-query"
# It starts a service where it may, as a package's own scripts do, and fails where it is told to.
cat >"$bin/apt-get" <<'END'
#!/bin/sh
echo "$*" >>"$T/asked"
case $* in
update*) echo "reading lists" ;;
*--assume-no*) printf '%s\n' '0 upgraded, 300 newly installed, 0 to remove and 5 not upgraded.' 'Need to get 350 MB/1,476 MB of archives.' 'After this operation, 1893 MB of additional disk space will be used.' ;;
*)
    if [ -e "$POLICY_RC_D" ]; then "$POLICY_RC_D" ssh start; [ $? -ne 101 ] || exit "${APT_STATUS:-0}"; fi
    echo ssh >>"$T/started"
    exit "${APT_STATUS:-0}"
    ;;
esac
END
mkdir "$T/sbin"
export T POLICY_RC_D=$T/sbin/policy-rc.d
printf '#!/bin/sh\nexec "$@"\n' >"$bin/sudo"
chmod +x "$tree/tests/cluster/up.sh" "$bin"/*
asked() { # GOAL...: what the distribution is asked for, of one package of the build and one of the tests
    rm -rf "$tree/build" "$T/asked"
    PATH="$bin:$PATH" make -s -C "$tree" "$@" >"$T/out" 2>"$T/err"
    grep -owE 'libcjson-dev|libcmocka-dev' "$T/asked" | sort -u | xargs
}
is "$(asked demo)" "libcjson-dev" "make demo installs what the build needs"
is "$(asked deps)" "libcjson-dev libcmocka-dev" "make deps what the tests need, too"
is "$(asked cluster-up)" "libcjson-dev libcmocka-dev" "as does make cluster-up"
is "$(cat "$T/out")" /folder "which prints the folder of the cluster and nothing else"
like "$(cat "$T/err")" '^installing: .*libcmocka-dev' "what is installed is printed on stderr"
like "$(cat "$T/err")" '^300 packages: 350 MB to fetch, 1893 MB on disk; about 2 minutes$' "with its size and time"

# ---- no service is started, and who decided that before decides it again ----
policy() { cat "$T/sbin/policy-rc.d" 2>&1; }
is "$(ls "$T/sbin" "$T/started" 2>/dev/null)" "$T/sbin:" "no service was started, and nothing denies it any more"
printf '#!/bin/sh\nexit 0 # mine\n' >"$POLICY_RC_D" && chmod +x "$POLICY_RC_D"
was=$(policy)
asked deps >/dev/null
is "$(policy) $(ls "$T/started" 2>/dev/null)" "$was " "a policy of the machine's own is as before, and no service was started"
APT_STATUS=100 asked deps >/dev/null
is "$(policy) $(grep -c 'installing failed' "$T/err")" "$was 1" "also where installing fails"
# shellcheck disable=SC2016
printf '#!/bin/sh\nkill -9 "$PPID"\nsleep 1\n' >"$bin/chmod" && chmod +x "$bin/chmod"
asked deps >/dev/null
rm "$bin/chmod"
like "$(policy)" 'exit 101' "killed with -9 in the midst of it, the denial stays"
asked deps >/dev/null
is "$(policy) $(find "$T/sbin" -type f | wc -l)" "$was 1" "until the next time"

# ---- a machine without a compiler, and a copy of what was built ----
mkdir "$T/bare"
for program in make bash sh mkdir grep sed cat cut xargs tr nproc dirname cksum awk tee rm mv chmod flock id; do ln -s "$(command -v $program)" "$T/bare/"; done
cp "$bin"/* "$T/bare/"
rm -rf "$tree/build"
(cd "$tree" && PATH=$T/bare make ROOM= demo) >"$T/out" 2>&1
like "$(head -n 1 "$T/out")" '^installing: gcc ' "the first line on a bare machine says what is installed"
mkdir -p "$T/one/orchestrator/base" && cp Makefile "$T/one/" && cp -r orchestrator/base "$T/one/orchestrator/"
exits 0 "one file is compiled" make -C "$T/one" CCACHE= build/release/orchestrator/base/str.c.o
cp -a "$T/one" "$T/other"
is "$(make -C "$T/other" CCACHE= build/release/orchestrator/base/str.c.o | grep -c '^CC')" 0 "and is not in a copy"
tap_done
