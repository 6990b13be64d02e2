/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an untrusted archive that verify reads. The first byte selects the part: a whole file (f), SHA256SUMS (s), an envelope
   with its statement (e), result.json (r). What is accepted must be what the writer would have written. */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fs.h"
#include "codec/tarball.h"
#include "evidence/verify_archive.h"

static void try_file(struct arena *arena UNUSED, struct str bytes)
{
    CLEANUP(fd) int fd = memfd_create("fuzz", MFD_CLOEXEC);
    struct err err = {0};
    struct verify_info info;
    char path[32];
    ASSERT(fd >= 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fs_write_all(fd, bytes.ptr, bytes.len, path, &err) < 0) {
        return;
    }
    const struct verify_opts opts = {
        .path = path, .allows_unsigned = true, .clock = clock_system()};
    int result = verify_archive(arena, &opts, &info, &err);
    ASSERT((result == 0) == (err.code == ERR_NONE));
    ASSERT(result == 0 || err.code == ERR_INTEGRITY);
}

static void try_sums(struct arena *arena UNUSED, struct str text)
{
    struct evidence_file items[2] = {{.name = STR_LIT("logs/a")}, {.name = STR_LIT("result.json")}};
    const struct evidence_files files = {items, 2, 2};
    CLEANUP(strbuf) struct strbuf wanted = {0};
    struct err err = {0};
    strbuf_init(&wanted, 1024);
    evidence_sums(&wanted, &files);
    ASSERT((evidence_sums_check(text, &files, &err) == 0) == str_eq(text, strbuf_str(&wanted)));
}

static void try_envelope(struct arena *arena UNUSED, struct str text)
{
    const struct evidence_files files = {NULL, 0, 0};
    struct evidence_facts facts = {.run_id = STR_LIT("r"), .report = STR_LIT("p")};
    struct evidence_envelope envelope;
    struct err err = {0};
    if (evidence_envelope_read(arena, text, "fuzz", &envelope, &err) < 0) {
        ASSERT(err.code == ERR_INTEGRITY);
        return;
    }
    for (int kind = 0; kind < 2; kind++) {
        err = (struct err){0};
        if (evidence_statement_check(arena, envelope.payload, (enum evidence_kind)kind, &facts,
                                     &files, &err) < 0) {
            ASSERT(err.code == ERR_INTEGRITY);
        }
    }
}

static void try_facts(struct arena *arena UNUSED, struct str text)
{
    struct evidence_facts facts;
    struct err err = {0};
    if (evidence_facts(arena, text, "result.json", &facts, &err) < 0) {
        ASSERT(err.code == ERR_MANIFEST);
        return;
    }
    ASSERT(facts.n_cells > 0 && facts.run_id.ptr);
}

/* f, s, e and r have their numbers' places. */
FUZZ_READERS(try_file, try_file, try_facts, try_sums, try_sums, try_envelope, try_file, try_sums)
