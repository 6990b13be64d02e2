/* SPDX-License-Identifier: Apache-2.0 */
/* First, because it declares a function that base/banned.h poisons; uselocale is for this thread alone. */
#include <locale.h>

#include "base/base.h"

#include "base/strbuf.h"
#include "codec/libarchive_impl.h"
#include "codec/unpack.h"
#include "codec/unpack_filter.h"
#include "codec/unpack_names.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/stat.h>

enum unpack_kind { KIND_TAR, KIND_TAR_GZ, KIND_TAR_ZST, KIND_ZIP, KIND_COUNT };
static const char *const KIND_NAMES[KIND_COUNT] = {"tar", "tar.gz", "tar.zst", "zip"};

/* Bytes in portions: how many there were, and where the last that is not zero ends, since only zeros may follow what libarchive
   saw. */
struct stream {
    unpack_read_fn read;
    void *ctx;
    const void *ptr; /* the portion that was read last; borrowed from read */
    size_t len;
    uint64_t offset; /* of ptr */
    uint64_t filled_bytes;
    bool is_at_end;
};

/* One archive that is being read: the outer, or the tar inside it. */
struct layer {
    struct archive *a; /* owned; NULL: none */
    struct unpack *unpack;
    struct stream source; /* what libarchive reads */
    /* Of the current entry. */
    struct str path; /* as shown to people; in the arena `text` */
    uint64_t size_bytes, done_bytes;
    uint64_t hole_bytes; /* zeros to be given before `ptr` */
    const void *ptr;
    size_t len;
    bool is_size_known, is_sparse, has_data, is_drained;
};

struct unpack {
    struct unpack_opts opts;
    char *name; /* owned */
    enum unpack_kind kind;
    struct stream file;           /* the archive's own bytes */
    bool is_peeked;               /* its first portion has not been passed on yet */
    struct unpack_filter *filter; /* of a packed tar */
    struct layer outer, inner;
    struct unpack_names names;
    locale_t locale, old_locale;
    struct strbuf path, target, inner_path; /* of the entry */
    struct str prefix;                      /* NAME of the tar inside, in inner_path */
    struct unpack_entry entry;
    size_t n_shown; /* of names.new_ends that were returned */
    bool has_entry, is_over, has_failed;
    uint64_t total_bytes;
    struct err err; /* of a read, while libarchive is in between */
};

#define ZERO_BYTES (64u << 10)
#define ZIP_BYTES  (64u << 10)

static const uint8_t ZERO[ZERO_BYTES];

static size_t filled_len(const uint8_t *bytes, size_t len)
{
    /* All bytes are zero if the first is and each equals the one before it. */
    if (len > 0 && bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0) {
        return 0;
    }
    while (len > 0 && bytes[len - 1] == 0) {
        len--;
    }
    return len;
}

/* *ret_len 0 at the end, any number of times. */
static int stream_next(struct stream *s, const void **ret_ptr, size_t *ret_len, struct err *err)
{
    if (!s->is_at_end) {
        s->offset += s->len;
        s->len = 0;
        if (s->read(s->ctx, &s->ptr, &s->len, err) < 0) {
            return -1;
        }
        size_t filled = filled_len(s->ptr, s->len);
        s->filled_bytes = filled ? s->offset + filled : s->filled_bytes;
        s->is_at_end = s->len == 0;
    }
    *ret_ptr = s->ptr;
    *ret_len = s->len;
    return 0;
}

/* Reads on to its end, which is at that byte but for zeros. */
static int stream_end(struct stream *s, uint64_t end, struct err *err)
{
    const void *ptr;
    for (size_t len = 1; len > 0;) {
        if (stream_next(s, &ptr, &len, err) < 0) {
            return -1;
        }
    }
    if (end > s->offset) {
        return err_set(err, ERR_INTEGRITY, "it ends at byte %" PRIu64 ": truncated", s->offset);
    }
    return s->filled_bytes <= end
               ? 0
               : err_set(err, ERR_INTEGRITY, "bytes follow its end at byte %" PRIu64, end);
}

/* The error of our own read function takes precedence over libarchive's message about it. */
static int unpack_fail(struct unpack *unpack, struct archive *a, struct err *err)
{
    const char *text = a ? la.error_string(a) : NULL;
    if (unpack->err.code != ERR_NONE) {
        return err_pass(err, &unpack->err);
    }
    return err_set(err, ERR_INTEGRITY, "%s", text ? text : "libarchive refuses it");
}

