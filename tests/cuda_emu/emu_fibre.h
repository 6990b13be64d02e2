/* SPDX-License-Identifier: Apache-2.0 */
/* Fibres: stacks that are switched here, with the sanitizers told. The calling OS thread's own stack is one too. */
#pragma once

#include <stddef.h>

struct emu_fibre;

struct emu_fibre *emu_fibre_self(void);
/* An unused one; entry, which must not return, begins at the first switch to it. */
struct emu_fibre *emu_fibre_take(void (*entry)(void));
void emu_fibre_switch(struct emu_fibre *to);
/* The same, and the leaving fibre may be reused: its emu_fibre_leave returns then. */
void emu_fibre_leave(struct emu_fibre *to);

/* Fills memory that contains a sanitizer's red zones. */
void emu_fibre_poison(unsigned char *ptr, size_t bytes);
