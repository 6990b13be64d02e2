/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake libraries need of the program that opens them: a kernel's place in a stream of the emulator, whose memory nothing
   else may touch. The program has it from fake_host.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Queues fn(closure) on the stream; drop(closure) follows, whether it ran or not. */
void fake_enqueue(void *stream, const char *name, void (*fn)(void *), void *closure,
                  void (*drop)(void *));

/* Ends the program: the caller broke the library's rules. */
void fake_die(const char *what) __attribute__((noreturn));

float fake_half_to_float(uint16_t bits);
uint16_t fake_half_from_float(float value);
