/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

#define MARK         "reperf-tmp-" /* an image is reperf-cuda11 */
#define RANDOM_CHARS 6
#define END_CHARS    (sizeof(MARK) - 1 + RANDOM_CHARS)
#define TRIES_MAX    100

static const struct {
    enum temp_root root;
    const char *below;
} PLACES[] = {
#define PLACE(root, below, what) {root, below},
    TEMP_PLACES(PLACE)
#undef PLACE
};

/* ---- what is left ---- */

struct str temp_of(struct str name)
{
    static const char CHARS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const struct str end = str_sub(name, name.len > END_CHARS ? name.len - END_CHARS : 0, name.len);
    const size_t len = name.len - end.len;
    if (end.len < END_CHARS || !str_starts(end, STR_LIT(MARK)) ||
        (len && name.ptr[len - 1] != '.')) {
        return STR_EMPTY;
    }
    for (size_t idx = sizeof(MARK) - 1; idx < END_CHARS; idx++) {
        if (!end.ptr[idx] || !strchr(CHARS, end.ptr[idx])) {
            return STR_EMPTY;
        }
    }
    return str_sub(name, 0, len ? len - 1 : 0);
}

/* Removed while we hold the lock that its maker would hold. */
static void drop_dead(const char *path)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == geteuid() &&
        (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        fs_drop_tree(path);
    }
}

void temp_sweep(const char *folder, const char *of)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct fs_names names = {0};
    if (fs_list(&arena, folder, &names, ERR_IGNORED) < 0) {
        return;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        const struct str name = temp_of(str_of(names.items[idx]));
        if (name.ptr && (!of || str_eq_z(name, of))) {
            drop_dead(fs_join(&arena, folder, names.items[idx]));
        }
    }
}

void temp_sweep_root(enum temp_root root, const char *folder)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    for (size_t idx = 0; idx < ARRAY_LEN(PLACES); idx++) {
        if (PLACES[idx].root == root) {
            temp_sweep(PLACES[idx].below[0] ? fs_join(&arena, folder, PLACES[idx].below) : folder,
                       NULL);
        }
    }
}

/* ---- a new one ---- */

static int choose(char *random_chars)
{
    static const char CHARS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    unsigned char random[RANDOM_CHARS];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return -1;
    }
    for (size_t idx = 0; idx < RANDOM_CHARS; idx++) {
        random_chars[idx] = CHARS[random[idx] % (sizeof(CHARS) - 1)];
    }
    return 0;
}

/* Whoever sweeps may have seen it before it was locked: then it is gone, and another is made. Where nothing can be locked,
   nothing is swept either. */
static bool hold(int fd)
{
    struct stat info;
    return (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && fstat(fd, &info) == 0 &&
           info.st_nlink > 0;
}

static int make(const char *name, mode_t mode, bool is_folder, struct temp **ret)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *slash = strrchr(name, '/');
    const char *of = slash ? slash + 1 : name;
    const size_t size = strlen(name) + sizeof(".") + END_CHARS;
    CLEANUP(free) struct temp *temp = xcalloc(1, sizeof(*temp) + size);
    temp_sweep(!slash          ? "."
               : slash == name ? "/"
                               : arena_strndup(&arena, name, (size_t)(slash - name)),
               of);
    snprintf(temp->path, size, "%s%s" MARK "%*s", name, of[0] ? "." : "", RANDOM_CHARS, "");
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        if (choose(temp->path + strlen(temp->path) - RANDOM_CHARS) < 0) {
            return -1;
        }
        if (is_folder && mkdir(temp->path, mode) < 0) {
            if (errno != EEXIST) {
                return -1;
            }
            continue;
        }
        temp->fd = is_folder
                       ? open(temp->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                       : open(temp->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (temp->fd < 0 && errno != EEXIST && (!is_folder || errno != ENOENT)) {
            return -1;
        }
        if (temp->fd >= 0 && hold(temp->fd)) {
            *ret = temp;
            temp = NULL;
            return 0;
        }
        fd_close(&temp->fd);
    }
    return -1;
}

int temp_file(const char *name, mode_t mode, struct temp **ret)
{
    return make(name, mode, false, ret);
}

int temp_folder(const char *name, struct temp **ret, struct err *err)
{
    return make(name, 0755, true, ret) < 0 ? err_errno(err, "make a folder for", name) : 0;
}

static int make_scratch(mode_t mode, bool is_folder, struct temp **ret, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *folder = getenv("TMPDIR");
    const char *in = fs_join(&arena, folder && folder[0] ? folder : "/tmp", "");
    return make(in, mode, is_folder, ret) < 0 ? err_errno(err, "make a file or folder in", in) : 0;
}

int temp_scratch(struct temp **ret, struct err *err)
{
    return make_scratch(0700, true, ret, err);
}

int temp_spool(int *ret_fd, struct err *err)
{
    CLEANUP(temp) struct temp *file = NULL;
    if (make_scratch(0600, false, &file, err) < 0) {
        return -1;
    }
    *ret_fd = take_fd(&file->fd);
    return 0;
}

void temp_free(struct temp *temp)
{
    if (!temp) {
        return;
    }
    fs_drop_tree(temp->path);
    fd_close(&temp->fd);
    free(temp);
}

void temp_leave(struct temp **temp)
{
    free(*temp);
    *temp = NULL;
}
