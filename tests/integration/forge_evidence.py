#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An archive as a forger writes it, without reperf. What is edited in the evidence's folder before is in the table tests/integration/forgeries.

forge_evidence.py --repack FOLDER OUT KEY: SHA256SUMS, crate and statements in order, signed by KEY;
--container KIND FOLDER OUT KEY: in a container of that kind (--list-containers), which no folder has."""
import base64
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile

CLOSING = ("SHA256SUMS", "provenance.dsse.json", "statement.dsse.json")


def sign(key, message):
    with tempfile.NamedTemporaryFile(dir=os.environ["TMPDIR"]) as text:
        text.write(message)
        text.flush()
        return subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", key, "-in", text.name], check=True, capture_output=True).stdout


def public_raw(key):
    der = subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-outform", "DER"], check=True, capture_output=True).stdout
    return der[-32:], hashlib.sha256(der).hexdigest()


def member(name, data, kind=b"0", link=""):
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode, info.type, info.linkname = len(data), 315532800, 0o644, kind, link
    header = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    header[329:345] = b"0000000\0" * 2  # of no device, which Python leaves empty
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + data + b"\0" * (-len(data) % 512)


def members(folder, key):
    """Sums and statements made good; each member's name and bytes."""
    def read(name):
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()

    def write(name, text):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    _, key_id = public_raw(key)
    names = sorted(os.path.relpath(os.path.join(d, f), folder) for d, _, files in os.walk(folder) for f in files)
    names = [n for n in names if n not in CLOSING]
    digests = {n: hashlib.sha256(read(n)).hexdigest() for n in names}
    sums = "".join(f"{digests[n]}  {n}\n" for n in names)
    write("SHA256SUMS", sums)
    digests["SHA256SUMS"] = hashlib.sha256(sums.encode()).hexdigest()
    for name in CLOSING[1:]:
        text = read(name).decode()
        payload = base64.b64decode(json.loads(text)["payload"]).decode()
        for file, digest in digests.items():
            payload = re.sub(r'("name":"' + re.escape(file) + r'","digest":\{"sha256":")[0-9a-f]+', r"\g<1>" + digest, payload)
        pae = f"DSSEv1 28 application/vnd.in-toto+json {len(payload.encode())} ".encode() + payload.encode()
        signature = base64.b64encode(sign(key, pae)).decode()
        for part, value in [("payload", base64.b64encode(payload.encode()).decode()), ("keyid", key_id), ("sig", signature)]:
            text = re.sub(rf'("{part}": *")[^"]*', r"\g<1>" + value, text)
        write(name, text)
    return [(name, read(name)) for name in names + list(CLOSING)]


def zstd(data, *options):
    return subprocess.run(["zstd", "-q", "--no-content-size", *options, "-c"], input=data, check=True, capture_output=True).stdout


def closing(frame, key):
    message = b"reperf-closing 1\nsha256 " + hashlib.sha256(frame).hexdigest().encode() + b"\n"
    return (bytes.fromhex("5d2a4d1829010000") + message + b"key " + public_raw(key)[0].hex().encode() + b"\nsignature "
            + sign(key, message).hex().encode() + b"\n")


def repack(folder, out, key):
    frame = zstd(b"".join(member(*m) for m in members(folder, key)) + b"\0" * 1024)
    with open(out, "wb") as file:
        file.write(frame + closing(frame, key))


# ---- the same, but for its container: what cannot be in a folder ----
SKIPPED = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"  # a frame that every zstd skips
END = b"\0" * 1024


def in_order(parts): return b"".join(member(*p) for p in parts)


TARS = {  # of the members, a tar
    "a_link_as_a_member": lambda p: in_order(p[:-4]) + member(p[-4][0], b"", b"2", "/etc/passwd") + in_order(p[-3:]) + END,
    "a_hard_link_as_a_member": lambda p: in_order(p[:-4]) + member(p[-4][0], b"", b"1", p[0][0]) + in_order(p[-3:]) + END,
    "a_member_twice": lambda p: in_order(p[:1] + p) + END,
    "a_sparse_member": lambda p: member(p[0][0], p[0][1], b"S") + in_order(p[1:]) + END,
    "a_header_of_pax": lambda p: member("x", b"19 path=result.json\n", b"x") + in_order(p) + END,
    "members_out_of_order": lambda p: in_order([p[1], p[0]] + p[2:]) + END,
    "bytes_behind_the_end": lambda p: in_order(p) + END + b"hidden".ljust(512, b"\0"),
    "half_an_end": lambda p: in_order(p) + END[:512],
}
FILES = {  # of a frame and the key, the file
    "two_frames": lambda f, key: f + f + closing(f + f, key),
    "a_frame_to_skip_between": lambda f, key: f + SKIPPED + closing(f, key),
    "bytes_behind": lambda f, key: f + closing(f, key) + b"hidden",
    "gzip_for_zstd": lambda f, key: (g := gzip.compress(subprocess.run(["zstd", "-dqc"], input=f, check=True, capture_output=True).stdout)) + closing(g, key),
    "no_closing": lambda f, key: f,
    "a_closing_of_another": lambda f, key: f + closing(f[:-1], key),
}


def repack_as(kind, folder, out, key):
    plain = in_order(members(folder, key)) + END
    if kind in TARS:
        frame = zstd(TARS[kind](members(folder, key)))
        data = frame + closing(frame, key)
    else:
        data = FILES[kind](zstd(plain), key)
    with open(out, "wb") as file:
        file.write(data)


if sys.argv[1] == "--list-containers":
    print("\n".join([*TARS, *FILES]))
elif sys.argv[1] == "--repack":
    repack(*sys.argv[2:5])
else:
    repack_as(*sys.argv[2:6])
