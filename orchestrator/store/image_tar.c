/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/image_tar.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/ustar.h"
#include "store/image_impl.h"

#define CHUNK_BYTES   (1u << 20)
#define TEXT_MAX      (1u << 20)
#define LAYOUT_TEXT   "{\"imageLayoutVersion\":\"1.0.0\"}"
#define NAME_SHORT    12
#define SIZE_AT       124 /* ustar: size, 12 bytes */
#define CHECKSUM_AT   148 /* 8 bytes */
#define MEMBERS_EXTRA 6

struct member {
    const char *name;
    struct str text;              /* NULL: a blob of the store */
    uint8_t sha256[SHA256_BYTES]; /* of a blob */
    uint64_t size_bytes;
};

struct members {
    struct member *items;
    size_t n;
};

/* ---- what is in it ---- */

char *image_engine_name(struct arena *arena, const struct image_info *info)
{
    CLEANUP(strbuf) struct strbuf slug;
    char hex[SHA256_HEX_SIZE];
    bool was_joint = true;
    strbuf_init(&slug, 128);
    for (const char *c = info->name; *c && *c != '@' && slug.len < 100; c++) {
        bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9');
        if (is_plain || !was_joint) {
            strbuf_add_char(&slug, is_plain ? *c : '-');
        }
        was_joint = !is_plain;
    }
    while (slug.len && slug.ptr[slug.len - 1] == '-') {
        slug.len--;
    }
    hex_encode(info->pins.config, SHA256_BYTES, hex);
    return arena_printf(arena, "localhost/reperf/%.*s:%.*s", (int)slug.len, slug.ptr, NAME_SHORT,
                        hex);
}

static char *blob_name(struct arena *arena, const uint8_t *sha256)
{
    char hex[SHA256_HEX_SIZE];
    hex_encode(sha256, SHA256_BYTES, hex);
    return arena_printf(arena, "blobs/sha256/%s", hex);
}

static struct str docker_json(struct arena *arena, const struct image_info *info)
{
    CLEANUP(strbuf) struct strbuf buf;
    struct json_out out;
    strbuf_init(&buf, TEXT_MAX);
    jw_begin(&out, &buf, true);
    jw_array(&out, NULL);
    jw_object(&out, NULL);
    jw_z(&out, "Config", blob_name(arena, info->pins.config));
    jw_array(&out, "RepoTags");
    jw_z(&out, NULL, image_engine_name(arena, info));
    jw_end_array(&out);
    jw_array(&out, "Layers");
    for (size_t idx = 0; idx < info->manifest.n_layers; idx++) {
        jw_z(&out, NULL, blob_name(arena, info->manifest.layers[idx].sha256));
    }
    jw_end_array(&out);
    jw_end_object(&out);
    jw_end_array(&out);
    ASSERT(!buf.is_full);
    return str_dup(arena, strbuf_str(&buf));
}

static struct str index_json(struct arena *arena, const struct image_info *info,
                             const uint8_t *sha256, uint64_t size_bytes)
{
    CLEANUP(strbuf) struct strbuf buf;
    struct json_out out;
    strbuf_init(&buf, TEXT_MAX);
    jw_begin(&out, &buf, true);
    jw_object(&out, NULL);
    jw_i64(&out, "schemaVersion", 2);
    jw_z(&out, "mediaType", OCI_TYPE_INDEX);
    jw_array(&out, "manifests");
    image_write_descriptor(&out, NULL, STR_LIT(OCI_TYPE_MANIFEST), sha256, size_bytes);
    jw_object(&out, "annotations");
    jw_z(&out, "io.containerd.image.name", image_engine_name(arena, info));
    jw_z(&out, OCI_REF_NAME, info->name);
    jw_end_object(&out);
    jw_end_object(&out);
    jw_end_array(&out);
    jw_end_object(&out);
    ASSERT(!buf.is_full);
    return str_dup(arena, strbuf_str(&buf));
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct member *)a)->name, ((const struct member *)b)->name);
}

static void add_blob(struct arena *arena, struct members *members, const uint8_t *sha256,
                     uint64_t size_bytes)
{
    struct member *member = &members->items[members->n];
    const char *name = blob_name(arena, sha256);
    for (size_t idx = 0; idx < members->n; idx++) {
        if (strcmp(members->items[idx].name, name) == 0) {
            return; /* one layer may stand twice in an image */
        }
    }
    *member = (struct member){.name = name, .size_bytes = size_bytes};
    memcpy(member->sha256, sha256, SHA256_BYTES);
    members->n++;
}

