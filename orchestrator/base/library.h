/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries that are opened at their first use and not when the program starts: libcurl and libarchive bring some 45 others,
   and finding and relocating those took 7 of the 10 ms of each command that needed neither. They stay open until the process ends.

   A library's functions are listed once, prefix apart, as LIST(X) = X(archive_, read_new) X(archive_, read_free) .... The struct made from the list holds their addresses, in that order, and a call reads as one of the struct's: la.read_new(). */
#pragma once

#include "base/err.h"

/* The list's names, for library_open(), and the struct's fields. */
#define LIBRARY_NAME(prefix, name)  #prefix #name,
#define LIBRARY_FIELD(prefix, name) __typeof__(&prefix##name) name;

struct library {
    const char *soname;       /* "libcurl.so.4" */
    const char *const *names; /* of n functions */
    int n;
    void *functions; /* where the n pointers lie; filled at the first use */
    bool is_open;
};

/* ERR_INTERNAL: the library is not on this machine, or lacks a function. Any thread; once it is open, at the cost of a lock. */
MUST_CHECK int library_open(struct library *library, struct err *err);

/* The n functions of what dlopen() returned, into n pointers in the order of the names: NULL, or the name that it lacks. */
const char *library_find(void *handle, const char *const *names, int n, void *functions);
