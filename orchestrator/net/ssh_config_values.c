/* SPDX-License-Identifier: Apache-2.0 */
/* What the values of a config mean: patterns, paths with tokens, stops of a ProxyJump. */
#include "base/base.h"

#include "net/ssh_config.h"

#define PORT_MAX 65535

bool ssh_glob(struct str pattern, struct str text)
{
    size_t p = 0;
    size_t t = 0;
    size_t star = SIZE_MAX; /* the last star seen, and how much it has matched */
    size_t taken = 0;
    while (t < text.len) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            taken = t;
        } else if (p < pattern.len && (pattern.ptr[p] == '?' || pattern.ptr[p] == text.ptr[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++taken;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*') {
        p++;
    }
    return p == pattern.len;
}

int ssh_glob_list(struct str list, struct str text)
{
    struct str part;
    int hit = 0;
    while (str_next(&list, ',', &part)) {
        part = str_trim(part);
        if (part.len && part.ptr[0] == '!') {
            if (ssh_glob(str_sub(part, 1, part.len), text)) {
                return -1;
            }
        } else if (part.len && ssh_glob(part, text)) {
            hit = 1;
        }
    }
    return hit;
}

static const char *token_of(const struct ssh_tokens *tokens, char c, struct arena *arena)
{
    switch (c) {
    case '%':
        return "%";
    case 'd':
        return tokens->home;
    case 'h':
        return tokens->host;
    case 'n':
        return tokens->original_host;
    case 'r':
        return tokens->user;
    case 'u':
        return tokens->local_user;
    case 'p':
        return arena_printf(arena, "%lld", (long long)tokens->port);
    default:
        return NULL;
    }
}

int ssh_config_expand(struct arena *arena, const char *text, const struct ssh_tokens *tokens,
                      const char **ret_text, struct err *err)
{
    CLEANUP(strbuf) struct strbuf out;
    struct str rest = str_of(text);
    strbuf_init(&out, 65536);
    if (rest.len && rest.ptr[0] == '~' && (rest.len == 1 || rest.ptr[1] == '/')) {
        strbuf_add_z(&out, tokens->home);
        rest = str_sub(rest, 1, rest.len);
    } else if (rest.len && rest.ptr[0] == '~') {
        return err_set(err, ERR_USAGE, "%s: another user's home is not supported", text);
    }
    for (size_t at = 0; at < rest.len; at++) {
        struct str tail = str_sub(rest, at, rest.len);
        if (rest.ptr[at] == '%') {
            const char *value =
                at + 1 < rest.len ? token_of(tokens, rest.ptr[at + 1], arena) : NULL;
            if (!value) {
                return err_set(err, ERR_USAGE, "%s: %%%.1s is not supported", text,
                               at + 1 < rest.len ? rest.ptr + at + 1 : "");
            }
            strbuf_add_z(&out, value);
            at++;
        } else if (str_starts(tail, STR_LIT("${HOME}"))) {
            strbuf_add_z(&out, tokens->home);
            at += sizeof("${HOME}") - 2;
        } else if (str_starts(tail, STR_LIT("${"))) {
            return err_set(err, ERR_USAGE, "%s: of the environment, only ${HOME} is supported",
                           text);
        } else {
            strbuf_add_char(&out, rest.ptr[at]);
        }
    }
    if (out.is_full) {
        return err_set(err, ERR_USAGE, "%.40s...: too long", text);
    }
    *ret_text = str_z(arena, strbuf_str(&out));
    return 0;
}

int ssh_jump_parse(struct arena *arena, struct str text, struct ssh_jump *ret_jump, struct err *err)
{
    struct str whole = text = str_trim(text);
    struct str port = STR_EMPTY;
    struct ssh_jump jump = {0};
    const char *mark;
    for (size_t idx = 0; idx < text.len; idx++) {
        if ((unsigned char)text.ptr[idx] <= ' ') {
            return err_set(err, ERR_USAGE, "a host with a blank or a control character in it");
        }
    }
    if (str_starts(text, STR_LIT("ssh://"))) {
        text = str_sub(text, 6, text.len);
        text.len -= str_ends(text, STR_LIT("/")) ? 1 : 0;
    }
    mark = text.len ? memrchr(text.ptr, '@', text.len) : NULL;
    if (mark) {
        jump.user = str_z(arena, str_sub(text, 0, (size_t)(mark - text.ptr)));
        text = str_sub(text, (size_t)(mark - text.ptr) + 1, text.len);
    }
    if (text.len && text.ptr[0] == '[') {
        const char *end = memchr(text.ptr, ']', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : 0;
        if (!end || (len + 1 < text.len && text.ptr[len + 1] != ':')) {
            return err_set(err, ERR_USAGE, "%.*s: expected [ADDRESS]:PORT", STR_ARG(whole));
        }
        port = str_sub(text, len + 2, text.len);
        text = str_sub(text, 1, len - 1);
    } else if (text.len && (mark = memchr(text.ptr, ':', text.len)) != NULL &&
               mark == memrchr(text.ptr, ':', text.len)) {
        size_t len = (size_t)(mark - text.ptr);
        port = str_sub(text, len + 1, text.len);
        text = str_sub(text, 0, len);
    }
    if (!text.len || (jump.user && !*jump.user)) {
        return err_set(err, ERR_USAGE, "\"%.*s\": expected [USER@]HOST[:PORT]", STR_ARG(whole));
    }
    if (port.len && str_to_i64(port, 1, PORT_MAX, &jump.port, err) < 0) {
        return err_wrap(err, "\"%.*s\": port", STR_ARG(whole));
    }
    jump.host = str_z(arena, text);
    *ret_jump = jump;
    return 0;
}