/* How many bytes so many of the archive may unpack to. */
static uint64_t allowed_bytes(const struct unpack *unpack, uint64_t archive_bytes)
{
    uint64_t allowed;
    return __builtin_mul_overflow(archive_bytes, unpack->opts.limits.ratio, &allowed) ||
                   __builtin_add_overflow(allowed, UNPACK_RATIO_FREE_BYTES, &allowed)
               ? UINT64_MAX
               : allowed;
}

/* Bytes unpacked so far, against bytes read. */
static int check_ratio(const struct unpack *unpack, uint64_t out_bytes, struct err *err)
{
    uint64_t read = unpack->kind == KIND_ZIP ? unpack->opts.archive_bytes
                                             : unpack->file.offset + unpack->file.len;
    return out_bytes <= allowed_bytes(unpack, read)
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "more than %" PRIu64 " times as many bytes unpacked as read",
                         unpack->opts.limits.ratio);
}

static la_ssize_t layer_read(struct archive *a, void *ctx, const void **ret_ptr)
{
    struct layer *layer = ctx;
    size_t len;
    if (stream_next(&layer->source, ret_ptr, &len, &layer->unpack->err) < 0) {
        la.set_error(a, EIO, "read");
        return -1;
    }
    return (la_ssize_t)len;
}

static int file_read(void *ctx, const void **ret_ptr, size_t *ret_len, struct err *err)
{
    struct unpack *unpack = ctx;
    if (unpack->is_peeked) {
        unpack->is_peeked = false;
        *ret_ptr = unpack->file.ptr;
        *ret_len = unpack->file.len;
        return 0;
    }
    return stream_next(&unpack->file, ret_ptr, ret_len, err);
}

static int filter_read(void *ctx, const void **ret_ptr, size_t *ret_len, struct err *err)
{
    struct unpack *unpack = ctx;
    if (unpack_filter_next(unpack->filter, ret_ptr, ret_len, err) < 0 ||
        (unpack->opts.on_tar &&
         unpack->opts.on_tar(unpack->file.ctx, *ret_ptr, *ret_len, err) < 0)) {
        return -1;
    }
    return *ret_len == 0 ? stream_end(&unpack->file, unpack_filter_bytes(unpack->filter), err)
                         : check_ratio(unpack, unpack->outer.source.offset + *ret_len, err);
}

/* --- a zip, whose directory is at its end ------------------------------------------------------------------------------- */

