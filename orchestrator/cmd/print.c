/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <unistd.h>

#include "base/base.h"
#include "cmd/cmd.h"

/* A document is for programs, which want it as it is; on a terminal it is for people as well. */
static int put(struct str text, bool is_document, struct err *err)
{
    CLEANUP(free) char *plain = NULL;
    if (!is_document || isatty(STDOUT_FILENO)) {
        plain = xmalloc(text.len + 1);
        memcpy(plain, text.ptr, text.len);
        text_plain(plain, text.len);
        text.ptr = plain;
    }
    if (fwrite(text.ptr, 1, text.len, stdout) != text.len || fflush(stdout) != 0) {
        return err_set(err, err_code_of_errno(errno), "write to standard output: %s",
                       err_errno_text(errno));
    }
    return 0;
}

int cmd_print(struct str text, struct err *err)
{
    bool is_document = text.len && (text.ptr[0] == '{' || text.ptr[0] == '<');
    return put(text, is_document, err);
}

int cmd_print_document(struct str text, struct err *err)
{
    return put(text, true, err);
}
