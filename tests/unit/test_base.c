/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <math.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/library.h"
#include "base/log.h"
#include "base/map.h"
#include "base/opt.h"
#include "base/progress.h"
#include "base/rng.h"
#include "base/secret.h"
#include "base/strbuf.h"

TEST(err_keeps_context_and_code)
{
    assert_int_equal(err_set(ERR, ERR_DISK, "write %s", "x"), -1);
    assert_int_equal(err_wrap(ERR, "node %d", 3), -1);
    assert_string_equal(ERR->msg, "node 3: write x");
    assert_int_equal(err_exit_status(ERR->code), 10);
}

TEST(err_cuts_what_is_too_long)
{
    char text[2 * ERR_MSG_MAX];
    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(err_set(ERR, ERR_IO, "%s", text), -1);
    assert_int_equal(err_wrap(ERR, "%s", text), -1);
    assert_int_equal(strlen(ERR->msg), ERR_MSG_MAX - 1);
}

TEST(numbers_are_whole_or_refused)
{
    static const char *const BAD_F64[] = {"",   "nan", "inf", "-inf", "1e999", "0x10", " 1",
                                          "1 ", "1,5", "+1",  "--1",  "1e",    ".",    "1.2.3"};
    static const char *const BAD_I64[] = {"", "-", "1.0", "9223372036854775808", "1e3", " 1", "+1"};
    double value = 0;
    int64_t whole = 0;
    for (EACH(row, BAD_F64)) {
        FAILS(str_to_f64(str_of(*row), &value, ERR), ERR_PARSE);
    }
    for (EACH(row, BAD_I64)) {
        FAILS(str_to_i64(str_of(*row), INT64_MIN, INT64_MAX, &whole, ERR), ERR_ANY);
    }
    PASSES(str_to_f64(STR_LIT("-1.25e+2"), &value, ERR));
    assert_true(value == -125.0);
    PASSES(str_to_i64(STR_LIT("-9223372036854775808"), INT64_MIN, INT64_MAX, &whole, ERR));
    assert_true(whole == INT64_MIN);
    assert_int_equal(str_decimals(STR_LIT("117.205")), 3);
    assert_int_equal(str_decimals(STR_LIT("428")), 0);
}

TEST(doubles_print_shortest_and_read_back)
{
    struct rng rng;
    rng_init(&rng, 7);
    for (int round = 0; round < 2000; round++) {
        CLEANUP(strbuf) struct strbuf buf = STRBUF(64);
        double value = (rng_f64(&rng) - 0.5) * pow(10, (double)rng_below(&rng, 40) - 20);
        strbuf_add_f64(&buf, value);
        assert_true(strtod(buf.ptr, NULL) == value);
    }
    CLEANUP(strbuf) struct strbuf buf = STRBUF(64);
    strbuf_add_f64(&buf, 117.205);
    strbuf_add_char(&buf, ' ');
    strbuf_add_f64(&buf, 3);
    assert_string_equal(buf.ptr, "117.205 3");
}

/* How many lie beyond, of each hundred thousand: 2 (1 - Phi(x)). */
TEST(normal_numbers_are_distributed_as_they_should)
{
    static const struct {
        double x, beyond;
    } tails[] = {{0.5, 61707.5}, {1, 31731.1},   {2, 4550.03},
                 {3, 269.98},    {3.4426, 57.6}, {4, 6.334}};
    enum { N = 1000000 };
    double n_beyond[ARRAY_LEN(tails)] = {0};
    double powers[4] = {0};
    struct rng rng;
    rng_init(&rng, 5);
    for (int i = 0; i < N; i++) {
        double value = rng_normal(&rng);
        double power = 1.0;
        for (size_t j = 0; j < ARRAY_LEN(powers); j++) {
            powers[j] += power *= value;
        }
        for (size_t j = 0; j < ARRAY_LEN(tails); j++) {
            n_beyond[j] += fabs(value) > tails[j].x;
        }
    }
    /* Five standard deviations of each sum, whose variances are 1, 2, 15 and 96 a number. */
    static const double moments[] = {0, 1, 0, 3};
    static const double variances[] = {1, 2, 15, 96};
    for (size_t j = 0; j < ARRAY_LEN(powers); j++) {
        assert_true(fabs(powers[j] / N - moments[j]) < 5.0 * sqrt(variances[j] / N));
    }
    for (size_t j = 0; j < ARRAY_LEN(tails); j++) {
        double want = tails[j].beyond * N / 1e5;
        assert_true(fabs(n_beyond[j] - want) < 5.0 * sqrt(want));
    }
}

