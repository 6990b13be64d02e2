#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""forge_evidence.py CASE FOLDER: edits the evidence of a run (FOLDER, as `reperf run` left it, or an unpacked archive) as a forger would.

forge_evidence.py --list: "CASE<TAB>what it does<TAB>where" of each; where: folder (before sealing), journal (STATE/runs/RUN beside it), archive (written by
hand with sums, crate and statements made good again, by forge_archive).
forge_evidence.py --repack FOLDER OUT KEY: an archive of that folder as a forger writes it without reperf, SHA256SUMS, crate and statements in order, signed
by KEY; --container KIND FOLDER OUT KEY: in a container of that kind (--list-containers), which no folder has."""
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

CASES = {}


def case(where):
    def add(function):
        CASES[function.__name__] = (function, where)
        return function
    return add


class Run:
    """The files of one run's evidence."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def write(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())

    def find(self, top, end=""):
        names = [os.path.relpath(os.path.join(d, f), self.folder) for d, _, fs in os.walk(self.path(top)) for f in fs]
        return sorted(n for n in names if n.endswith(end))

    def sub(self, name, old, new, count=1):
        text = self.read(name).decode()
        changed = re.sub(old, new, text, count=count)
        if changed == text:
            raise SystemExit(f"{name}: nothing matches {old}")
        self.write(name, changed)

    def edit(self, name, change):
        document = json.loads(self.read(name))
        change(document)
        self.write(name, json.dumps(document, indent=2) + "\n")

    def log(self, idx=0):
        return self.find("logs/raw", f"repeat-{idx + 1}.log")[0]

    def outcome(self, idx=0):
        return self.find("logs/outcome", f"repeat-{idx + 1}.json")[0]

    def series(self, idx=0):
        return self.find("series", f"repeat-{idx + 1}.json")[0]

    def redigest(self, idx=0):
        """The log's digest made good in its outcome record, its series and result.json."""
        data = self.read(self.log(idx))
        outcome = json.loads(self.read(self.outcome(idx)))
        old, size = outcome["log_sha256"], outcome["log_bytes"]
        for name in [self.outcome(idx), self.series(idx), "result.json"]:
            text = self.read(name).decode().replace(old, hashlib.sha256(data).hexdigest())
            self.write(name, text.replace(f": {size}", f": {len(data)}"))


def faster(run, name, rate="80.0"):
    run.write(name, re.sub(rb'"samples_per_s": ?8(\.0)?', b'"samples_per_s":' + rate.encode(), run.read(name)))


# ---- results and series ----
@case("folder")
def result_value(run): run.sub("result.json", r'"value": 8\b', '"value": 9')


@case("folder")
def result_verdict(run): run.sub("result.json", '"verdict": "not_comparable"', '"verdict": "reproduced"')


@case("folder")
def result_exit_status(run): run.sub("result.json", '"exit_status": [0-9]+', '"exit_status": 1')


@case("folder")
def result_run_id(run): run.sub("result.json", r'("run_id": ".{24})..', r'\g<1>00')


@case("folder")
def result_report(run): run.sub("result.json", '"report": "[^"]*"', '"report": "paddle-perf-hrnetw18"')


@case("folder")
def result_duplicate_key(run): run.sub("result.json", r'"value": 8\b', '"value": 8, "value": 9')


@case("folder")
def result_reformatted(run): run.write("result.json", json.dumps(json.loads(run.read("result.json"))))


@case("folder")
def result_trailing(run): run.write("result.json", run.read("result.json") + b" ")


@case("folder")
def result_cell_dropped(run): run.edit("result.json", lambda d: d["cells"].clear())


@case("folder")
def result_finished_at(run): run.edit("result.json", lambda d: d.update(finished_at="2020-01-01T00:00:00Z"))


@case("folder")
def result_differs_dropped(run): run.edit("result.json", lambda d: d["cells"][0]["differs"].clear())


@case("folder")
def series_value(run): run.sub(run.series(), r'"value":8\b', '"value":9')


@case("folder")
def series_dropped(run): os.unlink(run.path(run.series()))


