/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/publish.h"
#include "store/store_impl.h"

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

/* Empty, or a store. */
static int check_folder(struct arena *arena, const char *folder, struct err *err)
{
    struct fs_names names;
    if (fs_list(arena, folder, &names, err) < 0) {
        return -1;
    }
    if (names.n == 0 || fs_exists(fs_join(arena, folder, ".lock"))) {
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
    temp_sweep_root(TEMP_STORE, store->folder);
    if (flock(lock_fd, LOCK_EX | LOCK_NB) < 0 ||
        fs_list(store->arena, tmp, &names, ERR_IGNORED) < 0) {
        return;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        fs_drop_tree(fs_join(store->arena, tmp, names.items[idx]));
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
    if (!fs_exists(store_path(store, FOLDERS[0])) &&
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

static int make_folders(const struct store *store, struct err *err)
{
    for (size_t idx = 0; idx < ARRAY_LEN(FOLDERS); idx++) {
        if (fs_mkdir_p(store_path(store, FOLDERS[idx]), err) < 0) {
            return -1;
        }
    }
    return 0;
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
        make_folders(&store, err) < 0) {
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
    struct str text;
    const struct hex hex = md5_hex_of(md5);
    const char *path = arena_printf(&arena, "%s/md5/%s", store->folder, hex.text);
    /* A damaged alias, or one without its blob, does not count: adopting the file again rewrites it. */
    if (fs_read(&arena, path, SHA256_HEX_SIZE, &text, ERR_IGNORED) < 0 ||
        hex_decode(str_trim(text), SHA256_BYTES, sha256, ERR_IGNORED) < 0 ||
        !store_has(store, sha256, NULL)) {
        return err_set(err, ERR_NOT_FOUND, "store %s: no blob with MD5 %s", store->folder,
                       hex.text);
    }
    memcpy(ret_sha256, sha256, SHA256_BYTES);
    return 0;
}
