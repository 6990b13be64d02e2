/* SPDX-License-Identifier: Apache-2.0 */
/* A passphrase typed at the terminal, the only thing here that blocks the loop. It is kept in memory only, so that the key to
   128 nodes is asked for once: the only process-wide state of net/ssh. */
#include "base/base.h"

#include "net/ssh_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include "base/fs.h"

#define KEPT_MAX       16
#define PASSPHRASE_MAX 1024
#define WAIT_MS        120000
#define ASKED_MAX      3

struct kept {
    char *path; /* NULL: a free row */
    char passphrase[PASSPHRASE_MAX];
    int n_asked;
};

static struct kept kept[KEPT_MAX];

static struct kept *row_of(const char *path)
{
    for (size_t idx = 0; idx < KEPT_MAX; idx++) {
        if (!kept[idx].path) {
            kept[idx].path = xstrdup(path); /* for the life of the process */
            return &kept[idx];
        }
        if (strcmp(kept[idx].path, path) == 0) {
            return &kept[idx];
        }
    }
    return NULL;
}

/* Without echo, byte by byte; ^C gives up. */
static int read_line(int fd, char *dst, struct err *err)
{
    size_t len = 0;
    for (;;) {
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        char c;
        int n = poll(&polled, 1, WAIT_MS);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n == 0) {
            return err_set(err, ERR_AUTH, "no passphrase was typed within %d s", WAIT_MS / 1000);
        }
        if (n < 0 || read(fd, &c, 1) != 1 || c == 4) {
            return err_set(err, ERR_AUTH, "no passphrase was typed");
        }
        if (c == 3) {
            return err_set(err, ERR_INTERRUPTED, "given up at the passphrase");
        }
        if (c == '\n' || c == '\r') {
            dst[len] = '\0';
            return 0;
        }
        if (c == 127 || c == 8) {
            len -= len > 0 ? 1 : 0;
        } else if (len + 1 < PASSPHRASE_MAX) {
            dst[len++] = c;
        }
    }
}

static int ask(int fd, const char *path, bool is_again, char *dst, struct err *err)
{
    struct termios old;
    CLEANUP(strbuf) struct strbuf line;
    strbuf_init(&line, 8192);
    strbuf_printf(&line, "%sPassphrase of %s: ", is_again ? "Wrong passphrase. " : "", path);
    if (tcgetattr(fd, &old) < 0) {
        return err_set(err, ERR_AUTH, "/dev/tty: %s", err_errno_text(errno));
    }
    struct termios quiet = old;
    quiet.c_lflag &= ~(tcflag_t)(ECHO | ICANON | ISIG);
    quiet.c_cc[VMIN] = 1;
    quiet.c_cc[VTIME] = 0;
    if (tcsetattr(fd, TCSAFLUSH, &quiet) < 0) {
        return err_set(err, ERR_AUTH, "/dev/tty: %s", err_errno_text(errno));
    }
    int result = fs_write_all(fd, line.ptr, line.len, "/dev/tty", err);
    result = result < 0 ? result : read_line(fd, dst, err);
    (void)tcsetattr(fd, TCSAFLUSH, &old);
    if (result == 0) {
        result = fs_write_all(fd, "\n", 1, "/dev/tty", err);
    }
    return result;
}

int ssh_prompt(const char *path, bool is_again, const char **ret_passphrase, struct err *err)
{
    struct kept *row = row_of(path);
    CLEANUP(fd) int fd = -1;
    if (!row) {
        return err_set(err, ERR_AUTH, "more than %d encrypted keys", KEPT_MAX);
    }
    if (!is_again && row->passphrase[0]) {
        *ret_passphrase = row->passphrase;
        return 0;
    }
    if (row->n_asked >= ASKED_MAX) {
        return err_set(err, ERR_AUTH, "encrypted, and %d passphrases were wrong", ASKED_MAX);
    }
    fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return err_set(
            err, ERR_AUTH,
            "encrypted, and there is no terminal to ask for its passphrase: add it to an "
            "agent (ssh-add)");
    }
    row->n_asked++;
    explicit_bzero(row->passphrase, sizeof(row->passphrase));
    if (ask(fd, path, is_again, row->passphrase, err) < 0) {
        explicit_bzero(row->passphrase, sizeof(row->passphrase));
        return -1;
    }
    *ret_passphrase = row->passphrase;
    return 0;
}