@case("folder")
def series_added(run): shutil.copy(run.path(run.series()), run.path(run.series()).replace("repeat-1", "repeat-9"))


@case("folder")
def series_and_result_together(run):
    run.sub(run.series(), r'"value":8\b', '"value":9', 0)
    run.sub("result.json", r'": 8\b', '": 9', 0)


# ---- logs ----
@case("folder")
def log_edited(run): faster(run, run.log())


@case("folder")
def log_edited_and_digests(run):
    faster(run, run.log())
    run.redigest()


@case("folder")
def log_line_dropped(run): run.write(run.log(), b"\n".join(run.read(run.log()).split(b"\n")[:-3]) + b"\n")


@case("folder")
def log_byte_added(run): run.write(run.log(), run.read(run.log()) + b"\n")


@case("folder")
def log_of_another_repeat(run):
    faster(run, run.log(1))
    shutil.copy(run.path(run.log(1)), run.path(run.log(0)))


@case("folder")
def log_missing(run): os.unlink(run.path(run.log()))


@case("folder")
def log_is_a_link(run):
    log, target = run.path(run.log()), run.path("environment/real.log")
    os.rename(log, target)
    os.symlink(target, log)


@case("folder")
def log_links_outside(run):
    with tempfile.NamedTemporaryFile(dir=os.environ["TMPDIR"], delete=False) as file:
        file.write(run.read(run.log()))
    log = run.path(run.log())
    os.unlink(log)
    os.symlink(file.name, log)


@case("folder")
def log_is_a_pipe(run):
    log = run.path(run.log())
    os.unlink(log)
    os.mkfifo(log)


@case("folder")
def logs_swapped(run):
    faster(run, run.log(1))
    for a, b in [(run.log(0), run.log(1)), (run.outcome(0), run.outcome(1)), (run.series(0), run.series(1))]:
        kept = run.read(a)
        run.write(a, run.read(b))
        run.write(b, kept)


# ---- outcome ----
@case("folder")
def outcome_exit_status(run): run.sub(run.outcome(), '"exit_status": 0', '"exit_status": 3')


@case("folder")
def outcome_deadline(run): run.sub(run.outcome(), '"exited"', '"deadline"')


@case("folder")
def outcome_log_path(run): run.sub(run.outcome(), '"log": "logs/raw/', '"log": "logs/raw/../raw/')


@case("folder")
def outcome_other_log(run): run.sub(run.outcome(), "repeat-1.log", "repeat-2.log")


@case("folder")
def outcome_case(run): run.sub(run.outcome(), '"case": "[^"]*"', '"case": "../../etc/passwd"')


@case("folder")
def outcome_nodes_added(run): run.edit(run.outcome(), lambda d: d.update(nodes=[], failed_node=None))


@case("folder")
def outcome_missing(run): os.unlink(run.path(run.outcome()))


# ---- what was frozen ----
@case("folder")
def report_published(run): run.sub("manifest/report.json", r'"printed": "[0-9.]+"', '"printed": "8.0"', 0)


@case("journal")
def report_and_plan(run):
    run.sub("manifest/report.json", r'"title": *"', '"title": "x')
    run.sub("manifest/plan.json", '"report_sha256": "[0-9a-f]*"',
            '"report_sha256": "' + hashlib.sha256(run.read("manifest/report.json")).hexdigest() + '"')


@case("folder")
def report_key_twice(run): run.sub("manifest/report.json", r"^\{", '{"schema_version": 1, ')


@case("folder")
def plan_step_dropped(run): run.edit("manifest/plan.json", lambda d: d["steps"].pop())


@case("folder")
def plan_step_twice(run): run.edit("manifest/plan.json", lambda d: d["steps"].append(d["steps"][0]))


@case("folder")
def plan_repeats(run): run.sub("manifest/plan.json", '"repeats": 2', '"repeats": 1')


@case("folder")
def plan_target(run): run.edit("manifest/plan.json", lambda d: d["steps"][0].update(target={"series": "loss", "at_most": 100, "mean_of": 1}))


@case("folder")
def plan_condition(run):
    run.edit("manifest/plan.json", lambda d: d["steps"][0]["conditions"].update(
        {k: ("fp64" if k == "precision" else v) for k, v in d["steps"][0]["conditions"].items()}))


