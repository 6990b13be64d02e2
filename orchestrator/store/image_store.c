/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for an image in one place after the other; the message if it is nowhere. */
#include "base/base.h"

#include "store/image_impl.h"

#include "base/log.h"

#define WHY_MAX 160

/* ---- manifests ---- */

static int parse(struct arena *arena, const char *name, struct image_docs *docs, struct err *err)
{
    return oci_manifest_parse(arena, docs->doc.text, docs->doc.content_type, name, &docs->manifest,
                              err);
}

int image_docs_read(struct arena *arena, const struct image_docs_from *from,
                    const struct oci_descriptor *top, struct image_docs *ret_docs, struct err *err)
{
    struct image_docs docs = {0};
    const struct oci_descriptor *entry;
    if (from->read(from->ctx, top, &docs.doc, err) < 0 ||
        parse(arena, from->name, &docs, err) < 0) {
        return -1;
    }
    docs.top = docs.doc;
    docs.is_list = docs.manifest.is_index;
    if (docs.is_list &&
        oci_choose_platform(&docs.manifest, from->platform, from->name, &entry, err) < 0) {
        err->code = ERR_FETCH; /* it exists, but not for this platform: not gone */
        return -1;
    }
    if (docs.is_list && (from->read(from->ctx, entry, &docs.doc, err) < 0 ||
                         parse(arena, from->name, &docs, err) < 0)) {
        return -1;
    }
    if (docs.manifest.is_index) {
        return err_set(err, ERR_FETCH, "%s: a list of lists is not supported", from->name);
    }
    *ret_docs = docs;
    return 0;
}

struct asking { /* of a registry */
    struct arena *arena;
    const struct registry *registry;
    const struct oci_ref *ref;
};

static int ask(void *ctx, const struct oci_descriptor *entry, struct registry_doc *ret_doc,
               struct err *err)
{
    const struct asking *asking = ctx;
    struct oci_ref ref = *asking->ref;
    if (entry) {
        ref.tag = STR_EMPTY;
        ref.has_digest = true;
        memcpy(ref.sha256, entry->sha256, SHA256_BYTES);
    }
    if (registry_manifest(asking->registry, asking->arena, &ref, ret_doc, err) < 0) {
        return -1;
    }
    return !entry || ret_doc->text.len == entry->size_bytes
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: its list says %" PRIu64 " bytes, it has %zu",
                         oci_ref_text(asking->arena, &ref), entry->size_bytes, ret_doc->text.len);
}

/* The manifests of a reference, its list followed to the platform. No blob is fetched. */
static int image_manifests(struct arena *arena, const struct registry *registry,
                           const struct oci_ref *ref, const struct oci_platform *platform,
                           struct image_docs *ret_docs, struct err *err)
{
    struct asking asking = {arena, registry, ref};
    const struct image_docs_from from = {ask, &asking, oci_ref_text(arena, ref), platform};
    if (image_docs_read(arena, &from, NULL, ret_docs, err) < 0) {
        err->code = err->code == ERR_PARSE ? ERR_FETCH : err->code;
        return -1;
    }
    return 0;
}

static int pin_differs(const char *where, const char *what, const uint8_t *pinned,
                       const uint8_t *found, struct err *err)
{
    return err_set(err, ERR_INTEGRITY, "%s: %s: pinned %s, found %s", where, what,
                   oci_digest_of(pinned).text, oci_digest_of(found).text);
}

