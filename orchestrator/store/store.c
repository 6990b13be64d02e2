/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/publish.h"
#include "codec/json.h"
#include "store/store_impl.h"

#define LAYOUT_TEXT "{\"imageLayoutVersion\":\"1.0.0\"}"
#define INDEX_TEXT                                                                                 \
    "{\"schemaVersion\":2,\"mediaType\":\"application/"                                            \
    "vnd.oci.image.index.v1+json\",\"manifests\":["                                                \
    "]}"
#define LAYOUT_BYTES_MAX 4096

static const char *const FOLDERS[] = {"blobs/sha256", "md5",   "refs",      "partial",
                                      "incoming",     "trees", "packed",    "tmp",
                                      "sources",      "cache", "quarantine"};

/* ---- temporary files ---- */

int store_temp(const struct store *store, struct temp **ret_temp, struct err *err)
{
    return temp_file(store_path(store, "tmp/"), 0644, ret_temp) < 0
               ? err_errno(err, "create a file in", store->folder)
               : 0;
}

int store_write(const struct store *store, const char *path, struct str text, struct err *err)
{
    CLEANUP(temp) struct temp *temp = NULL;
    if (store_temp(store, &temp, err) < 0 ||
        fs_write_all(temp->fd, text.ptr, text.len, path, err) < 0 ||
        publish_file(temp->fd, temp->path, path, err) < 0) {
        return -1;
    }
    return 0;
}

/* ---- opening ---- */

/* Empty, or a store, or an image layout of another tool. */
static int check_folder(struct arena *arena, const char *folder, struct err *err)
{
    struct fs_names names;
    if (fs_list(arena, folder, &names, err) < 0) {
        return -1;
    }
    if (names.n == 0 || fs_exists(fs_join(arena, folder, ".lock")) ||
        fs_exists(fs_join(arena, folder, "oci-layout"))) {
        return 0;
    }
    return err_set(err, ERR_USAGE,
                   "store %s: expected an empty folder or a store, found %zu other entries (%s)",
                   folder, names.n, names.items[0]);
}

/* What nobody else has open is in nobody's use: also what programs left in tmp/ that died with the process that started them. */
static void sweep(struct store *store, int lock_fd)
{
    const char *tmp = store_path(store, "tmp");
    struct fs_names names = {0};
    struct err err = {0};
    temp_sweep_root(TEMP_STORE, store->folder);
    if (flock(lock_fd, LOCK_EX | LOCK_NB) < 0 || fs_list(store->arena, tmp, &names, &err) < 0) {
        return;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        struct err why = {0};
        if (fs_remove_tree(fs_join(store->arena, tmp, names.items[idx]), &why) < 0) {
            log_line(LOG_DEBUG, "%s", why.msg);
        }
    }
}

static int take_lock(struct store *store, struct err *err)
{
    const char *path = store_path(store, ".lock");
    CLEANUP(fd) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        return err_errno(err, "open", path);
    }
    /* It is what says that a folder is a store (check_folder): on the disk before anything else is in it. */
    if (!fs_exists(store_path(store, "oci-layout")) &&
        (publish_data(fd, path, err) < 0 || publish_folder(store->folder, err) < 0)) {
        return -1;
    }
    sweep(store, fd);
    while (flock(fd, LOCK_SH) < 0) { /* waits for a gc, which is short */
        if (errno != EINTR) {
            return err_errno(err, "lock", path);
        }
    }
    store->lock_fd = take_fd(&fd);
    return 0;
}

/* Another process may be making the same store: the one that is second finds the file there, and never replaces it. */
static int make_file(const struct store *store, const char *name, const char *text, struct err *err)
{
    CLEANUP(temp) struct temp *temp = NULL;
    const char *path = store_path(store, name);
    if (fs_exists(path)) {
        return 0;
    }
    if (store_temp(store, &temp, err) < 0 ||
        fs_write_all(temp->fd, text, strlen(text), path, err) < 0 ||
        publish_data(temp->fd, path, err) < 0) {
        return -1;
    }
    return link(temp->path, path) < 0 && errno != EEXIST ? err_errno(err, "create", path)
                                                         : publish_folder(store->folder, err);
}

