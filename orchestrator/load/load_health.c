/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "load/load_health.h"

#include "base/fs.h"
#include "codec/json.h"

int load_health_limits(struct arena *arena, const char *root, const char *path,
                       struct health_limits *ret_limits, struct err *err)
{
    const char *from = path ? path : fs_join(arena, root, HEALTH_LIMITS_FILE);
    struct str text;
    return json_read_text(arena, from, &text, err) < 0 ||
                   health_limits_decode(arena, text, from, ret_limits, err) < 0
               ? -1
               : 0;
}
