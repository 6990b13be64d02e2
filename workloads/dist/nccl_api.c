/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "dist/nccl_api.h"

/* Communicators that are made without blocking came with 2.14, and with 2.18 the form of ncclConfig_t that later ones only add
   to; 3 would be another interface. Source: NCCL's release notes and nccl.h of 2.28.9. */
#define VERSION_MIN 21800
#define VERSION_END 30000

static const char *const NAMES[] = {NCCL_API_SYMBOLS(LOAD_NAME)};

static int version_of(load_fn fn)
{
    int version = 0;
    return ((ncclResult_t(*)(int *))fn)(&version) == ncclSuccess ? version : -1;
}

int nccl_api_open(struct nccl_api *api, struct err *err)
{
    load_fn table[ARRAY_LEN(NAMES)];
    struct load_want want = {.what = "NCCL",
                             .soname = "libnccl.so.2",
                             .folder_variable = "REPERF_NCCL_DIR",
                             .version_symbol = "ncclGetVersion",
                             .version = version_of,
                             .version_min = VERSION_MIN,
                             .version_end = VERSION_END,
                             .symbols = NAMES,
                             .n_symbols = (int)ARRAY_LEN(NAMES),
                             .table = table};
    struct load load = {0};
    if (load_open(&want, &load, err) < 0) {
        return -1;
    }
    *api = (struct nccl_api){.load = load};
    LOAD_FIELDS_FROM(NCCL_API_SYMBOLS, api, table);
    return 0;
}

void nccl_api_close(struct nccl_api *api)
{
    load_close(&api->load);
    *api = (struct nccl_api){0};
}

void nccl_api_text(const struct nccl_api *api, ncclResult_t status, ncclComm_t comm,
                   const char *what, char *text, size_t size)
{
    const char *more = api->ncclGetLastError(comm);
    (void)snprintf(text, size, "nccl: %s: %s%s%.160s", what, api->ncclGetErrorString(status),
                   more && *more ? ": " : "", more ? more : "");
    for (char *c = text; *c; c++) {
        *c = (*c < ' ' || *c > '~') ? ' ' : *c;
    }
}