@case("folder")
def plan_condition_dropped(run): run.edit("manifest/plan.json", lambda d: d["steps"][0]["conditions"].pop("precision"))


@case("folder")
def plan_ranks(run): run.sub("manifest/plan.json", '"ranks": 1', '"ranks": 4')


@case("folder")
def plan_rule(run): run.sub("manifest/plan.json", '"rule": "reperf/[^"]*"', '"rule": "reperf/mean"')


@case("folder")
def plan_baseline(run): run.sub("manifest/plan.json", '"baseline": "resnet50/paddle/fp32/n1g1/bs96"', '"baseline": "resnet50/paddle/fp32/n1g8/bs96"')


@case("folder")
def plan_full(run): run.sub("manifest/plan.json", '"profile": "smoke"', '"profile": "full"')


@case("folder")
def plan_not_run(run): run.edit("manifest/plan.json", lambda d: d["steps"][0].update(cause="container", why="no engine"))


@case("folder")
def plan_inventory(run): run.sub("manifest/plan.json", '"inventory": "local"', '"inventory": "cluster"')


@case("folder")
def format_edited(run): run.sub("manifest/formats/reperf.json", "samples_per_s.{2}:", "samples_per_t[^:]*:", 0)


@case("folder")
def format_added(run): run.write("manifest/formats/other.json", run.read("manifest/formats/reperf.json"))


@case("folder")
def lock_run_id(run): run.sub("lock/lock.json", r'("run_id": ".{24})..', r'\g<1>00')


@case("folder")
def lock_runtime(run): run.sub("lock/lock.json", '"runtime": "none"', '"runtime": "docker"')


@case("folder")
def lock_image(run): run.sub("lock/lock.json", '"image_digest": null', '"image_digest": "sha256:' + "0" * 64 + '"')


@case("folder")
def lock_program_version(run): run.sub("lock/lock.json", '"program_version": "[^"]*"', '"program_version": "1\\\\u001b[31m"')


@case("folder")
def lock_file_dropped(run): run.edit("lock/lock.json", lambda d: d["files"].pop())


@case("folder")
def lock_file_digest(run): run.edit("lock/lock.json", lambda d: d["files"][0].update(sha256="0" * 64))


@case("folder")
def lock_extra_key(run): run.edit("lock/lock.json", lambda d: d.update(note="trust me"))


@case("folder")
def environment_condition(run):
    run.edit("environment/local.json", lambda d: d["conditions"].update(cpu="AMD EPYC 9999", gpu="NVIDIA B300", os="x", driver="1"))


@case("folder")
def environment_broken(run): run.write("environment/local.json", run.read("environment/local.json") + b"}")


@case("folder")
def environment_of_no_node(run): run.write("environment/node7.json", run.read("environment/local.json"))


# ---- what is there ----
@case("folder")
def file_at_the_top(run): run.write("README.txt", "all is well\n")


@case("folder")
def file_hidden(run): run.write(".hidden", "x")


@case("folder")
def file_beside_a_log(run): run.write(run.log() + ".bak", "x")


@case("folder")
def file_in_a_new_folder(run): run.write("logs/extra/a.log", "x")


@case("folder")
def folder_empty(run): os.makedirs(run.path("logs/extra"))


@case("folder")
def folder_of_an_overlay(run): run.write("manifest/overlay/driver/a.py", "x")


@case("folder")
def lost_log_of_no_attempt(run): run.write(run.log().replace("raw", "lost").replace(".log", ".attempt-1.log"), "x")


@case("folder")
def leftover_name(run): run.write("result.json.aB3dE6", "x")


@case("folder")
def lookalike_beside(run): run.write("r\u0435sult.json", run.read("result.json"))


@case("folder")
def lookalike_instead(run): os.rename(run.path(run.log()), run.path(run.log().replace("repeat", "r\u0435peat")))


@case("archive")
def run_id_throughout(run):
    old = json.loads(run.read("result.json"))["run_id"]
    for name in run.find("."):
        run.write(name, run.read(name).replace(old.encode(), b"20261121T000009.000Z-0000000c"))


