#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# fetch, verify and lock of sources against git's own servers: git daemon, and git http-backend behind nginx, in both versions of the
# protocol, dumb HTTP, a login, a moved branch, submodules, and everything that is no commit.
# shellcheck source=tests/tap_lib.sh disable=SC1091,SC2016,SC2317
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/nginx_lib.sh disable=SC1091
. "$ROOT/tests/integration/nginx_lib.sh"
export REPERF_STORE="$T/store" no_proxy='*'
export HOME=/nonexistent GIT_CONFIG_GLOBAL=/dev/null
pids=()
cleanup() {
    chmod -R u+w "$T"
    [ "${#pids[@]}" -eq 0 ] || { kill "${pids[@]}"; wait "${pids[@]}"; } 2>/dev/null
    rm -rf "$T"
}
trap cleanup EXIT
L="$T/locks"
mkdir -p "$L"
fetch() { "$REPERF" fetch --locks "$L" "$@"; }
lock() { "$REPERF" lock --locks "$L" "$@"; }
verify() { "$REPERF" verify --locks "$L" "$@"; }
fresh() { rm -rf "$REPERF_STORE"; }

# --- repositories: deep has a submodule, mid has it and is one of top by a relative address
R="$T/repos"
mkdir -p "$R"
work() { # NAME
    git init -q -b main "$T/work-$1"
    echo "$1" >"$T/work-$1/file.txt"
    git -C "$T/work-$1" add . && git -C "$T/work-$1" commit -qm "$1"
}
publish() { # NAME
    rm -rf "$R/$1.git"
    git clone -q --bare "$T/work-$1" "$R/$1.git"
    git -C "$R/$1.git" update-server-info
}
for name in deep mid top; do work "$name"; done
publish deep
sub() { # NAME SUB: by ../SUB.git; cloned from the folder beside, because there is no server yet
    git -C "$T/work-$1" -c protocol.file.allow=always submodule --quiet add "$R/$2.git" "lib/$2" 2>/dev/null
    git -C "$T/work-$1" config -f .gitmodules "submodule.lib/$2.url" "../$2.git"
    git -C "$T/work-$1" add . && git -C "$T/work-$1" commit -qm "submodule $2"
}
sub mid deep
publish mid
sub top mid
old=$(git -C "$T/work-top" rev-parse HEAD)
old_tree=$(git -C "$T/work-top" rev-parse 'HEAD^{tree}')
git -C "$T/work-top" tag -a -m tag v1
echo more >>"$T/work-top/file.txt"
git -C "$T/work-top" commit -qam more
tip=$(git -C "$T/work-top" rev-parse HEAD)
tag=$(git -C "$T/work-top" rev-parse v1)
publish top
git clone -q --bare "$T/work-deep" "$R/alone.git"

# --- servers
port=$(free_port)
/usr/lib/git-core/git-daemon --reuseaddr --listen=127.0.0.1 --port="$port" --export-all --base-path="$R" "$R" 2>"$T/daemon.log" &
pids+=($!)
served $! "git daemon" port_answers "$port"
web=$(free_port)
mkdir -p "$T/nginx"
printf 'user:%s\n' "$(openssl passwd -apr1 secret)" >"$T/nginx/users"
backend() { echo "location /$1/ { $2 $(git_by_nginx "$T/cgi.sock" "$R" "\$path" "${@:3}") }"; } # PREFIX MORE [PROTOCOL]
nginx_conf <<NGINX
    map \$uri \$path { ~^/[a-z0-9]+(/.*)\$ \$1; }
    server {
        listen 127.0.0.1:$web;
$(backend v2 "")
$(backend v0 "" '""')
$(backend private 'auth_basic "private"; auth_basic_user_file '"$T/nginx/users;")
        location /dumb/ { alias $R/; }
        location /broken/ { return 503; }
    }
NGINX
git_serve "$web"
D="git://127.0.0.1:$port" H="http://127.0.0.1:$web"

# --- each server gives the same: the old commit, which is no branch's head, with its submodules
servers=("$D" "$H/v2" "$H/v0" "$H/dumb")
for u in "${servers[@]}"; do
    fresh
    documents noun-output 0 "$u: an old commit" fetch --json "source:$u/top.git@$old"
    is "$(value "$T/document" 'd["items"][0]["tree"]')" "$old_tree" "$u: its tree"
    is "$(value "$T/document" '[(s["path"], s["url"].rsplit("/", 1)[1]) for s in d["items"][0]["submodules"]]')" \
        "[('lib/mid', 'mid.git'), ('lib/mid/lib/deep', 'deep.git')]" "$u: submodules of submodules, by relative addresses"
    is "$(value "$T/document" 'd["items"][0]["fetched"]')" 3 "$u: three repositories were fetched"
    documents noun-output 0 "$u: again, from the store" fetch --offline --json "source:$u/top.git@$old"
    is "$(value "$T/document" 'd["items"][0]["fetched"]')" 0 "$u: nothing was fetched again"
    exits 0 "$u: every object is right" verify "source:$u/top.git@$old"
