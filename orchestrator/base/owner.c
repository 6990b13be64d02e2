/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/owner.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

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
