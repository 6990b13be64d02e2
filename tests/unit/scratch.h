/* SPDX-License-Identifier: Apache-2.0 */
/* A scratch folder of a test program, removed at the end, and an arena for what it reads. Helpers abort the program on
   failure: a test whose set-up fails says nothing about the code. */
#pragma once

#include "base/base.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/stop.h"

static char scratch_folder[] =
    "/dev/shm/reperf-unit.XXXXXX"; /* in memory: thousands of variants are written */
static struct arena scratch_arena;

static UNUSED int scratch_start(void)
{
    if (access("/dev/shm", W_OK) != 0) {
        memcpy(scratch_folder, "/tmp/reperf-unit.XXXXXX", sizeof("/tmp/reperf-unit.XXXXXX"));
    }
    return mkdtemp(scratch_folder) ? 0 : -1;
}

static UNUSED int scratch_end(void)
{
    struct err err = {0};
    int result = fs_remove_tree(scratch_folder, &err);
    arena_release(&scratch_arena);
    return result;
}

static UNUSED const char *scratch_path(const char *name)
{
    return fs_join(&scratch_arena, scratch_folder, name);
}

static UNUSED int scratch_create(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT(fd >= 0);
    return fd;
}

/* Not through fs_write_atomic, whose fsync would make thousands of variants slow. */
static UNUSED void scratch_write(const char *path, struct str bytes)
{
    struct err err = {0};
    int fd = scratch_create(path);
    ASSERT(fs_write_all(fd, bytes.ptr, bytes.len, path, &err) == 0);
    close(fd);
}

static UNUSED struct str scratch_read(const char *path)
{
    struct err err = {0};
    struct str text;
    int result = fs_read(&scratch_arena, path, 1u << 30, &text, &err);
    ASSERT(result == 0);
    return text;
}

/* A file below a folder, in new folders of its own where there are none. */
static UNUSED void scratch_put(const char *folder, const char *name, struct str bytes)
{
    struct err err = {0};
    const char *path = fs_join(&scratch_arena, folder, name);
    const char *parent = arena_strndup(&scratch_arena, path, (size_t)(strrchr(path, '/') - path));
    ASSERT(fs_mkdir_p(parent, &err) == 0);
    scratch_write(path, bytes);
}

/* ^C waits, until the second takes it back. */
static UNUSED void scratch_stop(void)
{
    stop_hold();
    kill(getpid(), SIGINT);
}

static UNUSED void scratch_go_on(void)
{
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    (void)sigtimedwait(&stop, NULL, &(struct timespec){0});
}

/* A test with a new folder of its own, in *state. */
#define TEST_IN_SCRATCH(test) TEST_WITH(test, scratch_make, scratch_remove)

static UNUSED int scratch_make(void **state)
{
    static int n;
    struct err err = {0};
    char name[32];
    snprintf(name, sizeof(name), "test-%d", n++);
    *state = fs_join(&scratch_arena, scratch_folder, name);
    return fs_mkdir_p(*state, &err);
}

static UNUSED int scratch_remove(void **state)
{
    struct err err = {0};
    return fs_remove_tree(*state, &err);
}

static UNUSED int scratch_group_start(void **state UNUSED)
{
    return scratch_start();
}

static UNUSED int scratch_group_end(void **state UNUSED)
{
    return scratch_end();
}

/* The last byte of a file becomes another. */
static inline void scratch_spoil(const char *path)
{
    struct str bytes = scratch_read(path);
    char *copy = arena_strndup(&scratch_arena, bytes.ptr, bytes.len);
    copy[bytes.len - 1] = (char)~copy[bytes.len - 1];
    scratch_write(path, (struct str){copy, bytes.len});
}
