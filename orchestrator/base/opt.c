/* SPDX-License-Identifier: Apache-2.0 */
#include "base/opt.h"

#include "base/nearest.h"
#include "base/str.h"

static const struct opt *find_long(const struct opt *opts, struct str name)
{
    for (const struct opt *o = opts; o->name; o++) {
        if (str_eq_z(name, o->name)) {
            return o;
        }
    }
    return NULL;
}

static const struct opt *find_letter(const struct opt *opts, char letter)
{
    for (const struct opt *o = opts; o->name; o++) {
        if (o->letter == letter) {
            return o;
        }
    }
    return NULL;
}

static int store_share(const struct opt *o, const char *value, double *ret, struct err *err)
{
    struct str number = str_of(value);
    bool has_sign = str_ends(number, STR_LIT("%"));
    number.len -= has_sign;
    if (str_to_f64(number, ret, ERR_IGNORED) < 0 || !(*ret >= 0 && *ret < 100)) {
        return err_set(err, ERR_USAGE, "--%s %.40s: expected a share from 0%% to under 100%%",
                       o->name, value);
    }
    if (!has_sign && *ret > 0 && *ret < 1) { /* "0.05" is 5 % to one reader and 0.05 % to another */
        return err_set(err, ERR_USAGE, "--%s %.40s may be read as %.10g%% or as %.10g%%: write one",
                       o->name, value, 100 * *ret, *ret);
    }
    *ret /= 100;
    return 0;
}

static int store(const struct opt *o, const char *value, void *args, struct err *err)
{
    void *ret = (char *)args + o->offset;
    switch (o->kind) {
    case OPT_FLAG:
        *(bool *)ret = true;
        return 0;
    case OPT_TEXT:
        *(const char **)ret = value;
        return 0;
    case OPT_LIST: {
        struct opt_list *list = ret;
        VEC_PUSH(list, value);
        return 0;
    }
    case OPT_I64:
        if (str_to_i64(str_of(value), o->min, o->max, ret, err) < 0) {
            err->code = ERR_USAGE;
            return err_wrap(err, "--%s", o->name);
        }
        return 0;
    case OPT_F64:
        if (str_to_f64(str_of(value), ret, err) < 0) {
            err->code = ERR_USAGE;
            return err_wrap(err, "--%s", o->name);
        }
        return 0;
    case OPT_SHARE:
        return store_share(o, value, ret, err);
    }
    ASSERT(!"option kind");
    return -1;
}

static int fail_unknown(const struct opt *opts, const char *arg, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    char text[NEAREST_TEXT_MAX];
    const char *name = arena_strndup(&arena, arg + 2, arg[1] == '-' ? strcspn(arg + 2, "=") : 0);
    struct nearest nearest = nearest_to(name);
    if (!name[0]) {
        return err_set(err, ERR_USAGE, "unknown option %s; --help lists the options", arg);
    }
    for (const struct opt *o = opts; o->name; o++) {
        nearest_offer(&nearest, o->name);
    }
    nearest.name = nearest.name ? arena_printf(&arena, "--%s", nearest.name) : NULL;
    return err_set(err, ERR_USAGE, "unknown option --%s%s; --help lists the options", name,
                   nearest_text(&nearest, text));
}

/* One argument that starts with a dash; *idx moves on when it takes the next one as its value. */
static int parse_one(const struct opt *opts, int argc, char **argv, int *idx, void *args,
                     struct err *err)
{
    const char *arg = argv[*idx];
    const char *value = NULL;
    const struct opt *o;
    if (arg[1] == '-') {
        const char *equals = strchr(arg, '=');
        struct str name =
            equals ? (struct str){arg + 2, (size_t)(equals - arg - 2)} : str_of(arg + 2);
        o = find_long(opts, name);
        value = equals ? equals + 1 : NULL;
    } else {
        o = find_letter(opts, arg[1]);
        value = arg[2] ? arg + 2 : NULL;
    }
    if (!o) {
        return fail_unknown(opts, arg, err);
    }
    if (o->kind == OPT_FLAG) {
        return value ? err_set(err, ERR_USAGE, "--%s takes no value", o->name)
                     : store(o, NULL, args, err);
    }
    if (!value) {
        if (*idx + 1 >= argc) {
            return err_set(err, ERR_USAGE, "--%s needs a value: %s", o->name, o->value);
        }
        *idx += 1;
        value = argv[*idx];
    }
    return store(o, value, args, err);
}

int opt_parse(const struct opt *opts, int argc, char **argv, void *args,
              struct opt_list *ret_operands, struct err *err)
{
    bool is_past_options = false;
    for (int idx = 0; idx < argc; idx++) {
        if (is_past_options || argv[idx][0] != '-' || argv[idx][1] == '\0') {
            VEC_PUSH(ret_operands, argv[idx]);
        } else if (strcmp(argv[idx], "--") == 0) {
            is_past_options = true;
        } else if (parse_one(opts, argc, argv, &idx, args, err) < 0) {
            return -1;
        }
    }
    return 0;
}

void opt_release(const struct opt *opts, void *args)
{
    for (const struct opt *o = opts; o->name; o++) {
        if (o->kind == OPT_LIST) {
            VEC_RELEASE((struct opt_list *)(void *)((char *)args + o->offset));
        }
    }
}

void opt_print_help(FILE *out, const struct opt *opts)
{
    for (const struct opt *o = opts; o->name; o++) {
        char left[64];
        char letter[8] = "    ";
        if (o->letter) {
            snprintf(letter, sizeof(letter), "-%c, ", o->letter);
        }
        snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        fprintf(out, "  %-30s %s\n", left, o->help);
    }
}
