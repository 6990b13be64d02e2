/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <unistd.h>

#include "base/base.h"
#include "base/command.h"
#include "base/log.h"
#include "base/table.h"

typedef void clean_fn(char *text, size_t len);

/* A document is for programs, which want it as it is; on a terminal it is for people as well. */
static int put(struct str text, bool for_programs, clean_fn *clean, struct err *err)
{
    CLEANUP(free) char *plain = NULL;
    CLEANUP(strbuf) struct strbuf wrapped = {0};
    if (!for_programs || isatty(STDOUT_FILENO)) {
        plain = xmalloc(text.len + 1);
        memcpy(plain, text.ptr, text.len);
        clean(plain, text.len);
        text.ptr = plain;
    }
    if (!for_programs && isatty(STDOUT_FILENO)) {
        strbuf_init(&wrapped, SIZE_MAX);
        text_wrap(text, (size_t)log_output_columns(), &wrapped);
        text = strbuf_str(&wrapped);
    }
    if (fwrite(text.ptr, 1, text.len, stdout) != text.len || fflush(stdout) != 0) {
        return err_set(err, err_code_of_errno(errno), "write to standard output: %s",
                       err_errno_text(errno));
    }
    return 0;
}

static bool is_document(struct str text)
{
    return text.len && (text.ptr[0] == '{' || text.ptr[0] == '<');
}

int cmd_print(struct str text, struct err *err)
{
    return put(text, is_document(text), text_plain, err);
}

int cmd_print_painted(struct str text, struct err *err)
{
    return put(text, is_document(text), text_plain_painted, err);
}

int cmd_print_document(struct str text, struct err *err)
{
    return put(text, true, text_plain, err);
}