int image_check_pins(const struct image_pins *pins, const struct image_docs *docs,
                     const char *where, struct err *err)
{
    /* If the list is lost and the platform's manifest was requested by its own digest, that is not drift. */
    bool is_part = pins->has_manifest && !docs->is_list &&
                   memcmp(pins->manifest, docs->doc.sha256, SHA256_BYTES) == 0;
    if (pins->has_digest && !is_part && memcmp(pins->digest, docs->top.sha256, SHA256_BYTES) != 0) {
        return pin_differs(where, "digest", pins->digest, docs->top.sha256, err);
    }
    if (pins->has_manifest && memcmp(pins->manifest, docs->doc.sha256, SHA256_BYTES) != 0) {
        return pin_differs(where, "manifest", pins->manifest, docs->doc.sha256, err);
    }
    if (pins->has_config && memcmp(pins->config, docs->manifest.config.sha256, SHA256_BYTES) != 0) {
        return pin_differs(where, "config", pins->config, docs->manifest.config.sha256, err);
    }
    return 0;
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
    struct registry_doc doc;
    struct err why = {0};
    tag.has_digest = false;
    if (!spec->pins.has_digest || !spec->ref.tag.ptr) {
        return 0;
    }
    if (registry_manifest(registry, arena, &tag, &doc, &why) == 0) {
        return memcmp(doc.sha256, spec->pins.digest, SHA256_BYTES) == 0
                   ? 0
                   : drift(spec, arena, doc.sha256, err);
    }
    if (why.code == ERR_INTERRUPTED || why.code == ERR_USAGE || why.code == ERR_INTEGRITY) {
        *err = why;
        return -1;
    }
    log_line(LOG_DEBUG, "the tag was not compared: %s", why.msg);
    return 0;
}

int image_resolve(struct arena *arena, const struct registry *registry,
                  const struct image_spec *spec, struct image_docs *ret_docs, struct err *err)
{
    struct image_docs docs;
    if (image_manifests(arena, registry, &spec->ref, &spec->platform, &docs, err) < 0) {
        if (err->code == ERR_NOT_FOUND) {
            err->code = ERR_FETCH;
        }
        return -1;
    }
    if (spec->pins.has_digest && memcmp(docs.top.sha256, spec->pins.digest, SHA256_BYTES) != 0) {
        return drift(spec, arena, docs.top.sha256, err);
    }
    if (image_check_pins(&spec->pins, &docs, spec->name, err) < 0) {
        return -1;
    }
    *ret_docs = docs;
    return 0;
}

/* ---- one place ---- */

struct image_search {
    struct arena *arena;
    struct store *store;
    const struct image_spec *spec;
    const struct image_places *places;
    struct image_docs docs;
    struct registry_got got;
    const char *from;   /* where it was found */
    struct err first;   /* of the origin, or of the first place that was asked */
    struct err corrupt; /* the first that gave other bytes */
    struct strbuf tried;
    size_t n_tried;
};

static int pull(struct image_search *s, const struct oci_ref *ref, struct err *err)
{
    const struct registry *registry = s->places->registry;
    struct oci_ref from = *ref;
    if (image_manifests(s->arena, registry, ref, &s->spec->platform, &s->docs, err) < 0 ||
        image_check_pins(&s->spec->pins, &s->docs, oci_ref_text(s->arena, ref), err) < 0) {
        return -1;
    }
    from.tag = STR_EMPTY;
    from.has_digest = true;
    memcpy(from.sha256, s->docs.top.sha256, SHA256_BYTES);
    s->from = oci_ref_text(s->arena, &from);
    memcpy(from.sha256, s->docs.doc.sha256, SHA256_BYTES);
    return registry_pull(registry, &from, &s->docs.manifest, s->store, &s->got, err);
}

/* By what the lock knows: the list, else the platform's manifest alone; without a lock, by the tag. */
static int pull_pinned(struct image_search *s, const struct oci_ref *place, struct err *err)
{
    const struct image_pins *pins = &s->spec->pins;
    struct oci_ref ref = *place;
    if (pins->has_digest) {
        ref.has_digest = true;
        memcpy(ref.sha256, pins->digest, SHA256_BYTES);
    }
    if (pull(s, &ref, err) == 0) {
        return 0;
    }
    if (err->code != ERR_NOT_FOUND || !pins->has_manifest ||
        memcmp(pins->manifest, pins->digest, SHA256_BYTES) == 0) {
        return -1;
    }
    *err = (struct err){0};
    memcpy(ref.sha256, pins->manifest, SHA256_BYTES);
    return pull(s, &ref, err);
}

/* ---- one after the other ---- */

