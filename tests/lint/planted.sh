#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each check of tests/lint fails where it should: a small tree with one violation of each.
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tree=$(mktemp -d "${TMPDIR:-/tmp}/reperf-planted.XXXXXX") || exit 1
trap 'rm -rf "$tree"' EXIT
n=0 bad=0
seen() { # OUTPUT NAME: the check of that name has failed
    n=$((n + 1))
    if grep -qE "^not ok [0-9]+ - $2" <<<"$1"; then echo "ok $n - $2 fails on what is planted"; else
        echo "not ok $n - $2 fails on what is planted"
        bad=1
    fi
}
cp "$root/Makefile" "$root/.clang-format" "$tree/"
mkdir -p "$tree/orchestrator/base" "$tree/orchestrator/codec" "$tree/orchestrator/man" "$tree/extra" "$tree/tests/x"
cp "$root/orchestrator/base/base.h" "$root/orchestrator/base/banned.h" "$tree/orchestrator/base/"
# A header that includes upwards, has no licence line, does not compile alone and is too long.
{
    printf '#pragma once\n#include "codec/up.h"\nint bad(struct str text);\n'
    yes 'extern int x;' | head -n 250
} >"$tree/orchestrator/base/bad.h"
printf '/* SPDX-License-Identifier: Apache-2.0 */\n#include <openssl/evp.h>\nint up(int a);\nint up(int a)\n{\n    if (a)\n        return 1;\n  return 0;\n}\nint freed(int a)\n{\n    CLEANUP(strbuf) struct strbuf text;\n    return a;\n}\n' \
    >"$tree/orchestrator/codec/up.c"
printf '/* SPDX-License-Identifier: Apache-2.0 */\n' >"$tree/orchestrator/codec/up.h"
# A pure room that would wait, another room's private header, and a name that is taken.
mkdir -p "$tree/orchestrator/report" && printf '/* SPDX-License-Identifier: Apache-2.0 */\n#include "log/parser_impl.h"\n#include "sys/loop.h"\n' >"$tree/orchestrator/report/up.c"
# shellcheck disable=SC2016
printf '#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\nrm $1\nsleep 1 >"$T/out" &\n' >"$tree/tests/x/bad.sh"
mkdir -p "$tree/tests/e2e" && printf '#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\n# Room: attic\n' >"$tree/tests/e2e/test_bad.sh"
printf '.Dd November 21, 2026\n.Dt REPERF 1\n.Os\n.Sh NAME\n.Nm reperf\n.Nd x\n.Bogus\n' >"$tree/orchestrator/man/reperf.1"
echo x >"$tree/extra/file"
{
    printf '%0120d\n\n' 0
    printf '×%.0s' $(seq 120)
    printf '\n%0121d\n' 0
} >"$tree/tests/x/README.md"
git -C "$tree" init -q && git -C "$tree" add -A
printf '/* SPDX-License-Identifier: Apache-2.0 */\n#include "codec/good.h"\nint good(int a)\n{\n    return one(a);\n}\n' >"$tree/orchestrator/codec/good.c"
printf '/* SPDX-License-Identifier: Apache-2.0 */\nint good(int a);\nstatic int one(int a)\n{\n    return a;\n}\n' >"$tree/orchestrator/codec/good.h"
git -C "$tree" add -A
export XDG_CACHE_HOME="$tree/cache" # of what is known to be good
unset TIER
output=$(LINT_ROOT="$tree" "$here/c_checks.sh" 2>&1)
for name in clang-format 'each header compiles alone' 'files of at most' 'lines of at most 120' 'an SPDX line' 'the top level holds' 'what CLEANUP frees has a value' 'no background job opens' shellcheck mandoc clang-tidy; do
    seen "$output" "$name"
