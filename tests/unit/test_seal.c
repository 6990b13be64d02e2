/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/tarball.h"
#include "evidence/seal.h"
#include "evidence/verify_archive.h"
#include "tests/unit/scratch.h"

static struct sign_key key, other_key;

static const struct {
    const char *name;
    const char *text;
} RUN[] = {
    {"manifest/report.json", "{\"id\":\"paddle-perf-2020\"}\n"},
    {"lock/images.json", "{}\n"},
    {"environment/node0.json", "{\"cpu\":\"x\"}\n"},
    {"logs/raw/a/rank0.log", "step 1 ips: 117.2\r\n\x1b[0mstep 2 ips: 117.3\n"},
    {"series/a.json", "[117.2,117.3]\n"},
    {"result.json",
     "{\"run_id\":\"r1\",\"report\":\"paddle-perf-2020\",\"finished_at\":\"2026-11-21T11:00:00Z\","
     "\"cells\":[{\"case\":\"a\",\"verdict\":\"reproduced\"},{\"case\":\"b\",\"cell\":\"b/1\","
     "\"verdict\":\"not_run\"}]}\n"},
};

static void put(const char *folder, const char *name, const char *text)
{
    scratch_put(folder, name, str_of(text));
}

static const char *make_run(const char *name)
{
    const char *folder = scratch_path(name);
    struct err err = {0};
    ASSERT(fs_remove_tree(folder, &err) == 0);
    for (EACH(row, RUN)) {
        put(folder, row->name, row->text);
    }
    return folder;
}

static int seal(const char *folder, const char *archive, const struct sign_key *with,
                struct seal_info *info, struct err *err)
{
    const struct seal_opts opts = {.folder = folder,
                                   .archive = archive,
                                   .key = with,
                                   .is_bytes_only = true,
                                   .clock = clock_system()};
    return seal_folder(&scratch_arena, &opts, info, err);
}

static void seal_refuses(const char *folder, const char *archive, enum err_code code)
{
    struct seal_info info;
    FAILS(seal(folder, archive, NULL, &info, ERR), code);
}

static int verify(const char *path, const struct sign_key *with, bool allows_unsigned,
                  struct verify_info *info, struct err *err)
{
    const struct verify_opts opts = {.path = path,
                                     .key = with,
                                     .allows_unsigned = allows_unsigned,
                                     .is_bytes_only = true,
                                     .clock = clock_system()};
    int result = verify_archive(ARENA, &opts, info, err);
    info->run_id = STR_EMPTY; /* went with the arena */
    return result;
}

static void expect_verified(const char *path, const struct sign_key *with)
{
    struct verify_info info;
    PASSES(verify(path, with, with == NULL, &info, ERR));
    assert_int_equal(info.n_files, ARRAY_LEN(RUN) + 4);
    assert_int_equal(info.outcome, EVIDENCE_WARNED);
}

static void expect_refused(const char *path, const struct sign_key *with, bool allows_unsigned,
                           enum err_code code, const char *says)
{
    struct verify_info info;
    FAILS_WITH(verify(path, with, allows_unsigned, &info, ERR), code, says);
    assert_int_equal(err_exit_status(ERR->code), 5);
}

static const char *sealed(const char *name, const struct sign_key *with)
{
    const char *archive = scratch_path(arena_printf(&scratch_arena, "%s.tar.zst", name));
    struct seal_info info;
    unlink(archive);
    PASSES(seal(make_run(name), archive, with, &info, ERR));
    assert_int_equal(info.n_files, ARRAY_LEN(RUN) + 4);
    return archive;
}

