/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/library.h"

#include <dlfcn.h>
#include <pthread.h>

const char *library_find(void *handle, const char *const *names, int n, void *functions)
{
    for (int i = 0; i < n; i++) {
        void *function = dlsym(handle, names[i]);
        if (!function) {
            return names[i];
        }
        /* ISO C has no cast from a data to a function pointer; POSIX says that the bits are the same. */
        memcpy((char *)functions + (size_t)i * sizeof(function), &function, sizeof(function));
    }
    return NULL;
}

static int open_it(struct library *library, struct err *err)
{
    void *handle = dlopen(library->soname, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *why = dlerror();
        return err_set(err, ERR_INTERNAL, "cannot open a library: %s", why ? why : library->soname);
    }
    const char *lacks = library_find(handle, library->names, library->n, library->functions);
    if (lacks) {
        (void)dlclose(handle);
        return err_set(err, ERR_INTERNAL, "%s on this machine has no %s", library->soname, lacks);
    }
    library->is_open = true;
    return 0;
}

int library_open(struct library *library, struct err *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    int result = library->is_open ? 0 : open_it(library, err);
    pthread_mutex_unlock(&lock);
    return result;
}
