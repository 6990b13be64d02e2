/* SPDX-License-Identifier: Apache-2.0 */
/* The container engines: which of them answer, and their configuration. */
#include "base/base.h"

#include "node/facts.h"

#include "base/clock.h"
#include "node/tool.h"

#define ENGINE_LIMIT (20 * NS_PER_S)
#define SAID_MAX     (64u << 10)
#define DOCKER_INFO                                                                                \
    "{{.CgroupVersion}}|{{.CgroupDriver}}|{{.Driver}}|{{range $k, $v := .Runtimes}}{{$k}} {{end}}"
#define PODMAN_INFO                                                                                \
    "{{.Host.CgroupsVersion}}|{{.Host.CgroupManager}}|{{.Store.GraphDriverName}}|"                 \
    "{{.Host.OCIRuntime.Name}}"

static bool is_asked(const struct facts *facts, const char *name)
{
    struct str rest = str_of(facts->engines), word;
    bool is_named = !rest.len;
    while (str_next(&rest, ' ', &word)) {
        is_named = is_named || str_eq_z(word, name);
    }
    return is_named;
}

static const char *trimmed(struct facts *facts, const struct strbuf *said)
{
    return str_z(&facts->arena, str_trim(strbuf_str(said)));
}

/* engine.NAME.version. True: it answers. */
static bool say_version(struct facts *facts, const char *name, const char *const *argv)
{
    CLEANUP(strbuf) struct strbuf said = STRBUF(SAID_MAX);
    const char *key = arena_printf(&facts->arena, "engine.%s.version", name);
    if (!is_asked(facts, name)) {
        return false;
    }
    if (!tool_is_there(argv[0])) {
        facts_unknown(facts, key, "not installed");
        return false;
    }
    int status = tool_run(argv, ENGINE_LIMIT, true, &said);
    if (status == 0 && str_trim(strbuf_str(&said)).len) {
        facts_put(facts, key, trimmed(facts, &said));
        return true;
    }
    facts_unknown(
        facts, key,
        status == TOOL_LATE || status == TOOL_STUCK
            ? "does not answer within 20 s"
            : arena_printf(&facts->arena, "status %d: %s", status, trimmed(facts, &said)));
    return false;
}

static void say_info(struct facts *facts, const char *name, const char *form)
{
    CLEANUP(strbuf) struct strbuf said = STRBUF(SAID_MAX);
    const char *const argv[] = {name, "info", "--format", form, NULL};
    bool is_said = tool_run(argv, ENGINE_LIMIT, true, &said) == 0;
    facts_say(facts, arena_printf(&facts->arena, "engine.%s.info", name),
              is_said ? trimmed(facts, &said) : "",
              arena_printf(&facts->arena, "%s info fails", name));
}

/* The limits of dockerd's process, which bound those of its containers. */
static void say_daemon(struct facts *facts)
{
    char text[FACTS_TEXT];
    const char *pid = facts_line("/var/run/docker.pid", text) && text[0] ? text : NULL;
    struct fs_names names = facts_names(facts, "/proc", "");
    for (size_t idx = 0; idx < names.n && !pid; idx++) {
        char comm[FACTS_TEXT];
        if (facts_line(arena_printf(&facts->arena, "/proc/%s/comm", names.items[idx]), comm) &&
            strcmp(comm, "dockerd") == 0) {
            pid = names.items[idx];
        }
    }
    facts_limits(facts, "engine.docker",
                 arena_printf(&facts->arena, "/proc/%s", pid ? pid : "none"));
}

static void say_cdi(struct facts *facts)
{
    static const char *const FOLDERS[] = {"/etc/cdi", "/var/run/cdi"};
    CLEANUP(strbuf) struct strbuf text = STRBUF(SAID_MAX);
    for (size_t at = 0; at < ARRAY_LEN(FOLDERS); at++) {
        struct fs_names names = facts_names(facts, FOLDERS[at], "");
        for (size_t idx = 0; idx < names.n; idx++) {
            strbuf_printf(&text, "%s%s", text.len ? " " : "", names.items[idx]);
        }
    }
    facts_put(facts, "cdi.specs", text.ptr);
}

void facts_of_engines(struct facts *facts)
{
    static const char *const DOCKER[] = {"docker", "version", "--format", "{{.Server.Version}}",
                                         NULL};
    static const char *const PODMAN[] = {"podman", "version", "--format", "{{.Client.Version}}",
                                         NULL};
    static const char *const SINGULARITY[] = {"singularity", "version", NULL};
    static const char *const APPTAINER[] = {"apptainer", "version", NULL};
    static const char *const ENROOT[] = {"enroot", "version", NULL};
    static const char *const CTK[] = {"nvidia-ctk", "--version", NULL};
    if (say_version(facts, "docker", DOCKER)) {
        say_info(facts, "docker", DOCKER_INFO);
        say_daemon(facts);
    }
    if (say_version(facts, "podman", PODMAN)) {
        say_info(facts, "podman", PODMAN_INFO);
    }
    (void)say_version(facts, "apptainer", tool_is_there("apptainer") ? APPTAINER : SINGULARITY);
    (void)say_version(facts, "enroot", ENROOT);
    (void)say_version(facts, "nvidia-ctk", CTK);
    say_cdi(facts);
}
