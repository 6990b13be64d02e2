/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for an image in one place after the other; the message if it is nowhere. */
#include "base/base.h"

#include "store/image_impl.h"

#include "base/log.h"

/* ---- manifests ---- */

static int read_doc(struct arena *arena, const struct image_place *place, const uint8_t *wanted,
                    struct str *ret_text, uint8_t *ret_sha256, struct err *err)
{
    struct oci_ref ref = place->ref;
    if (wanted) {
        ref.has_digest = true;
        memcpy(ref.sha256, wanted, SHA256_BYTES);
    }
    const struct hex hex = sha256_hex_of(ref.sha256);
    if ((place->registry
             ? registry_manifest(place->registry, arena, &ref, ret_text, err)
             : fs_read(arena,
                       fs_join(arena, place->blob_folder, wanted ? hex.text : "manifest.json"),
                       OCI_MANIFEST_BYTES_MAX, ret_text, err)) < 0) {
        return -1;
    }
    sha256_of(*ret_text, ret_sha256);
    return !ref.has_digest || memcmp(ref.sha256, ret_sha256, SHA256_BYTES) == 0
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s: other bytes than requested: expected %s, found %s", place->name,
                         oci_digest_of(ref.sha256).text, oci_digest_of(ret_sha256).text);
}

static int read_docs(struct arena *arena, const struct image_place *place, const uint8_t *sha256,
                     struct image_info *info, struct err *err)
{
    const struct oci_descriptor *entry;
    if (read_doc(arena, place, sha256, &info->text, info->pins.digest, err) < 0 ||
        oci_manifest_parse(arena, info->text, place->name, &info->manifest, err) < 0) {
        return -1;
    }
    memcpy(info->pins.manifest, info->pins.digest, SHA256_BYTES);
    if (!info->manifest.is_index) {
        return 0;
    }
    info->list = info->text;
    if (oci_choose_platform(&info->manifest, place->name, &entry, err) < 0) {
        err->code = ERR_FETCH; /* it exists, but not for this platform: not gone */
        return -1;
    }
    if (read_doc(arena, place, entry->sha256, &info->text, info->pins.manifest, err) < 0 ||
        oci_manifest_parse(arena, info->text, place->name, &info->manifest, err) < 0) {
        return -1;
    }
    return info->manifest.is_index
               ? err_set(err, ERR_FETCH, "%s: a list of lists is not supported", place->name)
               : 0;
}

int image_read(struct arena *arena, const struct image_place *place, const uint8_t *sha256,
               struct image_info *ret_info, struct err *err)
{
    struct image_info info = {.pins = {true, true, true, {0}, {0}, {0}}};
    if (read_docs(arena, place, sha256, &info, err) < 0) {
        err->code = err->code == ERR_PARSE ? ERR_FETCH : err->code;
        return -1;
    }
    memcpy(info.pins.config, info.manifest.config.sha256, SHA256_BYTES);
    *ret_info = info;
    return 0;
}

static int read_registry(struct arena *arena, const struct registry *registry,
                         const struct oci_ref *ref, struct image_info *ret_info, struct err *err)
{
    const struct image_place place = {
        .name = oci_ref_text(arena, ref), .registry = registry, .ref = *ref};
    return image_read(arena, &place, NULL, ret_info, err);
}

static bool differs(const uint8_t *one, const uint8_t *other)
{
    return memcmp(one, other, SHA256_BYTES) != 0;
}

int image_check_pins(const struct image_pins *pins, const struct image_pins *found,
                     const char *where, struct err *err)
{
    const char *what = pins->has_config ? "config" : pins->has_manifest ? "manifest" : "digest";
    const uint8_t *want = pins->has_config     ? pins->config
                          : pins->has_manifest ? pins->manifest
                                               : pins->digest;
    const uint8_t *have = pins->has_config     ? found->config
                          : pins->has_manifest ? found->manifest
                                               : found->digest;
    const bool is_pinned = pins->has_config || pins->has_manifest || pins->has_digest;
    const bool is_part = have == found->digest && !differs(want, found->manifest);
    return !is_pinned || is_part || !differs(want, have)
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: %s: pinned %s, found %s", where, what,
                         oci_digest_of(want).text, oci_digest_of(have).text);
}

