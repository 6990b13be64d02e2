/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of lint (lint.c and lint_*.c). Nobody else includes this. */
#ifndef JUDGE_LINT_PARTS_H
#define JUDGE_LINT_PARTS_H

#include "judge/lint.h"
#include "report/shell_text.h"

struct lint {
    struct arena *arena;
    const struct report *report;
    struct findings *findings;
    size_t first;          /* of this report's findings */
    size_t *first_command; /* by stack: how many commands stand before its own */
    struct shell_words *
        *words; /* by command: as it works, as it is printed; NULL until asked for */
};

/* A command as it is printed, in words. */
struct lint_command {
    const struct stack *stack;
    const struct command *command;
    size_t stack_idx, command_idx;
    struct shell_words words; /* as printed */
};

/* Split once; no words where the command has no such text. */
const struct shell_words *printed_words(struct lint *lint, const struct stack *stack,
                                        const struct command *command);
const struct shell_words *working_words(struct lint *lint, const struct stack *stack,
                                        const struct command *command);

/* Says each thing once: the same id and message in the same stack (or report, stack NULL) is left out. */
void lint_add(struct lint *lint, const char *id, const struct stack *stack, const char *place,
              const char *fmt, ...) PRINTF_LIKE(5, 6);

void lint_pins(struct lint *lint);       /* images, sources, data, versions */
void lint_commands(struct lint *lint);   /* slips in single commands */
void lint_launches(struct lint *lint);   /* commands against their cases */
void lint_conditions(struct lint *lint); /* what is not stated, what is stated twice */
void lint_rows(struct lint *lint);       /* what is compared with what */

bool stack_has_cells(const struct report *report, const struct stack *stack);
/* The value stated by the stack alone; false where it does not name it. */
bool stack_condition(const struct stack *stack, const char *name, struct str *ret_value);
size_t stack_index(const struct report *report, const struct stack *stack);
bool ends_in_any(struct str s, const char *const *suffixes); /* list ended by NULL */
extern const char *const ARCHIVE_SUFFIXES[];

#endif
