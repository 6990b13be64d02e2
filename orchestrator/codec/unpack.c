/* SPDX-License-Identifier: Apache-2.0 */
/* First, because it declares a function that base/banned.h poisons; uselocale is for this thread alone. */
#include <locale.h>

#include "base/base.h"

#include "codec/unpack_impl.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <archive.h>
#include <archive_entry.h>

#define RATIO_DEFAULT 1000
#define SHOWN_MAX     200
#define SHOWN(s)      (int)((s).len < SHOWN_MAX ? (s).len : SHOWN_MAX), (s).ptr

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
    uint64_t key[2];
    if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key)) {
        return err_set(err, ERR_INTERNAL, "getrandom: %s", err_errno_text(errno));
    }
    unpack_names_init(&unpack->names, key, unpack->opts.limits.files);
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
    unpack->file = (struct unpack_source){.read = read, .ctx = ctx};
    limits->files =
        limits->files && limits->files < UNPACK_FILES_MAX ? limits->files : UNPACK_FILES_MAX;
    limits->bytes = limits->bytes ? limits->bytes : INT64_MAX;
    limits->file_bytes = limits->file_bytes ? limits->file_bytes : limits->bytes;
    limits->ratio = limits->ratio ? limits->ratio : RATIO_DEFAULT;
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
    return UNPACK_KIND_NAMES[unpack->kind];
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
    if (archive_entry_hardlink(entry)) {
        *ret_type = UNPACK_HARDLINK;
        return 0;
    }
    switch (archive_entry_filetype(entry)) {
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
    if (*ret_type == UNPACK_FILE && (archive_entry_perm(entry) & (S_ISUID | S_ISGID))) {
        return err_set(err, ERR_INTEGRITY, "a setuid or setgid file");
    }
    return 0;
}

/* Checks the size in its header before a byte of it is read. */
static int check_size(struct unpack *unpack, struct layer *layer, struct archive_entry *entry,
                      bool is_file, struct err *err)
{
    const struct unpack_limits *limits = &unpack->opts.limits;
    uint64_t allowed;
    layer->is_size_known = archive_entry_size_is_set(entry) != 0;
    if (archive_entry_size(entry) < 0) {
        return err_set(err, ERR_INTEGRITY, "a size of %" PRId64 " bytes",
                       (int64_t)archive_entry_size(entry));
    }
    layer->size_bytes = (uint64_t)archive_entry_size(entry);
    layer->is_sparse = archive_entry_sparse_count(entry) > 0;
    if (!is_file || !layer->is_size_known) {
        return 0;
    }
    if (layer->size_bytes > limits->file_bytes ||
        layer->size_bytes > limits->bytes - unpack->total_bytes) {
        return err_set(err, ERR_INTEGRITY, "%" PRIu64 " bytes are over the limit",
                       layer->size_bytes);
    }
    if (unpack->opts.archive_bytes > 0 &&
        !__builtin_mul_overflow(unpack->opts.archive_bytes, limits->ratio, &allowed) &&
        !__builtin_add_overflow(allowed, UNPACK_RATIO_FREE_BYTES, &allowed) &&
        layer->size_bytes > allowed) {
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
    if (unpack_path_clean(raw, &clean, err) < 0) {
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
    return unpack_path_clean(*ret_path, &again, err);
}

static int find_target(struct unpack *unpack, struct archive_entry *entry, enum unpack_type type,
                       struct str *ret_target, struct err *err)
{
    const char *text = NULL;
    *ret_target = STR_EMPTY;
    if (type == UNPACK_HARDLINK) {
        text = archive_entry_hardlink(entry);
        if (join_path(unpack, &unpack->target, str_of(text), ret_target, err) < 0) {
            return err_wrap(err, "the hard link's target");
        }
    } else if (type == UNPACK_SYMLINK) {
        text = archive_entry_symlink(entry);
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
    const char *raw = archive_entry_pathname(entry);
    enum unpack_type type;
    struct str path, target;
    unpack->entry.path = raw ? str_of(raw) : STR_EMPTY; /* for messages */
    if (!raw) {
        return err_set(err, ERR_INTEGRITY, "an entry whose name is not UTF-8");
    }
    if (archive_entry_is_encrypted(entry)) {
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
                         (archive_entry_perm(entry) & S_IXUSR),
    };
    unpack->n_shown = 0;
    return path.len == 0
               ? 0
               : unpack_names_add(&unpack->names, path, type, target, &unpack->has_entry, err);
}

/* A tar has its end mark, and only zeros follow. */
static int end_tar(struct layer *layer, struct err *err)
{
    uint64_t mark = (uint64_t)archive_read_header_position(layer->a);
    uint64_t end = (uint64_t)archive_filter_bytes(layer->a, 0);
    if (end <= mark) {
        return err_set(err, ERR_INTEGRITY,
                       "it ends at byte %" PRIu64 " without the mark of its end: truncated", mark);
    }
    return unpack_source_pad(&layer->source, end, err);
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
        if (unpack_source_next(&unpack->file, &ptr, &len, err) < 0) {
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
    archive_read_free(unpack->inner.a);
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
        int result = archive_read_next_header(layer->a, &entry);
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