/* ---- the tag against the lock ---- */

static int drift(const struct image_spec *spec, struct arena *arena, const uint8_t *found,
                 struct err *err)
{
    const struct oci_ref tag = {
        .host = spec->ref.host, .path = spec->ref.path, .tag = spec->ref.tag};
    return err_set(err, ERR_INTEGRITY,
                   "image %s: the tag %s has moved: it was locked as %s and is now %s; what a run "
                   "would use is no longer what the tag says",
                   spec->name, oci_ref_text(arena, &tag), oci_digest_of(spec->pins.digest).text,
                   oci_digest_of(found).text);
}

/* A deleted tag, or a registry that does not answer, is not drift: the digest decides then. */
static int check_drift(struct arena *arena, const struct registry *registry,
                       const struct image_spec *spec, struct err *err)
{
    struct oci_ref tag = spec->ref;
    struct str text;
    struct err why = {0};
    uint8_t found[SHA256_BYTES];
    tag.has_digest = false;
    if (!spec->pins.has_digest || !spec->ref.tag.ptr) {
        return 0;
    }
    if (registry_manifest(registry, arena, &tag, &text, &why) == 0) {
        sha256_of(text, found);
        return differs(found, spec->pins.digest) ? drift(spec, arena, found, err) : 0;
    }
    if (why.code == ERR_INTERRUPTED || why.code == ERR_USAGE || why.code == ERR_INTEGRITY) {
        return err_pass(err, &why);
    }
    log_line(LOG_DEBUG, "the tag was not compared: %s", why.msg);
    return 0;
}

int image_resolve(struct arena *arena, const struct registry *registry,
                  const struct image_spec *spec, struct image_info *ret_info, struct err *err)
{
    struct image_info info;
    if (read_registry(arena, registry, &spec->ref, &info, err) < 0) {
        err->code = err->code == ERR_NOT_FOUND ? ERR_FETCH : err->code;
        return -1;
    }
    if (spec->pins.has_digest && differs(info.pins.digest, spec->pins.digest)) {
        return drift(spec, arena, info.pins.digest, err);
    }
    *ret_info = info;
    return image_check_pins(&spec->pins, &info.pins, spec->name, err);
}

/* ---- one place ---- */

struct image_search {
    struct arena *arena;
    struct store *store;
    const struct image_spec *spec;
    const struct image_places *places;
    struct image_fetched fetched;
    struct err first;   /* the origin's, or that of the first place that was asked */
    struct err corrupt; /* the first that gave other bytes */
    struct strbuf *tried;
    size_t n_tried;
    bool is_found;
};

/* It is asked for by what the lock knows: the list, else the platform's manifest alone; without a lock, by the tag. */
static int pull(struct image_search *s, struct oci_ref ref, struct err *err)
{
    const struct image_pins *pins = &s->spec->pins;
    const struct registry *registry = s->places->registry;
    struct image_info *info = &s->fetched.info;
    ref.has_digest |= pins->has_digest;
    memcpy(ref.sha256, pins->has_digest ? pins->digest : ref.sha256, SHA256_BYTES);
    if (read_registry(s->arena, registry, &ref, info, err) < 0) {
        if (err->code != ERR_NOT_FOUND || !pins->has_manifest ||
            !differs(pins->manifest, pins->digest)) {
            return -1;
        }
        *err = (struct err){0};
        memcpy(ref.sha256, pins->manifest, SHA256_BYTES);
        if (read_registry(s->arena, registry, &ref, info, err) < 0) {
            return -1;
        }
    }
    if (image_check_pins(pins, &info->pins, oci_ref_text(s->arena, &ref), err) < 0) {
        return -1;
    }
    ref.tag = STR_EMPTY;
    ref.has_digest = true;
    memcpy(ref.sha256, info->pins.digest, SHA256_BYTES);
    info->from = str_of(oci_ref_text(s->arena, &ref));
    memcpy(ref.sha256, info->pins.manifest, SHA256_BYTES);
    uint64_t bytes = oci_manifest_bytes(&info->manifest);
    if (registry_pull(registry, &ref, &info->manifest, s->store, &s->fetched.kept_bytes, err) < 0) {
        return -1;
    }
    s->fetched.fetched_bytes = bytes - s->fetched.kept_bytes;
    return 0;
}

