/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of repositories; and real repositories, made here, fetched by file://, checked out, changed, exported. */
#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "report/source.h"
#include "store/source_store.h"
#include "sys/child.h"
#include "tests/unit/scratch.h"

/* --- addresses ---------------------------------------------------------------------------------------------------------------- */

TEST_IN_SCRATCH(test_urls)
{
    static const struct {
        const char *url, *says; /* says NULL: fine */
    } ROWS[] = {
        {"https://github.com/PaddlePaddle/PaddleSeg.git", NULL},
        {"https://github.com/PaddlePaddle/PaddleSeg", NULL},
        {"http://127.0.0.1:8080/r.git", NULL},
        {"git://127.0.0.1/r.git", NULL},
        {"ssh://git@host.example/r.git", NULL},
        {"git@github.com:owner/r.git", NULL},
        {"file:///srv/r.git", NULL},
        {"https://github.com/PaddlePaddle/models/tree/release/1.8", "cannot be cloned"},
        {"https://github.com/PaddlePaddle/models/tree/release/1.8",
         "probably https://github.com/PaddlePaddle/models.git"},
        {"https://github.com/a/b/blob/main/README.md", "is a page"},
        {"https://gitlab.com/a/b/c/-/tree/main", "is a page"},
        {"https://github.com/tree/blob", NULL},
        {"https://user:secret@github.com/a/b", "user or password"},
        {"ssh://user:secret@host.example/r.git", "user or password"},
        {"ext::sh -c id", "blank"},
        {"ext::sh", "expected https"},
        {"--upload-pack=id", "not the address"},
        {"/srv/r.git", "expected https"},
        {"ftp://host/r.git", "expected https, http, git, ssh or file"},
        {"https:///r.git", "no host"},
        {"https://-oProxyCommand=id/r", "no host"},
        {"https://host/a\nb", "control"},
        {"", "not the address"},
    };
    for (EACH(row, ROWS)) {
        struct err err = {0};
        int result = source_check_url(str_of(row->url), &err);
        if (!row->says != (result == 0) || (row->says && !strstr(err.msg, row->says))) {
            fail_msg("%s: %s", row->url, err.msg);
        }
        assert_true(result == 0 || err.code == ERR_USAGE);
    }
}

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

TEST_IN_SCRATCH(test_names)
{
    struct source_name name;
    struct err err = {0};
    char *one, *other;
    PASSES(source_parse_name(&scratch_arena, STR_LIT("git@h.example:a/b.git@" COMMIT), &name, ERR));
    assert_string_equal(name.url, "git@h.example:a/b.git");
    assert_string_equal(name.commit, COMMIT);
    assert_null(name.ref);
    PASSES(source_parse_name(&scratch_arena, STR_LIT("https://h/a@release/1.8"), &name, ERR));
    assert_string_equal(name.ref, "release/1.8");
    assert_null(name.commit);
    assert_null(name.paths);
    PASSES(source_parse_name(&scratch_arena, STR_LIT("https://h/a@main:b/c,a-b,a"), &name, ERR));
    assert_string_equal(name.ref, "main");
    assert_string_equal(name.paths, "a,a-b,b/c");
    static const char *const BAD[] = {"https://h/a",
                                      "https://h/a@",
                                      "https://h/a@--upload-pack=x",
                                      "https://h/a@0123456",
                                      "https://h/a@a..b",
                                      "@" COMMIT,
                                      "https://h/a@main:",
                                      "https://h/a@main:a,",
                                      "https://h/a@main:/a",
                                      "https://h/a@main:a//b",
                                      "https://h/a@main:a/./b",
                                      "https://h/a@main:../a",
                                      "https://h/a@main:-a",
                                      "https://h/a@main:a:b",
                                      "https://h/a@main:a*",
                                      "https://h/a@main:a,b,a",
                                      "https://h/a@main:a,a-b,a/b",
                                      "https://h/o/r/tree/x@main",
                                      "https://h/a@0123456789ABCDEF0123456789abcdef01234567"};
    for (EACH(row, BAD)) {
        err = (struct err){0};
        if (source_parse_name(&scratch_arena, str_of(*row), &name, &err) == 0) {
            fail_msg("taken: %s", *row);
        }
        assert_int_equal(err.code, ERR_USAGE);
    }
    err = (struct err){0};
    one = source_repo_name(&scratch_arena, "https://github.com/A/B.git");
    other = source_repo_name(&scratch_arena, "https://github.com/a/b.git");
    assert_int_equal(strncmp(one, "github.com-A-B-", 15), 0);
    assert_string_not_equal(one + 15, other + 15);
    other = source_repo_name(&scratch_arena, "https://github.com/A/B");
    assert_string_equal(one, other);
    one = source_repo_name(&scratch_arena, "https://h/../../x");
    assert_null(strchr(one, '/'));
    assert_true(one[0] != '.');
}

