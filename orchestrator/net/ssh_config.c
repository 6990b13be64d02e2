/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/ssh_config.h"

#include <strings.h>

#define WORDS_MAX 64
#define PORT_MAX  65535

struct config_frame { /* a file, as far as it is read */
    const char *name;
    struct str rest;
    size_t line;
    bool base_active; /* the Include line's own block applied */
    bool is_active;   /* the lines at hand apply */
};

struct config_reader {
    struct ssh_settings *settings;
    struct arena *arena;
    const struct ssh_config_ask *ask;
    struct config_frame frames[SSH_CONFIG_FILES_MAX]; /* a stack */
    size_t n_frames;
    size_t n_files; /* read in all */
    const char *ignore_unknown;
};

struct config_words {
    struct str items[WORDS_MAX]; /* after the keyword */
    size_t n;
};

/* ---- text ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

static size_t skip_blanks(struct str text, size_t at)
{
    while (at < text.len && is_blank(text.ptr[at])) {
        at++;
    }
    return at;
}

/* KEYWORD ARG... or KEYWORD=ARG...; an argument may be in double quotes; # begins a comment. */
static int split_line(struct str line, struct str *ret_key, struct config_words *words,
                      struct err *err)
{
    size_t at = skip_blanks(line, 0);
    size_t from = at;
    words->n = 0;
    *ret_key = STR_EMPTY;
    if (at == line.len || line.ptr[at] == '#') {
        return 0;
    }
    while (at < line.len && !is_blank(line.ptr[at]) && line.ptr[at] != '=') {
        at++;
    }
    *ret_key = str_sub(line, from, at - from);
    at = skip_blanks(line, at);
    if (at < line.len && line.ptr[at] == '=') {
        at++;
    }
    while ((at = skip_blanks(line, at)) < line.len && line.ptr[at] != '#') {
        bool is_quoted = line.ptr[at] == '"';
        from = at += is_quoted ? 1 : 0;
        while (at < line.len && (is_quoted ? line.ptr[at] != '"' : !is_blank(line.ptr[at]))) {
            at++;
        }
        if (is_quoted && at == line.len) {
            return err_set(err, ERR_MANIFEST, "unterminated quote");
        }
        if (words->n == WORDS_MAX) {
            return err_set(err, ERR_MANIFEST, "more than %d words", WORDS_MAX);
        }
        words->items[words->n++] = str_sub(line, from, at - from);
        at += is_quoted ? 1 : 0;
    }
    return 0;
}

static bool is_key(struct str key, const char *name)
{
    return key.len == strlen(name) && strncasecmp(key.ptr, name, key.len) == 0;
}

/* ---- one keyword each ---- */

enum key_kind {
    KEY_TEXT,        /* one word at an offset */
    KEY_NUMBER,      /* likewise, 0 to max */
    KEY_TIME,        /* likewise, seconds, also 1m, 2h */
    KEY_FILES,       /* up to SSH_KNOWN_FILES_MAX words; their count follows */
    KEY_FLAG,        /* yes or no */
    KEY_SPECIAL,     /* see set_special */
    KEY_PASSED,      /* has no effect on us */
    KEY_REFUSED,     /* would have an effect, but is not supported */
    KEY_REFUSED_YES, /* likewise, if its value is not "no" or "none" */
};

struct key {
    const char *name;
    enum key_kind kind;
    size_t offset;
    int64_t max;
};

#define AT(field) offsetof(struct ssh_settings, field)