static int read_layout(struct image_search *s, const char *path, struct err *err)
{
    if (image_from_layout(s->arena, s->store, s->spec, path, &s->fetched.info, err) < 0) {
        return -1;
    }
    s->fetched.info.from = str_of(path);
    return 0;
}

/* ---- one after the other ---- */

static const char *word_for(enum err_code code)
{
    static const char *const WORDS[ERR_CODE_COUNT] = {
        [ERR_NOT_FOUND] = "gone",      [ERR_AUTH] = "not allowed",  [ERR_NET] = "unreachable",
        [ERR_TIMEOUT] = "unreachable", [ERR_INTEGRITY] = "corrupt", [ERR_FETCH] = "failed",
    };
    return WORDS[code];
}

/* ref, or with NULL the layout at path. -1: an error that ends the search, because another place would not help: our own
   disk, the user or an option is its cause. */
static int try_place(struct image_search *s, const struct oci_ref *ref, const char *path,
                     struct err *err)
{
    struct err why = {0};
    if (s->is_found || (ref && !s->places->registry)) {
        return 0;
    }
    s->is_found = (ref ? pull(s, *ref, &why) : read_layout(s, path, &why)) == 0;
    if (s->is_found) {
        return 0;
    }
    if (!word_for(why.code)) {
        return err_pass(err, &why);
    }
    log_line(LOG_WARN, "image %s: %s", s->spec->name, why.msg);
    if (s->n_tried++ == 0) {
        s->first = why;
    }
    if (why.code == ERR_INTEGRITY && s->corrupt.code == ERR_NONE) {
        s->corrupt = why;
    }
    strbuf_printf(s->tried, "%s%s: %s", s->tried->len ? "; " : "",
                  ref ? oci_ref_name(s->arena, ref) : path, word_for(why.code));
    return 0;
}

/* [https://]HOST[:PORT][/PREFIX] in front of the image's path. */
static int mirror_ref(struct image_search *s, struct oci_ref *ret_ref, struct err *err)
{
    struct str mirror = str_of(s->places->mirror);
    int64_t scheme = str_find(mirror, STR_LIT("://"));
    mirror = str_rtrim(str_sub(mirror, scheme >= 0 ? (size_t)scheme + 3 : 0, mirror.len), 0, "/");
    struct str text =
        str_printf(s->arena, "%.*s/%.*s", STR_ARG(mirror), STR_ARG(s->spec->ref.path));
    if (oci_ref_parse(s->arena, text, ret_ref, err) < 0) {
        return err_wrap(err, "mirror");
    }
    if (!str_starts(mirror, ret_ref->host)) {
        return err_set(err, ERR_USAGE, "mirror %.*s: expected HOST[:PORT][/PREFIX] or a folder",
                       STR_ARG(mirror));
    }
    ret_ref->tag = s->spec->ref.tag;
    ret_ref->has_digest = s->spec->ref.has_digest;
    memcpy(ret_ref->sha256, s->spec->ref.sha256, SHA256_BYTES);
    return 0;
}

static int try_mirror(struct image_search *s, struct err *err)
{
    struct oci_ref ref;
    const char *mirror = s->places->mirror;
    if (!mirror || s->is_found) {
        return 0;
    }
    if (!fs_is_dir(mirror)) {
        return mirror_ref(s, &ref, err) < 0 ? -1 : try_place(s, &ref, NULL, err);
    }
    const char *below = fs_join(s->arena, mirror, s->spec->name);
    if (!fs_exists(below)) {
        below = arena_printf(s->arena, "%s.tar", below);
    }
    return fs_exists(below) ? try_place(s, NULL, below, err) : 0;
}

