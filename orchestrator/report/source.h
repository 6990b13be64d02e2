/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of git repositories: which can be cloned at all, what a repository is called in the store, what a submodule's
   relative address means. Text only. */
#pragma once

#include "base/strbuf.h"

#define SOURCE_URL_MAX    2048
#define SOURCE_COMMIT_HEX 40
#define SOURCE_REF_MAX    200
#define SOURCE_PATHS_MAX  32

struct source_name { /* URL@COMMIT or URL@REF; with :PATH,PATH only these files and folders */
    const char *url;
    const char *commit; /* NULL: only a ref is known */
    const char *ref;    /* NULL: a commit */
    const char *paths;  /* as source_join_paths writes them; NULL: all */
};

struct source_pin { /* "COMMIT" or "COMMIT:PATH,PATH", the version of a source that a plan names */
    const char *commit;
    const char *paths; /* NULL: all */
    struct str *items; /* each of paths */
    size_t n;
};

/* ERR_USAGE with what would be right if git could not clone it: a page of a web site (/tree/, /blob/, ...), a password in it,
   a protocol that is not https, http, git, ssh or file, an option. */
MUST_CHECK int source_check_url(struct str url, struct err *err);
MUST_CHECK int source_parse_name(struct arena *arena, struct str name, struct source_name *ret_name,
                                 struct err *err);
/* ERR_MANIFEST if it is not a commit, or its paths are not as source_join_paths writes them. */
MUST_CHECK int source_parse_pin(struct arena *arena, const char *text, struct source_pin *ret_pin,
                                struct err *err);
/* The canonical text of a selection: sorted, joined by commas. ERR_USAGE if one is not a path below the repository's top,
   is a duplicate, or lies in another. */
MUST_CHECK int source_join_paths(struct arena *arena, const struct str *paths, size_t n,
                                 const char **ret_paths, struct err *err);
/* path is `above` itself, or below it. */
bool source_lies_in(struct str path, struct str above);
/* The folder name for a pin's files: COMMIT, or COMMIT-HEX8 for a selection. */
const char *source_folder_name(struct arena *arena, struct str pin);
/* "github.com-PaddlePaddle-PaddleSeg-HEX8": two addresses with the same name in lower case differ in HEX8, a digest of the
   whole address. */
char *source_repo_name(struct arena *arena, const char *url);
/* "./x" and "../x" of a .gitmodules, against the repository's own address; others stay as they are. */
MUST_CHECK int source_resolve_url(struct arena *arena, const char *base, struct str url,
                                  char **ret_url, struct err *err);
/* Exactly as many lower-case hex digits as a commit has. */
bool source_is_commit(struct str text);
