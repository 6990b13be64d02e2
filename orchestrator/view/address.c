/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/address.h"

/* Hosts whose addresses of a file at a commit are known. Source: their own "permanent link". */
static const struct {
    const char *start, *file, *commit;
} HOSTS[] = {
    {"https://github.com/", "/blob/", "/commit/"},
    {"https://gitlab.com/", "/-/blob/", "/-/commit/"},
};

static struct str repository_of(const struct source_ref *source, size_t *ret_host)
{
    struct str repository = source->repository;
    for (size_t idx = 0; repository.ptr && source->commit.ptr && idx < ARRAY_LEN(HOSTS); idx++) {
        if (str_starts(repository, str_of(HOSTS[idx].start))) {
            repository.len -= str_ends(repository, STR_LIT(".git")) ? 4 : 0;
            repository.len -= str_ends(repository, STR_LIT("/")) ? 1 : 0;
            *ret_host = idx;
            return repository;
        }
    }
    return STR_EMPTY;
}

void address_add_path(struct strbuf *url, struct str path)
{
    for (size_t idx = 0; idx < path.len; idx++) {
        unsigned char c = (unsigned char)path.ptr[idx];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || (c && strchr("-._~/", c));
        strbuf_printf(url, is_plain ? "%c" : "%%%02X", c);
    }
}

struct str address_commit(struct arena *arena, const struct source_ref *source)
{
    size_t host = 0;
    struct str repository = repository_of(source, &host);
    return repository.len ? str_printf(arena, "%.*s%s%.*s", STR_ARG(repository), HOSTS[host].commit,
                                       STR_ARG(source->commit))
                          : STR_EMPTY;
}

struct str address_file(struct arena *arena, const struct source_ref *source, struct str path,
                        int64_t line)
{
    CLEANUP(strbuf) struct strbuf url = STRBUF(65536);
    size_t host = 0;
    struct str repository = repository_of(source, &host);
    if (repository.len == 0) {
        return STR_EMPTY;
    }
    strbuf_printf(&url, "%.*s%s%.*s/", STR_ARG(repository), HOSTS[host].file,
                  STR_ARG(source->commit));
    address_add_path(&url, path);
    if (line > 0) {
        strbuf_printf(&url, "#L%" PRId64, line);
    }
    return str_dup(arena, strbuf_str(&url));
}

struct str address_of_spot(struct arena *arena, const struct spot *at)
{
    const struct report *report = at->report;
    return at->log.ptr ? address_file(arena, &report->logs_source, report_log_path(report, at->log),
                                      at->line)
           : at->page.ptr ? address_file(arena, &report->source, at->page, 0)
           : at->of_case  ? STR_EMPTY
                          : address_file(arena, &report->source, report->source.path, 0);
}
