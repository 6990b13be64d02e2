/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/publish.h"
#include "base/stop.h"
#include "base/temp.h"

#define PATH_LEN_MAX 4096
#define LOCK_WAIT_NS 100000000

void fd_close(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

int fs_open(const char *path, int *ret_fd, struct stat *ret_info, struct err *err)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, ret_info) < 0) {
        return err_errno(err, "open", path);
    }
    if (!S_ISREG(ret_info->st_mode)) {
        return err_set(err, ERR_IO, "open %s: expected a regular file", path);
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

int fs_fill(int fd, void *dst, size_t size, const char *name, size_t *ret_len, struct err *err)
{
    char *bytes = dst;
    size_t len = 0;
    ssize_t got = 1;
    while (len < size && got != 0) {
        got = read(fd, bytes + len, size - len);
        if (got < 0 && errno != EINTR) {
            return err_errno(err, "read", name);
        }
        len += got > 0 ? (size_t)got : 0;
    }
    *ret_len = len;
    return 0;
}

int fs_read_at(int fd, void *dst, size_t len, uint64_t offset, const char *name, struct err *err)
{
    char *bytes = dst;
    for (size_t done = 0; done < len;) {
        ssize_t got = pread(fd, bytes + done, len - done, (off_t)(offset + done));
        if (got < 0 && errno != EINTR) {
            return err_errno(err, "read", name);
        }
        if (got == 0) {
            return err_set(err, ERR_INTEGRITY, "%s: ends before byte %" PRIu64, name, offset + len);
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

int fs_write_at(int fd, const void *ptr, size_t len, uint64_t offset, const char *name,
                struct err *err)
{
    const char *bytes = ptr;
    for (size_t done = 0; done < len;) {
        ssize_t put = pwrite(fd, bytes + done, len - done, (off_t)(offset + done));
        if (put < 0 && errno != EINTR) {
            return err_errno(err, "write", name);
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return 0;
}

int fs_expect_room(int fd, uint64_t bytes, const char *what, struct err *err)
{
    struct statvfs room;
    if (fstatvfs(fd, &room) < 0) {
        return err_errno(err, "free space for", what);
    }
    uint64_t is_free = (uint64_t)room.f_bavail * room.f_frsize;
    return bytes <= is_free
               ? 0
               : err_set(err, ERR_DISK,
                         "%s needs %" PRIu64 " bytes more on its disk, and %" PRIu64 " are free",
                         what, bytes, is_free);
}

int fs_lock(const char *path, int *ret_fd, struct err *err)
{
    CLEANUP(fd) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    const struct timespec wait = {0, LOCK_WAIT_NS};
    if (fd < 0) {
        return err_errno(err, "open", path);
    }
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return err_errno(err, "lock", path);
        }
        if (stop_is_asked()) {
            return err_set(err, ERR_INTERRUPTED, "waiting for %s was stopped", path);
        }
        nanosleep(&wait, NULL);
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

int fs_read(struct arena *arena, const char *path, size_t max_bytes, struct str *ret_text,
            struct err *err)
{
    CLEANUP(fd) int fd = -1;
    struct stat info;
    size_t len = 0;
    if (fs_open(path, &fd, &info, err) < 0) {
        return -1;
    }
    if ((uint64_t)info.st_size > max_bytes) {
        return err_set(err, ERR_IO, "%s: %lld bytes, expected at most %zu", path,
                       (long long)info.st_size, max_bytes);
    }
    char *text = arena_alloc(arena, (size_t)info.st_size + 1, 1);
    if (fs_fill(fd, text, (size_t)info.st_size, path, &len, err) < 0) {
        return -1;
    }
    *ret_text = (struct str){text, len};
    return 0;
}

struct str fs_read_tail(struct arena *arena, const char *path)
{
    char *text = arena_array(arena, char, FS_TAIL_BYTES);
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    off_t from = size > FS_TAIL_BYTES ? size - FS_TAIL_BYTES : 0;
    ssize_t got = size < 0 ? -1 : pread(fd, text, FS_TAIL_BYTES, from);
    return got < 0 ? STR_EMPTY : (struct str){text, (size_t)got};
}

int fs_write_all(int fd, const void *ptr, size_t len, const char *name, struct err *err)
{
    const char *bytes = ptr;
    while (len) {
        ssize_t put = write(fd, bytes, len);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return err_errno(err, "write", name);
        }
        bytes += put;
        len -= (size_t)put;
    }
    return 0;
}

/* A device or a pipe is written to, never replaced: as root, a rename would turn /dev/full into a regular file. */
static bool is_special(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

static int write_through(const char *path, struct str content, struct err *err)
{
    CLEANUP(fd) int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_errno(err, "open", path);
    }
    return fs_write_all(fd, content.ptr, content.len, path, err);
}

int fs_check_target(const char *path, struct err *err)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        return err_set(err, ERR_IO, "write %s: expected a regular file or none", path);
    }
    return 0;
}

static int replace(const char *path, struct str content, bool is_synced, struct err *err)
{
    CLEANUP(temp) struct temp *temp = NULL;
    if (is_special(path)) {
        return write_through(path, content, err);
    }
    if (temp_file(path, 0644, &temp) < 0) {
        return err_errno(err, "create", path);
    }
    if (fs_write_all(temp->fd, content.ptr, content.len, temp->path, err) < 0) {
        return -1;
    }
    if (is_synced) {
        return publish_file(temp->fd, temp->path, path, err);
    }
    return rename(temp->path, path) < 0 ? err_errno(err, "rename to", path) : 0;
}

int fs_write_atomic(const char *path, struct str content, struct err *err)
{
    return replace(path, content, true, err);
}

int fs_replace(const char *path, struct str content, struct err *err)
{
    return replace(path, content, false, err);
}

/* A folder that is lost in a power cut takes its files with it; one whose name could not be synced is taken back, so that who
   comes next does not find it there and trust it. */
static int make_folder(const char *path, bool is_kept, struct err *err)
{
    if (mkdir(path, 0755) < 0) {
        return errno == EEXIST ? 0 : err_errno(err, "mkdir", path);
    }
    if (is_kept && (publish_folder(path, err) < 0 || publish_parent(path, err) < 0)) {
        (void)rmdir(path);
        return -1;
    }
    return 0;
}

static int make_folders(const char *path, bool is_kept, struct err *err)
{
    char part[PATH_LEN_MAX];
    size_t len = strlen(path);
    if (len >= sizeof(part)) {
        return err_set(err, ERR_IO, "path longer than %d bytes: %.200s", PATH_LEN_MAX, path);
    }
    if (fs_is_dir(path)) {
        return 0;
    }
    memcpy(part, path, len + 1);
    for (size_t idx = 1; idx <= len; idx++) {
        if (part[idx] != '/' && part[idx] != '\0') {
            continue;
        }
        part[idx] = '\0';
        if (!fs_is_dir(part) && make_folder(part, is_kept, err) < 0) {
            return -1;
        }
        part[idx] = path[idx];
    }
    return fs_is_dir(path) ? 0 : err_set(err, ERR_IO, "mkdir %s: not a folder", path);
}

int fs_mkdir_p(const char *path, struct err *err)
{
    return make_folders(path, true, err);
}

static int make_above(const char *path, bool is_kept, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *slash = strrchr(path, '/');
    return slash && slash != path
               ? make_folders(arena_strndup(&arena, path, (size_t)(slash - path)), is_kept, err)
               : 0;
}

int fs_mkdir_above(const char *path, struct err *err)
{
    return make_above(path, true, err);
}

int fs_scratch_above(const char *path, struct err *err)
{
    return make_above(path, false, err);
}

static int remove_one(const char *path, const struct stat *info UNUSED, int kind UNUSED,
                      struct FTW *at UNUSED)
{
    return remove(path);
}

int fs_remove_tree(const char *path, struct err *err)
{
    struct stat info;
    if (lstat(path, &info) < 0 && errno == ENOENT) {
        return 0;
    }
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0) {
        return err_errno(err, "remove", path);
    }
    return 0;
}

void fs_drop_tree(const char *path)
{
    struct err err = {0};
    if (fs_remove_tree(path, &err) < 0) {
        log_line(LOG_DEBUG, "%s", err.msg);
    }
}

bool fs_exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

bool fs_is_dir(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

char *fs_join(struct arena *arena, const char *folder, const char *name)
{
    size_t len = strlen(folder);
    const char *slash = len && folder[len - 1] == '/' ? "" : "/";
    char *path = arena_alloc(arena, len + strlen(slash) + strlen(name) + 1, 1);
    (void)stpcpy(stpcpy(stpcpy(path, folder), slash), name);
    return path;
}

struct name_vec {
    char **items;
    size_t n;
    size_t n_max;
};

static void names_finish(struct arena *arena, struct name_vec *found, struct fs_names *ret_names)
{
    char **items = arena_array(arena, char *, found->n ? found->n : 1);
    if (found->n) {
        memcpy(items, found->items, found->n * sizeof(*items));
        qsort(items, found->n, sizeof(*items), str_cmp_z);
    }
    *ret_names = (struct fs_names){items, found->n};
    VEC_RELEASE(found);
}

static void dir_cleanup(DIR **dir)
{
    if (*dir) {
        closedir(*dir);
    }
}

static int mode_of(DIR *dir, const struct dirent *entry, const char *folder, mode_t *ret_mode,
                   struct err *err)
{
    struct stat info = {.st_mode = (mode_t)DTTOIF(entry->d_type)};
    if (entry->d_type == DT_UNKNOWN && /* a file system that keeps no types there */
        fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0) {
        return err_set(err, err_code_of_errno(errno), "stat %s/%s: %s", folder, entry->d_name,
                       err_errno_text(errno));
    }
    *ret_mode = info.st_mode;
    return 0;
}

struct walking {
    struct name_vec files, folders, others;
};

static void walking_cleanup(struct walking *found)
{
    VEC_RELEASE(&found->files);
    VEC_RELEASE(&found->folders);
    VEC_RELEASE(&found->others);
}

/* Puts the entries of one folder into files, or, where they are to be told apart, where they belong: each as rel/NAME. */
static int list_into(struct arena *arena, const char *folder, const char *rel,
                     struct walking *found, bool tells_apart, struct err *err)
{
    CLEANUP(dir) DIR *dir = opendir(folder);
    struct dirent *entry;
    size_t n = 0;
    if (!dir) {
        return err_errno(err, "open folder", folder);
    }
    for (errno = 0; (entry = readdir(dir)); errno = 0) {
        mode_t mode = S_IFREG;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        if (++n > FS_WALK_MAX) {
            return err_set(err, ERR_IO, "%s: more than %d entries", folder, FS_WALK_MAX);
        }
        if (tells_apart && mode_of(dir, entry, folder, &mode, err) < 0) {
            return -1;
        }
        char *path = rel[0] ? fs_join(arena, rel, entry->d_name)
                            : arena_strndup(arena, entry->d_name, strlen(entry->d_name));
        VEC_PUSH(S_ISDIR(mode) ? &found->folders : &found->files, path);
        if (!S_ISDIR(mode) && !S_ISREG(mode)) {
            VEC_PUSH(&found->others, path);
        }
    }
    return errno ? err_errno(err, "read folder", folder) : 0;
}

int fs_list(struct arena *arena, const char *folder, struct fs_names *ret_names, struct err *err)
{
    CLEANUP(walking) struct walking found = {0};
    if (list_into(arena, folder, "", &found, false, err) < 0) {
        return -1;
    }
    names_finish(arena, &found.files, ret_names);
    return 0;
}

int fs_walk_all(struct arena *arena, const char *folder, struct fs_names *ret_files,
                struct fs_names *ret_folders, struct fs_names *ret_others, struct err *err)
{
    CLEANUP(walking) struct walking found = {0};
    int result = list_into(arena, folder, "", &found, true, err);
    for (size_t idx = 0; result == 0 && idx < found.folders.n; idx++) {
        const char *rel = found.folders.items[idx];
        result = list_into(arena, fs_join(arena, folder, rel), rel, &found, true, err);
        if (result == 0 && found.files.n > FS_WALK_MAX) {
            result = err_set(err, ERR_IO, "%s: more than %d files", folder, FS_WALK_MAX);
        }
    }
    if (result < 0) {
        return -1;
    }
    names_finish(arena, &found.files, ret_files);
    names_finish(arena, &found.folders, ret_folders);
    names_finish(arena, &found.others, ret_others);
    return 0;
}

int fs_walk(struct arena *arena, const char *folder, struct fs_names *ret_paths, struct err *err)
{
    struct fs_names folders, others;
    return fs_walk_all(arena, folder, ret_paths, &folders, &others, err);
}

int owner_check(const char *folder, struct err *err)
{
    struct stat info;
    if (stat(folder, &info) < 0) {
        return errno == ENOENT ? 0
                               : err_set(err, err_code_of_errno(errno), "%s: %s", folder,
                                         err_errno_text(errno));
    }
    bool is_ours = info.st_uid == geteuid() || info.st_uid == 0;
    bool is_open = (info.st_mode & S_IWOTH) && !(info.st_mode & S_ISVTX);
    return is_ours && !is_open
               ? 0
               : err_set(err, ERR_AUTH,
                         "%s: belongs to user %u, mode %04o: expected a folder of your own that "
                         "not everybody may write to",
                         folder, (unsigned)info.st_uid, (unsigned)(info.st_mode & 07777));
}
