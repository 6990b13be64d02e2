/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries that are opened when they are needed, not when the program starts, so that one build runs with and without them:
   cuDNN, cuBLASLt, NCCL. Versions are checked; if a library is missing, too old, of another major version or incomplete, one message
   lists every place tried. */
#pragma once

#include "base/err.h"

#define LOAD_PATH_MAX 1024

typedef void (*load_fn)(void);

struct load_want {
    const char *what;             /* "cuDNN" */
    const char *soname;           /* "libcudnn.so.9" */
    const char *folder_variable;  /* environment: a folder that it must be in; "REPERF_CUDNN_DIR" */
    const char *version_symbol;   /* function whose address goes to `version` */
    int (*version)(load_fn fn);   /* major * 10000 + minor * 100 + patch, or below 0 */
    int version_min, version_end; /* from the first to below the second */
    const char *const *symbols;   /* n_symbols of them, all needed */
    int n_symbols;
    load_fn *table; /* (n_symbols) =, in the order of symbols */
};

struct load {
    void *handle; /* owned */
    int version;
    char path[LOAD_PATH_MAX]; /* its path, according to the loader */
};

/* In this order: the folder that folder_variable names, then nothing else; the loader's own path; $CUDA_HOME and
   /usr/local/cuda; the wheels (nvidia/NAME/lib) of $VIRTUAL_ENV, of the python3 on PATH, of ~/.local, /usr/local and /usr. */
MUST_CHECK int load_open(const struct load_want *want, struct load *ret_load, struct err *err);

/* For lists of functions in the form LIST(X) = X(f1) X(f2) ...: their names, a struct's fields, and the fields from a table in that order. */
#define LOAD_NAME(name)  #name,
#define LOAD_FIELD(name) __typeof__(&name) name;
#define LOAD_TAKE(name)  load_to->name = (__typeof__(load_to->name))*load_from++;
#define LOAD_FIELDS_FROM(list, to, table)                                                          \
    do {                                                                                           \
        __typeof__(to) load_to = (to);                                                             \
        const load_fn *load_from = (table);                                                        \
        list(LOAD_TAKE)                                                                            \
    } while (0)
void load_close(struct load *load); /* an empty one is allowed */

/* 91900: "9.19.0" */
#define LOAD_VERSION_MAX 24
void load_version_text(int version, char *text);
