/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries looked for at run time, with libraries built here: none, one without a symbol, too old, another major version, and
   several of which the right one must be chosen. */
#include "unit.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "core/load.h"

extern char **environ;

static char folder[] = "/tmp/reperf-load-XXXXXX";
static load_fn table[2];

static int version_of(load_fn fn)
{
    return ((int (*)(void))fn)();
}

static const struct load_want WANT = {.what = "Fake",
                                      .soname = "libreperf_fake.so.9",
                                      .folder_variable = "REPERF_FAKE_DIR",
                                      .version_symbol = "fake_version",
                                      .version = version_of,
                                      .version_min = 90300,
                                      .version_end = 100000,
                                      .symbols = (const char *const[]){"fake_version", "fake_add"},
                                      .n_symbols = 2,
                                      .table = table};

/* `name` below the folder, from C text. False: there is no compiler here. */
static bool build(const char *name, const char *text)
{
    char *source = arena_printf(ARENA, "%s/source.c", folder);
    char *out = fs_join(ARENA, folder, name);
    char *slash = strrchr(out, '/');
    *slash = '\0';
    PASSES(fs_mkdir_p(out, ERR));
    *slash = '/';
    PASSES(fs_write_atomic(source, str_of(text), ERR));
    char *argv[] = {
        (char[]){"cc"}, (char[]){"-shared"}, (char[]){"-fPIC"}, (char[]){"-o"}, out, source, NULL};
    pid_t pid = 0;
    int status = -1;
    if (posix_spawnp(&pid, "cc", NULL, NULL, argv, environ) != 0) {
        return false;
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    return true;
}

#define FAKE(version) "int fake_version(void) { return " #version "; }\n"
#define ADD           "int fake_add(int a, int b) { return a + b; }\n"

static void set_up_folder(const char *name)
{
    assert_int_equal(setenv("REPERF_FAKE_DIR", fs_join(ARENA, folder, name), 1), 0);
}

static void refused(const char *expected)
{
    struct load load = {0};
    FAILS(load_open(&WANT, &load, ERR), ERR_USAGE);
    assert_null(load.handle);
    if (!strstr(ERR->msg, expected) || !strstr(ERR->msg, "9.3.0") || !strstr(ERR->msg, "10.0.0")) {
        fail_msg("\"%s\" does not say \"%s\" and what is wanted", ERR->msg, expected);
    }
}

TEST(says_what_is_wrong)
{
    if (!build("short/libreperf_fake.so.9", FAKE(90400))) {
        skip(); /* no compiler */
    }
    (void)build("old/libreperf_fake.so.9", FAKE(90299) ADD);
    (void)build("major/libreperf_fake.so.9", FAKE(100000) ADD);
    (void)build("silent/libreperf_fake.so.9", FAKE(-1) ADD);
    (void)build("mute/libreperf_fake.so.9", ADD);
    (void)build("other/libreperf_fake.so.8", FAKE(80907) ADD);
    set_up_folder("none");
    refused("no such file");
    set_up_folder("short");
    refused("has no fake_add");
    set_up_folder("old");
    refused("is version 9.2.99");
    set_up_folder("major");
    refused("is version 10.0.0");
    set_up_folder("silent");
    refused("does not say its version");
    set_up_folder("mute");
    refused("has no fake_version");
    set_up_folder("other");
    refused("libreperf_fake.so.8: another major version");
    unsetenv("REPERF_FAKE_DIR");
    refused("not on the loader's path");
}

TEST(damaged_file_is_refused)
{
    PASSES(fs_mkdir_p(fs_join(ARENA, folder, "damaged"), ERR));
    PASSES(fs_write_atomic(fs_join(ARENA, folder, "damaged/libreperf_fake.so.9"),
                           STR_LIT("no library"), ERR));
    set_up_folder("damaged");
    refused("damaged/libreperf_fake.so.9: ");
}

TEST(takes_the_first_that_fits)
{
    struct load load = {0};
    if (!build("cuda/lib64/libreperf_fake.so.9", FAKE(90100) ADD)) {
        skip();
    }
    (void)build("venv/lib/python3.12/site-packages/nvidia/fake/lib/libreperf_fake.so.9",
                FAKE(91901) ADD);
    unsetenv("REPERF_FAKE_DIR");
    assert_int_equal(setenv("CUDA_HOME", fs_join(ARENA, folder, "cuda"), 1), 0);
    assert_int_equal(setenv("VIRTUAL_ENV", fs_join(ARENA, folder, "venv"), 1), 0);
    PASSES(load_open(&WANT, &load, ERR));
    assert_int_equal(load.version, 91901);
    assert_non_null(strstr(load.path, "/venv/"));
    assert_int_equal(((int (*)(int, int))table[1])(3, 4), 7);
    char text[LOAD_VERSION_MAX];
    load_version_text(load.version, text);
    assert_string_equal(text, "9.19.1");
    load_close(&load);
    assert_null(load.handle);
    load_close(&load);
    /* A folder given by the variable is the only one searched. */
    set_up_folder("none");
    refused("no such file");
    set_up_folder("cuda");
    refused("is version 9.1.0");
}

static int make_folder(void **state UNUSED)
{
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state UNUSED)
{
    struct err err = {0};
    return fs_remove_tree(folder, &err);
}

UNIT_MAIN(make_folder, remove_folder)