done
said() { # OUTPUT TEXT NAME
    n=$((n + 1))
    if grep -qF "$2" <<<"$1"; then echo "ok $n - $3"; else
        echo "not ok $n - $3"
        bad=1
    fi
}
# Files remembered as good: never one that failed, or whose header has changed since.
again=$(LINT_ROOT="$tree" "$here/c_checks.sh" 2>&1)
said "$again" "clang-tidy: 3 files, 2 of them not known to be good" "what clang-tidy passed is known"
seen "$again" "clang-tidy"
seen "$again" "shellcheck"
sed -i 's/    return a;/    if (a)\n        return 1;\n    return a;/' "$tree/orchestrator/codec/good.h"
again=$(LINT_ROOT="$tree" "$here/c_checks.sh" 2>&1)
said "$again" "clang-tidy: 3 files, 3 of them not known to be good" "and with another header it is not"
output="$output
$again"
all=$(TIER=all LINT_ROOT="$tree" "$here/c_checks.sh" 2>&1)
said "$all" "shellcheck: 2 scripts, 2 of them not known to be good" "in make test-all nothing is"
# What has not changed since a commit that is written down as good, by the same checks, is not looked at; what has, and what includes it, is.
mkdir "$tree/tests/lint"
git -C "$tree" add -A && git -C "$tree" -c user.name=x -c user.email=x@example.invalid commit -qm x
written="$(git -C "$tree" rev-parse HEAD) $(LINT_ROOT="$tree" "$here/c_checks.sh" --digest)"
since() { XDG_CACHE_HOME=$(mktemp -d "$tree/cache.XXXXXX") LINT_ROOT="$tree" "$here/c_checks.sh" 2>&1; }
LINT_ROOT="$tree" "$here/c_checks.sh" --write >/dev/null 2>&1
said "$([ -e "$tree/tests/lint/baseline" ] || echo nothing)" nothing "where a check fails, nothing is written down"
printf '%s\n' "${written}x" "$written" >"$tree/tests/lint/baseline"
again=$(since)
said "$again" "clang-tidy: 3 files, 0 of them not known to be good" "nothing has changed since the commit that is written down"
said "$again" "shellcheck: 2 scripts, 0 of them not known to be good" "nor a script"
echo 'long good(int a);' >>"$tree/orchestrator/codec/good.h"
again=$(since)
said "$again" "clang-tidy: 3 files, 1 of them not known to be good" "a header has: what includes it is looked at"
seen "$again" "clang-tidy"
echo "${written}x" >"$tree/tests/lint/baseline"
said "$(since)" "clang-tidy: 3 files, 3 of them not known to be good" "written down by other checks: everything is"
echo "0000000000000000000000000000000000000000 ${written#* }" >"$tree/tests/lint/baseline"
said "$(since)" "shellcheck: 2 scripts, 2 of them not known to be good" "a commit that is not here: everything is"
rm -r "$tree/tests/lint"
# A guest that is not reached by its door.
mkdir -p "$tree/orchestrator/cmd" && printf '/* SPDX-License-Identifier: Apache-2.0 */\n#include "lint/lint.h"\n' >"$tree/orchestrator/cmd/guest.c"
output="$output
$(LINT_ROOT="$tree" "$here/layers.sh" 2>&1)"
seen "$output" layers
for line in 'room base may not include "codec/up.h"' '<openssl/evp.h> belongs to' 'room report may not include "sys/loop.h"' '"log/parser_impl.h" is private to log' 'room cmd may not include "lint/lint.h"' \
    'two product files are called up.c' 'orchestrator/report/ has no README.md' 'test_bad.sh: the third line names no room'; do
    said "$output" "$line" "layers says: $line"
done
# A public function that nobody calls, though a comment has its name; a struct of one name in two rooms and one in two files of a room; eight parameters; a format looked up by its name; a log judged; a document with a table written without it; a sync and a temporary name of its own; rules for what is old.
printf '/* lonely(1) */\nint lonely(int a);\nstruct same {\n    int a;\n};\nstruct twin {\n    int a;\n};\n' >"$tree/orchestrator/codec/names.h"
printf 'struct twin {\n    int b;\n};\n' >"$tree/orchestrator/codec/more.h"
printf 'int lonely(int a)\n{\n    return a;\n}\nstruct same {\n    int b;\n};\nstatic const struct json_field ROWS[] = {\n};\nint writes(void)\n{\n    return jw_i64(ROWS);\n}\nint looks(void)\n{\n    return format_find(PARSE_OK) + fsync(1) + mkstemp(T) + (DERIVATION_NOW > 4);\n}\nint wide(int a, int b, int c, int d,\n         int e, int (*f)(int, int), int g, int h)\n{\n    return f(a, b);\n}\n' \
    >"$tree/orchestrator/report/names.c"
git -C "$tree" add -A
names=$(LINT_ROOT="$tree" "$here/names.sh" 2>&1)
for name in 'no public function that only tests use' 'no name of a struct in two files' 'functions of at most 6 parameters' 'look-ups by name only in load, bind and explain' 'verdicts on logs are known to log and judgement alone' \
    'a document that has a table is written by it' 'only base/publish syncs' 'only base/temp makes temporary names' 'one derivation for everything that is judged'; do
    seen "$names" "$name"
done
said "$names" "twin (orchestrator/codec/more.h and orchestrator/codec/names.h)" "nor in two files of one room"
said "$names" "report/names.c:wide has 8" "parameters are counted, not those of a function that is one"
output="$output
$names"
[ "$bad" -eq 0 ] || printf '# %s\n' "${output//$'\n'/$'\n'# }"
echo "1..$n"
exit $bad