static const char *word_for(enum err_code code)
{
    static const char *const WORDS[ERR_CODE_COUNT] = {
        [ERR_NOT_FOUND] = "gone",      [ERR_AUTH] = "not allowed",  [ERR_NET] = "unreachable",
        [ERR_TIMEOUT] = "unreachable", [ERR_INTEGRITY] = "corrupt",
    };
    return WORDS[code] ? WORDS[code] : "failed";
}

/* Whether another place may help: not if the cause is our own disk, the user or an option. */
static bool is_of_the_place(enum err_code code)
{
    return code == ERR_NOT_FOUND || code == ERR_AUTH || code == ERR_NET || code == ERR_TIMEOUT ||
           code == ERR_INTEGRITY || code == ERR_FETCH;
}

static int note(struct image_search *s, const char *place, struct err *why, struct err *err)
{
    if (!is_of_the_place(why->code)) {
        *err = *why;
        return -1;
    }
    log_line(LOG_WARN, "image %s: %s", s->spec->name, why->msg);
    if (s->n_tried++ == 0) {
        s->first = *why;
    }
    if (why->code == ERR_INTEGRITY && s->corrupt.code == ERR_NONE) {
        s->corrupt = *why;
    }
    strbuf_printf(&s->tried, "%s%s: %s", s->tried.len ? "; " : "", place, word_for(why->code));
    return 0;
}

/* -1: an error that ends the search. *ret_done: it is found. */
static int try_registry(struct image_search *s, const struct oci_ref *ref, bool *ret_done,
                        struct err *err)
{
    struct err why = {0};
    *ret_done = pull_pinned(s, ref, &why) == 0;
    return *ret_done ? 0 : note(s, oci_ref_name(s->arena, ref), &why, err);
}

static int try_layout(struct image_search *s, const char *path, bool *ret_done, struct err *err)
{
    struct err why = {0};
    *ret_done = image_from_layout(s->arena, s->store, s->spec, path, &s->docs, &why) == 0;
    s->from = path;
    return *ret_done ? 0 : note(s, path, &why, err);
}

/* [https://]HOST[:PORT][/PREFIX] in front of the image's path. */
static int mirror_ref(struct image_search *s, struct oci_ref *ret_ref, struct err *err)
{
    struct str mirror = str_of(s->places->mirror);
    const struct oci_ref *origin = &s->spec->ref;
    const char *digest = "";
    int64_t scheme = str_find(mirror, STR_LIT("://"));
    if (scheme >= 0) {
        mirror = str_sub(mirror, (size_t)scheme + 3, mirror.len);
    }
    mirror = str_rtrim(mirror, 0, "/");
    if (oci_ref_parse(s->arena,
                      str_printf(s->arena, "%.*s/%.*s%s%.*s%s", STR_ARG(mirror),
                                 STR_ARG(origin->path), origin->tag.ptr ? ":" : "",
                                 STR_ARG(origin->tag), digest),
                      ret_ref, err) < 0) {
        return err_wrap(err, "mirror");
    }
    if (!str_starts(mirror, ret_ref->host)) {
        return err_set(err, ERR_USAGE, "mirror %.*s: expected HOST[:PORT][/PREFIX] or a folder",
                       STR_ARG(mirror));
    }
    ret_ref->has_digest = origin->has_digest;
    memcpy(ret_ref->sha256, origin->sha256, SHA256_BYTES);
    return 0;
}

static int try_mirror(struct image_search *s, bool *ret_done, struct err *err)
{
    struct oci_ref ref;
    const char *mirror = s->places->mirror;
    if (!mirror) {
        return 0;
    }
    if (!fs_is_dir(mirror)) {
        if (!s->places->registry) {
            return 0;
        }
        return mirror_ref(s, &ref, err) < 0 ? -1 : try_registry(s, &ref, ret_done, err);
    }
    const char *below = fs_join(s->arena, mirror, s->spec->name);
    if (!fs_exists(below)) {
        below = arena_printf(s->arena, "%s.tar", below);
    }
    return fs_exists(below) ? try_layout(s, below, ret_done, err) : 0;
}