/* clang-format off */
static const struct key KEYS[] = {
    {"HostName", KEY_TEXT, AT(host_name), 0},
    {"User", KEY_TEXT, AT(user), 0},
    {"Port", KEY_NUMBER, AT(port), PORT_MAX},
    {"HostKeyAlias", KEY_TEXT, AT(host_key_alias), 0},
    {"IdentityAgent", KEY_TEXT, AT(identity_agent), 0},
    {"IdentitiesOnly", KEY_FLAG, AT(identities_only), 0},
    {"ConnectTimeout", KEY_TIME, AT(connect_timeout_s), 86400},
    {"ServerAliveInterval", KEY_TIME, AT(alive_interval_s), 86400},
    {"ServerAliveCountMax", KEY_NUMBER, AT(alive_count_max), 1000},
    {"UserKnownHostsFile", KEY_FILES, AT(known_files), 0},
    {"GlobalKnownHostsFile", KEY_FILES, AT(global_known_files), 0},
    {"IdentityFile", KEY_SPECIAL, 0, 0},
    {"ProxyJump", KEY_SPECIAL, 0, 0},
    {"ProxyCommand", KEY_SPECIAL, 0, 0},
    {"StrictHostKeyChecking", KEY_SPECIAL, 0, 0},
    {"AddressFamily", KEY_SPECIAL, 0, 0},
    {"IgnoreUnknown", KEY_SPECIAL, 0, 0},
    {"PubkeyAuthentication", KEY_SPECIAL, 0, 0},
    {"CanonicalizeHostname", KEY_REFUSED_YES, 0, 0},
    {"CertificateFile", KEY_REFUSED, 0, 0},
    {"KnownHostsCommand", KEY_REFUSED_YES, 0, 0},
    {"PKCS11Provider", KEY_REFUSED_YES, 0, 0},
    {"BindAddress", KEY_REFUSED, 0, 0},
    {"BindInterface", KEY_REFUSED, 0, 0},
    {"VerifyHostKeyDNS", KEY_REFUSED_YES, 0, 0},
    {"RevokedHostKeys", KEY_REFUSED_YES, 0, 0},
#define PASSED(name) {name, KEY_PASSED, 0, 0}
    PASSED("AddKeysToAgent"), PASSED("BatchMode"), PASSED("CanonicalDomains"), PASSED("CanonicalizeFallbackLocal"), PASSED("CanonicalizeMaxDots"),
    PASSED("CanonicalizePermittedCNAMEs"), PASSED("CASignatureAlgorithms"), PASSED("ChallengeResponseAuthentication"), PASSED("CheckHostIP"),
    PASSED("Ciphers"), PASSED("ClearAllForwardings"), PASSED("Compression"), PASSED("ConnectionAttempts"), PASSED("ControlMaster"),
    PASSED("ControlPath"), PASSED("ControlPersist"), PASSED("DynamicForward"), PASSED("EnableEscapeCommandline"), PASSED("EnableSSHKeysign"),
    PASSED("EscapeChar"), PASSED("ExitOnForwardFailure"), PASSED("FingerprintHash"), PASSED("ForkAfterAuthentication"), PASSED("ForwardAgent"),
    PASSED("ForwardX11"), PASSED("ForwardX11Timeout"), PASSED("ForwardX11Trusted"), PASSED("GatewayPorts"), PASSED("GSSAPIAuthentication"),
    PASSED("GSSAPIDelegateCredentials"), PASSED("GSSAPIKeyExchange"), PASSED("HashKnownHosts"), PASSED("HostbasedAcceptedAlgorithms"),
    PASSED("HostbasedAuthentication"), PASSED("HostKeyAlgorithms"), PASSED("IPQoS"), PASSED("KbdInteractiveAuthentication"),
    PASSED("KbdInteractiveDevices"), PASSED("KexAlgorithms"), PASSED("LocalCommand"), PASSED("LocalForward"), PASSED("LogLevel"),
    PASSED("LogVerbose"), PASSED("MACs"), PASSED("NoHostAuthenticationForLocalhost"), PASSED("NumberOfPasswordPrompts"),
    PASSED("PasswordAuthentication"), PASSED("PermitLocalCommand"), PASSED("PermitRemoteOpen"), PASSED("PreferredAuthentications"),
    PASSED("ProxyUseFdpass"), PASSED("PubkeyAcceptedAlgorithms"), PASSED("PubkeyAcceptedKeyTypes"), PASSED("RekeyLimit"), PASSED("RemoteCommand"),
    PASSED("RemoteForward"), PASSED("RequestTTY"), PASSED("RequiredRSASize"), PASSED("SecurityKeyProvider"), PASSED("SendEnv"),
    PASSED("SessionType"), PASSED("SetEnv"), PASSED("StdinNull"), PASSED("StreamLocalBindMask"), PASSED("StreamLocalBindUnlink"),
    PASSED("SyslogFacility"), PASSED("TCPKeepAlive"), PASSED("Tag"), PASSED("Tunnel"), PASSED("TunnelDevice"), PASSED("UpdateHostKeys"),
    PASSED("UseKeychain"), PASSED("UserKnownHostsFile2"), PASSED("VisualHostKey"), PASSED("XAuthLocation"),
};
/* clang-format on */