@case("folder")
def case_differs(run): run.write("Result.json", run.read("result.json"))


# ---- the journal, whose chain of checks is public ----
class Journal:
    def __init__(self, run):
        self.path = os.path.join(os.path.dirname(run.folder), "journal.jsonl")
        with open(self.path, encoding="utf-8") as file:
            self.records = [json.loads(line) for line in file]

    def write(self):
        """With the checks made good."""
        check, lines = "", []
        for seq, record in enumerate(self.records, 1):
            record = {"seq": seq} | {k: v for k, v in record.items() if k not in ("seq", "check")}
            body = json.dumps(record, separators=(",", ":"), ensure_ascii=False)[:-1]
            check = hashlib.sha256((check + body).encode()).hexdigest()
            lines.append(f'{body},"check":"{check}"}}\n')
        with open(self.path, "w", encoding="utf-8") as file:
            file.writelines(lines)

    def of(self, state):
        return [r for r in self.records if r["state"] == state]


def journal_case(function):
    def forge(run):
        journal = Journal(run)
        function(run, journal)
        journal.write()
    forge.__name__ = function.__name__
    CASES[function.__name__] = (forge, "journal")


@journal_case
def journal_without_a_parse(run, journal): journal.records.remove(journal.of("parsed")[0])


@journal_case
def journal_without_the_end(run, journal): journal.records = [r for r in journal.records if r["state"] != "result"]


@journal_case
def journal_without_an_attempt(run, journal): journal.records.remove(journal.of("finished")[0])


@journal_case
def journal_without_a_start(run, journal): journal.records.remove(journal.of("started")[0])


@journal_case
def journal_reordered(run, journal):
    a, b = (journal.records.index(r) for r in (journal.of("started")[0], journal.of("finished")[0]))
    journal.records[a], journal.records[b] = journal.records[b], journal.records[a]


@journal_case
def journal_failed_attempt_removed(run, journal):
    start, end = journal.of("started")[0], journal.of("finished")[0]
    start["attempt"] = end["attempt"] = 2


@journal_case
def journal_log_digest(run, journal): journal.of("finished")[0]["log_sha256"] = "0" * 64


@journal_case
def journal_exit_status(run, journal): journal.of("finished")[0]["exit_status"] = 3


def of_file(journal, state, part):
    """The record's digest of the file whose name holds that part."""
    files = journal.of(state)[0]["files"]
    name = next(n for n in files if part in n)
    assert len(files[name]) == 64
    files[name] = "0" * 64


@journal_case
def journal_outcome_record(run, journal): of_file(journal, "finished", "outcome")


@journal_case
def journal_log_file(run, journal): of_file(journal, "finished", "raw")


@journal_case
def journal_series_file(run, journal): of_file(journal, "parsed", "series")


@journal_case
def journal_lock_file(run, journal): of_file(journal, "planned", "lock")


@journal_case
def journal_file_added(run, journal): journal.of("parsed")[0]["files"]["series/x.json"] = "0" * 64


@journal_case
def journal_file_dropped(run, journal): journal.of("parsed")[0]["files"].clear()


@journal_case
def journal_verdict(run, journal): journal.of("judged")[0]["verdict"] = "reproduced"


@journal_case
def journal_parse_verdict(run, journal): journal.of("parsed")[0]["verdict"] = "nan"


@journal_case
def journal_result_digest(run, journal): journal.of("result")[0]["note"] = "0" * 64


@journal_case
def journal_report(run, journal): journal.of("planned")[0]["note"] = "0" * 64


@journal_case
def journal_of_another_case(run, journal): journal.of("finished")[0]["case"] = "resnet50/reperf/fp32/n1g8/bs96"


@journal_case
def journal_emptied(run, journal): journal.records = []


@case("journal")
def journal_missing(run): os.unlink(os.path.join(os.path.dirname(run.folder), "journal.jsonl"))


@case("journal")
def journal_line_changed(run):
    path = os.path.join(os.path.dirname(run.folder), "journal.jsonl")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace('"exit_status":0', '"exit_status":1', 1))