static int zip_open(struct unpack *unpack, struct err *err)
{
    char path[32]; /* libarchive gets an offset of its own: ours moves while the bytes are hashed */
    struct archive *a;
    struct stat st;
    if (unpack->opts.fd <= 0 || fstat(unpack->opts.fd, &st) < 0) {
        return err_set(err, ERR_INTEGRITY, "a zip is read from a file only");
    }
    if (libarchive_open(err) < 0) {
        return -1;
    }
    unpack->opts.archive_bytes = (uint64_t)st.st_size;
    a = la.read_new();
    unpack->outer = (struct layer){.a = a, .unpack = unpack, .is_drained = true};
    if (!a || la.read_support_format_zip_seekable(a) != ARCHIVE_OK) {
        return err_set(err, ERR_INTERNAL, "libarchive on this machine cannot read zip");
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", unpack->opts.fd);
    return la.read_open_filename(a, path, ZIP_BYTES) == ARCHIVE_OK ? 0
                                                                   : unpack_fail(unpack, a, err);
}

static int layer_open(struct unpack *unpack, struct layer *layer, unpack_read_fn read,
                      struct err *err)
{
    *layer = (struct layer){.unpack = unpack, .source = {.read = read, .ctx = unpack}};
    if (libarchive_open(err) < 0) {
        return -1;
    }
    layer->a = la.read_new();
    if (!layer->a || la.read_support_format_tar(layer->a) != ARCHIVE_OK) {
        return err_set(err, ERR_INTERNAL, "libarchive on this machine cannot read tar");
    }
    layer->is_drained = true;
    return la.read_open(layer->a, layer, NULL, layer_read, NULL) == ARCHIVE_OK
               ? 0
               : unpack_fail(unpack, layer->a, err);
}

static int find_kind(struct unpack *unpack, struct err *err)
{
    static const struct {
        const char *magic;
        int kind; /* -1: known, but not taken */
        const char *name;
    } MAGICS[] = {
        {"\x1f\x8b", KIND_TAR_GZ, NULL}, {"\x28\xb5\x2f\xfd", KIND_TAR_ZST, NULL},
        {"PK\x03\x04", KIND_ZIP, NULL},  {"PK\x05\x06", KIND_ZIP, NULL},
        {"\xfd\x37zXZ", -1, "xz"},       {"BZh", -1, "bzip2"},
        {"7z\xbc\xaf", -1, "7-zip"},     {"Rar!", -1, "rar"},
        {"<!DOCTYPE", -1, "a web page"}, {"<html", -1, "a web page"},
    };
    const void *ptr;
    struct str head;
    if (stream_next(&unpack->file, &ptr, &head.len, err) < 0) {
        return -1;
    }
    head.ptr = ptr;
    unpack->is_peeked = true;
    unpack->kind = KIND_TAR;
    if (head.len == 0) {
        return err_set(err, ERR_INTEGRITY, "it is empty");
    }
    for (size_t idx = 0; idx < ARRAY_LEN(MAGICS); idx++) {
        if (str_starts(head, str_of(MAGICS[idx].magic))) {
            if (MAGICS[idx].kind < 0) {
                return err_set(err, ERR_INTEGRITY, "it is %s, expected tar, tar.gz, tar.zst or zip",
                               MAGICS[idx].name);
            }
            unpack->kind = (enum unpack_kind)MAGICS[idx].kind;
            break;
        }
    }
    return 0;
}

static int unpack_open(struct unpack *unpack, struct err *err)
{
    unpack_read_fn read = file_read;
    if (find_kind(unpack, err) < 0) {
        return -1;
    }
    if (unpack->kind == KIND_ZIP) {
        return zip_open(unpack, err);
    }
    if (unpack->kind != KIND_TAR) {
        read = filter_read;
        if (unpack_filter_new(file_read, unpack, unpack->kind == KIND_TAR_ZST, &unpack->filter,
                              err) < 0) {
            return -1;
        }
    }
    return layer_open(unpack, &unpack->outer, read, err);
}

/* --- data of an entry ------------------------------------------------------------------------------------------------------- */

/* The next block of libarchive, and the hole in front of it. */
static int pull_block(struct layer *layer, struct err *err)
{
    la_int64_t offset = 0;
    uint64_t end;
    int result = la.read_data_block(layer->a, &layer->ptr, &layer->len, &offset);
    if (result == ARCHIVE_EOF) {
        layer->len = 0;
        layer->has_data = false;
        if (layer->is_sparse && layer->size_bytes > layer->done_bytes) {
            layer->hole_bytes = layer->size_bytes - layer->done_bytes;
        } else if (layer->is_size_known && layer->done_bytes != layer->size_bytes) {
            return err_set(err, ERR_INTEGRITY, "%" PRIu64 " bytes, its header says %" PRIu64,
                           layer->done_bytes, layer->size_bytes);
        }
        return 0;
    }
    if (result != ARCHIVE_OK) {
        return unpack_fail(layer->unpack, layer->a, err);
    }
    if (offset < 0 || (uint64_t)offset < layer->done_bytes ||
        __builtin_add_overflow((uint64_t)offset, layer->len, &end) || end > INT64_MAX ||
        (layer->is_size_known && end > layer->size_bytes)) {
        return err_set(err, ERR_INTEGRITY, "data at byte %" PRId64 ", its size is %" PRIu64,
                       (int64_t)offset, layer->size_bytes);
    }
    layer->hole_bytes = (uint64_t)offset - layer->done_bytes;
    return 0;
}

static int layer_data(struct layer *layer, const void **ret_ptr, size_t *ret_len, struct err *err)
{
    while (layer->hole_bytes == 0 && layer->len == 0 && layer->has_data) {
        if (pull_block(layer, err) < 0) {
            return -1;
        }
    }
    if (layer->hole_bytes > 0) {
        *ret_ptr = ZERO;
        *ret_len = layer->hole_bytes < ZERO_BYTES ? (size_t)layer->hole_bytes : ZERO_BYTES;
        layer->hole_bytes -= *ret_len;
    } else {
        *ret_ptr = layer->ptr;
        *ret_len = layer->len;
        layer->len = 0;
    }
    layer->done_bytes += *ret_len;
    layer->is_drained = *ret_len == 0;
    return 0;
}

/* The bytes of the nested tar. */
static int inner_read(void *ctx, const void **ret_ptr, size_t *ret_len, struct err *err)
{
    struct unpack *unpack = ctx;
    if (layer_data(&unpack->outer, ret_ptr, ret_len, err) < 0) {
        return -1;
    }
    return check_ratio(unpack, unpack->outer.done_bytes, err);
}

/* The archive's bytes in their order, for who hashes them and shows how far it is: as far as libarchive is in a zip. */
static int follow_zip(struct unpack *unpack, struct err *err)
{
    const uint64_t zip_at = (uint64_t)la.filter_bytes(unpack->outer.a, -1);
    const void *ptr;
    size_t len = 1;
    while (len > 0 && unpack->file.offset + unpack->file.len < zip_at) {
        if (stream_next(&unpack->file, &ptr, &len, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Data of the entry that is being read. */
static int unpack_pull(struct unpack *unpack, const void **ret_ptr, size_t *ret_len,
                       struct err *err)
{
    struct layer *layer = unpack->inner.a ? &unpack->inner : &unpack->outer;
    if (layer->is_drained) {
        *ret_len = 0;
        return 0;
    }
    if (layer_data(layer, ret_ptr, ret_len, err) < 0) {
        return -1;
    }
    if (*ret_len > unpack->opts.limits.bytes - unpack->total_bytes) {
        return err_set(err, ERR_INTEGRITY, "more bytes than the limit");
    }
    if (check_ratio(unpack, unpack->total_bytes + *ret_len, err) < 0) {
        return -1;
    }
    unpack->total_bytes += *ret_len;
    if (unpack->kind == KIND_ZIP && layer == &unpack->outer && follow_zip(unpack, err) < 0) {
        return -1;
    }
    if (*ret_len > 0 && unpack->entry.type == UNPACK_HARDLINK) {
        return err_set(err, ERR_INTEGRITY, "a hard link with bytes of its own");
    }
    return 0;
}

static int unpack_open_inner(struct unpack *unpack, struct err *err)
{
    return layer_open(unpack, &unpack->inner, inner_read, err);
}

/* Detects the format by the first bytes and opens the outer layer. */
static void unpack_close(struct unpack *unpack)
{
    libarchive_read_free(unpack->inner.a);
    libarchive_read_free(unpack->outer.a);
    unpack_filter_free(unpack->filter);
}

#define SHOWN_MAX 200
#define SHOWN(s)  (int)((s).len < SHOWN_MAX ? (s).len : SHOWN_MAX), (s).ptr

/* libarchive converts names by the thread's locale: UTF-8, whatever the user's locale is. */
static void enter(struct unpack *unpack)
{
    unpack->old_locale = uselocale(unpack->locale);
}

static void leave(struct unpack *unpack)
{
    uselocale(unpack->old_locale);
}

static int start(struct unpack *unpack, struct err *err)
{
    uint64_t *seed = &unpack->names.nodes.seed;
    if (getrandom(seed, sizeof(*seed), 0) != (ssize_t)sizeof(*seed)) {
        return err_set(err, ERR_INTERNAL, "getrandom: %s", err_errno_text(errno));
    }
    unpack->names.n_max = unpack->opts.limits.files;
    unpack->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!unpack->locale) {
        return err_set(err, ERR_INTERNAL, "this machine has no locale C.UTF-8");
    }
    enter(unpack);
    int result = unpack_open(unpack, err);
    leave(unpack);
    return result;
}

int unpack_new(const struct unpack_opts *opts, unpack_read_fn read, void *ctx, const char *name,
               struct unpack **ret_unpack, struct err *err)
{
    struct unpack *unpack = xcalloc(1, sizeof(*unpack));
    struct unpack_limits *limits = &unpack->opts.limits;
    unpack->opts = *opts;
    unpack->name = xstrdup(name);
    unpack->file = (struct stream){.read = read, .ctx = ctx};
    limits->files =
        limits->files && limits->files < UNPACK_FILES_MAX ? limits->files : UNPACK_FILES_MAX;
    limits->bytes = limits->bytes ? limits->bytes : INT64_MAX;
    limits->ratio = limits->ratio ? limits->ratio : UNPACK_RATIO_MAX;
    strbuf_init(&unpack->path, (size_t)2 * UNPACK_PATH_MAX);
    strbuf_init(&unpack->target, (size_t)2 * UNPACK_PATH_MAX);
    strbuf_init(&unpack->inner_path, UNPACK_PATH_MAX);
    if (start(unpack, err) < 0) {
        unpack_free(unpack);
        return err_wrap(err, "%s", name);
    }
    *ret_unpack = unpack;
    return 0;
}

void unpack_free(struct unpack *unpack)
{
    if (!unpack) {
        return;
    }
    unpack_close(unpack);
    if (unpack->locale) {
        freelocale(unpack->locale);
    }
    unpack_names_release(&unpack->names);
    strbuf_release(&unpack->path);
    strbuf_release(&unpack->target);
    strbuf_release(&unpack->inner_path);
    free(unpack->name);
    free(unpack);
}

const char *unpack_format(const struct unpack *unpack)
{
    return KIND_NAMES[unpack->kind];
}

/* A failed archive stays failed. */
static int close_call(struct unpack *unpack, int result, struct str path, struct err *err)
{
    leave(unpack);
    if (result == 0) {
        return 0;
    }
    unpack->has_failed = true;
    if (path.len > 0) {
        return err_wrap(err, "%s: entry \"%.*s\"", unpack->name, SHOWN(path));
    }
    return err_wrap(err, "%s", unpack->name);
}

int unpack_data(struct unpack *unpack, const void **ret_ptr, size_t *ret_len, struct err *err)
{
    ASSERT(!unpack->has_failed);
    enter(unpack);
    return close_call(unpack, unpack_pull(unpack, ret_ptr, ret_len, err), unpack->entry.path, err);
}

/* --- entries ---------------------------------------------------------------------------------------------------------------- */

static int find_type(struct archive_entry *entry, enum unpack_type *ret_type, struct err *err)
{
    if (la.entry_hardlink(entry)) {
        *ret_type = UNPACK_HARDLINK;
        return 0;
    }
    switch (la.entry_filetype(entry)) {
    case AE_IFREG:
        *ret_type = UNPACK_FILE;
        break;
    case AE_IFDIR:
        *ret_type = UNPACK_FOLDER;
        break;
    case AE_IFLNK:
        *ret_type = UNPACK_SYMLINK;
        break;
    case AE_IFCHR:
    case AE_IFBLK:
        return err_set(err, ERR_INTEGRITY, "a device");
    case AE_IFIFO:
        return err_set(err, ERR_INTEGRITY, "a pipe");
    case AE_IFSOCK:
        return err_set(err, ERR_INTEGRITY, "a socket");
    default:
        return err_set(err, ERR_INTEGRITY, "neither file nor folder nor link");
    }
    if (*ret_type == UNPACK_FILE && (la.entry_perm(entry) & (S_ISUID | S_ISGID))) {
        return err_set(err, ERR_INTEGRITY, "a setuid or setgid file");
    }
    return 0;
}

/* Checks the size in its header before a byte of it is read. */
static int check_size(struct unpack *unpack, struct layer *layer, struct archive_entry *entry,
                      bool is_file, struct err *err)
{
    const struct unpack_limits *limits = &unpack->opts.limits;
    layer->is_size_known = la.entry_size_is_set(entry) != 0;
    if (la.entry_size(entry) < 0) {
        return err_set(err, ERR_INTEGRITY, "a size of %" PRId64 " bytes",
                       (int64_t)la.entry_size(entry));
    }
    layer->size_bytes = (uint64_t)la.entry_size(entry);
    layer->is_sparse = la.entry_sparse_count(entry) > 0;
    if (!is_file || !layer->is_size_known) {
        return 0;
    }
    if (layer->size_bytes > limits->bytes - unpack->total_bytes) {
        return err_set(err, ERR_INTEGRITY, "%" PRIu64 " bytes are over the limit",
                       layer->size_bytes);
    }
    if (unpack->opts.archive_bytes > 0 &&
        layer->size_bytes > allowed_bytes(unpack, unpack->opts.archive_bytes)) {
        return err_set(err, ERR_INTEGRITY,
                       "%" PRIu64 " bytes, more than %" PRIu64
                       " times those of the whole archive of %" PRIu64,
                       layer->size_bytes, limits->ratio, unpack->opts.archive_bytes);
    }
    return 0;
}

/* prefix/rest, cleaned, into buf. */
static int join_path(struct unpack *unpack, struct strbuf *buf, struct str raw,
                     struct str *ret_path, struct err *err)
{
    struct str clean, again;
    if (unpack_names_clean(raw, &clean, err) < 0) {
        return -1;
    }
    strbuf_clear(buf);
    if (unpack->inner.a && clean.len > 0) {
        strbuf_add_str(buf, unpack->prefix);
        strbuf_add_char(buf, '/');
    }
    strbuf_add_str(buf, clean);
    *ret_path = strbuf_str(buf);
    if (ret_path->len == 0) {
        return 0;
    }
    return unpack_names_clean(*ret_path, &again, err);
}

static int find_target(struct unpack *unpack, struct archive_entry *entry, enum unpack_type type,
                       struct str *ret_target, struct err *err)
{
    const char *text = NULL;
    *ret_target = STR_EMPTY;
    if (type == UNPACK_HARDLINK) {
        text = la.entry_hardlink(entry);
        if (join_path(unpack, &unpack->target, str_of(text), ret_target, err) < 0) {
            return err_wrap(err, "the hard link's target");
        }
    } else if (type == UNPACK_SYMLINK) {
        text = la.entry_symlink(entry);
        strbuf_clear(&unpack->target);
        strbuf_add_z(&unpack->target, text ? text : "");
        *ret_target = strbuf_str(&unpack->target);
    }
    return 0;
}

static bool is_inner_tar(const struct unpack *unpack, struct str path, enum unpack_type type)
{
    return unpack->opts.is_nested && !unpack->inner.a && type == UNPACK_FILE &&
           str_ends(path, STR_LIT(".tar"));
}

/* NAME.tar becomes the folder NAME, its bytes a nested archive. */
static int enter_inner(struct unpack *unpack, struct str path, struct err *err)
{
    struct str name = str_sub(path, 0, path.len - 4);
    bool is_new;
    if (name.len == 0 || name.ptr[name.len - 1] == '/') {
        return err_set(err, ERR_INTEGRITY, "a tar inside without a name");
    }
    strbuf_clear(&unpack->inner_path);
    strbuf_add_str(&unpack->inner_path, name);
    unpack->prefix = strbuf_str(&unpack->inner_path);
    if (unpack_names_add(&unpack->names, unpack->prefix, UNPACK_FOLDER, STR_EMPTY, &is_new, err) <
        0) {
        return -1;
    }
    unpack->n_shown = 0;
    unpack->has_entry = is_new;
    unpack->entry = (struct unpack_entry){.path = unpack->prefix, .type = UNPACK_FOLDER};
    return unpack_open_inner(unpack, err);
}

static int take_entry(struct unpack *unpack, struct layer *layer, struct archive_entry *entry,
                      struct err *err)
{
    const char *raw = la.entry_pathname(entry);
    enum unpack_type type;
    struct str path, target;
    unpack->entry.path = raw ? str_of(raw) : STR_EMPTY; /* for messages */
    if (!raw) {
        return err_set(err, ERR_INTEGRITY, "an entry whose name is not UTF-8");
    }
    if (la.entry_is_encrypted(entry)) {
        return err_set(err, ERR_INTEGRITY, "it is encrypted");
    }
    if (find_type(entry, &type, err) < 0 ||
        join_path(unpack, &unpack->path, str_of(raw), &path, err) < 0) {
        return -1;
    }
    unpack->entry.path = path;
    if (path.len == 0 && type != UNPACK_FOLDER) {
        return err_set(err, ERR_INTEGRITY, "its name is the top folder's");
    }
    if (type == UNPACK_SYMLINK && unpack->kind == KIND_ZIP && !unpack->inner.a) {
        return err_set(err, ERR_INTEGRITY,
                       "a symlink; in a zip only files and folders are accepted");
    }
    if (find_target(unpack, entry, type, &target, err) < 0 ||
        check_size(unpack, layer, entry, type == UNPACK_FILE, err) < 0) {
        return -1;
    }
    layer->done_bytes = layer->hole_bytes = layer->len = 0;
    layer->has_data = true;
    layer->is_drained = type == UNPACK_FOLDER || type == UNPACK_SYMLINK;
    if (is_inner_tar(unpack, path, type)) {
        return enter_inner(unpack, path, err);
    }
    unpack->entry = (struct unpack_entry){
        .path = path,
        .type = type,
        .target = target,
        .size_bytes = layer->size_bytes,
        .is_size_known = layer->is_size_known,
        .is_executable = type == UNPACK_FILE && (unpack->kind != KIND_ZIP || unpack->inner.a) &&
                         (la.entry_perm(entry) & S_IXUSR),
    };
    unpack->n_shown = 0;
    return path.len == 0
               ? 0
               : unpack_names_add(&unpack->names, path, type, target, &unpack->has_entry, err);
}

/* A tar has its end mark, and only zeros follow. */
static int end_tar(struct layer *layer, struct err *err)
{
    uint64_t mark = (uint64_t)la.read_header_position(layer->a);
    uint64_t end = (uint64_t)la.filter_bytes(layer->a, 0);
    if (end <= mark) {
        return err_set(err, ERR_INTEGRITY,
                       "it ends at byte %" PRIu64 " without the mark of its end: truncated", mark);
    }
    return stream_end(&layer->source, end, err);
}

static int end_outer(struct unpack *unpack, struct err *err)
{
    struct layer *layer = &unpack->outer;
    const void *ptr;
    size_t len = 1;
    unpack->is_over = true;
    if (unpack->kind != KIND_ZIP && end_tar(layer, err) < 0) {
        return -1;
    }
    while (unpack->kind == KIND_ZIP && len > 0) { /* for who hashes them */
        if (stream_next(&unpack->file, &ptr, &len, err) < 0) {
            return -1;
        }
    }
    ASSERT(unpack->file.is_at_end);
    return unpack_names_check_links(&unpack->names, err);
}

static int end_inner(struct unpack *unpack, struct err *err)
{
    int result = end_tar(&unpack->inner, err);
    if (result < 0) {
        return err_wrap(err, "the tar inside \"%.*s.tar\"", SHOWN(unpack->prefix));
    }
    libarchive_read_free(unpack->inner.a);
    unpack->inner.a = NULL;
    ASSERT(unpack->outer.is_drained);
    return 0;
}

/* Until there is something to return, or the end. */
static int advance(struct unpack *unpack, struct err *err)
{
    while (!unpack->has_entry && unpack->n_shown >= unpack->names.n_new && !unpack->is_over) {
        struct layer *layer = unpack->inner.a ? &unpack->inner : &unpack->outer;
        struct archive_entry *entry;
        const void *ptr;
        size_t len = 1;
        while (len > 0) {
            if (unpack_pull(unpack, &ptr, &len, err) < 0) {
                return -1;
            }
        }
        unpack->entry = (struct unpack_entry){0};
        unpack->names.n_new = 0;
        int result = la.read_next_header(layer->a, &entry);
        if (result == ARCHIVE_EOF) {
            result = layer == &unpack->inner ? end_inner(unpack, err) : end_outer(unpack, err);
        } else if (result != ARCHIVE_OK) {
            result = unpack_fail(unpack, layer->a, err);
        } else {
            result = take_entry(unpack, layer, entry, err);
        }
        if (result < 0) {
            return -1;
        }
    }
    return 0;
}

int unpack_next(struct unpack *unpack, struct unpack_entry *ret_entry, bool *ret_has,
                struct err *err)
{
    ASSERT(!unpack->has_failed);
    enter(unpack);
    if (close_call(unpack, advance(unpack, err), unpack->entry.path, err) < 0) {
        return -1;
    }
    *ret_has = true;
    if (unpack->n_shown < unpack->names.n_new) {
        *ret_entry = (struct unpack_entry){.type = UNPACK_FOLDER};
        ret_entry->path = str_sub(unpack->entry.path, 0, unpack->names.new_ends[unpack->n_shown++]);
    } else if (unpack->has_entry) {
        unpack->has_entry = false;
        *ret_entry = unpack->entry;
    } else {
        *ret_has = false;
    }
    return 0;
}