TEST_IN_SCRATCH(test_relative)
{
    static const struct {
        const char *base, *url, *whole;
    } ROWS[] = {
        {"https://h.example/a/b.git", "../c.git", "https://h.example/a/c.git"},
        {"https://h.example/a/b.git", "../../d/c.git", "https://h.example/d/c.git"},
        {"https://h.example/a/b.git/", "./c", "https://h.example/a/b.git/c"},
        {"git@h.example:a/b.git", "../c.git", "git@h.example:a/c.git"},
        {"git@h.example:b.git", "../c.git", "git@h.example:c.git"},
        {"file:///srv/b", "../c", "file:///srv/c"},
        {"https://h.example/a/b.git", "https://other.example/x", "https://other.example/x"},
        {"https://h.example/b.git", "../../c.git", NULL},
        {"https://h.example/b.git", "ext::sh", NULL},
        {"https://h.example/b.git", "-x", NULL},
    };
    for (EACH(row, ROWS)) {
        struct err err = {0};
        char *whole = NULL;
        int result = source_resolve_url(&scratch_arena, row->base, str_of(row->url), &whole, &err);
        if (row->whole) {
            assert_int_equal(result, 0);
            assert_string_equal(whole, row->whole);
        } else {
            assert_int_equal(result, -1);
        }
    }
}

/* --- repositories ------------------------------------------------------------------------------------------------------------- */

/* A library, and a main repository with it below lib/ by a relative address; the main one has every kind of file, and attributes
   that would change what is checked out and exported. */
static const char MAKE[] =
    "set -e; cd \"$1\"; export HOME=/nonexistent GIT_CONFIG_GLOBAL=/dev/null "
    "GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a "
    "GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'\n"
    "git init -q -b main lib; cd lib; echo lib > l.c; git add .; git commit -qm lib; cd ..\n"
    "git init -q -b main main; cd main\n"
    "printf 'a\\r\\n$Id$ $Format:%%H$\\n' > crlf.txt; echo hidden > hidden.txt; ln -s crlf.txt "
    "link; "
    "ln -s . here\n"
    "printf '#!/bin/sh\\n' > run.sh; chmod +x run.sh; mkdir -p d/e; echo '*.o' > .gitignore; "
    "echo x > d/e/x.o\n"
    "printf '* text=auto eol=lf ident\\nhidden.txt export-ignore\\ncrlf.txt export-subst\\n' > "
    "attributes\n"
    "git add -f .; git -c core.autocrlf=false commit -qm one; git mv attributes .gitattributes; "
    "git commit -qm attributes\n"
    "git -c protocol.file.allow=always submodule --quiet add ../lib lib 2>/dev/null; git commit "
    "-qm lib\n"
    "git tag -a -m tag v1; git rev-parse HEAD v1 HEAD^{tree}\n";

struct made {
    const char *url, *folder;
    const char *commit, *tag, *tree;
    struct store store;
    struct net_opts net;
    struct sources sources;
};

