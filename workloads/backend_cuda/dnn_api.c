/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "backend_cuda/dnn_api.h"

/* cudnnGetLastErrorString and the codes of a status came with 9.0; Volta's last is 9.10. Source: cuDNN's release notes. */
#define VERSION_MIN 90000
#define VERSION_END 100000

static const char *const NAMES[] = {DNN_API_SYMBOLS(LOAD_NAME)};

static int version_of(load_fn fn)
{
    size_t version = ((size_t(*)(void))fn)();
    return (int)(version < 10000 ? version / 1000 * 10000 + version % 1000 : version);
}

int dnn_api_open(struct dnn_api *api, struct err *err)
{
    load_fn table[ARRAY_LEN(NAMES)];
    struct load_want want = {.what = "cuDNN",
                             .soname = "libcudnn.so.9",
                             .folder_variable = "REPERF_CUDNN_DIR",
                             .version_symbol = "cudnnGetVersion",
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
    *api = (struct dnn_api){.load = load};
    LOAD_FIELDS_FROM(DNN_API_SYMBOLS, api, table);
    return 0;
}

void dnn_api_close(struct dnn_api *api)
{
    load_close(&api->load);
    *api = (struct dnn_api){0};
}

void dnn_api_error(const struct dnn_api *api, cudnnStatus_t status, const char *what,
                   struct err *err)
{
    char text[256] = "";
    if (err->code != ERR_NONE) {
        return;
    }
    api->cudnnGetLastErrorString(text, sizeof(text));
    for (char *c = text; *c; c++) {
        *c = *c == '\n' ? ' ' : *c;
    }
    int failed = err_set(err, ERR_WORKLOAD, "cudnn: %s: %s%s%s", what,
                         api->cudnnGetErrorString(status), text[0] ? ": " : "", text);
    ASSERT(failed < 0);
}
