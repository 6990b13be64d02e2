/* SPDX-License-Identifier: Apache-2.0 */
/* Untrusted paths stay below their folder, with the kernel's openat2 and, in a child that may not use it, without. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/beneath.h"
#include "tests/unit/scratch.h"

#define MAKE (O_WRONLY | O_CREAT | O_EXCL)

/* The reason for a failure, or NULL: also for the child, where cmocka's asserts do not work. */
static const char *try_all(int root)
{
    struct stat info;
    int fd;
    mode_t old = umask(077);
    if (beneath_mkdir(root, "a", 0755) < 0 || beneath_mkdir(root, "a/b", 0755) < 0 ||
        beneath_mkdir(root, "a/b", 0755) < 0) {
        return "folders are made, and may be there";
    }
    umask(old);
    if (fstatat(root, "a/b", &info, 0) < 0 || (info.st_mode & 0777) != 0755) {
        return "a folder's mode does not depend on the umask";
    }
    fd = beneath_open(root, "a/b/x", MAKE, 0644);
    if (fd < 0 || write(fd, "x", 1) != 1 || fcntl(fd, F_GETFD) != FD_CLOEXEC) {
        return "a file is made";
    }
    close(fd);
    if (beneath_open(root, "a/b/x", MAKE, 0644) >= 0 || errno != EEXIST) {
        return "a file that is there is not opened again";
    }
    if (beneath_symlink(root, "out", "/tmp") < 0 || beneath_symlink(root, "in", "a") < 0 ||
        beneath_symlink(root, "a/file", "b/x") < 0 || beneath_link(root, "a/b/x", "a/hard") < 0) {
        return "links are made";
    }
    if (fstatat(root, "a/hard", &info, 0) < 0 || info.st_nlink != 2) {
        return "a hard link is one";
    }
    static const char *const BAD[] = {"out/reperf-beneath",
                                      "in/x",
                                      "in/b/y",
                                      "../x",
                                      "a/../../x",
                                      "/x",
                                      "out",
                                      "a/file",
                                      "a//y",
                                      "none/x"};
    for (EACH(row, BAD)) {
        bool is_double =
            strstr(*row, "//"); /* the kernel treats it as one, and nothing is outside */
        fd = beneath_open(root, *row, O_WRONLY | O_CREAT, 0644);
        if (fd >= 0 && !is_double) {
            return *row;
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    if (beneath_mkdir(root, "in/c", 0755) >= 0 || beneath_mkdir(root, "out", 0755) >= 0 ||
        beneath_symlink(root, "out/l", "x") >= 0 || beneath_link(root, "a/b/x", "in/l") >= 0) {
        return "nothing is made through a symlink";
    }
    return access("/tmp/reperf-beneath", F_OK) == 0 ? "a file is outside" : NULL;
}

static int open_root(const char *folder)
{
    int root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(root >= 0);
    return root;
}

TEST_IN_SCRATCH(test_kernel)
{
    int root = open_root(*state);
    const char *fault = try_all(root);
    close(root);
    if (fault) {
        fail_msg("%s", fault);
    }
}

/* openat2 answers ENOSYS from here on, as before Linux 5.6. */
static int forbid_openat2(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAY_LEN(filter), .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
               ? -1
               : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

TEST_IN_SCRATCH(test_without)
{
    int root = open_root(*state), status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const char *fault = forbid_openat2() < 0 ? "seccomp" : try_all(root);
        if (fault) {
            fprintf(stderr, "# %s\n", fault);
        }
        _exit(!fault ? 0 : strcmp(fault, "seccomp") == 0 ? 77 : 1);
    }
    close(root);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        skip();
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
