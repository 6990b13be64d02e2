/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/base.h"
#include "cmd/cmd.h"

int cmd_print(struct str text, struct err *err)
{
    if (fwrite(text.ptr, 1, text.len, stdout) != text.len || fflush(stdout) != 0) {
        return err_set(err, err_code_of_errno(errno), "write to standard output: %s",
                       err_errno_text(errno));
    }
    return 0;
}
