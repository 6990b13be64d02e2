/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN behind one file. Without it (REPERF_HAVE_DNNL is not set) asking for it is an error. */
#include "base/base.h"

#include "backend_cpu/cpu.h"

bool cpu_has_onednn(void)
{
    return false;
}
int onednn_init(void **ret_engine UNUSED, struct err *err)
{
    return err_set(err, ERR_USAGE, "this build has no oneDNN");
}
void onednn_release(void *engine UNUSED)
{
}
int onednn_prepare(void *engine UNUSED, struct kernel_args *args UNUSED, struct err *err UNUSED)
{
    return 0;
}
void onednn_unprepare(struct kernel_args *args UNUSED)
{
}
void onednn_run(void *engine UNUSED, const struct kernel_args *args UNUSED)
{
    ASSERT(false);
}
const char *onednn_version(void)
{
    return "";
}