static int to_seconds(struct str text, int64_t max, int64_t *ret_value, struct err *err)
{
    int64_t unit = 1;
    int64_t value;
    char last = text.len ? text.ptr[text.len - 1] : '0';
    if (last < '0' || last > '9') {
        unit = last == 's' || last == 'S'   ? 1
               : last == 'm' || last == 'M' ? 60
               : last == 'h' || last == 'H' ? 3600
                                            : 0;
        text.len--;
    }
    if (unit == 0) {
        return err_set(err, ERR_MANIFEST, "expected a time such as 30, 30s, 2m or 1h");
    }
    if (str_to_i64(text, 0, max / unit, &value, err) < 0) {
        return -1;
    }
    *ret_value = value * unit;
    return 0;
}

static int to_flag(struct str text, bool *ret_flag, struct err *err)
{
    *ret_flag = is_key(text, "yes") || is_key(text, "true");
    if (!*ret_flag && !is_key(text, "no") && !is_key(text, "false")) {
        return err_set(err, ERR_MANIFEST, "expected yes or no, found \"%.*s\"", STR_ARG(text));
    }
    return 0;
}

static int set_strict(struct ssh_settings *settings, struct str value, struct err *err)
{
    enum ssh_strict strict = SSH_STRICT_YES;
    if (is_key(value, "no") || is_key(value, "off") || is_key(value, "false")) {
        return err_set(
            err, ERR_MANIFEST,
            "StrictHostKeyChecking no is refused: a node whose key is not checked may be "
            "anybody; use accept-new, or add its key to known_hosts");
    }
    if (is_key(value, "accept-new")) {
        strict = SSH_STRICT_ACCEPT_NEW;
    } else if (!is_key(value, "yes") && !is_key(value, "ask") && !is_key(value, "true")) {
        return err_set(err, ERR_MANIFEST,
                       "StrictHostKeyChecking: expected yes, ask or accept-new, found \"%.*s\"",
                       STR_ARG(value));
    }
    if (settings->strict == SSH_STRICT_UNSET) {
        settings->strict = strict;
    }
    return 0;
}

static int set_family(struct ssh_settings *settings, struct str value, struct err *err)
{
    int family = is_key(value, "inet") ? 4 : is_key(value, "inet6") ? 6 : 0;
    if (family == 0 && !is_key(value, "any")) {
        return err_set(err, ERR_MANIFEST, "AddressFamily: expected any, inet or inet6");
    }
    if (settings->family == 0) {
        settings->family = family;
    }
    return 0;
}

static int set_special(struct config_reader *reader, struct str key, struct str value,
                       struct err *err)
{
    struct ssh_settings *settings = reader->settings;
    if (is_key(key, "IdentityFile")) {
        if (settings->n_identity_files == SSH_IDENTITIES_MAX) {
            return err_set(err, ERR_MANIFEST, "more than %d IdentityFile lines",
                           SSH_IDENTITIES_MAX);
        }
        settings->identity_files[settings->n_identity_files++] = str_z(reader->arena, value);
    } else if (is_key(key, "ProxyJump")) {
        if (!settings->has_proxy) {
            settings->proxy_jump = str_z(reader->arena, value);
        }
        settings->has_proxy = true;
    } else if (is_key(key, "ProxyCommand")) {
        if (!settings->has_proxy && !is_key(value, "none")) {
            return err_set(err, ERR_MANIFEST,
                           "ProxyCommand is not supported for this host; use ProxyJump");
        }
        settings->has_proxy = true;
    } else if (is_key(key, "StrictHostKeyChecking")) {
        return set_strict(settings, value, err);
    } else if (is_key(key, "AddressFamily")) {
        return set_family(settings, value, err);
    } else if (is_key(key, "PubkeyAuthentication")) {
        if (is_key(value, "no") || is_key(value, "host-bound")) {
            return err_set(err, ERR_MANIFEST,
                           "PubkeyAuthentication %.*s is not supported: logins need a key",
                           STR_ARG(value));
        }
    } else {
        ASSERT(is_key(key, "IgnoreUnknown"));
        reader->ignore_unknown = str_z(reader->arena, value);
    }
    return 0;
}

