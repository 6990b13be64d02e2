/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries looked for at run time, with libraries built here: none, one without a symbol, too old, another major version, and
   several of which the right one must be chosen. */
#include "unit.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/load.h"
#include "scratch.h"

extern char **environ;

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
    char *source = fs_join(ARENA, scratch_folder, "source.c");
    char *out = fs_join(ARENA, scratch_folder, name);
    scratch_put(scratch_folder, name, STR_EMPTY);
    scratch_write(source, str_of(text));
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
    assert_int_equal(setenv("REPERF_FAKE_DIR", scratch_path(name), 1), 0);
}

static void refused(const char *expected)
{
    struct load load = {0};
    FAILS_WITH(load_open(&WANT, &load, ERR), ERR_USAGE, expected);
    assert_null(load.handle);
    SAYS("9.3.0");
    SAYS("10.0.0");
}

TEST(says_what_is_wrong)
{
    static const struct {
        const char *name, *text, *says;
    } ROWS[] = {
        {"short/libreperf_fake.so.9", FAKE(90400), "has no fake_add"},
        {"old/libreperf_fake.so.9", FAKE(90299) ADD, "is version 9.2.99"},
        {"major/libreperf_fake.so.9", FAKE(100000) ADD, "is version 10.0.0"},
        {"silent/libreperf_fake.so.9", FAKE(-1) ADD, "does not say its version"},
        {"mute/libreperf_fake.so.9", ADD, "has no fake_version"},
        {"other/libreperf_fake.so.8", FAKE(80907) ADD,
         "libreperf_fake.so.8: another major version"},
    };
    for (EACH(row, ROWS)) {
        if (!build(row->name, row->text)) {
            skip(); /* no compiler */
        }
        set_up_folder(arena_strndup(ARENA, row->name, strcspn(row->name, "/")));
        refused(row->says);
    }
    set_up_folder("none");
    refused("no such file");
    unsetenv("REPERF_FAKE_DIR");
    refused("not on the loader's path");
}

TEST(damaged_file_is_refused)
{
    scratch_put(scratch_folder, "damaged/libreperf_fake.so.9", STR_LIT("no library"));
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
    assert_int_equal(setenv("CUDA_HOME", scratch_path("cuda"), 1), 0);
    assert_int_equal(setenv("VIRTUAL_ENV", scratch_path("venv"), 1), 0);
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

UNIT_MAIN(scratch_group_start, scratch_group_end)
