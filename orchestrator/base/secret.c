/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/secret.h"

#include <ctype.h>

/* ---- names ---- */

static bool ends(struct str part, const char *word)
{
    size_t len = strlen(word);
    return part.len >= len && strncasecmp(part.ptr + part.len - len, word, len) == 0;
}

static bool has(struct str text, const char *word)
{
    for (size_t len = text.len; len > 0; len--) {
        if (ends(str_sub(text, 0, len), word)) {
            return true;
        }
    }
    return false;
}

static bool is_name(struct str name)
{
    static const char *const ANYWHERE[] = {"SECRET",      "PASSW",      "PASSPHRASE",
                                           "APIKEY",      "API_KEY",    "ACCESS_KEY",
                                           "PRIVATE_KEY", "CREDENTIAL", "COOKIE"};
    static const char *const LAST[] = {"KEY",   "AUTH", "PWD", "PW",  "PASS",
                                       "CREDS", "CRED", "PAT", "DSN", "BEARER"};
    struct str rest = name, part = STR_EMPTY;
    for (size_t idx = 0; idx < ARRAY_LEN(ANYWHERE); idx++) {
        if (has(name, ANYWHERE[idx])) {
            return true;
        }
    }
    while (str_next(&rest, '_', &part)) {
        if (ends(part, "TOKEN")) { /* not TOKENIZERS_PARALLELISM */
            return true;
        }
    }
    for (size_t idx = 0; idx < ARRAY_LEN(LAST); idx++) {
        size_t len = strlen(LAST[idx]);
        if (part.len == len && part.len < name.len && ends(part, LAST[idx])) {
            return true;
        }
    }
    return ends(part, "KEY") && !ends(part, "PKEY"); /* NCCL_IB_PKEY is a number of the fabric */
}

/* ---- values ---- */

/* Source: the services' own documents of their tokens, read 2026-11. n_min: of the letters and digits in a row that follow. */
static const struct token {
    const char *prefix;
    size_t n_min;
} TOKENS[] = {
    {"AKIA", 16},        {"ASIA", 16},  {"ghp_", 20},      {"gho_", 20},   {"ghu_", 20},
    {"ghs_", 20},        {"ghr_", 20},  {"glpat-", 16},    {"xoxa-", 10},  {"xoxb-", 10},
    {"xoxp-", 10},       {"xoxr-", 10}, {"xoxs-", 10},     {"hf_", 20},    {"sk-", 20},
    {"sk_live_", 16},    {"AIza", 30},  {"npm_", 30},      {"nvapi-", 20}, {"pypi-", 20},
    {"github_pat_", 20}, {"ya29.", 20}, {"dckr_pat_", 16},
};

static bool is_of_token(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/* Of the token that begins the text: how much of it may be shown, and all of it; 0: none does. */
static size_t token_len(struct str text, size_t *ret_shown)
{
    const struct token *token = NULL;
    size_t len = 0, n_dots = 0, run = 0, longest = 0;
    for (size_t idx = 0; idx < ARRAY_LEN(TOKENS) && !token; idx++) {
        token = str_starts(text, str_of(TOKENS[idx].prefix)) ? &TOKENS[idx] : NULL;
    }
    *ret_shown = token ? strlen(token->prefix) : 0;
    for (; len < text.len && is_of_token(text.ptr[len]); len++) {
        n_dots += text.ptr[len] == '.';
        run = len >= *ret_shown && isalnum((unsigned char)text.ptr[len]) ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    if (token && longest >= token->n_min) {
        return len;
    }
    *ret_shown = 3; /* a JWT is three parts, the first of which is JSON: {" */
    return len > 20 && n_dots >= 2 && memcmp(text.ptr, "eyJ", 3) == 0 ? len : 0;
}

static bool begins_word(struct str text, size_t at)
{
    return at == 0 || !is_of_token(text.ptr[at - 1]);
}

static bool is_value(struct str value)
{
    size_t shown;
    for (size_t at = 0; at < value.len; at++) {
        if (begins_word(value, at) && token_len(str_sub(value, at, value.len), &shown)) {
            return true;
        }
    }
    ptrdiff_t at = str_find(value, STR_LIT("://"));
    struct str host = at < 0 ? STR_EMPTY : str_sub(value, (size_t)at + 3, value.len);
    for (size_t idx = 0; idx < host.len && host.ptr[idx] != '/'; idx++) {
        if (host.ptr[idx] == '@') {
            return true;
        }
    }
    return str_find(value, STR_LIT("PRIVATE KEY-----")) >= 0 ||
           str_starts(value, STR_LIT("Bearer ")) || str_starts(value, STR_LIT("Basic "));
}

bool secret_is(struct str name, struct str value)
{
    return is_name(name) || is_value(value);
}

/* ---- the environment ---- */

bool secret_is_condition(struct str name)
{
    static const char *const PREFIXES[] = {"CUDA_",     "CUDNN_",  "CUBLAS_", "NCCL_", "OMP_",
                                           "GOMP_",     "KMP_",    "MKL_",    "DNNL_", "ONEDNN_",
                                           "OPENBLAS_", "NVIDIA_", "FLAGS_",  "UCX_",  "MALLOC_"};
    for (size_t idx = 0; idx < ARRAY_LEN(PREFIXES); idx++) {
        if (str_starts(name, str_of(PREFIXES[idx]))) {
            return true;
        }
    }
    return false;
}

bool secret_may_keep(struct str name, struct str value)
{
    return secret_is_condition(name) && !secret_is(name, value);
}

/* ---- text ---- */

/* Of NAME=VALUE that begins the text: where the value is; 0: it does not begin so, or the name is of no secret. A name in small
   letters is one only in the query of a URL: "key=value" is said of many things. */
static size_t value_at(struct str text, bool is_query)
{
    bool has_small = false;
    size_t len = 0;
    for (; len < text.len && (isalnum((unsigned char)text.ptr[len]) || text.ptr[len] == '_');
         len++) {
        has_small = has_small || islower((unsigned char)text.ptr[len]);
    }
    return len && len < text.len && text.ptr[len] == '=' && (is_query || !has_small) &&
                   is_name(str_sub(text, 0, len))
               ? len + 1
               : 0;
}

void secret_hide(char *text, size_t len)
{
    text_hide_logins(text, len);
    for (size_t at = 0; at < len; at++) {
        struct str rest = {text + at, len - at};
        size_t shown = 0, all = 0;
        if (at && (isalnum((unsigned char)text[at - 1]) || text[at - 1] == '_')) {
            continue;
        }
        all = begins_word((struct str){text, len}, at) ? token_len(rest, &shown) : 0;
        if (!all && (shown = value_at(rest, at && strchr("?&", text[at - 1]))) > 0) {
            for (all = shown; all < rest.len && !strchr(" \t\n\"'&;,", rest.ptr[all]); all++) {
            }
        }
        if (all) {
            memset(text + at + shown, '*', all - shown);
            at += all - 1;
        }
    }
}