TEST(signers_are_told_apart)
{
    const char *with_key = sealed("signed", &key);
    const char *without = sealed("unsigned", NULL);
    struct verify_info info;
    expect_verified(with_key, &key);
    expect_refused(with_key, &other_key, false, ERR_AUTH, "expected key");
    expect_refused(with_key, NULL, false, ERR_AUTH, "signer unverified");
    expect_verified(with_key, NULL);
    expect_refused(without, &key, false, ERR_AUTH, "not signed");
    expect_refused(without, NULL, false, ERR_AUTH, "signer unverified: not signed");
    expect_verified(without, NULL);
    PASSES(verify(with_key, NULL, true, &info, ERR));
    assert_int_equal(info.signer, VERIFY_SIGNER_UNVERIFIED);
    assert_string_equal(info.key_id, key.id);
    PASSES(verify(with_key, &key, false, &info, ERR));
    assert_int_equal(info.signer, VERIFY_SIGNER_VERIFIED);
    PASSES(verify(without, NULL, true, &info, ERR));
    assert_int_equal(info.signer, VERIFY_SIGNER_NONE);
}

TEST(equal_folders_give_equal_bytes)
{
    struct str first = scratch_read(sealed("one", &key));
    struct seal_info info;
    const char *again = scratch_path("again.tar.zst");
    assert_true(str_eq(first, scratch_read(sealed("two", &key))));
    /* The folder now has what sealing added; sealing it again changes nothing. */
    put(scratch_path("two"), "SHA256SUMS.reperf-tmp-a1B2c3", "left by a killed seal");
    PASSES(seal(scratch_path("two"), again, &key, &info, ERR));
    assert_true(str_eq(first, scratch_read(again)));
    assert_int_equal(info.archive_bytes, first.len);
}

/* All of verify, over every changed byte, every length that `lengths` divides, and an addition. Without a trusted key, the key named in the
   archive still holds it together. */
TEST(every_byte_of_an_archive_counts)
{
    static const struct {
        const char *name;
        const struct sign_key *with, *trusted;
        size_t lengths;
    } ROWS[] = {{"signed", &key, &key, 1}, {"open", &key, NULL, 7}, {"unsigned", NULL, NULL, 7}};
    for (EACH(row, ROWS)) {
        const char *archive = sealed(row->name, row->with);
        struct str whole = scratch_read(archive);
        char *bytes = arena_strndup(&scratch_arena, whole.ptr, whole.len + 1);
        for (size_t at = 0; at < whole.len; at++) {
            /* One bit of each byte here; test_tarball flips all eight below the statements. */
            bytes[at] = (char)(whole.ptr[at] ^ (1 << at % 8));
            scratch_write(archive, (struct str){bytes, whole.len});
            expect_refused(archive, row->trusted, !row->trusted, ERR_INTEGRITY, archive);
            bytes[at] = whole.ptr[at];
            if (at % row->lengths == 0) {
                scratch_write(archive, (struct str){bytes, at});
                expect_refused(archive, row->trusted, !row->trusted, ERR_INTEGRITY, archive);
            }
        }
        for (unsigned added = 0; added < 256; added += 5) {
            bytes[whole.len] = (char)added;
            scratch_write(archive, (struct str){bytes, whole.len + 1});
            expect_refused(archive, row->trusted, !row->trusted, ERR_INTEGRITY, archive);
        }
        scratch_write(archive, whole);
        expect_verified(archive, row->trusted);
    }
}

