/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "node/facts.h"

#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/secret.h"
#include "node/job.h"
#include "node/serve.h"

#define BEGIN "reperf-probe 1 begin\n"
#define END   "reperf-probe 1 end\n"

/* ---- lines ---- */

static void emit(struct facts *facts, char mark, const char *key, const char *text)
{
    strbuf_printf(facts->out, "%c %s ", mark, key);
    for (const char *at = text; *at; at++) {
        strbuf_add_char(facts->out, *at == '\n' || *at == '\r' ? ' ' : *at);
    }
    strbuf_add_char(facts->out, '\n');
}

void facts_put(struct facts *facts, const char *key, const char *value)
{
    emit(facts, '=', key, value);
}

void facts_printf(struct facts *facts, const char *key, const char *fmt, ...)
{
    char text[FACTS_TEXT];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    facts_put(facts, key, text);
}

void facts_unknown(struct facts *facts, const char *key, const char *why)
{
    emit(facts, '?', key, why);
}

void facts_say(struct facts *facts, const char *key, const char *value, const char *why)
{
    emit(facts, value[0] ? '=' : '?', key, value[0] ? value : why);
}

bool facts_line(const char *path, char ret_text[FACTS_TEXT])
{
    bool is_read = job_read_small(path, ret_text, FACTS_TEXT);
    ret_text[is_read ? strcspn(ret_text, "\n") : 0] = '\0';
    return is_read;
}

void facts_file(struct facts *facts, const char *key, const char *path)
{
    char text[FACTS_TEXT];
    (void)facts_line(path, text);
    facts_say(facts, key, text, arena_printf(&facts->arena, "nothing in %s", path));
}

struct fs_names facts_names(struct facts *facts, const char *folder, const char *prefix)
{
    struct fs_names names = {0};
    struct err ignored = {0};
    size_t n = 0;
    if (!fs_is_dir(folder) || fs_list(&facts->arena, folder, &names, &ignored) < 0) {
        return (struct fs_names){0};
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        if (str_starts(str_of(names.items[idx]), str_of(prefix))) {
            names.items[n++] = names.items[idx];
        }
    }
    names.n = n;
    return names;
}

/* ---- of a process ---- */

static void say_limit(struct facts *facts, const char *prefix, const char *name, struct str rest)
{
    struct str word = STR_EMPTY;
    const char *soft = "", *hard = "";
    for (int n = 0; n < 2 && rest.ptr; n += word.len > 0) {
        (void)str_next(&rest, ' ', &word);
        if (word.len) {
            *(n ? &hard : &soft) = str_z(&facts->arena, word);
        }
    }
    facts_put(facts, arena_printf(&facts->arena, "%s.%s.soft", prefix, name), soft);
    facts_put(facts, arena_printf(&facts->arena, "%s.%s.hard", prefix, name), hard);
}

static void say_caps(struct facts *facts, const char *prefix, const char *proc)
{
    char text[FACTS_TEXT];
    const char *path = arena_printf(&facts->arena, "%s/status", proc);
    struct str line;
    const char *caps = "";
    struct str rest = str_of(job_read_small(path, text, sizeof(text)) ? text : "");
    while (str_next(&rest, '\n', &line)) {
        if (str_starts(line, STR_LIT("CapEff:"))) {
            caps = str_z(&facts->arena, str_trim(str_sub(line, 7, line.len)));
        }
    }
    facts_say(facts, arena_printf(&facts->arena, "%s.caps", prefix), caps,
              arena_printf(&facts->arena, "no %s", path));
}

void facts_limits(struct facts *facts, const char *prefix, const char *proc)
{
    static const struct {
        const char *label, *name;
    } LIMITS[] = {{"Max locked memory", "memlock"},
                  {"Max open files", "nofile"},
                  {"Max processes", "nproc"},
                  {"Max stack size", "stack"}};
    char text[FACTS_TEXT];
    const char *path = arena_printf(&facts->arena, "%s/limits", proc);
    bool is_read = job_read_small(path, text, sizeof(text));
    struct str rest = str_of(text), line;
    for (size_t idx = 0; !is_read && idx < ARRAY_LEN(LIMITS); idx++) {
        const char *why = arena_printf(&facts->arena, "no %s", path);
        facts_unknown(facts, arena_printf(&facts->arena, "%s.%s.soft", prefix, LIMITS[idx].name),
                      why);
        facts_unknown(facts, arena_printf(&facts->arena, "%s.%s.hard", prefix, LIMITS[idx].name),
                      why);
    }
    while (is_read && str_next(&rest, '\n', &line)) {
        for (size_t idx = 0; idx < ARRAY_LEN(LIMITS); idx++) {
            if (str_starts(line, str_of(LIMITS[idx].label))) {
                say_limit(facts, prefix, LIMITS[idx].name,
                          str_sub(line, strlen(LIMITS[idx].label), line.len));
            }
        }
    }
    say_caps(facts, prefix, proc);
}

/* ---- all ---- */

static void say_environment(struct facts *facts)
{
    for (char **entry = environ; *entry; entry++) {
        struct str value = str_of(*entry), name;
        (void)str_next(&value, '=', &name);
        if (value.ptr && secret_may_keep(name, value)) { /* nothing else leaves the node */
            facts_put(facts, arena_printf(&facts->arena, "env.%.*s", STR_ARG(name)), value.ptr);
        }
    }
}

int serve_facts(struct server *server, const struct node_request *request, struct strbuf *text)
{
    struct facts facts = {.out = text};
    if (request->n_fields != 1) {
        return serve_bad(text);
    }
    facts.engines = request->fields[0].ptr;
    strbuf_add_z(text, BEGIN);
    facts_of_machine(&facts, server->work_folder);
    facts_of_engines(&facts);
    facts_of_gpus(&facts);
    facts_of_network(&facts);
    say_environment(&facts);
    strbuf_add_z(text, END);
    arena_release(&facts.arena);
    return text->is_full ? serve_failed(text, "more facts than an answer can hold", NULL) : 0;
}
