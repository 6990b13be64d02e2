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

/* The next word, which is cut off *rest. */
static void say_word(struct facts *facts, const char *key, struct str *rest, const char *why)
{
    size_t at = str_span(*rest, 0, " \t");
    size_t end = str_cspan(*rest, at, " \t\n");
    facts_say(facts, key, str_z(&facts->arena, str_sub(*rest, at, end - at)), why);
    *rest = str_sub(*rest, end, rest->len);
}

/* What follows a label; nothing: it is not there. */
static struct str after(struct str text, const char *label)
{
    int64_t at = str_find(text, str_of(label));
    return at < 0 ? STR_EMPTY : str_sub(text, (size_t)at + strlen(label), text.len);
}

void facts_limits(struct facts *facts, const char *prefix, const char *proc)
{
    static const struct {
        const char *label, *name;
    } LIMITS[] = {{"Max locked memory", "memlock"},
                  {"Max open files", "nofile"},
                  {"Max processes", "nproc"},
                  {"Max stack size", "stack"}};
    struct arena *arena = &facts->arena;
    char text[FACTS_TEXT];
    const char *path = arena_printf(arena, "%s/limits", proc);
    const char *why = arena_printf(arena, "no %s", path);
    struct str all = str_of(job_read_small(path, text, sizeof(text)) ? text : "");
    for (size_t idx = 0; idx < ARRAY_LEN(LIMITS); idx++) {
        struct str rest = after(all, LIMITS[idx].label);
        say_word(facts, arena_printf(arena, "%s.%s.soft", prefix, LIMITS[idx].name), &rest, why);
        say_word(facts, arena_printf(arena, "%s.%s.hard", prefix, LIMITS[idx].name), &rest, why);
    }
    path = arena_printf(arena, "%s/status", proc);
    struct str rest =
        after(str_of(job_read_small(path, text, sizeof(text)) ? text : ""), "\nCapEff:");
    say_word(facts, arena_printf(arena, "%s.caps", prefix), &rest,
             arena_printf(arena, "no %s", path));
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
