/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/library.h"

#include <dlfcn.h>

/* ISO C has no cast from a data to a function pointer; POSIX says that the bits are the same. */
library_fn library_symbol(void *handle, const char *name)
{
    void *at = dlsym(handle, name);
    library_fn fn = NULL;
    memcpy(&fn, &at, sizeof(fn));
    return fn;
}

library_fn library_need(const struct library *library, size_t idx)
{
    library_fn fn = library_at(library, idx);
    ASSERT(fn);
    return fn;
}

/* Threads that open it at once store the same; the last function is stored last, when the others are there. */
int library_open(const struct library *library, struct err *err)
{
    void *handle;
    if (atomic_load_explicit(&library->found[library->n - 1], memory_order_acquire)) {
        return 0;
    }
    handle = dlopen(library->soname, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        const char *text = dlerror();
        return err_set(err, ERR_INTERNAL, "%s", text ? text : library->soname);
    }
    for (size_t idx = 0; idx < library->n; idx++) {
        if (!library_symbol(handle, library->names[idx])) {
            return err_set(err, ERR_INTERNAL, "%s on this machine has no %s", library->soname,
                           library->names[idx]);
        }
    }
    for (size_t idx = 0; idx < library->n; idx++) {
        atomic_store_explicit(&library->found[idx], library_symbol(handle, library->names[idx]),
                              memory_order_release);
    }
    return 0;
}
