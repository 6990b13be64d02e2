/* SPDX-License-Identifier: Apache-2.0 */
/* ~/.ssh/config, read for one host. Pure: text in, settings out; the caller provides included files. As with OpenSSH the first
   value for a keyword counts, and IdentityFile accumulates. A setting that this program cannot honour but that would change where
   a connection goes, or whom it trusts, is an error with file and line, never skipped. Source of the syntax and of the meaning of
   each keyword: ssh_config(5) of OpenSSH 9.2. */
#ifndef NET_SSH_CONFIG_H
#define NET_SSH_CONFIG_H

#include "base/strbuf.h"

#define SSH_IDENTITIES_MAX   32
#define SSH_KNOWN_FILES_MAX  8
#define SSH_CONFIG_FILES_MAX 256
#define SSH_CONFIG_TEXT_MAX  (1u << 20)

enum ssh_strict { SSH_STRICT_UNSET, SSH_STRICT_YES, SSH_STRICT_ACCEPT_NEW };

/* NULL, 0 and -1 (numbers): not set. Text is as written, before %-tokens and ~ are replaced. */
struct ssh_settings {
    const char *host_name;
    const char *user;
    int64_t port;
    const char *proxy_jump; /* "none": none */
    const char *host_key_alias;
    const char *identity_agent;
    const char *identity_files[SSH_IDENTITIES_MAX];
    size_t n_identity_files;
    int identities_only; /* -1: not said */
    const char *known_files[SSH_KNOWN_FILES_MAX];
    size_t n_known_files;
    const char *global_known_files[SSH_KNOWN_FILES_MAX];
    size_t n_global_known_files;
    enum ssh_strict strict;
    int64_t connect_timeout_s;
    int64_t alive_interval_s;
    int64_t alive_count_max;
    int family;     /* 0: any, 4, 6 */
    bool has_proxy; /* ProxyJump or ProxyCommand was set: the other no longer counts */
};

#define SSH_SETTINGS_EMPTY                                                                         \
    ((struct ssh_settings){.identities_only = -1,                                                  \
                           .connect_timeout_s = -1,                                                \
                           .alive_interval_s = -1,                                                 \
                           .alive_count_max = -1})

struct ssh_config_text {
    const char *name; /* for messages */
    struct str text;
};

/* The files that match a pattern of an Include line, in order; none is not an error. */
typedef int (*ssh_include_fn)(void *ctx, struct arena *arena, const char *pattern,
                              struct ssh_config_text **ret_texts, size_t *ret_n, struct err *err);

struct ssh_config_ask {
    const char *host;       /* as the caller names it */
    const char *user;       /* given outside the config, or NULL */
    const char *local_user; /* ours */
    ssh_include_fn include;
    void *include_ctx;
};

MUST_CHECK int ssh_config_read(struct ssh_settings *settings, struct arena *arena,
                               const struct ssh_config_ask *ask, const struct ssh_config_text *file,
                               struct err *err);

/* What %-tokens and ~ stand for. */
struct ssh_tokens {
    const char *home;          /* %d, ~, ${HOME} */
    const char *host;          /* %h */
    const char *original_host; /* %n */
    const char *user;          /* %r */
    const char *local_user;    /* %u */
    int64_t port;              /* %p */
};
/* Expands a path of the settings. ERR_USAGE for an unknown token. */
MUST_CHECK int ssh_config_expand(struct arena *arena, const char *text,
                                 const struct ssh_tokens *tokens, const char **ret_text,
                                 struct err *err);

/* One stop of a ProxyJump value: [USER@]HOST[:PORT], [USER@][V6][:PORT] or ssh://... */
struct ssh_jump {
    const char *user; /* NULL: as the config says */
    const char *host;
    int64_t port; /* 0: as the config says */
};
MUST_CHECK int ssh_jump_parse(struct arena *arena, struct str text, struct ssh_jump *ret_jump,
                              struct err *err);

/* * and ?; bytewise. */
bool ssh_glob(struct str pattern, struct str text);
/* A comma-separated list with negation: 1 hit, 0 none, -1 a negated one hit. */
int ssh_glob_list(struct str list, struct str text);

#endif