@case("journal")
def journal_garbage(run):
    with open(os.path.join(os.path.dirname(run.folder), "journal.jsonl"), "w", encoding="utf-8") as file:
        file.write("garbage\n")


@case("journal")
def run_folder_of_another_run(run):
    top = os.path.dirname(run.folder)
    os.rename(top, top[:-2] + ("11" if top.endswith("00") else "00"))


# ---- archives, written by hand ----
def edit_payload(name, old, new):
    def forge(run):
        envelope = json.loads(run.read(name))
        payload = base64.b64decode(envelope["payload"]).decode()
        changed = re.sub(old, new, payload, count=1)
        assert changed != payload, (name, old)
        envelope["payload"] = base64.b64encode(changed.encode()).decode()
        run.write(name, json.dumps(envelope, separators=(",", ":")))
    return forge


for name, file, old, new in [
        ("provenance_run", "provenance.dsse.json", '"invocationId":"[^"]*"', '"invocationId":"20200101T000000.000Z-00000000"'),
        ("provenance_report", "provenance.dsse.json", '"report":"[^"]*"', '"report":"another"'),
        ("provenance_builder", "provenance.dsse.json", '"id":"urn:x-reperf:local"', '"id":"https://trusted.example"'),
        ("provenance_finished", "provenance.dsse.json", '"invocationId"', '"finishedOn":"2020-01-01T00:00:00Z","invocationId"'),
        ("provenance_dependency", "provenance.dsse.json", '"resolvedDependencies":\\[', '"resolvedDependencies":[{"name":"x","digest":{"sha256":"00"}},'),
        ("provenance_version", "provenance.dsse.json", '"reperf":"[^"]*"', '"reperf":"1\\\\u001b[31m"'),
        ("provenance_second_run", "provenance.dsse.json", '"runDetails":\\{', '"runDetails":{"x":1,'),
        ("statement_result", "statement.dsse.json", '"result":"[A-Z]*"', '"result":"PASSED"'),
        ("statement_tests", "statement.dsse.json", '"passedTests":\\[', '"passedTests":["x"'),
        ("statement_extra", "statement.dsse.json", '"predicate":\\{', '"predicate":{"url":"https://x",'),
        ("statement_subject", "statement.dsse.json", '"subject":\\[', '"subject":[{"name":"x","digest":{"sha256":"00"}},')]:
    CASES[name] = (edit_payload(file, old, new), "archive")


def edit_crate(name, change):
    def forge(run): run.edit("ro-crate-metadata.json", change)
    CASES[name] = (forge, "archive")


def entity(document, ident):
    return next(e for e in document["@graph"] if e["@id"] == ident)


edit_crate("crate_name", lambda d: entity(d, "./").update(name="another"))
edit_crate("crate_entity", lambda d: d["@graph"].append({"@id": "#x", "@type": "Person", "name": "x"}))
edit_crate("crate_part", lambda d: entity(d, "./")["hasPart"].pop())
edit_crate("crate_licence", lambda d: entity(d, "./").update(license="CC0"))
edit_crate("crate_before_the_run", lambda d: entity(d, "./").update(datePublished="2020-01-01T00:00:00.000Z"))
edit_crate("crate_time_is_text", lambda d: entity(d, "./").update(datePublished="long ago"))
edit_crate("crate_status", lambda d: entity(d, "#run").update(actionStatus="http://schema.org/X"))
edit_crate("crate_version", lambda d: entity(d, "#reperf").update(softwareVersion="1 <b>"))


@case("archive")
def crate_emptied(run): run.write("ro-crate-metadata.json", "{}\n")


# ---- an archive as a forger writes it ----
CLOSING = ("SHA256SUMS", "provenance.dsse.json", "statement.dsse.json")


def sign(key, message):
    with tempfile.NamedTemporaryFile(dir=os.environ["TMPDIR"]) as text:
        text.write(message)
        text.flush()
        return subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", key, "-in", text.name], check=True, capture_output=True).stdout


def public_raw(key):
    der = subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-outform", "DER"], check=True, capture_output=True).stdout
    return der[-32:], hashlib.sha256(der).hexdigest()


