/* SPDX-License-Identifier: Apache-2.0 */
/* What `measure` reads: standard input, and files that are no logs. */
#include "base/base.h"

#include "cmd/measure_parts.h"

#include "base/fs.h"
#include "base/temp.h"
#include "base/vec.h"
#include "log/format.h"

#include <errno.h>
#include <unistd.h>

#define WINDOW_BYTES (64u << 10)

static int copy_input(int fd, struct err *err)
{
    CLEANUP(free) char *window = xmalloc(WINDOW_BYTES);
    for (;;) {
        ssize_t len = read(STDIN_FILENO, window, WINDOW_BYTES);
        if (len < 0 && errno == EINTR) {
            continue;
        }
        if (len < 0) {
            return err_set(err, ERR_IO, "standard input: %s", err_errno_text(errno));
        }
        if (len == 0) {
            return 0;
        }
        if (fs_write_all(fd, window, (size_t)len, "a copy of standard input", err) < 0) {
            return -1;
        }
    }
}

int measure_spool(struct spools *spools, const char **ret_path, struct err *err)
{
    int fd;
    if (temp_spool(&fd, err) < 0) {
        return -1;
    }
    *ret_path = spools_add(spools, fd);
    return copy_input(fd, err);
}

/* ---- folders ---- */

static bool is_hidden(struct str path)
{
    return str_starts(path, STR_LIT(".")) || str_find(path, STR_LIT("/.")) >= 0;
}

static bool is_result(struct str path)
{
    const char *slash = memrchr(path.ptr, '/', path.len);
    struct str name = slash ? str_of(slash + 1) : path;
    return str_starts(name, STR_LIT("result_")) && str_ends(name, STR_LIT(".txt"));
}

/* Below a folder: the files that are logs by their names, or, where there is none, texts. */
static int add_logs(struct arena *arena, const char *folder, struct opt_list *into,
                    bool *ret_is_round, struct err *err)
{
    struct fs_names files;
    size_t before = into->n;
    *ret_is_round = false;
    if (fs_walk(arena, folder, &files, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < files.n && !*ret_is_round; idx++) {
        *ret_is_round = is_result(str_of(files.items[idx]));
    }
    for (int texts = 0; texts < 2 && into->n == before && !*ret_is_round; texts++) {
        for (size_t idx = 0; idx < files.n; idx++) {
            struct str path = str_of(files.items[idx]);
            if (!is_hidden(path) && !fs_is_dir(fs_join(arena, folder, path.ptr)) &&
                (texts ? str_ends(path, STR_LIT(".txt")) : guess_is_log_name(path))) {
                VEC_PUSH(into, fs_join(arena, folder, path.ptr));
            }
        }
    }
    if (into->n == before && !*ret_is_round) {
        return err_set(
            err, ERR_USAGE,
            "%s: no file in it is a log by its name (*.log, *.out, *.jsonl, logs/*), and "
            "none is a result of MLPerf (result_*.txt); a log is named by its file",
            folder);
    }
    return 0;
}

int measure_expand(struct arena *arena, struct opt_list *files, size_t *ret_n_rounds,
                   struct err *err)
{
    struct opt_list all = {0};
    int status = 0;
    *ret_n_rounds = 0;
    for (size_t idx = 0; status == 0 && idx < files->n; idx++) {
        bool is_folder = fs_is_dir(files->items[idx]);
        bool is_round = false;
        status = is_folder ? add_logs(arena, files->items[idx], &all, &is_round, err) : 0;
        *ret_n_rounds += is_round;
        if (status == 0 && (!is_folder || is_round)) {
            VEC_PUSH(&all, files->items[idx]);
        }
    }
    VEC_RELEASE(files);
    *files = all;
    return status;
}

const char *measure_why_unread(const struct log_head *head)
{
    static const struct {
        struct str begin;
        const char *why;
    } KINDS[] = {
        {{"PK\3\4", 4},
         "it is a ZIP archive, as .xlsx tables are, and no log: unzip it, or export the sheet as "
         "CSV"},
        {{"\xd0\xcf\x11\xe0", 4}, "it is an old Office document and no log: export it as CSV"},
        {{"%PDF-", 5}, "it is a PDF and no log: copy its text into a file"},
        {{"\x1f\x8b", 2}, "it is compressed: gzip -dc FILE | reperf measure -"},
        {{"\x28\xb5\x2f\xfd", 4}, "it is compressed: zstd -dc FILE | reperf measure -"},
        {{"\xfd\x37zXZ", 5}, "it is compressed: xz -dc FILE | reperf measure -"},
        {{"BZh", 3}, "it is compressed: bzip2 -dc FILE | reperf measure -"},
        {{"\x89HDF", 4}, "it is an HDF5 file and no log"},
        {{"SQLite format 3", 15}, "it is an SQLite database and no log: export the table as CSV"},
        {{":W&B", 4},
         "it is W&B's binary file and no log: export the run's history as CSV or JSON lines"},
        {{"PAR1", 4}, "it is a Parquet table and no log: export it as CSV"},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(KINDS); idx++) {
        struct str text = {head->ptr, head->len};
        if (str_starts(text, KINDS[idx].begin)) {
            return KINDS[idx].why;
        }
    }
    return head->len ? "no known format reads anything in it" : "it is empty";
}
