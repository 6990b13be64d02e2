/* SPDX-License-Identifier: Apache-2.0 */
/* Depth first with a stack of our own. A folder sorts as if its name ended in '/', so that files come in the order of their
   whole paths without sorting them all. */
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "sys/tree_impl.h"

struct walk_entry {
    uint32_t name_at; /* in the frame's names */
    uint32_t len : 16, is_folder : 1, is_link : 1;
};

struct walk_frame { /* one folder that is being visited */
    char *names;
    size_t names_len, names_max;
    struct walk_entry *entries;
    size_t n, n_max, next_idx;
    size_t path_len; /* of the folder's own path in walk.path, with its '/' */
};

struct walk {
    const char *folder;
    char *real_folder; /* owned; found when the first symlink is met */
    int root_fd;
    size_t n_files;
    size_t depth;
    char path[TREE_PATH_MAX]; /* relative, of what is visited now */
    struct walk_frame frames[TREE_DEPTH_MAX];
};

static void walk_free(struct walk **walk_ptr)
{
    struct walk *walk = *walk_ptr;
    for (size_t idx = 0; idx < walk->depth; idx++) {
        free(walk->frames[idx].names);
        free(walk->frames[idx].entries);
    }
    free(walk->real_folder);
    fd_close(&walk->root_fd);
    free(walk);
}
static inline void walk_cleanup(struct walk **walk)
{
    walk_free(walk);
}

MUST_CHECK static int fail_here(const struct walk *walk, enum err_code code, const char *what,
                                struct err *err)
{
    return err_set(err, code, "%s/%s: %s", walk->folder, walk->path, what);
}

/* ---- one folder's entries ---- */

static int entry_order(const void *a, const void *b, void *ctx)
{
    const struct walk_entry *left = a, *right = b;
    const char *names = ctx;
    size_t len = left->len < right->len ? left->len : right->len;
    int order = memcmp(names + left->name_at, names + right->name_at, len);
    if (order != 0) {
        return order;
    }
    /* The names are NUL-terminated: the longer one's next byte against the end or '/' of the other. */
    unsigned char l = (unsigned char)names[left->name_at + len];
    unsigned char r = (unsigned char)names[right->name_at + len];
    l = l == '\0' && left->is_folder ? '/' : l;
    r = r == '\0' && right->is_folder ? '/' : r;
    return (int)l - (int)r;
}

static void add_entry(struct walk_frame *frame, const char *name, size_t len,
                      struct walk_entry entry)
{
    while (frame->names_len + len + 1 > frame->names_max) {
        frame->names = vec_grow(frame->names, &frame->names_max, 1);
    }
    memcpy(frame->names + frame->names_len, name, len + 1);
    entry.name_at = (uint32_t)frame->names_len;
    entry.len = (uint16_t)len;
    frame->names_len += len + 1;
    if (frame->n == frame->n_max) {
        frame->entries = vec_grow(frame->entries, &frame->n_max, sizeof(*frame->entries));
    }
    frame->entries[frame->n++] = entry;
}

/* walk->path is set to the entry for messages. */
static int classify(struct walk *walk, int folder_fd, const struct dirent *found,
                    struct walk_entry *ret_entry, struct err *err)
{
    unsigned type = found->d_type;
    struct stat info;
    if (type == DT_UNKNOWN) {
        if (fstatat(folder_fd, found->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0) {
            return fail_here(walk, err_code_of_errno(errno), err_errno_text(errno), err);
        }
        type = IFTODT(info.st_mode);
    }
    if (type != DT_REG && type != DT_DIR && type != DT_LNK) {
        return fail_here(walk, ERR_INTEGRITY,
                         "expected a file, a folder or a link, found a device, pipe or socket",
                         err);
    }
    *ret_entry = (struct walk_entry){.is_folder = type == DT_DIR, .is_link = type == DT_LNK};
    return 0;
}

static void dir_cleanup(DIR **dir)
{
    if (*dir) {
        closedir(*dir);
    }
}

static int read_entries(struct walk *walk, struct walk_frame *frame, DIR *dir, struct err *err)
{
    struct dirent *found;
    for (errno = 0; (found = readdir(dir)); errno = 0) {
        size_t len = strlen(found->d_name);
        struct walk_entry entry;
        if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0) {
            continue;
        }
        if (frame->path_len + len + 1 >= sizeof(walk->path)) {
            return fail_here(walk, ERR_IO, "a path below it is too long", err);
        }
        memcpy(walk->path + frame->path_len, found->d_name, len + 1);
        if (classify(walk, dirfd(dir), found, &entry, err) < 0) {
            return -1;
        }
        if (frame->n >= TREE_FILES_MAX) {
            return fail_here(walk, ERR_IO, "too many entries next to it", err);
        }
        add_entry(frame, found->d_name, len, entry);
    }
    walk->path[frame->path_len] = '\0';
    return errno ? fail_here(walk, err_code_of_errno(errno), err_errno_text(errno), err) : 0;
}

