/* SPDX-License-Identifier: Apache-2.0 */
/* TAP for test programs that must run where no test library is. One program, one thread. */
#ifndef CUDA_TAP_H
#define CUDA_TAP_H

#include "base/base.h"

void tap_report(bool is_ok, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tap_skip(const char *name, const char *why);

/* Nothing more can be said: ends the program with status 1. */
NORETURN void tap_bail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The plan. The program's status: 0 where there were tests and none was bad. */
int tap_end(void);

#endif