static void run_script(const char *script, const char *arg, struct strbuf *out)
{
    const char *const argv[] = {"/bin/sh", "-c", script, "-", arg, NULL};
    int status = -1;
    PASSES(child_capture(clock_system(), argv, 60 * NS_PER_S, out, &status, ERR));
    if (status != 0) {
        fail_msg("%s", out->ptr);
    }
}

static void make(void **state, struct made *m)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(1u << 16);
    struct str rest;
    struct str line;
    const char **const places[] = {&m->commit, &m->tag, &m->tree};
    *m = (struct made){.folder = *state, .store = STORE_EMPTY};
    run_script(MAKE, m->folder, &out);
    rest = str_trim(strbuf_str(&out));
    for (EACH(row, places)) {
        assert_true(str_next(&rest, '\n', &line));
        assert_true(source_is_commit(line));
        **row = str_z(&scratch_arena, line);
    }
    m->url = arena_printf(&scratch_arena, "file://%s/main", m->folder);
    m->net.clock = clock_system();
    PASSES(store_open(&scratch_arena, fs_join(&scratch_arena, m->folder, "store"), &m->store, ERR));
    PASSES(sources_init(&m->sources, &scratch_arena, &m->store, &m->net, ERR));
}

TEST_IN_SCRATCH(test_fetch)
{
    struct made m;
    struct source_tree tree;
    const char *commit;
    make(state, &m);
    FAILS(source_verify(&m.sources, m.url, m.commit, true, &tree, ERR), ERR_NOT_FOUND);
    PASSES(source_fetch(&m.sources, m.url, m.commit, &tree, ERR));
    assert_int_equal(tree.n, 2);
    assert_string_equal(tree.parts[0].tree, m.tree);
    assert_true(tree.parts[0].is_new && tree.parts[1].is_new);
    assert_string_equal(tree.parts[1].path, "lib");
    PASSES(source_fetch(&m.sources, m.url, m.commit, &tree, ERR));
    assert_false(tree.parts[0].is_new || tree.parts[1].is_new);
    PASSES(source_verify(&m.sources, m.url, m.commit, true, &tree, ERR));
    PASSES(source_resolve(&m.sources, m.url, "main", &commit, ERR));
    assert_string_equal(commit, m.commit);
    PASSES(source_resolve(&m.sources, m.url, "v1", &commit, ERR));
    assert_string_equal(commit, m.commit); /* of the tag's commit, not the tag */
    FAILS(source_resolve(&m.sources, m.url, "none", &commit, ERR), ERR_FETCH);
    FAILS(source_fetch(&m.sources, m.url, m.tag, &tree, ERR), ERR_MANIFEST);
    FAILS(source_fetch(&m.sources, m.url, m.tree, &tree, ERR), ERR_MANIFEST);
    FAILS(source_fetch(&m.sources, m.url, COMMIT, &tree, ERR), ERR_FETCH);
    m.net.is_offline = true;
    PASSES(source_fetch(&m.sources, m.url, m.commit, &tree, ERR));
    FAILS(source_fetch(&m.sources, "https://h.example/r", COMMIT, &tree, ERR), ERR_FETCH);
    store_close(&m.store);
}

static void write_below(const char *folder, const char *path, const char *text)
{
    scratch_write(fs_join(&scratch_arena, folder, path), str_of(text));
}

