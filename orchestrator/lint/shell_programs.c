/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that start other programs, and the syntax of options. */
#include "base/base.h"

#include "lint/shell_script.h"

#include "base/strbuf.h"
#include "lint/shell_script_impl.h"
#include "report/container.h"

#define INNER_BYTES_MAX (1 << 20)

static bool is_option(struct str word)
{
    return word.len > 1 && word.ptr[0] == '-' && !(word.ptr[1] >= '0' && word.ptr[1] <= '9');
}

/* ---- prefixes ---- */

struct prefix {
    const char *name;
    const char *with_value; /* letters of options that take the next word */
    size_t n_operands;      /* words between its options and the command */
};
/* Source: the manuals of sudo 1.9, coreutils 9.1, util-linux 2.38 and numactl 2.0. */
static const struct prefix PREFIXES[] = {
    {"sudo", "ughpCrtUDRT", 0}, {"env", "uCS", 0},   {"time", "fo", 0},
    {"nohup", "", 0},           {"exec", "a", 0},    {"command", "", 0},
    {"builtin", "", 0},         {"nice", "n", 0},    {"ionice", "cnp", 0},
    {"stdbuf", "ioe", 0},       {"setsid", "", 0},   {"timeout", "ks", 1},
    {"taskset", "", 1},         {"unbuffer", "", 0}, {"catchsegv", "", 0},
    {"numactl", "NCmpix", 0},   {"doas", "uC", 0},   {"chronic", "", 0},
};

size_t shell_prefix_words(const struct shell_word *words, size_t n)
{
    const struct prefix *prefix = NULL;
    size_t at = 1;
    for (size_t idx = 0; n && idx < ARRAY_LEN(PREFIXES); idx++) {
        if (str_eq_z(path_base(words[0].text), PREFIXES[idx].name)) {
            prefix = &PREFIXES[idx];
        }
    }
    if (!prefix) {
        return 0;
    }
    while (at < n && is_option(words[at].text)) {
        struct str word = words[at++].text;
        if (str_eq_z(word, "--")) {
            break;
        }
        at += word.len == 2 && strchr(prefix->with_value, word.ptr[1]) != NULL;
    }
    at += prefix->n_operands;
    return at < n ? at : n;
}

/* ---- names ---- */

static bool is_python(struct str base)
{
    return str_starts(base, STR_LIT("python")) || str_starts(base, STR_LIT("pypy"));
}

static bool is_shell(struct str base)
{
    static const char *const SHELLS[] = {"bash", "sh", "zsh", "dash", "ksh", NULL};
    return str_eq_any(base, SHELLS);
}

/* Index of the word that names what `python -m NAME`, `python FILE` or `bash FILE` runs; n if there is none. */
static size_t named_at(const struct shell_run *run)
{
    bool takes_module = is_python(path_base(run->words[0].text));
    for (size_t at = 1; at < run->n; at++) {
        struct str word = run->words[at].text;
        if (takes_module && str_eq_z(word, "-m")) {
            return at + 1 < run->n ? at + 1 : run->n;
        }
        if (str_eq_z(word, "-c")) {
            return run->n;
        }
        if (str_eq_z(word, "-W") || str_eq_z(word, "-X") || str_eq_z(word, "-O")) {
            at += word.ptr[1] != 'O' || !takes_module;
        } else if (!is_option(word)) {
            return at;
        }
    }
    return run->n;
}

struct str shell_program(const struct shell_run *run)
{
    struct str base = run->n ? path_base(run->words[0].text) : STR_EMPTY;
    size_t at;
    if (run->n && (is_python(base) || is_shell(base))) {
        at = named_at(run);
        base = at < run->n ? path_base(run->words[at].text) : base;
    }
    return base;
}

bool shell_is(const struct shell_run *run, const char *program)
{
    return str_eq_z(shell_program(run), program);
}

bool shell_is_any(const struct shell_run *run, const char *const *programs)
{
    return run->n && str_eq_any(shell_program(run), programs);
}

/* ---- what is started ---- */

