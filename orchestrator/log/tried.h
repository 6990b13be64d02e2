/* SPDX-License-Identifier: Apache-2.0 */
/* Formats that were read when the program was built: they are valid, and lint need not try their patterns (lint/growth.h). */
#ifndef LOG_TRIED_H
#define LOG_TRIED_H

#include "base/str.h"

/* Formats that were read when the program was built, and whose patterns, tried with the library that it was built with, are not steep:
   keys of their files, ascending. Made by orchestrator/growth_main.c of the shipped ones; empty in what is linked without it. */
#define TRIED_KEY_BYTES 16
struct tried {
    const char *library;
    const uint8_t *keys; /* n of TRIED_KEY_BYTES each */
    size_t n;
};
extern const struct tried TRIED;
/* id: the file's name without ".json"; text: its bytes. */
void tried_key(struct str id, struct str text, uint8_t *ret_key);
/* Whether the file, byte for byte, is one of them. */
bool format_is_tried(const struct tried *tried, struct str id, struct str text);

#endif