TEST(whole_numbers_print_as_printf_does)
{
    static const int64_t VALUES[] = {0,         -1,       7, 10, -2147483648ll, 999999999999999,
                                     INT64_MAX, INT64_MIN};
    for (EACH(row, VALUES)) {
        CLEANUP(strbuf) struct strbuf buf = STRBUF(64);
        char wanted[32];
        strbuf_add_i64(&buf, *row);
        snprintf(wanted, sizeof(wanted), "%" PRId64, *row);
        assert_string_equal(buf.ptr, wanted);
    }
}

TEST(strbuf_stops_at_its_cap)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(4);
    strbuf_add_z(&buf, "abcd");
    assert_false(buf.is_full);
    strbuf_add_z(&buf, "e");
    assert_true(buf.is_full);
    assert_string_equal(buf.ptr, "abcd");
}

TEST(what_a_program_said_last)
{
    static const struct {
        const char *text, *shown;
    } ROWS[] = {
        {"one\n two\t\n\n \n", "two"},
        {"one", "one"},
        {"\n \n", ""},
        {"", ""},
        {"a\nb \033[31mc\td", "b ?[31mc?d"},
        {"x\xff\xe2\x80\xaey", "x????y"},
    };
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    for (EACH(row, ROWS)) {
        struct str line = quote_last_line(str_of(row->text));
        assert_int_equal(line.ptr == NULL, row->shown[0] == '\0');
        assert_string_equal(quote_shown(&arena, line), row->shown);
    }
    char *many = arena_printf(&arena, "%*s", 2 * QUOTE_SHOWN_MAX, "x");
    assert_int_equal(strlen(quote_shown(&arena, str_of(many))), QUOTE_SHOWN_MAX);
}

/* The quoting is tested with a real shell in tests/integration; here its exact form. */
TEST(shell_words_are_quoted)
{
    static const char *const WORDS[][2] = {{"a'b $c", "'a'\\''b $c'"},
                                           {"", "''"},
                                           {"~", "'~'"},
                                           {"A=b", "'A=b'"},
                                           {"a\n", "'a\n'"},
                                           {"--lr=0.1", "'--lr=0.1'"},
                                           {"./train-2.py", "./train-2.py"},
                                           {"50%", "50%"}};
    for (EACH(row, WORDS)) {
        CLEANUP(strbuf) struct strbuf buf = STRBUF(100);
        shq_append(&buf, str_of((*row)[0]));
        assert_string_equal(buf.ptr, (*row)[1]);
    }
}

TEST(map_finds_and_refuses_twice)
{
    CLEANUP(map) struct map map = {0};
    for (int idx = 0; idx < 1000; idx++) {
        char *key = arena_printf(ARENA, "key%d", idx);
        assert_true(map_add(&map, str_of(key), key));
        assert_false(map_add(&map, str_of(key), key));
    }
    assert_string_equal(map_get(&map, STR_LIT("key777")), "key777");
    assert_null(map_get(&map, STR_LIT("key1000")));
    assert_string_equal(map.entries[3].value, "key3");
}

