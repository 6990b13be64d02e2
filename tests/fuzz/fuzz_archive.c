/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an untrusted archive that verify reads. The first byte selects the part: a whole file (f), a tar stream (t), SHA256SUMS (s), an
   envelope with its statement (e), result.json (r). What is accepted must be what the writer would have written. */
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

/* The stream again, as the writer makes it from the reader's results. */
struct rebuild {
    struct strbuf text;
    uint64_t size_bytes;
};

static int rebuild_begin(void *ctx, struct str name, uint64_t size_bytes, struct err *err)
{
    struct rebuild *r = ctx;
    uint8_t header[USTAR_BLOCK];
    if (ustar_header(name, size_bytes, header, err) < 0) {
        return -1;
    }
    strbuf_add(&r->text, header, sizeof(header));
    r->size_bytes = size_bytes;
    return 0;
}

static int rebuild_data(void *ctx, const void *ptr, size_t len, struct err *err UNUSED)
{
    struct rebuild *r = ctx;
    strbuf_add(&r->text, ptr, len);
    return 0;
}

static int rebuild_end(void *ctx, struct err *err UNUSED)
{
    static const uint8_t ZERO[USTAR_BLOCK];
    struct rebuild *r = ctx;
    strbuf_add(&r->text, ZERO, ustar_padding(r->size_bytes));
    return 0;
}

static void try_tar(struct arena *arena UNUSED, struct str bytes)
{
    static const uint8_t ZERO[2 * USTAR_BLOCK];
    CLEANUP(ustar_reader) struct ustar_reader reader;
    struct rebuild r = {0};
    struct err err = {0};
    int result = 0;
    strbuf_init(&r.text, 64u << 20);
    ustar_reader_init(&reader, (struct ustar_sink){&r, rebuild_begin, rebuild_data, rebuild_end});
    /* In portions that fall anywhere in the blocks. */
    for (size_t at = 0, n = 1; result == 0 && at < bytes.len; at += n) {
        n = at % 701 + 1 < bytes.len - at ? at % 701 + 1 : bytes.len - at;
        result = ustar_feed(&reader, bytes.ptr + at, n, &err);
    }
    if (result == 0 && ustar_finish(&reader, &err) == 0) {
        strbuf_add(&r.text, ZERO, sizeof(ZERO));
        ASSERT(str_eq(strbuf_str(&r.text), bytes));
    } else {
        ASSERT(err.code == ERR_INTEGRITY);
    }
    strbuf_release(&r.text);
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

/* f, t, s, e and r have their numbers' places. */
FUZZ_READERS(try_file, try_tar, try_facts, try_sums, try_tar, try_envelope, try_file, try_sums)