static int list_members(struct arena *arena, const struct image_info *info,
                        struct members *ret_members, struct err *err)
{
    size_t n_max = info->manifest.n_layers + MEMBERS_EXTRA;
    struct members members = {arena_array(arena, struct member, n_max), 0};
    const struct str layout = STR_LIT(LAYOUT_TEXT);
    uint8_t made[SHA256_BYTES];
    struct str text = STR_EMPTY;
    bool is_made;
    if (image_layout_manifest(arena, &info->manifest, &is_made, &text, made, err) < 0) {
        return -1;
    }
    if (is_made) {
        members.items[members.n++] = (struct member){.name = blob_name(arena, made), .text = text};
    }
    add_blob(arena, &members, info->pins.manifest, info->descriptor.size_bytes);
    add_blob(arena, &members, info->pins.config, info->manifest.config.size_bytes);
    for (size_t idx = 0; idx < info->manifest.n_layers; idx++) {
        add_blob(arena, &members, info->manifest.layers[idx].sha256,
                 info->manifest.layers[idx].size_bytes);
    }
    members.items[members.n++] =
        (struct member){.name = "index.json",
                        .text = index_json(arena, info, is_made ? made : info->pins.manifest,
                                           is_made ? text.len : info->descriptor.size_bytes)};
    members.items[members.n++] =
        (struct member){.name = "manifest.json", .text = docker_json(arena, info)};
    members.items[members.n++] = (struct member){.name = "oci-layout", .text = layout};
    for (size_t idx = 0; idx < members.n; idx++) {
        if (members.items[idx].text.ptr) {
            members.items[idx].size_bytes = members.items[idx].text.len;
        }
    }
    qsort(members.items, members.n, sizeof(members.items[0]), by_name);
    *ret_members = members;
    return 0;
}

/* ---- writing ---- */

struct sink {
    const struct store *store;
    struct arena *arena;
    int fd;
    const char *name;
    const atomic_bool *is_cancelled;
    atomic_uint_least64_t *at_bytes; /* or NULL */
    uint8_t *chunk;
};

static int put(struct sink *sink, const void *ptr, size_t len, struct err *err)
{
    if (sink->is_cancelled && atomic_load(sink->is_cancelled)) {
        return err_set(err, ERR_INTERRUPTED, "%s: stopped", sink->name);
    }
    if (fs_write_all(sink->fd, ptr, len, sink->name, err) < 0) {
        return -1;
    }
    if (sink->at_bytes) {
        atomic_fetch_add(sink->at_bytes, len);
    }
    return 0;
}

static int put_blob(struct sink *sink, const struct member *member, struct err *err)
{
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    const char *path = store_blob_path(sink->store, member->sha256);
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct digest_value value;
    uint64_t left_bytes = member->size_bytes;
    if (fd < 0) {
        return err_set(err, errno == ENOENT ? ERR_INTEGRITY : err_code_of_errno(errno), "%s: %s",
                       path, err_errno_text(errno));
    }
    if (digest_start(&digest, DIGEST_SHA256, err) < 0) {
        return -1;
    }
    while (left_bytes > 0) {
        ssize_t got = read(fd, sink->chunk, left_bytes < CHUNK_BYTES ? left_bytes : CHUNK_BYTES);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got < 0 ? err_set(err, err_code_of_errno(errno), "read %s: %s", path,
                                     err_errno_text(errno))
                           : err_set(err, ERR_INTEGRITY, "%s: shorter than its image says", path);
        }
        if (digest_update(&digest, sink->chunk, (size_t)got, err) < 0 ||
            put(sink, sink->chunk, (size_t)got, err) < 0) {
            return -1;
        }
        left_bytes -= (uint64_t)got;
    }
    if (digest_finish(&digest, &value, err) < 0) {
        return -1;
    }
    return memcmp(value.sha256, member->sha256, SHA256_BYTES) == 0
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: corrupt in the store", path);
}

/* Sizes from 8 GiB on do not fit eleven octal digits: GNU's base-256 form, which every reader of today knows. */
static void set_large_size(uint8_t *block, uint64_t size_bytes)
{
    unsigned sum = 0;
    memset(block + SIZE_AT, 0, 12);
    block[SIZE_AT] = 0x80;
    for (size_t idx = 0; idx < 8; idx++) {
        block[SIZE_AT + 4 + idx] = (uint8_t)(size_bytes >> (56 - 8 * idx));
    }
    memset(block + CHECKSUM_AT, ' ', 8);
    for (size_t idx = 0; idx < USTAR_BLOCK; idx++) {
        sum += block[idx];
    }
    snprintf((char *)block + CHECKSUM_AT, 8, "%06o", sum);
}

int image_tar_header(const char *name, uint64_t size_bytes, uint8_t ret_block[USTAR_BLOCK],
                     struct err *err)
{
    bool is_large = size_bytes > (uint64_t)USTAR_FILE_MAX;
    if (ustar_header(str_of(name), is_large ? 0 : size_bytes, ret_block, err) < 0) {
        return -1;
    }
    if (is_large) {
        set_large_size(ret_block, size_bytes);
    }
    return 0;
}

