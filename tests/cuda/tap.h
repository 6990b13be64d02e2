/* SPDX-License-Identifier: Apache-2.0 */
/* TAP for test programs on machines without a test library. One program, one thread. */
#pragma once

#include "base/base.h"

void tap_report(bool is_ok, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tap_skip(const char *name, const char *why);

/* Gives up: ends the program with status 1. */
NORETURN void tap_bail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the plan. Returns the program's status: 0 if there were tests and none failed. */
int tap_end(void);