static int check_layout(const struct store *store, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(json_doc) struct json_doc doc = {0};
    const char *path = store_path(store, "oci-layout");
    struct json version;
    struct str text;
    if (fs_read(&arena, path, LAYOUT_BYTES_MAX, &text, err) < 0 ||
        json_parse(text, path, &doc, err) < 0) {
        return -1;
    }
    struct json root = json_root(&doc);
    if (json_member(&root, "imageLayoutVersion", &version, err) < 0 ||
        json_str(&version, &arena, &text, err) < 0) {
        return -1;
    }
    return str_eq_z(text, "1.0.0")
               ? 0
               : err_set(err, ERR_MANIFEST, "%s: expected image layout 1.0.0, found \"%.*s\"", path,
                         STR_ARG(str_sub(text, 0, 100)));
}

static int make_folders(const struct store *store, struct err *err)
{
    for (size_t idx = 0; idx < ARRAY_LEN(FOLDERS); idx++) {
        if (fs_mkdir_p(store_path(store, FOLDERS[idx]), err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int make_all(const struct store *store, struct err *err)
{
    if (make_folders(store, err) < 0 || make_file(store, "oci-layout", LAYOUT_TEXT, err) < 0 ||
        make_file(store, "index.json", INDEX_TEXT, err) < 0) {
        return -1;
    }
    return check_layout(store, err);
}

int store_open(struct arena *arena, const char *folder, struct store *ret_store, struct err *err)
{
    CLEANUP(free) char *whole = NULL;
    CLEANUP(store) struct store store = STORE_EMPTY;
    if (fs_mkdir_p(folder, err) < 0) {
        return err_wrap(err, "store");
    }
    whole = realpath(folder, NULL);
    if (!whole) {
        return err_errno(err, "store", folder);
    }
    store.arena = arena;
    store.folder = arena_strndup(arena, whole, strlen(whole));
    if (check_folder(arena, store.folder, err) < 0 || take_lock(&store, err) < 0 ||
        make_all(&store, err) < 0) {
        return -1;
    }
    *ret_store = store;
    store.lock_fd = -1;
    return 0;
}

void store_close(struct store *store)
{
    fd_close(&store->lock_fd);
    *store = STORE_EMPTY;
}

int store_index_lock(const struct store *store, int *ret_fd, struct err *err)
{
    return fs_lock(store_path(store, "cache/index.lock"), ret_fd, err);
}

/* ---- what is there ---- */

char *store_path(const struct store *store, const char *below)
{
    return fs_join(store->arena, store->folder, below);
}

char *store_blob_path(const struct store *store, const uint8_t *sha256)
{
    return arena_printf(store->arena, "%s/blobs/sha256/%s", store->folder,
                        sha256_hex_of(sha256).text);
}

bool store_has(const struct store *store, const uint8_t *sha256, uint64_t *ret_size_bytes)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct store here = {.folder = store->folder, .arena = &arena, .lock_fd = -1};
    struct stat info;
    if (lstat(store_blob_path(&here, sha256), &info) < 0 || !S_ISREG(info.st_mode)) {
        return false;
    }
    if (ret_size_bytes) {
        *ret_size_bytes = (uint64_t)info.st_size;
    }
    return true;
}

int store_find_md5(const struct store *store, const uint8_t *md5, uint8_t *ret_sha256,
                   struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    uint8_t sha256[SHA256_BYTES];
    struct err ignored = {0};
    struct str text;
    const struct hex hex = md5_hex_of(md5);
    const char *path = arena_printf(&arena, "%s/md5/%s", store->folder, hex.text);
    /* A damaged alias, or one without its blob, does not count: adopting the file again rewrites it. */
    if (fs_read(&arena, path, SHA256_HEX_SIZE, &text, &ignored) < 0 ||
        hex_decode(str_trim(text), SHA256_BYTES, sha256, &ignored) < 0 ||
        !store_has(store, sha256, NULL)) {
        return err_set(err, ERR_NOT_FOUND, "store %s: no blob with MD5 %s", store->folder,
                       hex.text);
    }
    memcpy(ret_sha256, sha256, SHA256_BYTES);
    return 0;
}