done
like "$(cat "$T/nginx/access.log")" 'POST /v0/top.git/git-upload-pack' "http-backend was really asked"
# A tree that git itself would never write: whatever the transport, it does not get into the store.
git init -q "$T/work-evil"
echo x >"$T/work-evil/x" && git -C "$T/work-evil" add x
blob=$(git -C "$T/work-evil" rev-parse :x)
tree=$(/usr/bin/python3 -c 'import sys; sys.stdout.buffer.write(b"100644 .git\0" + bytes.fromhex(sys.argv[1]))' "$blob" | git -C "$T/work-evil" hash-object -t tree -w --stdin --literally)
evil=$(git -C "$T/work-evil" commit-tree -m evil "$tree" </dev/null)
git -C "$T/work-evil" update-ref refs/heads/main "$evil"
git -C "$T/work-evil" symbolic-ref HEAD refs/heads/main
cp -R "$T/work-evil/.git" "$R/evil.git"
git -C "$R/evil.git" config core.bare true
git -C "$R/evil.git" update-server-info
for u in "$D" "$H/v2" "$H/v0" "$H/dumb" "file://$R"; do
    fresh
    fetch "source:$u/evil.git@$evil" >"$T/out" 2>"$T/err"
    got=$?
    ok "$([ "$got" = 4 ] || [ "$got" = 5 ]; echo $?)" "$u: a tree with a file .git is refused ($got)"
    like "$(cat "$T/err")" "hasDotgit|contains '.git'" "$u: for that"
    exits 2 "$u: and is not in the store" verify "source:$u/evil.git@$evil"
done
# git's check stands between each fetch and the reference that says the commit is here.
mkdir "$T/bin"
printf '#!/bin/sh\necho "$@" >>%s\nexec %s "$@"\n' "$T/git.log" "$(command -v git)" >"$T/bin/git"
chmod +x "$T/bin/git"
for u in "$D" "$H/v2" "$H/v0" "$H/dumb" "file://$R"; do
    fresh
    rm -f "$T/git.log"
    PATH="$T/bin:$PATH" fetch "source:$u/top.git@$old" >"$T/out" 2>"$T/err"
    is "$(grep -oE ' (fetch --quiet|fsck --full --strict|update-ref) ' "$T/git.log" | uniq | awk '{printf "%s ", $1}')" \
        "fetch fsck update-ref fetch fsck update-ref fetch fsck update-ref " "$u: each of the three repositories is checked after its fetch"
done
fresh
fetch "source:$H/v2/top.git@$tip" >/dev/null 2>&1
is "$(git -C "$REPERF_STORE"/sources/*top*.git rev-list --count "$tip")" 1 "v2: one commit deep"
fresh
fetch "source:$H/v0/top.git@$old" >"$T/out" 2>"$T/err"
like "$(cat "$T/err")" 'does not serve single commits' "v0 refuses a commit by its id: the branches are fetched, and it is said"

# --- not a commit, or missing
fresh
none=0123456789abcdef0123456789abcdef01234567
for u in "$D" "$H/v2" "$H/v0"; do
    fails 4 'has no commit' "$u: a commit that is not there" fetch "source:$u/top.git@$none"
    fails 3 'is a tag, not a commit' "$u: a tag's id" fetch "source:$u/top.git@$tag"
    exits 4 "$u: no such repository" fetch "source:$u/none.git@$old"
done
fails 2 'cut short' "a short id" fetch "source:$D/top.git@${old:0:12}"
fails 2 'probably https://github.com/PaddlePaddle/models.git' "the address of a page" fetch "source:https://github.com/PaddlePaddle/models/tree/release/1.8@$old"
omits 2 secret "a password in the address, and it is not repeated" fetch "source:http://user:secret@127.0.0.1:$web/private/top.git@$old"
fails 5 'without a login' "a repository behind a login" fetch "source:$H/private/top.git@$old"
exits 4 "a server that is out of order" fetch "source:$H/broken/top.git@$old"
exits 4 "a server that is not there" fetch "source:git://127.0.0.1:1/top.git@$old"
exits 4 "offline" fetch --offline "source:$D/top.git@$old"
exits 2 "verify of what the store does not have" verify "source:$D/top.git@$old"
ok "$([ -z "$(ls "$REPERF_STORE/tmp")" ]; echo $?)" "no temporary files are left"