static int search(struct image_search *s, struct err *err)
{
    const struct image_places *places = s->places;
    const struct image_spec *spec = s->spec;
    bool has_place = spec->ref.tag.ptr || spec->ref.has_digest || spec->pins.has_digest;
    if (places->registry && has_place &&
        (check_drift(s->arena, places->registry, spec, err) < 0 ||
         try_place(s, &spec->ref, NULL, err) < 0)) {
        return -1;
    }
    if (try_mirror(s, err) < 0 ||
        (spec->has_fallback && try_place(s, &spec->fallback, NULL, err) < 0)) {
        return -1;
    }
    for (size_t idx = 0; idx < places->n_layouts; idx++) {
        if (try_place(s, NULL, places->layouts[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int nowhere(const struct image_search *s, struct err *err)
{
    const struct image_spec *spec = s->spec;
    enum err_code code = s->n_tried ? s->first.code : ERR_FETCH;
    const char *word = s->n_tried ? word_for(code) : "not in the store, and no place may be asked";
    if (s->corrupt.code != ERR_NONE) {
        *err = s->corrupt;
        return err_wrap(err, "image %s: corrupt where it is", spec->name);
    }
    const char *tried = s->n_tried == 1 ? s->first.msg : s->tried->ptr; /* its own words */
    (void)!err_set(err, code == ERR_NOT_FOUND ? ERR_FETCH : code, "image %s is %s%s%s", spec->name,
                   word, s->n_tried ? ": " : "", s->n_tried ? tried : "");
    if (spec->replacement.ptr && (code == ERR_NOT_FOUND || s->n_tried == 0)) {
        size_t len = strlen(err->msg);
        snprintf(err->msg + len, sizeof(err->msg) - len, "; what then: %.*s",
                 STR_ARG(spec->replacement));
    }
    return -1;
}

/* ---- all ---- */

/* Complete by its sizes; image_verify reads the bytes. */
static bool is_there(struct arena *arena, const struct store *store, const struct image_spec *spec,
                     struct image_info *ret_info)
{
    struct err why = {0};
    if (image_open(arena, store, spec->name, ret_info, &why) < 0) {
        if (why.code != ERR_NOT_FOUND) {
            log_line(LOG_WARN, "%s: fetching it again", why.msg);
        }
        return false;
    }
    bool is_whole = image_check_pins(&spec->pins, &ret_info->pins, spec->name, ERR_IGNORED) == 0 &&
                    image_has_blob(store, &ret_info->manifest.config);
    for (size_t idx = 0; is_whole && idx < ret_info->manifest.n_layers; idx++) {
        is_whole = image_has_blob(store, &ret_info->manifest.layers[idx]);
    }
    return is_whole;
}

static int fetch(struct image_search *s, struct err *err)
{
    struct image_info *info = &s->fetched.info;
    if (search(s, err) < 0) {
        return -1;
    }
    if (!s->is_found) {
        return nowhere(s, err);
    }
    info->name = s->spec->name;
    info->reference = str_of(oci_ref_text(s->arena, &s->spec->ref));
    return image_keep(s->arena, s->store, info, s->places->clock, err);
}

int image_fetch(struct arena *arena, struct store *store, const struct image_spec *spec,
                const struct image_places *places, struct image_fetched *ret_fetched,
                struct err *err)
{
    CLEANUP(strbuf) struct strbuf tried = STRBUF(ERR_MSG_MAX);
    struct image_search s = {
        .arena = arena, .store = store, .spec = spec, .places = places, .tried = &tried};
    s.fetched.was_there = is_there(arena, store, spec, &s.fetched.info);
    if (!s.fetched.was_there && fetch(&s, err) < 0) {
        return -1;
    }
    *ret_fetched = s.fetched;
    return 0;
}