static int set_files(struct config_reader *reader, const struct key *key,
                     const struct config_words *words, struct err *err)
{
    struct ssh_settings *settings = reader->settings;
    const char **files =
        key->offset == AT(known_files) ? settings->known_files : settings->global_known_files;
    size_t *n =
        key->offset == AT(known_files) ? &settings->n_known_files : &settings->n_global_known_files;
    if (*n > 0) {
        return 0;
    }
    if (words->n > SSH_KNOWN_FILES_MAX) {
        return err_set(err, ERR_MANIFEST, "%s: more than %d files", key->name, SSH_KNOWN_FILES_MAX);
    }
    for (size_t idx = 0; idx < words->n; idx++) {
        files[(*n)++] = str_z(reader->arena, words->items[idx]);
    }
    return 0;
}

static int set_number(void *field, const struct key *key, struct str value, struct err *err)
{
    int64_t *number = field;
    int64_t found;
    if (key->kind == KEY_TIME) {
        if (to_seconds(value, key->max, &found, err) < 0) {
            return -1;
        }
    } else if (str_to_i64(value, 0, key->max, &found, err) < 0) {
        return -1;
    }
    /* Unset is 0 for a port and -1 for the others. */
    if (*number == (key->offset == AT(port) ? 0 : -1)) {
        *number = found;
    }
    return 0;
}

static int set_key(struct config_reader *reader, const struct key *key, struct str name,
                   const struct config_words *words, struct err *err)
{
    void *field = (char *)reader->settings + key->offset;
    struct str value = words->items[0];
    bool flag;
    switch (key->kind) {
    case KEY_PASSED:
        return 0;
    case KEY_TEXT:
        if (!*(const char **)field) {
            *(const char **)field = str_z(reader->arena, value);
        }
        return 0;
    case KEY_NUMBER:
    case KEY_TIME:
        return set_number(field, key, value, err);
    case KEY_FLAG:
        if (to_flag(value, &flag, err) < 0) {
            return -1;
        }
        if (*(int *)field < 0) {
            *(int *)field = flag;
        }
        return 0;
    case KEY_FILES:
        return set_files(reader, key, words, err);
    case KEY_SPECIAL:
        return set_special(reader, name, value, err);
    case KEY_REFUSED_YES:
        if (is_key(value, "no") || is_key(value, "none")) {
            return 0;
        }
        return err_set(err, ERR_MANIFEST, "%s %.*s is not supported", key->name, STR_ARG(value));
    case KEY_REFUSED:
    default:
        return err_set(err, ERR_MANIFEST, "%s is not supported", key->name);
    }
}

/* ---- blocks ---- */

static bool host_matches(const struct ssh_config_ask *ask, const struct config_words *words)
{
    bool hit = false;
    for (size_t idx = 0; idx < words->n; idx++) {
        int match = ssh_glob_list(words->items[idx], str_of(ask->host));
        if (match < 0) {
            return false;
        }
        hit |= match > 0;
    }
    return hit;
}

static int match_applies(struct config_reader *reader, const struct config_words *words,
                         bool *ret_applies, struct err *err)
{
    const struct ssh_config_ask *ask = reader->ask;
    const struct ssh_settings *settings = reader->settings;
    bool applies = true;
    for (size_t idx = 0; idx < words->n; idx++) {
        struct str name = words->items[idx];
        const char *subject;
        if (is_key(name, "all")) {
            continue;
        }
        if (is_key(name, "host")) {
            subject = settings->host_name ? settings->host_name : ask->host;
        } else if (is_key(name, "originalhost")) {
            subject = ask->host;
        } else if (is_key(name, "user")) {
            subject = ask->user ? ask->user : settings->user ? settings->user : ask->local_user;
        } else if (is_key(name, "localuser")) {
            subject = ask->local_user;
        } else {
            return err_set(err, ERR_MANIFEST,
                           "Match %.*s is not supported (all, host, originalhost, user and "
                           "localuser are); give another file in REPERF_SSH_CONFIG",
                           STR_ARG(name));
        }
        if (++idx == words->n) {
            return err_set(err, ERR_MANIFEST, "Match %.*s: a pattern is missing", STR_ARG(name));
        }
        applies &= ssh_glob_list(words->items[idx], str_of(subject)) > 0;
    }
    *ret_applies = applies;
    return 0;
}