/* Programs whose words hold another program's. */
static const char *const LAUNCHERS[] = {"mpirun",
                                        "mpiexec",
                                        "orterun",
                                        "prterun",
                                        "mpiexec.hydra",
                                        "mpirun.openmpi",
                                        "horovodrun",
                                        "srun",
                                        "jsrun",
                                        "aprun",
                                        "torchrun",
                                        "fleetrun",
                                        "deepspeed",
                                        "accelerate",
                                        "colossalai",
                                        "composer",
                                        "torch.distributed.launch",
                                        "torch.distributed.run",
                                        "torch.distributed.elastic.launch",
                                        "paddle.distributed.launch",
                                        "paddle.distributed.fleet.launch",
                                        "oneflow.distributed.launch",
                                        "accelerate.commands.launch",
                                        "multiproc.py",
                                        "launch.py",
                                        "nsys",
                                        "ncu",
                                        "nvprof",
                                        "dlprof",
                                        "xargs",
                                        "parallel",
                                        "singularity",
                                        "apptainer",
                                        "enroot",
                                        NULL};

static bool is_program(struct str word)
{
    struct str base = path_base(word);
    struct shell_word one = {.text = base};
    return is_python(base) || is_shell(base) || str_eq_any(base, LAUNCHERS) ||
           str_ends(base, STR_LIT(".py")) || str_ends(base, STR_LIT(".sh")) ||
           shell_prefix_words(&one, 1) > 0;
}

static size_t launched_at(const struct shell_run *run)
{
    size_t at = run->n ? 1 : 0;
    struct str base = path_base(run->words[0].text);
    if (is_python(base) || is_shell(base)) {
        at = named_at(run) + 1;
    }
    for (; at < run->n; at++) {
        struct str word = run->words[at].text;
        bool may_be_value = is_option(run->words[at - 1].text);
        if (str_eq_z(word, "-m") && at + 1 < run->n) {
            return at + 1;
        }
        if (is_program(word) || (str_starts(word, STR_LIT("./")) && !may_be_value)) {
            return at;
        }
    }
    return run->n;
}

size_t shell_engine_verb(const struct shell_run *run)
{
    static const char *const ARTIFACTS[] = {"container", "image", "buildx", NULL};
    static const char *const WITH_VALUE[] = {"-H",          "--host",      "-c",       "--context",
                                             "-l",          "--log-level", "--config", "--root",
                                             "--namespace", "-n",          NULL};
    size_t at = 1;
    if (!run->n || !container_is_engine(run->words[0].text)) {
        return run->n;
    }
    while (at < run->n &&
           (is_option(run->words[at].text) || str_eq_any(run->words[at].text, ARTIFACTS))) {
        at += str_eq_any(run->words[at].text, WITH_VALUE) ? 2 : 1;
    }
    return at < run->n ? at : run->n;
}

bool shell_engine_does(const struct shell_run *run, const char *verb)
{
    size_t at = shell_engine_verb(run);
    return at < run->n && str_eq_z(run->words[at].text, verb);
}

/* `docker exec -it -e A=1 NAME COMMAND` and `ssh -p 22 HOST COMMAND`: the word after the operand. */
static size_t behind_operand(const struct shell_run *run, size_t at, const char *with_value)
{
    while (at < run->n && is_option(run->words[at].text)) {
        struct str word = run->words[at++].text;
        at += word.len == 2 && strchr(with_value, word.ptr[1]) != NULL;
    }
    return at < run->n ? at + 1 : run->n;
}

static struct str joined(struct arena *arena, const struct shell_run *run, size_t at)
{
    CLEANUP(strbuf) struct strbuf text;
    strbuf_init(&text, INNER_BYTES_MAX);
    for (; at < run->n; at++) {
        strbuf_add_str(&text, run->words[at].text);
        strbuf_add_char(&text, ' ');
    }
    return text.len ? str_dup(arena, strbuf_str(&text)) : STR_EMPTY;
}

/* The body of a here-document that the run reads as commands: a shell, or cat into a script. */
static struct str here_text(const struct shell_run *run, bool is_reader)
{
    struct str body = STR_EMPTY;
    for (size_t idx = 0; idx < run->n_files; idx++) {
        const struct shell_word *file = &run->files[idx];
        body = file->role == SHELL_HERE ? file->text : body;
        is_reader = is_reader || (file->role == SHELL_TO && str_ends(file->text, STR_LIT(".sh")));
    }
    return is_reader ? body : STR_EMPTY;
}