# --- locks
fails 3 'reperf data lock source:' "a branch cannot be fetched" fetch "source:$D/top.git@main"
documents noun-output 0 "lock of a branch" lock --json "source:$D/top.git@main"
is "$(value "$T/document" 'd["items"][0]["commit"], d["items"][0]["new"]')" "('$tip', True)" "the commit that it was at"
lock_file=$(find "$L" -name '*.json')
valid lock "the lock is valid" "$lock_file"
exits 0 "now the branch can be fetched" fetch --offline "source:$D/top.git@main"
documents noun-output 0 "and locked again" lock --json "source:$D/top.git@main"
is "$(value "$T/document" 'd["items"][0]["new"]')" False "nothing was new"
echo moved >>"$T/work-top/file.txt"
git -C "$T/work-top" commit -qam moved
publish top
exits 5 "the branch has moved: lock says so" lock "source:$D/top.git@main"
documents noun-output 0 "fetch still gives the locked commit" fetch --json "source:$D/top.git@main"
is "$(value "$T/document" 'd["items"][0]["commit"]')" "$tip" "which is the old one"
documents noun-output 0 "a tag is locked at its commit" lock --json "source:$D/top.git@v1"
is "$(value "$T/document" 'd["items"][0]["commit"]')" "$old" "not at the tag's own id"
exits 4 "a branch that is not there" lock "source:$D/top.git@none"
exits 0 "lock of a commit" lock "source:$D/top.git@$old"
exits 0 "verify holds against it" verify "source:$D/top.git@$old"
for f in "$L"/source/*"$old"*; do sed -i "s/$old_tree/$none/" "$f"; done
exits 5 "another tree in the lock" verify "source:$D/top.git@$old"
rm -rf "$L" && mkdir "$L"

# --- a mirror: a folder of what another store has; and of another repository's name, which git's ids give away
fresh
fetch "source:$D/top.git@$old" >/dev/null 2>&1
mkdir "$T/mirror"
cp -R "$REPERF_STORE/sources" "$T/mirror/sources"
fresh
exits 0 "from a mirror, with no network" fetch --offline --mirror "$T/mirror" "source:$D/top.git@$old"
exits 0 "every object is right" verify "source:$D/top.git@$old"
fresh
for repo in "$T/mirror/sources"/*top*.git; do
    rm -rf "$repo"
    cp -R "$R/alone.git" "$repo"
done
exits 4 "a mirror with another repository under that name" fetch --offline --mirror "$T/mirror" "source:$D/top.git@$old"
exits 0 "then the address itself is asked" fetch --mirror "$T/mirror" "source:$D/top.git@$old"

# --- a part of a commit, under the commit's own id; a repository that lacks a blob gives the rest, and a server without filters all
git init -q -b main "$T/work-mono"
mkdir -p "$T/work-mono"/{a/b,docs}
for f in a/one a/b/two docs/picture top; do echo "$f" >"$T/work-mono/$f"; done
git -C "$T/work-mono" add . && git -C "$T/work-mono" commit -qm mono
mono=$(git -C "$T/work-mono" rev-parse HEAD)
publish mono
lost=$(git -C "$R/mono.git" rev-parse "$mono:docs/picture")
in_test_all "parts of commits from a server of protocol 0 and a dumb one" || servers=("$D" "$H/v2")
for u in "${servers[@]}"; do
    fresh
    documents noun-output 0 "$u: a part" fetch --json "source:$u/mono.git@$mono:top,a"
    is "$(value "$T/document" '[d["items"][0]["selection"][k] for k in ("paths", "files", "left_out")], d["items"][0]["commit"]')" "([['a', 'top'], 3, 1], '$mono')" "$u: what it is, and how much is left out"
    exits 0 "$u: it is verified" verify "source:$u/mono.git@$mono:a,top"
    exits 2 "$u: of another part nothing is said" verify "source:$u/mono.git@$mono:docs"
done
git -C "$R/mono.git" config uploadpack.allowFilter true
git -C "$R/mono.git" unpack-objects -q < <(cat "$R"/mono.git/objects/pack/*.pack 2>/dev/null) 2>/dev/null
rm -f "$R/mono.git/objects/${lost:0:2}/${lost:2}"
for u in "$D" "$H/v2"; do
    fresh
    exits 4 "$u lacks a blob: there is no whole commit" fetch "source:$u/mono.git@$mono"
    exits 4 "$u: no part with that blob" fetch "source:$u/mono.git@$mono:docs,top"
    exits 0 "$u: a part without it" fetch "source:$u/mono.git@$mono:a,top"
    exits 0 "$u: verified, too" verify "source:$u/mono.git@$mono:a,top"
    is "$(git -C "$(dirname "$(dirname "$(dirname "$(echo "$REPERF_STORE"/sources/*/refs/reperf/"$mono")")")")" rev-list --objects --missing=print "$mono" | grep '^?')" "?$lost" "$u: of it just that blob is not here"