static int push_file(struct config_reader *reader, const struct ssh_config_text *file,
                     bool is_active, struct err *err)
{
    if (reader->n_files++ == SSH_CONFIG_FILES_MAX || reader->n_frames == SSH_CONFIG_FILES_MAX) {
        return err_set(err, ERR_MANIFEST, "%s: more than %d files are included", file->name,
                       SSH_CONFIG_FILES_MAX);
    }
    if (file->text.len > SSH_CONFIG_TEXT_MAX) {
        return err_set(err, ERR_MANIFEST, "%s: longer than %u bytes", file->name,
                       SSH_CONFIG_TEXT_MAX);
    }
    reader->frames[reader->n_frames++] = (struct config_frame){
        .name = file->name, .rest = file->text, .base_active = is_active, .is_active = is_active};
    return 0;
}

static int include(struct config_reader *reader, const struct config_words *words, struct err *err)
{
    /* Last first: the first must be on top of the stack. */
    for (size_t word = words->n; word-- > 0;) {
        struct ssh_config_text *texts = NULL;
        size_t n = 0;
        if (reader->ask->include(reader->ask->include_ctx, reader->arena,
                                 str_z(reader->arena, words->items[word]), &texts, &n, err) < 0) {
            return -1;
        }
        while (n-- > 0) {
            if (push_file(reader, &texts[n], true, err) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

static int take_line(struct config_reader *reader, struct config_frame *frame, struct str line,
                     struct err *err)
{
    struct config_words words;
    struct str key;
    if (split_line(line, &key, &words, err) < 0) {
        return -1;
    }
    if (!key.len) {
        return 0;
    }
    if (words.n == 0) {
        return err_set(err, ERR_MANIFEST, "%.*s: a value is missing", STR_ARG(key));
    }
    if (is_key(key, "Host")) {
        frame->is_active = frame->base_active && host_matches(reader->ask, &words);
        return 0;
    }
    if (is_key(key, "Match")) {
        bool applies = false;
        /* Even if an outer block does not apply: errors are always reported. */
        if (match_applies(reader, &words, &applies, err) < 0) {
            return -1;
        }
        frame->is_active = frame->base_active && applies;
        return 0;
    }
    if (!frame->is_active) {
        return 0;
    }
    if (is_key(key, "Include")) {
        return include(reader, &words, err);
    }
    for (size_t idx = 0; idx < ARRAY_LEN(KEYS); idx++) {
        if (is_key(key, KEYS[idx].name)) {
            return set_key(reader, &KEYS[idx], key, &words, err);
        }
    }
    if (reader->ignore_unknown && ssh_glob_list(str_of(reader->ignore_unknown), key) > 0) {
        return 0;
    }
    return err_set(err, ERR_MANIFEST, "unknown keyword %.*s", STR_ARG(key));
}

int ssh_config_read(struct ssh_settings *settings, struct arena *arena,
                    const struct ssh_config_ask *ask, const struct ssh_config_text *file,
                    struct err *err)
{
    struct config_reader *reader CLEANUP(free) = xcalloc(1, sizeof(*reader));
    reader->settings = settings;
    reader->arena = arena;
    reader->ask = ask;
    if (push_file(reader, file, true, err) < 0) {
        return -1;
    }
    while (reader->n_frames) {
        size_t top = reader->n_frames - 1;
        struct config_frame *frame = &reader->frames[top];
        struct str line;
        if (!str_next(&frame->rest, '\n', &line)) {
            /* It lies on top, unless it included others with its last line. */
            reader->n_frames--;
            continue;
        }
        frame->line++;
        if (memchr(line.ptr, '\0', line.len)) {
            return err_set(err, ERR_MANIFEST, "%s:%zu: a NUL byte", frame->name, frame->line);
        }
        if (take_line(reader, frame, line, err) < 0) {
            return err_wrap(err, "%s:%zu", frame->name, frame->line);
        }
    }
    return 0;
}
