/* SPDX-License-Identifier: Apache-2.0 */
/* Reading printed shell commands: words, redirections, operators, assignments, uses of variables. It follows the shell's quoting
   and expands nothing; shell_script.h expands, as far as the text alone tells. Views point into the text or into the arena. Loops,
   conditions, here-documents and arithmetic are read as plain words. Source of the rules: POSIX.1-2017, XCU 2.2 and 2.3. Pure. */
#pragma once

#include "base/str.h"

#define SHELL_NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

enum shell_role {
    SHELL_ARGUMENT, /* a word of a command, assignments before it among them */
    SHELL_TO,       /* the file after > */
    SHELL_FROM      /* the file after < */
};

struct shell_word {
    struct str text; /* quotes and escapes removed, $NAMEs left as they are */
    struct str raw;  /* as written */
    enum shell_role role;
    char
        before; /* of the first word of a simple command the operator before it: ';' (also a line's end and the text's
                       beginning), '&', '|', 'A' for &&, 'O' for ||, '(' or ')'; else '\0' */
    bool is_quoted; /* a part of it is quoted or escaped */
};

struct shell_words {
    struct shell_word *items; /* in the arena */
    size_t n;
};

/* Comments are left out, and so are `2>&1` and the like. Each word takes at least one byte of the text. */
void shell_split(struct arena *arena, struct str text, struct shell_words *ret_words);

/* NAME=VALUE or NAME+=VALUE: true, and both parts. */
bool shell_assignment(struct str word, struct str *ret_name, struct str *ret_value);

struct shell_cursor { /* the state of a search for uses in a raw word; starts as {0} */
    size_t at;
    char quote; /* ' or " or '\0' */
};

/* The next $NAME or ${NAME...} that the shell would expand. has_default: ${NAME:-x} and the like. */
bool shell_next_use(struct str raw, struct shell_cursor *cursor, struct str *ret_name,
                    bool *ret_has_default);

bool is_identifier(struct str s);
struct str path_base(struct str path);
/* `path` as it is named in `folder`: "/a/b", without "." and ".."; "" of the root. */
struct str path_resolve(struct arena *arena, struct str folder, struct str path);