TEST(every_byte_of_every_file_of_a_folder_counts)
{
    const char *folder;
    struct fs_names names;
    sealed("folder", &key);
    folder = scratch_path("folder");
    expect_verified(folder, &key);
    PASSES(fs_walk(&scratch_arena, folder, &names, ERR));
    for (size_t file = 0; file < names.n; file++) {
        const char *path = fs_join(&scratch_arena, folder, names.items[file]);
        struct str whole = scratch_read(path);
        char *bytes = arena_strndup(&scratch_arena, whole.ptr, whole.len + 1);
        for (size_t at = 0; at < whole.len; at += at < 64 ? 1 : 13) {
            bytes[at] ^= 0x10;
            scratch_write(path, (struct str){bytes, whole.len});
            expect_refused(folder, &key, false, ERR_INTEGRITY, folder);
            bytes[at] ^= 0x10;
        }
        scratch_write(path, (struct str){bytes, whole.len - 1});
        expect_refused(folder, &key, false, ERR_INTEGRITY, folder);
        bytes[whole.len] = '\n';
        scratch_write(path, (struct str){bytes, whole.len + 1});
        expect_refused(folder, &key, false, ERR_INTEGRITY, folder);
        unlink(path);
        expect_refused(folder, &key, false, ERR_INTEGRITY, names.items[file]);
        scratch_write(path, whole);
    }
    expect_verified(folder, &key);
    static const char *const MORE[] = {"logs/raw/more.log", "zzz"};
    for (EACH(name, MORE)) {
        put(folder, *name, "x");
        expect_refused(folder, &key, false, ERR_INTEGRITY, arena_printf(ARENA, "%s: added", *name));
        unlink(fs_join(&scratch_arena, folder, *name));
    }
    assert_int_equal(symlink("result.json", fs_join(&scratch_arena, folder, "link")), 0);
    expect_refused(folder, &key, false, ERR_INTEGRITY, "expected a regular file");
    expect_refused(folder, &other_key, false, ERR_INTEGRITY, "expected a regular file");
    unlink(fs_join(&scratch_arena, folder, "link"));
    expect_refused(folder, &other_key, false, ERR_AUTH, "expected key");
    expect_refused(folder, NULL, false, ERR_AUTH, "signer unverified");
}

/* An attacker who can write archives but lacks the key: sums and closing recomputed, statements left as they were. */
TEST(a_changed_log_with_good_sums_is_refused)
{
    const char *archive = scratch_path("forged.tar.zst");
    const char *folder;
    struct seal_info info;
    struct str statement;
    sealed("forged", &key);
    folder = scratch_path("forged");
    statement = scratch_read(fs_join(&scratch_arena, folder, USTAR_STATEMENT));
    put(folder, "logs/raw/a/rank0.log", "step 1 ips: 999.9\n");
    unlink(archive);
    PASSES(seal(folder, archive, &other_key, &info, ERR));
    expect_refused(archive, &key, false, ERR_AUTH, "expected key");
    /* As a folder: the old signed statement with new sums. */
    scratch_write(fs_join(&scratch_arena, folder, USTAR_STATEMENT), statement);
    expect_refused(folder, &key, false, ERR_INTEGRITY, USTAR_STATEMENT);
}

/* Only what a run may end with status 0 for passes. */
TEST(only_reproduced_passes)
{
    static const struct {
        const char *verdict;
        enum evidence_outcome outcome;
    } WANTED[] = {
        {"reproduced", EVIDENCE_PASSED}, {"faster", EVIDENCE_WARNED},
        {"slower", EVIDENCE_FAILED},     {"not_comparable", EVIDENCE_WARNED},
        {"failed", EVIDENCE_FAILED},     {"not_run", EVIDENCE_WARNED},
    };
    for (EACH(row, WANTED)) {
        struct evidence_facts facts = {0};
        const char *text =
            arena_printf(&scratch_arena,
                         "{\"run_id\":\"20261121T000000.000Z-00000001\",\"report\":\"r\","
                         "\"cells\":[{\"case\":\"a\",\"verdict\":\"%s\"}]}",
                         row->verdict);
        PASSES(evidence_facts(&scratch_arena, str_of(text), "result.json", &facts, ERR));
        assert_int_equal(facts.outcome, row->outcome);
    }
}

