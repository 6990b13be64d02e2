/* SPDX-License-Identifier: Apache-2.0 */
/* Shell completion, made from the option tables: what a command takes is read from the names in its synopsis ("REPORT...")
   and of its options' values ("DIR"). Ids come from `reperf list KIND --ids` when the shell asks. */
#include "base/base.h"
#include "base/strbuf.h"
#include "cmd/cmd.h"

#define SCRIPT_BYTES_MAX (1u << 20)

/* A name in a synopsis, and what the shell offers for it: a kind of `reperf list`, or its own files or folders. */
static const struct {
    const char *name;
    const char *offer;
} NAMES[] = {
    {"REPORT", "list:reports"},
    {"CASE", "list:cases"},
    {"GLOB", "list:cases"},
    {"CELL", "list:cases"},
    {"FORMAT", "list:formats"},
    {"RULE", "list:rules"},
    {"RUN", "list:runs"},
    {"CODE", "list:findings"},
    {"DIR", "dirs"},
    {"FOLDER", "dirs"},
    {"FILE", "files"},
    {"LOG", "files"},
    {"PATH", "files"},
    {"ARCHIVE", "files"},
    {"KEY", "files"},
    {"PUB", "files"},
    {"IMAGE", "list:images"},
    {"INVENTORY", "list:inventories"},
    {"NAME", "list:datasets list:images list:reports"},
};

static const char BASH_HEAD[] =
    "# bash completion of reperf; made by: reperf completion bash\n"
    "_reperf_offer() { # PROGRAM CURRENT OFFER...\n"
    "    local program=$1 cur=$2 offer\n"
    "    shift 2\n"
    "    for offer in \"$@\"; do\n"
    "        case $offer in\n"
    "        files)\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
    "        dirs)\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- \"$cur\") ;;\n"
    "        list:*)\n"
    "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W \\\n"
    "                \"$(\"$program\" list \"${offer#list:}\" --ids 2>/dev/null)\" -- \"$cur\") "
    ";;\n"
    "        word:*)\n"
    "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W \"${offer#word:}\" -- "
    "\"$cur\") ;;\n"
    "        esac\n"
    "    done\n"
    "}\n";

static const char BASH_TAIL[] =
    "_reperf() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local program=${COMP_WORDS[0]} command=${COMP_WORDS[1]-}\n"
    "    COMPREPLY=()\n"
    "    program=${program/#\\~/$HOME}\n"
    "    # A command whose verbs have options of their own is completed as \"command verb\".\n"
    "    if [[ \" $_reperf_with_verbs \" == *\" $command \"* ]] && [ \"$COMP_CWORD\" -gt 2 ]; "
    "then\n"
    "        command=\"$command ${COMP_WORDS[2]}\"\n"
    "    fi\n"
    "    # --name=VALUE arrives as three words, since = parts words.\n"
    "    if [ \"$cur\" = \"=\" ]; then\n"
    "        cur=\n"
    "    elif [ \"$prev\" = \"=\" ] && [ \"$COMP_CWORD\" -gt 2 ]; then\n"
    "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$_reperf_commands --help --version\" -- "
    "\"$cur\")\n"
    "        return\n"
    "    fi\n"
    "    local value\n"
    "    value=$(_reperf_value \"$command\" \"$prev\")\n"
    "    if [ -n \"$value\" ]; then\n"
    "        # shellcheck disable=SC2086\n"
    "        _reperf_offer \"$program\" \"$cur\" $value\n"
    "    elif [[ $cur == -* ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$(_reperf_options \"$command\") --help\" -- "
    "\"$cur\")\n"
    "    else\n"
    "        # shellcheck disable=SC2046\n"
    "        _reperf_offer \"$program\" \"$cur\" $(_reperf_operands \"$command\")\n"
    "    fi\n"
    "}\n"
    "complete -F _reperf reperf\n";

/* Letters, and other characters of a literal word in a synopsis. */
static bool is_name_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static void add_offer(struct strbuf *out, struct str name)
{
    bool is_literal = name.ptr[0] >= 'a' && name.ptr[0] <= 'z';
    if (is_literal) {
        strbuf_printf(out, " word:%.*s", STR_ARG(name));
        return;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(NAMES); idx++) {
        if (str_eq_z(name, NAMES[idx].name)) {
            strbuf_printf(out, " %s", NAMES[idx].offer);
        }
    }
}

/* "[reports|cases] [REPORT]" gives "word:reports word:cases list:reports". */
static void add_offers(struct strbuf *out, const char *synopsis)
{
    for (const char *at = synopsis; *at;) {
        size_t len = 0;
        while (is_name_char(at[len])) {
            len++;
        }
        if (len) {
            add_offer(out, (struct str){at, len});
        }
        at += len ? len : 1;
    }
}

