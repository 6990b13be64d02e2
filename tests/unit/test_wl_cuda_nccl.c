/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL itself, if the toolkit has it next to nccl.h: it is found, its version is accepted, it has every function used, and it reports
   its errors. That needs no GPU; anything more is tested with the fake one (test_emu_nccl.c). */
#ifdef REPERF_HAVE_NCCL
#include "unit.h"

#include <unistd.h>

#include "dist/nccl_api.h"

TEST(the_real_library)
{
    struct nccl_api api;
    char text[256];
    if (nccl_api_open(&api, ERR) < 0) {
        SAYS("NCCL from 2.18.0 to below 3.0.0 is needed");
        print_message("# no NCCL library here: %s\n", ERR->msg);
        skip();
    }
    assert_true(api.load.version >= 21800 && api.load.version < 30000);
    nccl_api_text(&api, ncclSystemError, NULL, "something", text, sizeof(text));
    assert_non_null(strstr(text, "nccl: something: unhandled system error"));
    print_message("# %s: %d\n", api.load.path, api.load.version);
    nccl_api_close(&api);
}

TEST(none_in_a_folder_that_is_named)
{
    struct nccl_api api;
    assert_int_equal(setenv("REPERF_NCCL_DIR", "/nowhere", 1), 0);
    FAILS(nccl_api_open(&api, ERR), ERR_USAGE);
    SAYS("REPERF_NCCL_DIR: /nowhere/libnccl.so.2: no such file");
    assert_int_equal(unsetenv("REPERF_NCCL_DIR"), 0);
}

#else
#include <stdio.h>

int main(void)
{
    (void)printf("1..0 # SKIP this build is without NCCL, which needs CUDA and nccl.h\n");
    return 0;
}
#endif