/* bash -c TEXT, bash -lc TEXT, bash <<EOF. */
static struct str shell_text_of(const struct shell_run *run)
{
    for (size_t at = 1; at + 1 < run->n && is_option(run->words[at].text); at++) {
        struct str word = run->words[at].text;
        if (word.ptr[1] != '-' && word.ptr[word.len - 1] == 'c') {
            return run->words[at + 1].text;
        }
    }
    return here_text(run, named_at(run) == run->n);
}

struct shell_inner shell_inner_of(struct arena *arena, const struct shell_run *run)
{
    struct shell_inner inner = {.at = run->n};
    struct str base = run->n ? path_base(run->words[0].text) : STR_EMPTY;
    struct str letter = STR_EMPTY;
    if (!run->n) {
        return inner;
    }
    if (is_shell(base)) {
        inner.text = shell_text_of(run);
    } else if (str_eq_z(base, "eval")) {
        inner.text = joined(arena, run, 1);
    } else if (str_eq_z(base, "su") && shell_run_letter(run, 'c', &letter)) {
        inner.text = letter;
    } else if (str_eq_z(base, "ssh") || str_eq_z(base, "pdsh")) {
        inner.is_elsewhere = true;
        inner.text = joined(arena, run, behind_operand(run, 1, "bcDEeFIiJLlmOopQRSWw"));
        inner.text = inner.text.ptr ? inner.text : here_text(run, true);
    } else if (shell_engine_does(run, "run")) {
        inner.is_elsewhere = true;
        inner.at = container_image_at(run->words, run->n);
        inner.at += inner.at < run->n;
    } else if (shell_engine_does(run, "exec")) {
        inner.is_elsewhere = true;
        inner.at = behind_operand(run, shell_engine_verb(run) + 1, "euw");
        inner.text = here_text(run, false);
    } else if (str_eq_z(base, "cat") || str_eq_z(base, "tee")) {
        inner.text = here_text(run, str_eq_z(base, "tee"));
    } else if (str_eq_any(shell_program(run), LAUNCHERS) || base.ptr[0] == '$') {
        inner.at = launched_at(run);
    }
    return inner;
}

/* ---- options ---- */

static bool takes_value(const struct shell_run *run, size_t at)
{
    return at + 1 < run->n_own;
}

bool shell_run_option(const struct shell_run *run, const char *name, size_t *at,
                      struct shell_word *ret_value)
{
    size_t len = strlen(name);
    bool is_letter = len == 2 && name[1] != '-';
    for (; *at < run->n_own; (*at)++) {
        struct shell_word word = run->words[*at];
        struct str rest = str_sub(word.text, len, SIZE_MAX);
        if (!str_starts(word.text, str_of(name))) {
            continue;
        }
        if (rest.len == 0 && takes_value(run, *at)) {
            *ret_value = run->words[*at + 1];
            *at += 2;
            return true;
        }
        if (rest.len && (rest.ptr[0] == '=' || is_letter)) {
            word.text = str_sub(rest, rest.ptr[0] == '=', SIZE_MAX);
            *ret_value = word;
            (*at)++;
            return true;
        }
    }
    return false;
}

bool shell_run_letter(const struct shell_run *run, char letter, struct str *ret_value)
{
    for (size_t at = 1; at < run->n_own; at++) {
        struct str word = run->words[at].text;
        const char *found;
        if (!is_option(word) || word.ptr[1] == '-') {
            continue;
        }
        found = memchr(word.ptr + 1, letter, word.len - 1);
        if (found && found == word.ptr + word.len - 1) {
            *ret_value = takes_value(run, at) ? run->words[at + 1].text : STR_EMPTY;
            return true;
        }
        if (found) {
            *ret_value = str_sub(word, (size_t)(found - word.ptr) + 1, SIZE_MAX);
            return true;
        }
    }
    return false;
}

bool shell_run_flag(const struct shell_run *run, const char *name)
{
    for (size_t at = 1; at < run->n_own; at++) {
        if (str_eq_z(run->words[at].text, name)) {
            return true;
        }
    }
    return false;
}