TEST(options_parse_or_say_why)
{
    struct args {
        bool flag;
        const char *text;
        int64_t count;
    } args = {0};
    const struct opt opts[] = {
        OPT(struct args, flag, "json", "h"),
        OPT(struct args, text, "logs", "h", .letter = 'l', .value = "DIR"),
        OPT(struct args, count, "n", "h", .value = "N", .min = 1, .max = 9),
        OPT_END,
    };
    char a0[] = "x", a1[] = "--json", a2[] = "-l", a3[] = "d", a4[] = "--n=7", a5[] = "--",
         a6[] = "-y";
    char *good[] = {a0, a1, a2, a3, a4, a5, a6};
    struct opt_list operands = {0};
    PASSES(opt_parse(opts, 7, good, &args, &operands, ERR));
    assert_true(args.flag && args.count == 7);
    assert_string_equal(args.text, "d");
    assert_int_equal(operands.n, 2);
    assert_string_equal(operands.items[1], "-y");
    VEC_RELEASE(&operands);
    char b0[] = "--n", b1[] = "10";
    char *bad[] = {b0, b1};
    FAILS(opt_parse(opts, 2, bad, &args, &operands, ERR), ERR_USAGE);
    VEC_RELEASE(&operands);
}

TEST(files_are_written_whole_and_found)
{
    struct fs_names paths;
    struct str text;
    char top[] = "/tmp/reperf-unit.XXXXXX";
    assert_non_null(mkdtemp(top));
    PASSES(fs_mkdir_p(fs_join(ARENA, top, "b/c"), ERR));
    PASSES(fs_write_atomic(fs_join(ARENA, top, "b/c/f"), STR_LIT("hello"), ERR));
    PASSES(fs_write_atomic(fs_join(ARENA, top, "a"), STR_LIT("1"), ERR));
    PASSES(fs_walk(ARENA, top, &paths, ERR));
    assert_int_equal(paths.n, 2);
    assert_string_equal(paths.items[0], "a");
    assert_string_equal(paths.items[1], "b/c/f");
    PASSES(fs_read(ARENA, fs_join(ARENA, top, "b/c/f"), 5, &text, ERR));
    assert_true(str_eq_z(text, "hello"));
    FAILS(fs_read(ARENA, fs_join(ARENA, top, "b/c/f"), 4, &text, ERR), ERR_ANY);
    FAILS(fs_write_atomic(fs_join(ARENA, top, "no/such/f"), STR_LIT("1"), ERR), ERR_ANY);
    PASSES(fs_remove_tree(top, ERR));
    assert_false(fs_exists(top));
}

/* The fast way and the plain one (the fewest digits, from 6 on, that read back as the same double) agree. */
TEST(doubles_have_their_shortest_text)
{
    struct rng rng;
    rng_init(&rng, 11);
    for (int idx = 0; idx < 200000; idx++) {
        CLEANUP(strbuf) struct strbuf buf = STRBUF(64);
        char wanted[40];
        double power = (double)(1 + rng_below(&rng, 3)) * pow(10, (double)rng_below(&rng, 14) - 5);
        double value =
            idx % 2 ? (double)rng_below(&rng, 100000000) / power : rng_normal(&rng) * power;
        strbuf_add_f64(&buf, value);
        if (floor(value) == value && fabs(value) < 1e15) {
            continue;
        }
        for (int digits = 6; digits <= 17; digits++) {
            snprintf(wanted, sizeof(wanted), "%.*g", digits, value);
            if (strtod(wanted, NULL) == value) {
                break;
            }
        }
        assert_string_equal(buf.ptr, wanted);
    }
}