/* walk->path is the folder's, with a '/' at its end unless it is the top. */
static int push_folder(struct walk *walk, size_t path_len, struct err *err)
{
    CLEANUP(dir) DIR *dir = NULL;
    struct walk_frame *frame = &walk->frames[walk->depth];
    CLEANUP(fd)
    int fd = openat(walk->root_fd, path_len ? walk->path : ".",
                    O_RDONLY | O_DIRECTORY | O_CLOEXEC | (path_len ? O_NOFOLLOW : 0));
    if (fd < 0 || !(dir = fdopendir(fd))) {
        return fail_here(walk, err_code_of_errno(errno), err_errno_text(errno), err);
    }
    fd = -1; /* the stream's now */
    *frame = (struct walk_frame){.path_len = path_len};
    walk->depth++;
    if (read_entries(walk, frame, dir, err) < 0) {
        return -1;
    }
    if (frame->n) {
        qsort_r(frame->entries, frame->n, sizeof(*frame->entries), entry_order, frame->names);
    }
    return 0;
}

/* ---- links ---- */

static bool is_below(const char *path, const char *folder)
{
    size_t len = strlen(folder);
    return strncmp(path, folder, len) == 0 && (len == 1 || path[len] == '/');
}

static int check_link(struct walk *walk, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(free) char *target = NULL;
    struct stat info;
    if (!walk->real_folder && !(walk->real_folder = realpath(walk->folder, NULL))) {
        return err_set(err, err_code_of_errno(errno), "%s: %s", walk->folder,
                       err_errno_text(errno));
    }
    target = realpath(fs_join(&arena, walk->real_folder, walk->path), NULL);
    if (!target) {
        return fail_here(walk, ERR_INTEGRITY, "a dangling link", err);
    }
    if (!is_below(target, walk->real_folder)) {
        return fail_here(walk, ERR_INTEGRITY, "a link that leads out of the folder", err);
    }
    if (stat(target, &info) < 0 || !S_ISREG(info.st_mode)) {
        return fail_here(walk, ERR_INTEGRITY, "a link to something that is not a file", err);
    }
    return 0;
}

/* ---- the walk ---- */

static int visit_entry(struct walk *walk, const struct walk_entry *entry, tree_visit_fn visit,
                       void *ctx, struct err *err)
{
    struct walk_frame *frame = &walk->frames[walk->depth - 1];
    size_t len = frame->path_len + entry->len;
    memcpy(walk->path + frame->path_len, frame->names + entry->name_at, (size_t)entry->len + 1);
    if (entry->is_folder) {
        if (walk->depth == TREE_DEPTH_MAX) {
            return fail_here(walk, ERR_IO, "folders are nested too deeply", err);
        }
        walk->path[len] = '/';
        walk->path[len + 1] = '\0';
        return push_folder(walk, len + 1, err);
    }
    if (entry->is_link && check_link(walk, err) < 0) {
        return -1;
    }
    if (++walk->n_files > TREE_FILES_MAX) {
        return err_set(err, ERR_IO, "%s: more than %d files", walk->folder, TREE_FILES_MAX);
    }
    return visit(ctx, walk->path, len, err);
}

static void pop_folder(struct walk *walk)
{
    struct walk_frame *frame = &walk->frames[--walk->depth];
    free(frame->names);
    free(frame->entries);
}

int tree_walk(const char *folder, bool (*should_stop)(void), tree_visit_fn visit, void *ctx,
              struct err *err)
{
    CLEANUP(walk) struct walk *walk = xcalloc(1, sizeof(*walk));
    walk->folder = folder;
    walk->root_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (walk->root_fd < 0) {
        return err_set(err, err_code_of_errno(errno), "open folder %s: %s", folder,
                       err_errno_text(errno));
    }
    if (push_folder(walk, 0, err) < 0) {
        return -1;
    }
    while (walk->depth) {
        struct walk_frame *frame = &walk->frames[walk->depth - 1];
        if (frame->next_idx == frame->n) {
            pop_folder(walk);
            continue;
        }
        if ((frame->next_idx & 1023) == 0 && should_stop && should_stop()) {
            return err_set(err, ERR_INTERRUPTED, "%s: interrupted", folder);
        }
        if (visit_entry(walk, &frame->entries[frame->next_idx++], visit, ctx, err) < 0) {
            return -1;
        }
    }
    return 0;
}