static int put_member(struct sink *sink, const struct member *member, struct err *err)
{
    static const uint8_t ZEROS[USTAR_BLOCK];
    uint8_t block[USTAR_BLOCK];
    if (image_tar_header(member->name, member->size_bytes, block, err) < 0) {
        return -1;
    }
    if (put(sink, block, USTAR_BLOCK, err) < 0) {
        return -1;
    }
    if ((member->text.ptr ? put(sink, member->text.ptr, member->text.len, err)
                          : put_blob(sink, member, err)) < 0) {
        return -1;
    }
    return put(sink, ZEROS, ustar_padding(member->size_bytes), err);
}

int image_write_tar(const struct store *store, const struct image_info *info,
                    const struct tar_to *to, struct err *err)
{
    static const uint8_t END[2 * USTAR_BLOCK];
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct store here = *store; /* paths go into an arena of this call's own: it may run in a job */
    CLEANUP(free) void *chunk = xmalloc(CHUNK_BYTES);
    struct sink sink = {&here, &arena, to->fd, to->name, to->is_cancelled, to->at_bytes, chunk};
    struct members members;
    here.arena = &arena;
    if (list_members(&arena, info, &members, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < members.n; idx++) {
        if (put_member(&sink, &members.items[idx], err) < 0) {
            return -1;
        }
    }
    return put(&sink, END, sizeof(END), err);
}

/* ---- to a file or folder ---- */

static int export_tar(struct arena *arena, const struct store *store, const struct image_info *info,
                      const char *path, struct err *err)
{
    const char *temp = arena_printf(arena, "%s.%ld.tmp", path, (long)getpid());
    CLEANUP(fd) int fd = -1;
    if (fs_check_target(path, err) < 0) {
        return -1;
    }
    fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) {
        return err_set(err, err_code_of_errno(errno), "%s: %s", temp, err_errno_text(errno));
    }
    if (image_write_tar(store, info, &(struct tar_to){.fd = fd, .name = path}, err) < 0) {
        unlink(temp);
        return -1;
    }
    if (fsync(fd) < 0 || rename(temp, path) < 0) {
        int errnum = errno;
        unlink(temp);
        return err_set(err, err_code_of_errno(errnum), "%s: %s", path, err_errno_text(errnum));
    }
    return 0;
}

static int write_member(struct sink *sink, const char *path, const struct member *member,
                        struct err *err)
{
    CLEANUP(fd) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) {
        return err_set(err, err_code_of_errno(errno), "%s: %s", path, err_errno_text(errno));
    }
    sink->fd = fd;
    sink->name = path;
    if ((member->text.ptr ? put(sink, member->text.ptr, member->text.len, err)
                          : put_blob(sink, member, err)) < 0) {
        return -1;
    }
    return fsync(fd) < 0
               ? err_set(err, err_code_of_errno(errno), "%s: %s", path, err_errno_text(errno))
               : 0;
}

static int fill_folder(struct arena *arena, const struct store *store,
                       const struct image_info *info, const char *folder, struct err *err)
{
    CLEANUP(free) void *chunk = xmalloc(CHUNK_BYTES);
    struct members members;
    struct sink sink = {.store = store, .arena = arena, .fd = -1, .chunk = chunk};
    if (list_members(arena, info, &members, err) < 0) {
        return -1;
    }
    if (fs_mkdir_p(fs_join(arena, folder, "blobs/sha256"), err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < members.n; idx++) {
        const char *path = fs_join(arena, folder, members.items[idx].name);
        if (write_member(&sink, path, &members.items[idx], err) < 0) {
            return -1;
        }
    }
    return fs_sync_dir(folder, err);
}

static int export_folder(struct arena *arena, const struct store *store,
                         const struct image_info *info, const char *path, struct err *err)
{
    const char *temp = arena_printf(arena, "%s.%ld.tmp", path, (long)getpid());
    struct err ignored = {0};
    if (fs_exists(path)) {
        return err_set(err, ERR_USAGE, "%s exists already", path);
    }
    if (fill_folder(arena, store, info, temp, err) < 0) {
        (void)!fs_remove_tree(temp, &ignored);
        return -1;
    }
    if (rename(temp, path) < 0) {
        int errnum = errno;
        (void)!fs_remove_tree(temp, &ignored);
        return err_set(err, err_code_of_errno(errnum), "%s: %s", path, err_errno_text(errnum));
    }
    return 0;
}

int image_export(struct arena *arena, const struct store *store, const struct image_info *info,
                 const char *path, struct err *err)
{
    struct str text = str_of(path);
    while (text.len > 1 && text.ptr[text.len - 1] == '/') {
        text.len--;
    }
    path = str_z(arena, text);
    return str_ends(text, STR_LIT(".tar")) ? export_tar(arena, store, info, path, err)
                                           : export_folder(arena, store, info, path, err);
}