TEST(a_pipe_is_written_to_and_not_replaced)
{
    char folder[] = "/tmp/reperf-pipe.XXXXXX";
    CLEANUP(fd) int reader = -1;
    struct stat info;
    char got[8] = {0};
    const char *path;
    assert_non_null(mkdtemp(folder));
    path = fs_join(ARENA, folder, "pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    PASSES(fs_write_atomic(path, STR_LIT("page"), ERR));
    assert_int_equal(read(reader, got, sizeof(got)), 4);
    assert_string_equal(got, "page");
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    PASSES(fs_remove_tree(folder, ERR));
}

/* ---- a progress line on a terminal ---- */

static int64_t stepped_ns(void *ctx)
{
    return *(int64_t *)ctx;
}

#define SCREEN_MARK "\x01" /* a byte that no message contains */

struct screen { /* a simple terminal: a full row continues on the next one */
    int columns;
    int column;
    int n_rows; /* that it went on to */
    char row[256];
};

static void screen_put(struct screen *screen, char byte)
{
    if (byte == '\r') {
        screen->column = 0;
        return;
    }
    if (byte == '\n' || screen->column == screen->columns) {
        screen->n_rows++;
        screen->column = byte == '\n' ? screen->column : 0;
        memset(screen->row, ' ', sizeof(screen->row));
    }
    if (byte != '\n') {
        screen->row[screen->column++] = byte;
    }
}

/* Takes what was written to the pty so far: the kernel delivers it when it likes, so a mark shows where it ends. */
static void screen_take(struct screen *screen, int fd)
{
    char byte = '\0';
    assert_int_equal(write(STDERR_FILENO, SCREEN_MARK, 1), 1);
    while (read(fd, &byte, 1) == 1 && byte != SCREEN_MARK[0]) {
        screen_put(screen, byte);
    }
    assert_int_equal(byte, SCREEN_MARK[0]);
}

struct terminal {
    int fd;
    int stderr_fd; /* as it was */
    struct screen screen;
    int64_t now_ns;
    struct progress progress;
};

static void terminal_resize(struct terminal *t, unsigned short columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    assert_int_equal(ioctl(t->fd, TIOCSWINSZ, &size), 0);
    t->screen.columns = columns ? columns : 80;
    memset(t->screen.row, ' ', sizeof(t->screen.row));
    t->screen.column = 0;
}

static void terminal_open(struct terminal *t, unsigned short columns)
{
    int slave = -1;
    *t = (struct terminal){.now_ns = 1};
    fflush(NULL);
    assert_int_equal(openpty(&t->fd, &slave, NULL, NULL, NULL), 0);
    terminal_resize(t, columns);
    t->stderr_fd = dup(STDERR_FILENO);
    assert_true(dup2(slave, STDERR_FILENO) == STDERR_FILENO);
    close(slave);
    progress_start(&t->progress, (struct clock_src){stepped_ns, stepped_ns, &t->now_ns}, "unpack",
                   "bytes", 1u << 31);
}

static void terminal_close(struct terminal *t)
{
    dup2(t->stderr_fd, STDERR_FILENO);
    close(t->stderr_fd);
    close(t->fd);
}

/* Shows how far it is; returns the row, without the blanks at its end. */
static const char *terminal_show(struct terminal *t, uint64_t done)
{
    static char row[257];
    size_t len = sizeof(t->screen.row);
    t->now_ns += 2 * NS_PER_S;
    progress_set(&t->progress, done);
    screen_take(&t->screen, t->fd);
    while (len > 0 && t->screen.row[len - 1] == ' ') {
        len--;
    }
    memcpy(row, t->screen.row, len);
    row[len] = '\0';
    return row;
}

TEST(progress_stays_in_its_row)
{
    static const unsigned short COLUMNS[] = {80, 132, 60, 40, 20, 2, 1};
    for (size_t idx = 0; idx < ARRAY_LEN(COLUMNS); idx++) {
        struct terminal t;
        terminal_open(&t, COLUMNS[idx]);
        const char *row = terminal_show(&t, 1u << 30);
        assert_true(strlen(row) < COLUMNS[idx]);
        assert_int_equal(t.screen.n_rows, 0);
        if (COLUMNS[idx] >= 60) { /* the bar is dropped before the text */
            assert_non_null(strstr(row, "MB/s, 2 s left"));
        }
        row = terminal_show(&t, 1);
        assert_int_equal(t.screen.n_rows, 0);
        /* A message replaces it, and leaves nothing of it. */
        log_line(LOG_WARN, "x");
        screen_take(&t.screen, t.fd);
        assert_true(t.screen.n_rows == 1 || COLUMNS[idx] < 20);
        terminal_close(&t);
    }
}

TEST(progress_follows_its_terminal)
{
    struct terminal t;
    terminal_open(&t, 120);
    size_t wide = strlen(terminal_show(&t, 1u << 30));
    assert_true(wide > 50 && wide < 80);
    terminal_resize(&t, 50);
    assert_true(strlen(terminal_show(&t, 1u << 30)) < 50);
    assert_int_equal(t.screen.n_rows, 0);
    terminal_resize(&t, 120);
    assert_int_equal(strlen(terminal_show(&t, (1u << 30) + 7)), wide);
    progress_end(&t.progress);
    screen_take(&t.screen, t.fd);
    for (size_t idx = 0; idx < sizeof(t.screen.row); idx++) {
        assert_int_equal(t.screen.row[idx], ' ');
    }
    assert_int_equal(t.screen.n_rows, 0);
    terminal_close(&t);
}

/* A terminal that does not say how wide it is: COLUMNS, else 80. */
TEST(progress_asks_the_environment)
{
    struct terminal t;
    terminal_open(&t, 0);
    assert_int_equal(setenv("COLUMNS", "44", 1), 0);
    assert_true(strlen(terminal_show(&t, 1u << 30)) == 43);
    assert_int_equal(setenv("COLUMNS", "-1", 1), 0);
    assert_int_equal(log_columns(), 80);
    assert_int_equal(unsetenv("COLUMNS"), 0);
    assert_int_equal(log_columns(), 80);
    terminal_resize(&t, 33);
    assert_int_equal(log_columns(), 33);
    terminal_close(&t);
}

TEST(text_from_outside_does_not_steer_a_terminal)
{
    static const struct {
        const char *text, *wanted;
    } ROWS[] = {
        {"plain \t text\n", "plain \t text\n"},
        {"\x1b[31mred\x1b]0;title\x07", "?[31mred?]0;title?"},
        {"\xc2\x9b"
         "31m",
         "??31m"},
        {"\x9b"
         "31m",
         "?31m"},
        {"a\xe2\x80\xae"
         "b\xe2\x81\xa6"
         "c\xd8\x9c",
         "a???b???c??"},
        {"\xe2\x80\xa8\xef\xbb\xbf", "??????"},
        {"gr\xc3\xbc\xc3\x9f \xe4\xb8\xad \xf0\x9f\x99\x82",
         "gr\xc3\xbc\xc3\x9f \xe4\xb8\xad \xf0\x9f\x99\x82"},
        {"\xc0\x9b \xed\xa0\x80 \xf5\x80", "?? ??? ??"},
        {"\xe2\x80", "??"},
        {"\x7f\r", "??"},
    };
    for (EACH(row, ROWS)) {
        char text[64];
        snprintf(text, sizeof(text), "%s", row->text);
        text_plain(text, strlen(text));
        assert_string_equal(text, row->wanted);
    }
    char painted[] = "\x1b[31ma\x1b[8mb\x1b[0m\tc\n";
    text_plain_painted(painted, strlen(painted));
    assert_string_equal(painted, "\x1b[31ma?[8mb\x1b[0m\tc\n");
    char line[] = "a\x1b[31m\tb\n";
    text_plain_line(line, strlen(line));
    assert_string_equal(line, "a?[31m?b?");
}

TEST(passwords_of_urls_are_hidden)
{
    static const struct {
        const char *text, *wanted;
    } ROWS[] = {
        {"get https://me:hush@host/x: gone", "get https://me:****@host/x: gone"},
        {"https://me:h@sh@host", "https://me:****@host"},
        {"ssh://git@host/x and http://host:80/a@b", "ssh://git@host/x and http://host:80/a@b"},
        {"a://b:c@d e://f:g@h", "a://b:*@d e://f:*@h"},
        {"://", "://"},
        {"-e HF_TOKEN=abc -e A=b", "-e HF_TOKEN=*** -e A=b"},
        {"https://h/x?token=abc&n=2", "https://h/x?token=***&n=2"},
        {"expected key=value", "expected key=value"},
        {"hf_bert_base_uncased_config.json", "hf_bert_base_uncased_config.json"},
        {"said ghp_abcdefghijklmnopqrst.", "said ghp_*********************"},
    };
    for (EACH(row, ROWS)) {
        char text[64];
        snprintf(text, sizeof(text), "%s", row->text);
        secret_hide(text, strlen(text));
        assert_string_equal(text, row->wanted);
    }
}

/* 30 spellings, and what only looks like them. */
TEST(secrets_are_known_by_name_and_value)
{
    static const char *const SECRETS[] = {"MY_TOKEN=x",
                                          "HF_TOKEN=x",
                                          "hf_token=x",
                                          "GITHUBTOKEN=x",
                                          "TOKEN_FILE=x",
                                          "MY_PW=x",
                                          "MYSQL_PWD=x",
                                          "PGPASSWORD=x",
                                          "DB_PASS=x",
                                          "SSH_PASSPHRASE=x",
                                          "API_CRED=x",
                                          "CREDS_CRED=x",
                                          "GOOGLE_APPLICATION_CREDENTIALS=x",
                                          "AWS_SECRET_ACCESS_KEY=x",
                                          "AWS_ACCESS_KEY_ID=x",
                                          "API_KEY=x",
                                          "WANDBAPIKEY=x",
                                          "TLS_PRIVATE_KEY=x",
                                          "SESSION_COOKIE=x",
                                          "REGISTRY_AUTH=x",
                                          "AZURE_PAT=x",
                                          "SENTRY_DSN=x",
                                          "CUDA_SECRET=x",
                                          "ID=AKIAIOSFODNN7EXAMPLE",
                                          "GH=ghp_abcdefghijklmnopqrstuvwxyz0123456789",
                                          "X=glpat-abcdefghijklmnopqrst",
                                          "X=xoxb-123456789012-abcdefghijkl",
                                          "X=hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
                                          "X=sk-proj-abcdefghijklmnopqrstuvwx",
                                          "J=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
                                          "P=-----BEGIN PRIVATE KEY-----",
                                          "U=https://me:pw@host/x",
                                          "H=Bearer abc"};
    static const char *const OTHERS[] = {
        "PWD=/home/me",       "TOKENIZERS_PARALLELISM=false", "MAX_TOKENS=5", "NCCL_IB_PKEY=0",
        "CUDA_CACHE_PATH=/x", "NCCL_SOCKET_IFNAME=eth0",      "PASSES=3",     "U=https://host/x",
        "A=sk-learn"};
    for (size_t idx = 0; idx < ARRAY_LEN(SECRETS) + ARRAY_LEN(OTHERS); idx++) {
        bool is_secret = idx < ARRAY_LEN(SECRETS);
        struct str value = str_of(is_secret ? SECRETS[idx] : OTHERS[idx - ARRAY_LEN(SECRETS)]);
        struct str name = STR_EMPTY;
        assert_true(str_next(&value, '=', &name));
        if (secret_is(name, value) != is_secret) {
            print_error("%.*s\n", STR_ARG(name));
        }
        assert_int_equal(secret_is(name, value), is_secret);
    }
}

TEST(a_library_is_opened_once_with_all_its_functions_or_named)
{
    static const char *const THERE[] = {"cos", "sin"};
    static const char *const LACKS[] = {"cos", "no_such_function"};
    struct {
        double (*cos)(double);
        double (*sin)(double);
    } math = {NULL, NULL};
    struct library library = {"libm.so.6", THERE, 2, &math, false};
    struct library lacking = {"libm.so.6", LACKS, 2, &math, false};
    struct library missing = {"libreperf-no-such.so.9", THERE, 2, &math, false};
    struct err err = {ERR_NONE};
    assert_int_equal(library_open(&lacking, &err), -1);
    assert_int_equal(err.code, ERR_INTERNAL);
    assert_non_null(strstr(err.msg, "libm.so.6 on this machine has no no_such_function"));
    assert_false(lacking.is_open);
    err = (struct err){ERR_NONE};
    assert_int_equal(library_open(&missing, &err), -1);
    assert_non_null(strstr(err.msg, "libreperf-no-such.so.9"));
    assert_int_equal(library_open(&library, &err), 0);
    assert_true(math.cos(0) > 0.99 && math.sin(0) < 0.01);
    math.cos = NULL;
    assert_int_equal(library_open(&library, &err), 0);
    assert_null(math.cos); /* it was open */
}