TEST(a_result_that_says_other_than_the_statement_is_refused)
{
    struct evidence_facts facts = {0};
    struct evidence_facts wrong;
    struct evidence_files files = {0};
    struct evidence_file file = {.name = STR_LIT(USTAR_SUMS)};
    CLEANUP(strbuf) struct strbuf payload = STRBUF(1u << 20);
    VEC_PUSH(&files, file);
    PASSES(evidence_facts(&scratch_arena, str_of(RUN[5].text), "result.json", &facts, ERR));
    assert_int_equal(facts.outcome, EVIDENCE_WARNED);
    assert_true(str_eq_z(facts.cells[1].name, "b/1"));
    evidence_statement(&payload, EVIDENCE_TEST_RESULT, &facts, &files, STR_LIT("0"));
    PASSES(evidence_statement_check(&scratch_arena, strbuf_str(&payload), EVIDENCE_TEST_RESULT,
                                    &facts, &files, ERR));
    /* Every way in which the statement may differ from result.json. */
    for (int way = 0; way < 5; way++) {
        struct evidence_cell cells[3] = {facts.cells[0], facts.cells[1], facts.cells[0]};
        wrong = facts;
        wrong.cells = cells;
        wrong.n_cells = way == 0 ? 1 : way == 1 ? 3 : 2;
        wrong.outcome = way == 2 ? EVIDENCE_PASSED : facts.outcome;
        cells[0].outcome = way == 3 ? EVIDENCE_FAILED : cells[0].outcome;
        cells[0].name = way == 4 ? STR_LIT("c") : cells[0].name;
        FAILS(evidence_statement_check(&scratch_arena, strbuf_str(&payload), EVIDENCE_TEST_RESULT,
                                       &wrong, &files, ERR),
              ERR_INTEGRITY);
    }
    FAILS(evidence_statement_check(&scratch_arena, strbuf_str(&payload), EVIDENCE_PROVENANCE,
                                   &facts, &files, ERR),
          ERR_ANY);
    VEC_RELEASE(&files);
}

TEST(folders_that_are_no_finished_run_are_refused)
{
    static const char LINK[] = "";
    static const struct {
        const char *name, *text; /* put into a good run; text NULL: removed; LINK: a link */
        enum err_code code;
        const char *says;
    } ROWS[] = {
        {"result.json", NULL, ERR_NOT_FOUND, "result.json is missing"},
        {"manifest/report.json", NULL, ERR_NOT_FOUND, "manifest/ is missing"},
        {"result.json", "{", ERR_MANIFEST, "result.json"},
        {"result.json", "{}", ERR_MANIFEST, "run_id"},
        {"result.json", "{\"run_id\":\"r\",\"report\":\"p\",\"cells\":[]}", ERR_MANIFEST, "cell"},
        {"result.json",
         "{\"run_id\":\"r\",\"report\":\"p\",\"cells\":[{\"case\":\"a\",\"verdict\":\"fine\"}]}",
         ERR_MANIFEST, "expected one of"},
        {"logs/k.pem", "-----BEGIN PRIVATE KEY-----\nMC4CAQ\n", ERR_INTEGRITY, "private key"},
        {"logs/a\nb", "x", ERR_INTEGRITY, "control character"},
        {"logs/RAW/A/rank0.log", "x", ERR_INTEGRITY, "case"},
        {"logs/raw/x", LINK, ERR_INTEGRITY, "regular file"},
    };
    const char *archive = scratch_path("none.tar.zst");
    for (EACH(row, ROWS)) {
        const char *folder = make_run("none");
        struct seal_info info;
        const char *path = fs_join(&scratch_arena, folder, row->name);
        if (row->text == LINK) {
            assert_int_equal(symlink("/etc/passwd", path), 0);
        } else if (row->text) {
            put(folder, row->name, row->text);
        } else {
            unlink(path);
        }
        FAILS_WITH(seal(folder, archive, NULL, &info, ERR), row->code, row->says);
        assert_false(fs_exists(archive));
        assert_false(fs_exists(scratch_path("none.tar.zst.partial")));
    }
}

