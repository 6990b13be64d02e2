/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "load/series_list.h"

#include "base/fs.h"
#include "base/strbuf.h"
#include "codec/digest.h"

#define LIST_NAME      "series.sha256"
#define LIST_BYTES_MAX (4u << 20)
#define DIGEST_CHARS   (SHA256_HEX_SIZE - 1)

void series_list_release(struct series_list *list)
{
    map_release(&list->digests);
}

static int read_lines(struct arena *arena, const char *path, struct str text,
                      struct series_list *list, struct err *err)
{
    struct str line;
    struct str rest = text;
    while (rest.len > 0 && str_next(&rest, '\n', &line)) {
        uint8_t ignored[SHA256_BYTES];
        struct str *hex = arena_new(arena, struct str);
        *hex = str_sub(line, 0, DIGEST_CHARS);
        if (hex_decode(*hex, SHA256_BYTES, ignored, err) < 0) {
            return err_wrap(err, "%s", path);
        }
        if (!str_eq_z(str_sub(line, DIGEST_CHARS, 2), "  ") ||
            !map_add(&list->digests, str_sub(line, DIGEST_CHARS + 2, line.len), hex)) {
            return err_set(err, ERR_MANIFEST, "%s: expected \"DIGEST  NAME\", each name once",
                           path);
        }
    }
    return 0;
}

int series_list_read(struct arena *arena, const struct report *report, const char *folder,
                     struct series_list *ret_list, struct err *err)
{
    const char *path = fs_join(arena, folder, LIST_NAME);
    struct str text;
    struct str found;
    if (!report->series_sha256.ptr) {
        return err_set(err, ERR_MANIFEST, "%.*s: $.logs.series_sha256: no digest of %s",
                       STR_ARG(report->path), path);
    }
    if (fs_read(arena, path, LIST_BYTES_MAX, &text, err) < 0) {
        return -1;
    }
    found = digest_text_hex(arena, text);
    if (!str_eq(found, report->series_sha256)) {
        return err_set(err, ERR_INTEGRITY, "%s: expected sha256 %.*s as %.*s holds it, found %.*s",
                       path, STR_ARG(report->series_sha256), STR_ARG(report->path), STR_ARG(found));
    }
    return read_lines(arena, path, text, ret_list, err);
}

int series_list_check(const struct series_list *list, const char *path, struct str sha256,
                      struct err *err)
{
    const char *slash = strrchr(path, '/');
    const struct str *kept = map_get(&list->digests, str_of(slash ? slash + 1 : path));
    if (!kept) {
        return err_set(err, ERR_INTEGRITY, "%s: " LIST_NAME " does not list it", path);
    }
    return str_eq(*kept, sha256)
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: expected sha256 %.*s, found %.*s", path,
                         STR_ARG(*kept), STR_ARG(sha256));
}

int series_list_write(struct arena *arena, const char *folder, struct str *ret_sha256,
                      struct err *err)
{
    CLEANUP(strbuf) struct strbuf text;
    struct fs_names names;
    strbuf_init(&text, LIST_BYTES_MAX);
    if (fs_list(arena, folder, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        struct digest_value value;
        if (!str_ends(str_of(names.items[idx]), STR_LIT(".json"))) {
            continue;
        }
        if (digest_file(fs_join(arena, folder, names.items[idx]), DIGEST_SHA256, &value, err) < 0) {
            return -1;
        }
        strbuf_printf(&text, "%s  %s\n", sha256_hex_of(value.sha256).text, names.items[idx]);
    }
    if (text.is_full) {
        return err_set(err, ERR_DISK, "%s: a list of more than %u bytes", folder, LIST_BYTES_MAX);
    }
    *ret_sha256 = digest_text_hex(arena, strbuf_str(&text));
    return fs_write_atomic(fs_join(arena, folder, LIST_NAME), strbuf_str(&text), err);
}
