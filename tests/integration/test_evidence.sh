#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: evidence
# Evidence: keys, seal, verify; confirmed with only sha256sum, openssl, tar and zstd; hostile archives made by other tools; kill and ^C.
# shellcheck source=tests/tap_lib.sh disable=SC2119
. "$(dirname "$0")/../tap_lib.sh"

# shellcheck source=tests/integration/run_lib.sh
. "$ROOT/tests/integration/run_lib.sh"
# shellcheck source=tests/faults/lib.sh
. "$ROOT/tests/faults/lib.sh"
finished_run() { # FOLDER: what a run leaves to be sealed
    forget_runs
    smoke --repeats 1 >/dev/null 2>&1
    rm -rf "$1"
    mv "$(run_folder)/evidence" "$1"
    rm -f "$1"/SHA256SUMS "$1"/*.dsse.json "$1"/ro-crate-metadata.json
}
printf '#!/bin/sh\nprintf "\\r\\n\\033[0mx\\0y\\n"; cat "%s/noise" 2>/dev/null; exec "%s/fake/train.sh" "$@"\n' "$T" "$T" >"$T/noisy.sh"
chmod +x "$T/noisy.sh"
closing_bytes=305

# --- keys ----------------------------------------------------------------------------------------
cd "$T" || exit 1
exits 0 "keygen" "$REPERF" keygen key
is "$(stat -c %a key)" 600 "the private key is for its owner alone"
key_id=$(awk '/^key id/ { print $3 }' "$T/out")
is "$(openssl pkey -pubin -in key.pub -outform DER | sha256sum | cut -d' ' -f1)" "$key_id" "openssl finds the same key id"
is "$(openssl pkey -in key -pubout)" "$(cat key.pub)" "openssl derives the same public key"
exits 2 "keygen does not overwrite a key" "$REPERF" keygen key
"$REPERF" keygen other >/dev/null

# --- seal and verify -----------------------------------------------------------------------------
finished_run run
run_id=$(jq -r .run_id run/result.json)
exits 0 "seal with a key" "$REPERF" seal run --key key
prints 0 "signer +verified: key $key_id" "verify with the public key" "$REPERF" verify run.tar.zst --key key.pub
fails 5 "signer unverified" "verify without a key" "$REPERF" verify run.tar.zst
prints 0 "signer +unverified" "verify --unsigned" "$REPERF" verify run.tar.zst --unsigned
exits 5 "verify with another's key" "$REPERF" verify run.tar.zst --key other.pub
exits 2 "verify of nothing" "$REPERF" verify nowhere.tar.zst
exits 2 "--key with --unsigned" "$REPERF" verify run.tar.zst --key key.pub --unsigned
exits 5 "the private key is not a public one" "$REPERF" verify run.tar.zst --key key
exits 0 "seal without a key" "$REPERF" seal run -o open.tar.zst
exits 5 "an unsigned archive under a key" "$REPERF" verify open.tar.zst --key key.pub
exits 0 "an unsigned archive, asked for" "$REPERF" verify open.tar.zst --unsigned
exits 2 "seal does not replace an archive" "$REPERF" seal run -o open.tar.zst
exits 0 "seal --force does" "$REPERF" seal run -o open.tar.zst --force
chmod 644 other
exits 5 "a private key that others can read is refused" "$REPERF" seal run --key other -o x.tar.zst
exits 5 "verify --json of a failure" "$REPERF" verify run.tar.zst --json
succeeds "its document says what failed" /usr/bin/python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); assert d["holds"] is False and d["error"]["code"] == "auth"' "$T/out"
"$REPERF" verify run.tar.zst --key key.pub --json | /usr/bin/python3 -c 'import json,sys; d=json.load(sys.stdin); assert d["holds"] and d["signer"] == "verified"'
ok $? "the document of a success"
secret=$(sed -n 2p key)
zstd -dcq run.tar.zst | grep -qaF "$secret"
is $? 1 "the private key is not in the archive"

# --- by other tools alone ---------------------------------------------------------------------------
succeeds "zstd -t" zstd -tq run.tar.zst
mkdir unpacked && tar --zstd -xf run.tar.zst -C unpacked 2>tar.err
ok $? "GNU tar unpacks it"
is "$(cat tar.err)" "" "GNU tar has nothing to say"
/usr/bin/python3 - <<'P'
import subprocess, sys, tarfile, io
tar = tarfile.open(fileobj=io.BytesIO(subprocess.run(["zstd", "-dcq", "run.tar.zst"], check=True, capture_output=True).stdout))
members = tar.getmembers()
assert all(m.isreg() and m.mode == 0o644 and m.uid == m.gid == 0 and m.mtime == 315532800 and not m.uname for m in members)
names = [m.name for m in members]
assert names[-3:] == ["SHA256SUMS", "provenance.dsse.json", "statement.dsse.json"] and names[:-3] == sorted(names[:-3])
P
ok $? "python reads it: sorted, one owner, one time"
(cd unpacked && sha256sum --quiet --strict -c SHA256SUMS)
ok $? "sha256sum -c"
is "$(cd unpacked && find . -type f ! -name SHA256SUMS ! -name '*.dsse.json' | wc -l)" "$(wc -l <unpacked/SHA256SUMS)" "SHA256SUMS has every file"
for name in statement provenance; do
    sed 's/.*"payload":"\([^"]*\)".*/\1/' "unpacked/$name.dsse.json" | base64 -d >payload
    sed 's/.*"sig":"\([^"]*\)".*/\1/' "unpacked/$name.dsse.json" | base64 -d >sig
    { printf 'DSSEv1 28 application/vnd.in-toto+json %d ' "$(stat -c %s payload)" && cat payload; } >pae
    openssl pkeyutl -verify -rawin -pubin -inkey key.pub -in pae -sigfile sig >/dev/null 2>&1
    ok $? "openssl confirms $name.dsse.json"
    openssl pkeyutl -verify -rawin -pubin -inkey other.pub -in pae -sigfile sig >/dev/null 2>&1
    is $? 1 "openssl refuses it under another key"
    /usr/bin/python3 - "$name" "$run_id" <<'P'
import hashlib, json, os, sys
s = json.load(open("payload"))
assert s["_type"] == "https://in-toto.io/Statement/v1"
files = sorted(os.path.relpath(os.path.join(d, f), "unpacked") for d, _, fs in os.walk("unpacked") for f in fs if not f.endswith(".dsse.json"))
assert sorted(x["name"] for x in s["subject"]) == files
for x in s["subject"]:
    assert x["digest"]["sha256"] == hashlib.sha256(open("unpacked/" + x["name"], "rb").read()).hexdigest()
p = s["predicate"]
if sys.argv[1] == "statement":
    assert s["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert p["result"] == "WARNED" and p["warnedTests"] == ["resnet50/reperf/fp32/n1g1/bs96"] and p["passedTests"] == []
else:
    assert s["predicateType"] == "https://slsa.dev/provenance/v1"
    assert p["runDetails"]["builder"]["id"] and p["buildDefinition"]["buildType"] and p["runDetails"]["metadata"]["invocationId"] == sys.argv[2]
P
    ok $? "$name: subjects are the archive's files"
done
tail -c $((closing_bytes - 8)) run.tar.zst | head -n 2 >message
head -c -$closing_bytes run.tar.zst | sha256sum | sed 's/^\([0-9a-f]*\).*/reperf-closing 1\nsha256 \1/' | cmp -s - message
ok $? "sha256sum confirms the closing"
tail -c $((closing_bytes - 8)) run.tar.zst | sed -n 's/^signature //p' |
    /usr/bin/python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex(sys.stdin.read()))' >sig
openssl pkeyutl -verify -rawin -pubin -inkey key.pub -in message -sigfile sig >/dev/null 2>&1
ok $? "openssl confirms the closing"
exits 0 "verify of the unpacked folder" "$REPERF" verify unpacked --key key.pub
/usr/bin/python3 - <<'P'
import json, os, urllib.parse
graph = {e["@id"]: e for e in json.load(open("unpacked/ro-crate-metadata.json"))["@graph"]}
def refs(v):
    if isinstance(v, dict):
        yield from ([v["@id"]] if set(v) == {"@id"} else [r for x in v.values() for r in refs(x)])
    elif isinstance(v, list):
        yield from (r for x in v for r in refs(x))
root = graph["./"]
assert graph["ro-crate-metadata.json"]["about"] == {"@id": "./"}
for e in graph.values():
    for r in refs({k: v for k, v in e.items() if k not in ("@id", "conformsTo")}):
        assert r in graph or r.startswith("http"), r
assert {"@id": "https://w3id.org/ro/wfrun/workflow/0.5"} in root["conformsTo"] and root["datePublished"] and root["license"]
for part in root["hasPart"]:
    assert os.path.getsize("unpacked/" + urllib.parse.unquote(part["@id"])) == graph[part["@id"]]["contentSize"]
main = graph[root["mainEntity"]["@id"]]
assert "ComputationalWorkflow" in main["@type"] and main["programmingLanguage"]["@id"] in graph
action = graph[root["mentions"][0]["@id"]]
assert action["@type"] == "CreateAction" and action["instrument"] == root["mainEntity"] and action["result"]
P
ok $? "the RO-Crate hangs together"

# --- hostile archives, made by other tools -----------------------------------------------------------
contain() { # TAR ARCHIVE: as reperf's container, with a closing that holds
    zstd -1 -q -f --no-content-size -c "$1" >"$2"
    local sum
    sum=$(sha256sum <"$2" | cut -d' ' -f1)
    printf '\x5d\x2a\x4d\x18\x29\x01\x00\x00reperf-closing 1\nsha256 %s\nkey %064d\nsignature %0128d\n' "$sum" 0 0 |
        sed -e 's/^key 0*$/key ----------------------------------------------------------------/' \
            -e 's/^signature 0*$/signature --------------------------------------------------------------------------------------------------------------------------------/' >>"$2"
}
zstd -dcq open.tar.zst >good.tar
contain good.tar good.tar.zst
exits 0 "another zstd level in the same container is as good" "$REPERF" verify good.tar.zst --unsigned
mkdir -p above/below && ln -s /etc/passwd link && echo evil >above/evil
tar -cf symlink.tar link run/result.json
tar -P -C above/below -cf dotdot.tar ../evil
tar -cf padded.tar -C run result.json
for name in symlink dotdot padded; do # headers byte by byte: unit/test_tarball.c
    contain "$name.tar" "$name.tar.zst"
    exits 5 "refused: $name" "$REPERF" verify "$name.tar.zst" --unsigned
done
tar -cf run.tar run && zstd -qf run.tar -o plain.tar.zst
exits 5 "an ordinary tar.zst" "$REPERF" verify plain.tar.zst --unsigned
exits 5 "an empty file" "$REPERF" verify /dev/null --unsigned
# 8 GiB of zeros as zstd has them, in one frame without its size: header, window of 512 KiB, 65,536 blocks that repeat one byte 128 Ki times.
/usr/bin/python3 -c '
import sys
blocks = [((1 << 20) | 2 | (n == 65535)).to_bytes(3, "little") + b"\0" for n in range(65536)]
sys.stdout.buffer.write(bytes.fromhex("28b52ffd0048") + b"".join(blocks))' >bomb.zst
is "$(zstd -dc bomb.zst | head -c 10000000 | tr -d '\0' | wc -c)" 0 "a bomb is a frame that zstd reads"
{ cat bomb.zst && tail -c $closing_bytes open.tar.zst; } >bomb.tar.zst
exits 5 "a bomb" timeout 300 "$REPERF" verify bomb.tar.zst --unsigned
rm -f bomb.*

# --- where it is stopped; a full disk, at each size: unit/test_seal.c ------------------------------------------------
base64 /dev/urandom | head -c "$((100 << 20))" >noise
export REPERF_TRAIN="$T/noisy.sh"
finished_run big
"$REPERF" verify run.tar.zst --unsigned >/dev/full 2>"$T/err"
is $? 10 "verify into a full device"

# Each signal comes at the program's own tenth write to its archive.
stopped() { # SIGNAL STATUS NAME
    rm -f big.tar.zst.partial
    exits "$2" "$3" at_call "$1" write 10 "$T/big.tar.zst.partial" "$REPERF" seal big --force
}
stopped KILL 137 "kill -9 in the midst of sealing"
[ ! -e big.tar.zst ] && [ -s big.tar.zst.partial ]
ok $? "leaves no archive"
exits 5 "and what it leaves is not taken for one" "$REPERF" verify big.tar.zst.partial --unsigned
stopped TERM 143 "SIGTERM in the midst of sealing"
stopped INT 130 "^C in the midst of sealing"
[ ! -e big.tar.zst ] && [ ! -e big.tar.zst.partial ]
ok $? "leaves nothing"
echo "left by a killed seal" >big.tar.zst.partial
exits 0 "sealing again over what a killed seal left" "$REPERF" seal big --key key
exits 0 "and it holds, several zstd jobs" "$REPERF" verify big.tar.zst --key key.pub
tap_done