TEST(an_archive_is_not_replaced_unasked_nor_put_into_its_run)
{
    const char *archive = sealed("there", &key), *pipe = scratch_path("pipe");
    const char *folder = scratch_path("there");
    struct str before = scratch_read(archive);
    struct seal_info info;
    struct stat status;
    struct seal_opts opts = {.folder = folder,
                             .archive = archive,
                             .is_bytes_only = true,
                             .may_replace = true,
                             .clock = clock_system()};
    seal_refuses(folder, archive, ERR_USAGE);
    assert_true(str_eq(before, scratch_read(archive)));
    seal_refuses(folder, fs_join(&scratch_arena, folder, "logs/a.tar.zst"), ERR_USAGE);
    PASSES(seal_folder(&scratch_arena, &opts, &info, ERR));
    expect_refused(archive, &key, false, ERR_AUTH, "not signed");
    /* Nor a pipe (or, for root, a device) of that name. */
    assert_int_equal(mkfifo(pipe, 0600), 0);
    opts.archive = pipe;
    FAILS(seal_folder(&scratch_arena, &opts, &info, ERR), ERR_USAGE);
    assert_int_equal(lstat(pipe, &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
}

TEST(a_full_disk_leaves_no_archive)
{
    const char *folder = make_run("full");
    const char *archive = scratch_path("full.tar.zst");
    struct rlimit old, small;
    struct seal_info info;
    struct err err = {0};
    /* At every size up to the whole: the limit strikes in each of the files that sealing writes. */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    int result = -1;
    for (rlim_t size = 0; result < 0; size += 211) {
        err = (struct err){0};
        small = (struct rlimit){size, old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        result = seal(folder, archive, &key, &info, &err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        if (result < 0) {
            assert_int_equal(err.code, ERR_DISK);
            assert_int_equal(err_exit_status(err.code), 10);
            assert_false(fs_exists(archive));
            assert_false(fs_exists(scratch_path("full.tar.zst.partial")));
        }
        assert_true(size < 100000);
    }
    expect_verified(archive, &key);
}

TEST(a_stop_leaves_nothing)
{
    const char *folder = make_run("stop"), *archive = scratch_path("stop.tar.zst");
    const char *whole = sealed("stop2", NULL);
    struct verify_info verified;
    scratch_stop();
    seal_refuses(folder, archive, ERR_INTERRUPTED);
    FAILS(verify(whole, NULL, true, &verified, ERR), ERR_INTERRUPTED);
    scratch_go_on();
    assert_false(fs_exists(archive));
    assert_false(fs_exists(scratch_path("stop.tar.zst.partial")));
}

TEST(verified_archives_unpack_in_the_same_pass)
{
    const char *archive = sealed("unpack", &key);
    const char *out = scratch_path("unpack.out");
    const struct verify_opts opts = {.path = archive,
                                     .key = &key,
                                     .unpack_to = out,
                                     .is_bytes_only = true,
                                     .clock = clock_system()};
    struct verify_opts wrong = opts;
    struct verify_info info;
    PASSES(verify_archive(&scratch_arena, &opts, &info, ERR));
    expect_verified(out, &key);
    for (EACH(row, RUN)) {
        struct str bytes = scratch_read(fs_join(&scratch_arena, out, row->name));
        assert_true(str_eq_z(bytes, row->text));
    }
    wrong.key = &other_key;
    wrong.unpack_to = scratch_path("unpack.wrong");
    FAILS(verify_archive(&scratch_arena, &wrong, &info, ERR), ERR_AUTH);
    assert_false(fs_exists(wrong.unpack_to));
}

static int load_key(const char *name, struct sign_key *ret_key)
{
    const char *path = scratch_path(name);
    char id[SIGN_KEY_ID_SIZE];
    struct err err = {0};
    if (sign_keygen(path, arena_printf(&scratch_arena, "%s.pub", path), id, &err) < 0) {
        return -1;
    }
    return sign_load_private(path, ret_key, &err);
}

static int start(void **state UNUSED)
{
    signal(SIGXFSZ, SIG_IGN);
    return scratch_start() < 0 || load_key("k1", &key) < 0 || load_key("k2", &other_key) < 0 ? -1
                                                                                             : 0;
}

static int finish(void **state UNUSED)
{
    sign_key_release(&key);
    sign_key_release(&other_key);
    return scratch_end();
}

UNIT_MAIN(start, finish)