done
exits 3 "a path that the commit has not" fetch "source:$D/mono.git@$mono:b"
exits 2 "a path twice" fetch "source:$D/mono.git@$mono:a,a/b"
fresh
documents noun-output 0 "a part of a branch is locked" lock --json "source:$D/mono.git@main:a/b"
lock_file=$(find "$L" -name '*a%2Fb.json')
valid lock "its lock is valid" "$lock_file"
is "$(jq -c '[.items[0].paths, .items[0].commit, .files]' "$lock_file")" "[\"a/b\",\"$mono\",1]" "and says what was taken"
sed -i "s/$(jq -r '.items[0].selection' "$lock_file")/$none/" "$lock_file"
exits 5 "another part in the lock" verify "source:$D/mono.git@main:a/b"
rm -rf "$L" && mkdir "$L"
mkdir -p "$T/mono-mirror/sources"
name=$(basename "$REPERF_STORE"/sources/*mono*)
cp -R "$R/mono.git" "$T/mono-mirror/sources/${name%.*.git}.git"
git -C "$T/mono-mirror/sources/${name%.*.git}.git" config --unset uploadpack.allowFilter
fresh
exits 4 "the mirror has no whole commit" fetch --offline --mirror "$T/mono-mirror" "source:$D/mono.git@$mono"
exits 0 "but the part" fetch --offline --mirror "$T/mono-mirror" "source:$D/mono.git@$mono:a,top"
exits 4 "and not what needs the blob" fetch --offline --mirror "$T/mono-mirror" "source:$D/mono.git@$mono:docs"
fresh
fetch "source:$D/top.git@$old" >/dev/null 2>&1

# --- damage in the store
for pack in "$REPERF_STORE"/sources/*top*.git/objects/pack/*.pack "$REPERF_STORE"/sources/*top*.git/objects/[0-9a-f][0-9a-f]/*; do
    [ -f "$pack" ] || continue
    chmod u+w "$pack"
    printf 'XX' | dd of="$pack" bs=1 seek=$(($(stat -c %s "$pack") / 2)) conv=notrunc 2>/dev/null
done
exits 5 "a damaged object is seen" verify "source:$D/top.git@$old"

# --- a submodule that is gone, or that no .gitmodules explains
fresh
mv "$R/deep.git" "$T/deep.away"
fails 4 'submodule lib/mid/lib/deep' "a submodule that is gone" fetch "source:$D/top.git@$old"
mv "$T/deep.away" "$R/deep.git"
exits 0 "when it is back, the rest is fetched" fetch "source:$D/top.git@$old"
git -C "$T/work-top" rm -q --cached .gitmodules
git -C "$T/work-top" commit -qm "no .gitmodules"
publish top
for repo in "$REPERF_STORE"/sources/*top*.git; do touch "$repo/shallow.lock" "$repo/refs/reperf/$old.lock"; done # of a git that a power cut ended
warns 0 '.gitmodules does not say' "a submodule without an address stays an empty folder, as git leaves it" fetch --json "source:$D/top.git@$(git -C "$T/work-top" rev-parse HEAD)"
valid noun-output "its document, too"

# --- what a repository could do: hooks, configuration, another helper's address
git init -q -b main "$T/work-evil"
printf '[submodule "x"]\n\tpath = x\n\turl = ext::sh -c touch%% %s/pwned\n' "$T" >"$T/work-evil/.gitmodules"
git -C "$T/work-evil" add . && git -C "$T/work-evil" update-index --add --cacheinfo "160000,$old,x" && git -C "$T/work-evil" commit -qm evil
publish evil
exits 2 "a submodule whose address is a command" fetch "source:$D/evil.git@$(git -C "$T/work-evil" rev-parse HEAD)"
ok "$([ ! -e "$T/pwned" ]; echo $?)" "it was not run"
for address in "file://$R/deep.git" "FILE://$R/deep.git"; do
    printf '[submodule "x"]\n\tpath = x\n\turl = %s\n' "$address" >"$T/work-evil/.gitmodules"
    git -C "$T/work-evil" add .gitmodules && git -C "$T/work-evil" update-index --add --cacheinfo "160000,$old,x" && git -C "$T/work-evil" commit -qm "$address"
    publish evil
    fresh
    fails 5 "is on this machine, but its repository's is not" "a submodule of a repository from the network that lies on this machine, which is said" fetch "source:$D/evil.git@$(git -C "$T/work-evil" rev-parse HEAD)"
done
tap_done