TEST_IN_SCRATCH(test_checkout)
{
    struct made m;
    struct source_tree tree;
    struct str text;
    make(state, &m);
    const char *folder = fs_join(&scratch_arena, m.folder, "out");
    PASSES(source_fetch(&m.sources, m.url, m.commit, &tree, ERR));
    PASSES(source_checkout(&m.sources, &tree, folder, ERR));
    /* As committed: no line ends, no $Id$ changed. */
    text = scratch_read(fs_join(&scratch_arena, folder, "crlf.txt"));
    assert_true(str_eq_z(text, "a\r\n$Id$ $Format:%H$\n"));
    text = scratch_read(fs_join(&scratch_arena, folder, "lib/l.c"));
    assert_true(str_eq_z(text, "lib\n"));
    assert_int_equal(access(fs_join(&scratch_arena, folder, "run.sh"), X_OK), 0);
    PASSES(source_check_folder(&m.sources, &tree, folder, ERR));
    FAILS(source_checkout(&m.sources, &tree, folder, ERR), ERR_USAGE);
    write_below(folder, "d/e/x.o", "y"); /* ignored by .gitignore, not by us */
    FAILS_WITH(source_check_folder(&m.sources, &tree, folder, ERR), ERR_INTEGRITY, "d/e/x.o");
    write_below(folder, "d/e/x.o", "x\n");
    write_below(folder, "d/new.pyc", "x\n");
    FAILS_WITH(source_check_folder(&m.sources, &tree, folder, ERR), ERR_INTEGRITY, "d/new.pyc");
    assert_int_equal(unlink(fs_join(&scratch_arena, folder, "d/new.pyc")), 0);
    assert_int_equal(unlink(fs_join(&scratch_arena, folder, "hidden.txt")), 0);
    FAILS_WITH(source_check_folder(&m.sources, &tree, folder, ERR), ERR_INTEGRITY, "hidden.txt");
    write_below(folder, "hidden.txt", "hidden\n");
    assert_int_equal(chmod(fs_join(&scratch_arena, folder, "run.sh"), 0644), 0);
    FAILS_WITH(source_check_folder(&m.sources, &tree, folder, ERR), ERR_INTEGRITY, "run.sh");
    assert_int_equal(chmod(fs_join(&scratch_arena, folder, "run.sh"), 0755), 0);
    write_below(folder, "lib/l.c", "bil\n");
    FAILS_WITH(source_check_folder(&m.sources, &tree, folder, ERR), ERR_INTEGRITY, "l.c");
    write_below(folder, "lib/l.c", "lib\n");
    PASSES(source_check_folder(&m.sources, &tree, folder, ERR));
    store_close(&m.store);
}

/* ---- a part ---- */

static void lose_blob(const struct made *m, const char *path)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(1u << 16);
    run_script(arena_printf(&scratch_arena,
                            "cd \"$1\"/main && h=$(git rev-parse HEAD:%s) && mv "
                            ".git/objects/$(echo $h | sed 's,^..,&/,') ../lost",
                            path),
               m->folder, &out);
}

/* A repository without a blob gives what does not need it, under the commit's own id, and nothing else. */
TEST_IN_SCRATCH(test_part)
{
    struct made m;
    struct source_tree tree;
    make(state, &m);
    const char *folder = fs_join(&scratch_arena, m.folder, "out");
    const char *part = arena_printf(&scratch_arena, "%s:crlf.txt,d,link", m.commit);
    const char *hidden = arena_printf(&scratch_arena, "%s:d,hidden.txt", m.commit);
    lose_blob(&m, "hidden.txt");
    FAILS(source_fetch(&m.sources, m.url, m.commit, &tree, ERR), ERR_FETCH);
    FAILS(source_fetch(&m.sources, m.url, hidden, &tree, ERR), ERR_FETCH);
    FAILS(source_verify(&m.sources, m.url, hidden, false, &tree, ERR), ERR_NOT_FOUND);
    PASSES(source_fetch(&m.sources, m.url, part, &tree, ERR));
    assert_int_equal(tree.n, 1); /* the submodule lies outside */
    assert_string_equal(tree.parts[0].tree, m.tree);
    assert_int_equal(tree.parts[0].n_files, 3);
    assert_int_equal(tree.parts[0].n_all, 10);
    m.net.is_offline = true;
    PASSES(source_fetch(&m.sources, m.url, part, &tree, ERR));
    assert_false(tree.parts[0].is_new);
    PASSES(source_verify(&m.sources, m.url, part, true, &tree, ERR));
    PASSES(source_checkout(&m.sources, &tree, folder, ERR));
    assert_false(fs_exists(fs_join(&scratch_arena, folder, "run.sh")));
    assert_true(str_eq_z(scratch_read(fs_join(&scratch_arena, folder, "d/e/x.o")), "x\n"));
    write_below(folder, "d/e/x.o", "y");
    FAILS_WITH(source_check_folder(&m.sources, &tree, folder, ERR), ERR_INTEGRITY, "d/e/x.o");
    write_below(folder, "d/e/x.o", "x\n");
    write_below(folder, "run.sh", "#!/bin/sh\n"); /* of the commit, not of the part */
    FAILS_WITH(source_check_folder(&m.sources, &tree, folder, ERR), ERR_INTEGRITY, "run.sh");
    store_close(&m.store);
}

