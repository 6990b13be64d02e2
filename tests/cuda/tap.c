/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/tap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int n_tests, n_bad;

void tap_report(bool is_ok, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)printf("%s %d - ", is_ok ? "ok" : "not ok", ++n_tests);
    (void)vprintf(format, list);
    (void)printf("\n");
    (void)fflush(stdout);
    va_end(list);
    n_bad += !is_ok;
}

void tap_skip(const char *name, const char *why)
{
    (void)printf("ok %d - %s # SKIP %s\n", ++n_tests, name, why);
    (void)fflush(stdout);
}

void tap_bail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)printf("Bail out! ");
    (void)vprintf(format, list);
    (void)printf("\n");
    (void)fflush(stdout);
    va_end(list);
    exit(1);
}

int tap_end(void)
{
    (void)printf("1..%d\n", n_tests);
    return n_bad == 0 && n_tests > 0 ? 0 : 1;
}