/* Calls fn for each command and each verb that has options of its own: as "image", "nodes list". */
static void each_command(struct strbuf *out,
                         void (*fn)(struct strbuf *out, const char *name, const struct cmd *c))
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const struct cmd *c;
    for (size_t idx = 0; (c = cmd_at(idx)); idx++) {
        const struct cmd *const *verbs = cmd_verbs(c);
        fn(out, c->name, c);
        for (; verbs && *verbs; verbs++) {
            fn(out, arena_printf(&arena, "%s %s", c->name, (*verbs)->name), *verbs);
        }
    }
}

static void add_bash_values(struct strbuf *out, const char *name, const struct cmd *c)
{
    for (const struct opt *o = c->opts; o->name; o++) {
        if (o->kind == OPT_FLAG) {
            continue;
        }
        strbuf_printf(out, "    \"%s:--%s\"", name, o->name);
        if (o->letter) {
            strbuf_printf(out, " | \"%s:-%c\"", name, o->letter);
        }
        strbuf_add_z(out, ") echo \"none");
        add_offers(out, o->value);
        strbuf_add_z(out, "\" ;;\n");
    }
}

static bool has_option(const struct opt *opts, const char *name)
{
    for (; opts->name; opts++) {
        if (strcmp(opts->name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Before its verb is typed, a command takes the options of all verbs. */
static void add_bash_options(struct strbuf *out, const char *name, const struct cmd *c)
{
    const struct cmd *const *verbs = cmd_verbs(c);
    strbuf_printf(out, "    \"%s\") echo \"", name);
    for (const struct opt *o = c->opts; o->name; o++) {
        strbuf_printf(out, " --%s", o->name);
    }
    for (const struct cmd *const *verb = verbs; verb && *verb; verb++) {
        for (const struct opt *o = (*verb)->opts; o->name; o++) {
            bool is_new = true;
            for (const struct cmd *const *before = verbs; before < verb; before++) {
                is_new = is_new && !has_option((*before)->opts, o->name);
            }
            if (is_new) {
                strbuf_printf(out, " --%s", o->name);
            }
        }
    }
    strbuf_add_z(out, "\" ;;\n");
}

static void add_bash_operands(struct strbuf *out, const char *name, const struct cmd *c)
{
    const struct cmd *const *verbs = cmd_verbs(c);
    strbuf_printf(out, "    \"%s\") echo \"none", name);
    for (const struct cmd *const *verb = verbs; verb && *verb; verb++) {
        strbuf_printf(out, " word:%s", (*verb)->name);
    }
    if (!verbs) {
        add_offers(out, c->operands);
    }
    strbuf_add_z(out, "\" ;;\n");
}

static void add_bash(struct strbuf *out)
{
    strbuf_add_z(out, BASH_HEAD);
    strbuf_add_z(out, "_reperf_commands=\"");
    const struct cmd *c;
    for (size_t idx = 0; (c = cmd_at(idx)); idx++) {
        strbuf_printf(out, "%s%s", idx ? " " : "", c->name);
    }
    strbuf_add_z(out, "\"\n_reperf_with_verbs=\"");
    for (size_t idx = 0; (c = cmd_at(idx)); idx++) {
        strbuf_printf(out, "%s%s", cmd_verbs(c) ? " " : "", cmd_verbs(c) ? c->name : "");
    }
    strbuf_add_z(out, "\"\n_reperf_options() { # COMMAND\n    case $1 in\n");
    each_command(out, add_bash_options);
    strbuf_add_z(out, "    esac\n}\n_reperf_value() { # COMMAND OPTION: what its value may be; "
                      "nothing for a flag\n    case $1:$2 in\n");
    each_command(out, add_bash_values);
    strbuf_add_z(out, "    esac\n}\n_reperf_operands() { # COMMAND\n    case $1 in\n");
    each_command(out, add_bash_operands);
    strbuf_add_z(out, "    esac\n}\n");
    strbuf_add_z(out, BASH_TAIL);
}

/* zsh runs bash's completion functions, with its own arrays made to look like bash's. */
static void add_zsh(struct strbuf *out)
{
    strbuf_add_z(out, "#compdef reperf\nautoload -U +X compinit && compinit -u\n"
                      "autoload -U +X bashcompinit && bashcompinit\n");
    add_bash(out);
}

/* One single-quoted fish word. */
static void add_fish_word(struct strbuf *out, const char *z)
{
    strbuf_add_char(out, '\'');
    for (; *z; z++) {
        if (*z == '\'' || *z == '\\') {
            strbuf_add_char(out, '\\');
        }
        strbuf_add_char(out, *z);
    }
    strbuf_add_char(out, '\'');
}

/* The offers of one synopsis as fish arguments: -a '(reperf list KIND --ids)', -F for files. */
static void add_fish_offers(struct strbuf *out, const char *synopsis)
{
    CLEANUP(strbuf) struct strbuf offers = {0};
    struct str rest;
    struct str offer;
    bool has_files = false;
    strbuf_init(&offers, SCRIPT_BYTES_MAX);
    add_offers(&offers, synopsis);
    rest = strbuf_str(&offers);
    strbuf_add_z(out, " -a '");
    while (str_next(&rest, ' ', &offer)) {
        if (str_starts(offer, STR_LIT("list:"))) {
            strbuf_printf(out, "(reperf list %.*s --ids 2>/dev/null) ",
                          STR_ARG(str_sub(offer, 5, offer.len)));
        } else if (str_starts(offer, STR_LIT("word:"))) {
            strbuf_printf(out, "%.*s ", STR_ARG(str_sub(offer, 5, offer.len)));
        } else if (offer.len) {
            has_files = true;
        }
    }
    strbuf_add_z(out, has_files ? "' -F" : "' -f");
}

static void add_fish_command(struct strbuf *out, const char *name, const struct cmd *c)
{
    if (cmd_verbs(c)) {
        return;
    }
    strbuf_printf(out, "complete -c reperf -n '__reperf_is %s'", name);
    add_fish_offers(out, c->operands);
    strbuf_add_char(out, '\n');
    for (const struct opt *o = c->opts; o->name; o++) {
        strbuf_printf(out, "complete -c reperf -n '__reperf_is %s' -l %s", name, o->name);
        if (o->letter) {
            strbuf_printf(out, " -s %c", o->letter);
        }
        if (o->kind != OPT_FLAG) {
            strbuf_add_z(out, " -r");
            add_fish_offers(out, o->value);
        }
        strbuf_add_z(out, " -d ");
        add_fish_word(out, o->help);
        strbuf_add_char(out, '\n');
    }
}

static void add_fish(struct strbuf *out)
{
    const struct cmd *c;
    strbuf_add_z(out,
                 "# fish completion of reperf; made by: reperf completion fish\n"
                 "function __reperf_is # COMMAND [VERB]\n"
                 "    set -l words (commandline -opc)\n"
                 "    test \"$words[2]\" = $argv[1]; or return 1\n"
                 "    test (count $argv) -eq 1; or test \"$words[3]\" = \"$argv[2]\"\n"
                 "end\n"
                 "complete -c reperf -f\n"
                 "complete -c reperf -n __fish_use_subcommand -l version -d 'say the version'\n"
                 "complete -c reperf -l help -d 'this text'\n");
    for (size_t idx = 0; (c = cmd_at(idx)); idx++) {
        strbuf_printf(out, "complete -c reperf -n __fish_use_subcommand -a %s -d ", c->name);
        add_fish_word(out, c->summary);
        strbuf_add_char(out, '\n');
        for (const struct cmd *const *verb = cmd_verbs(c); verb && *verb; verb++) {
            strbuf_printf(out, "complete -c reperf -n '__reperf_is %s \"\"' -f -a %s -d ", c->name,
                          (*verb)->name);
            add_fish_word(out, (*verb)->summary);
            strbuf_add_char(out, '\n');
        }
    }
    each_command(out, add_fish_command);
}

static const struct opt OPTS[] = {OPT_END};

static int run_completion(const struct cmd_ctx *ctx UNUSED, int argc, char **argv, struct err *err)
{
    static const struct {
        const char *shell;
        void (*add)(struct strbuf *out);
    } SHELLS[] = {{"bash", add_bash}, {"fish", add_fish}, {"zsh", add_zsh}};
    CLEANUP(opt_list) struct opt_list operands = {0};
    CLEANUP(strbuf) struct strbuf out = {0};
    if (opt_parse(OPTS, argc, argv, NULL, &operands, err) < 0) {
        return -1;
    }
    if (operands.n != 1) {
        return err_set(err, ERR_USAGE, "completion: expected one shell: bash, fish or zsh");
    }
    strbuf_init(&out, SCRIPT_BYTES_MAX);
    for (size_t idx = 0; idx < ARRAY_LEN(SHELLS); idx++) {
        if (strcmp(operands.items[0], SHELLS[idx].shell) == 0) {
            SHELLS[idx].add(&out);
            ASSERT(!out.is_full);
            return cmd_print(strbuf_str(&out), err);
        }
    }
    return err_set(err, ERR_USAGE, "completion: expected bash, fish or zsh, found \"%.40s\"",
                   operands.items[0]);
}

const struct cmd CMD_COMPLETION = {"completion", "bash|fish|zsh", "a shell's completion script",
                                   OPTS, run_completion};