def member(name, data, kind=b"0", link="", mtime=315532800):
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode, info.type, info.linkname = len(data), mtime, 0o644, kind, link
    header = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    header[329:345] = b"0000000\0" * 2  # of no device, which Python leaves empty
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + data + b"\0" * (-len(data) % 512)


def members(folder, key):
    """Sums and statements made good; each member's name and bytes."""
    run = Run(folder)
    _, key_id = public_raw(key)
    names = [n for n in run.find(".") if n not in CLOSING]
    names = sorted(os.path.normpath(n) for n in names)
    digests = {n: hashlib.sha256(run.read(n)).hexdigest() for n in names}
    sums = "".join(f"{digests[n]}  {n}\n" for n in names)
    run.write("SHA256SUMS", sums)
    digests["SHA256SUMS"] = hashlib.sha256(sums.encode()).hexdigest()
    for name in CLOSING[1:]:
        envelope = json.loads(run.read(name))
        payload = base64.b64decode(envelope["payload"]).decode()
        for file, digest in digests.items():
            payload = re.sub(r'("name":"' + re.escape(file) + r'","digest":\{"sha256":")[0-9a-f]+', r"\g<1>" + digest, payload)
        pae = f"DSSEv1 28 application/vnd.in-toto+json {len(payload.encode())} ".encode() + payload.encode()
        signature = base64.b64encode(sign(key, pae)).decode()
        text = run.read(name).decode()
        for part, value in [("payload", base64.b64encode(payload.encode()).decode()), ("keyid", key_id), ("sig", signature)]:
            text = re.sub(rf'("{part}": *")[^"]*', r"\g<1>" + value, text)
        run.write(name, text)
    return [(name, run.read(name)) for name in names + list(CLOSING)]


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
    "a_header_of_pax_for_all": lambda p: member("x", b"13 comment=x\n", b"g") + in_order(p) + END,
    "members_out_of_order": lambda p: in_order([p[1], p[0]] + p[2:]) + END,
    "another_time": lambda p: member(*p[0], mtime=315532801) + in_order(p[1:]) + END,
    "bytes_in_the_padding": lambda p: in_order(p[:1])[:-1] + b"x" + in_order(p[1:]) + END,
    "bytes_behind_the_end": lambda p: in_order(p) + END + b"hidden".ljust(512, b"\0"),
    "half_an_end": lambda p: in_order(p) + END[:512],
    "a_folder_as_a_member": lambda p: member("x/", b"", b"5") + in_order(p) + END,
}
FILES = {  # of a frame and the key, the file
    "two_frames": lambda f, key: f + f + closing(f + f, key),
    "a_frame_to_skip_before": lambda f, key: SKIPPED + f + closing(SKIPPED + f, key),
    "a_frame_to_skip_behind": lambda f, key: f + SKIPPED + closing(f + SKIPPED, key),
    "a_frame_to_skip_between": lambda f, key: f + SKIPPED + closing(f, key),
    "a_second_closing": lambda f, key: f + closing(f, key) + closing(f + closing(f, key), key),
    "bytes_behind": lambda f, key: f + closing(f, key) + b"hidden",
    "no_closing": lambda f, key: f,
    "a_closing_of_another": lambda f, key: f + closing(f[:-1], key),
}


def repack_as(kind, folder, out, key):
    plain = in_order(members(folder, key)) + END
    if kind in TARS:
        frame = zstd(TARS[kind](members(folder, key)))
        data = frame + closing(frame, key)
    elif kind == "no_checksum":
        frame = zstd(plain, "--no-check")
        data = frame + closing(frame, key)
    else:
        data = FILES[kind](zstd(plain), key)
    with open(out, "wb") as file:
        file.write(data)


if sys.argv[1] == "--list":
    print("\n".join(f"{name} {where}" for name, (_, where) in CASES.items()))
elif sys.argv[1] == "--list-containers":
    print("\n".join([*TARS, *FILES, "no_checksum"]))
elif sys.argv[1] == "--repack":
    repack(*sys.argv[2:5])
elif sys.argv[1] == "--container":
    repack_as(*sys.argv[2:6])
else:
    CASES[sys.argv[1]][0](Run(sys.argv[2]))