static int search(struct image_search *s, bool *ret_done, struct err *err)
{
    const struct image_places *places = s->places;
    const struct image_spec *spec = s->spec;
    bool has_place = spec->ref.tag.ptr || spec->ref.has_digest || spec->pins.has_digest;
    *ret_done = false;
    if (places->registry && has_place) {
        if (check_drift(s->arena, places->registry, spec, err) < 0 ||
            try_registry(s, &spec->ref, ret_done, err) < 0) {
            return -1;
        }
    }
    if ((!*ret_done && try_mirror(s, ret_done, err) < 0) ||
        (!*ret_done && places->registry && spec->has_fallback &&
         try_registry(s, &spec->fallback, ret_done, err) < 0)) {
        return -1;
    }
    for (size_t idx = 0; !*ret_done && idx < places->n_layouts; idx++) {
        if (try_layout(s, places->layouts[idx], ret_done, err) < 0) {
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
    if (s->n_tried == 1) {
        *err = s->first; /* its own words */
    }
    if (s->corrupt.code != ERR_NONE) {
        *err = s->corrupt;
        return err_wrap(err, "image %s: corrupt where it is", spec->name);
    }
    if (s->n_tried == 1) {
        err->code = code == ERR_NOT_FOUND ? ERR_FETCH : code;
        (void)!err_wrap(err, "image %s is %s", spec->name, word);
    } else {
        (void)!err_set(err, code == ERR_NOT_FOUND ? ERR_FETCH : code, "image %s is %s%s%s",
                       spec->name, word, s->tried.len ? ": " : "", s->tried.ptr);
    }
    if (spec->replacement.ptr && (code == ERR_NOT_FOUND || s->n_tried == 0)) {
        size_t len = strlen(err->msg);
        snprintf(err->msg + len, sizeof(err->msg) - len, "; what then: %.*s",
                 STR_ARG(spec->replacement));
    }
    return -1;
}

/* ---- all ---- */

static bool is_as_pinned(const struct image_pins *pins, const struct image_info *info)
{
    if (pins->has_config) { /* the same image, whatever its layers are packed with */
        return memcmp(pins->config, info->pins.config, SHA256_BYTES) == 0;
    }
    return !pins->has_digest || memcmp(pins->digest, info->pins.digest, SHA256_BYTES) == 0 ||
           memcmp(pins->digest, info->pins.manifest, SHA256_BYTES) == 0;
}

static bool has_blob(const struct store *store, const struct oci_descriptor *blob)
{
    uint64_t size_bytes;
    return store_has(store, blob->sha256, &size_bytes) && size_bytes == blob->size_bytes;
}

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
    if (!is_as_pinned(&spec->pins, ret_info) || !has_blob(store, &ret_info->manifest.config)) {
        return false;
    }
    for (size_t idx = 0; idx < ret_info->manifest.n_layers; idx++) {
        if (!has_blob(store, &ret_info->manifest.layers[idx])) {
            return false;
        }
    }
    return true;
}

static int fetch(struct image_search *s, struct image_fetched *ret_fetched, struct err *err)
{
    bool is_done;
    if (search(s, &is_done, err) < 0) {
        return -1;
    }
    if (!is_done) {
        return nowhere(s, err);
    }
    if (image_keep(s->store, s->spec, &s->docs, s->from, s->places->clock, err) < 0) {
        return -1;
    }
    ret_fetched->got = s->got;
    ret_fetched->was_there = false;
    return image_open(s->arena, s->store, s->spec->name, &ret_fetched->info, err);
}

int image_fetch(struct arena *arena, struct store *store, const struct image_spec *spec,
                const struct image_places *places, struct image_fetched *ret_fetched,
                struct err *err)
{
    struct image_search s = {.arena = arena, .store = store, .spec = spec, .places = places};
    struct image_fetched fetched = {.was_there = true};
    int result = 0;
    if (!is_there(arena, store, spec, &fetched.info)) {
        strbuf_init(&s.tried, WHY_MAX + ERR_MSG_MAX);
        result = fetch(&s, &fetched, err);
        strbuf_release(&s.tried);
    }
    if (result == 0) {
        *ret_fetched = fetched;
    }
    return result;
}