TEST_IN_SCRATCH(test_part_of)
{
    struct made m;
    struct source_tree tree;
    struct lock lock, other;
    make(state, &m);
    const char *part = arena_printf(&scratch_arena, "%s:d", m.commit);
    const char *with_lib = arena_printf(&scratch_arena, "%s:.gitmodules,lib", m.commit);
    FAILS_WITH(source_fetch(&m.sources, m.url, arena_printf(&scratch_arena, "%s:lib", m.commit),
                            &tree, ERR),
               ERR_MANIFEST, ".gitmodules");
    FAILS(source_fetch(&m.sources, m.url, arena_printf(&scratch_arena, "%s:d,e", m.commit), &tree,
                       ERR),
          ERR_MANIFEST);
    FAILS(source_fetch(&m.sources, m.url, arena_printf(&scratch_arena, "%s:d,a", m.commit), &tree,
                       ERR),
          ERR_MANIFEST);
    PASSES(source_fetch(&m.sources, m.url, with_lib, &tree, ERR));
    assert_int_equal(tree.n, 2);
    PASSES(source_checkout(&m.sources, &tree, fs_join(&scratch_arena, m.folder, "out"), ERR));
    assert_true(fs_exists(fs_join(&scratch_arena, m.folder, "out/lib/l.c")));
    PASSES(source_fetch(&m.sources, m.url, m.commit, &tree, ERR));
    m.net.is_offline = true;
    PASSES(source_fetch(&m.sources, m.url, part, &tree, ERR)); /* of the whole commit */
    assert_false(tree.parts[0].is_new);
    source_lock_of(&scratch_arena, &tree, "id", NULL, "2026-01-01T00:00:00Z", &lock);
    assert_true(str_eq_z(lock.items[0].paths, "d") && lock.n_files == 1);
    other = lock;
    struct lock_item item = lock.items[0];
    other.items = &item;
    other.items[0].selection = str_of(COMMIT);
    FAILS(lock_check(&lock, &other, ERR), ERR_INTEGRITY);
    store_close(&m.store);
}

/* Damage is detected even though a part may lack objects. */
TEST_IN_SCRATCH(test_part_damage)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(1u << 16);
    struct made m;
    struct source_tree tree;
    make(state, &m);
    const char *part = arena_printf(&scratch_arena, "%s:d", m.commit);
    PASSES(source_fetch(&m.sources, m.url, part, &tree, ERR));
    run_script("cd \"$1\"/store/sources/*.git/objects/pack && for p in *.pack; do chmod u+w $p; "
               "s=$(stat -c %s $p); printf 'XX' | dd of=$p bs=1 seek=$((s - 24)) conv=notrunc "
               "2>/dev/null; done",
               m.folder, &out);
    FAILS(source_verify(&m.sources, m.url, part, true, &tree, ERR), ERR_INTEGRITY);
    run_script("rm -rf \"$1\"/store/sources/*.git/objects/pack/*", m.folder, &out);
    FAILS(source_verify(&m.sources, m.url, part, false, &tree, ERR), ERR_ANY);
    store_close(&m.store);
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
