/* SPDX-License-Identifier: Apache-2.0 */
/* A registry's answers, and names that people type. The first byte selects the reader of the rest. An accepted name comes back
   the same; a manifest stays within its limits; a login is read or refused with a message. */
#include "codec/oci.h"
#include "codec/oci_ref.h"
#include "tests/fuzz/fuzz.h"

static void read_name(struct arena *arena, struct str text)
{
    struct oci_ref ref, again;
    struct err err = {0};
    char *whole;
    if (oci_ref_parse(arena, text, &ref, &err) < 0) {
        ASSERT(err.code == ERR_USAGE && err.msg[0]);
        return;
    }
    whole = oci_ref_text(arena, &ref);
    ASSERT(oci_ref_parse(arena, str_of(whole), &again, &err) == 0);
    ASSERT(strcmp(oci_ref_text(arena, &again), whole) == 0);
    ASSERT(str_find(ref.path, STR_LIT("..")) < 0 && ref.path.ptr[0] != '/');
    (void)oci_host_is_loopback(ref.host);
}

static void read_manifest(struct arena *arena, struct str text)
{
    const struct oci_descriptor *entry;
    struct oci_manifest manifest;
    struct err err = {0};
    if (oci_manifest_parse(arena, text, "fuzz", &manifest, &err) < 0) {
        ASSERT(err.code == ERR_PARSE && err.msg[0]);
        return;
    }
    ASSERT(manifest.n_layers <= OCI_LAYERS_MAX && manifest.n_manifests <= OCI_PLATFORMS_MAX);
    ASSERT(oci_manifest_bytes(&manifest) <= (OCI_LAYERS_MAX + 1) * OCI_LAYER_BYTES_MAX);
    if (oci_choose_platform(&manifest, "fuzz", &entry, &err) == 0) {
        ASSERT(str_eq_z(entry->platform.os, "linux"));
    }
}

static void read_config(struct arena *arena, struct str text)
{
    uint8_t(*diff_ids)[SHA256_BYTES];
    struct err err = {0};
    if (oci_config_parse(arena, text, 1, "fuzz", &diff_ids, &err) < 0) {
        ASSERT(err.code == ERR_PARSE && err.msg[0]);
    }
}

static void read_secrets(struct arena *arena, struct str text)
{
    struct oci_login login;
    struct err err = {0};
    const struct oci_ref ref = {.host = STR_LIT("docker.io"), .path = STR_LIT("library/a")};
    if (oci_login_find(arena, text, "fuzz", &ref, &login, &err) == 0) {
        ASSERT(!login.user.ptr == !login.password.ptr);
    }
}

FUZZ_READERS(read_name, read_manifest, read_config, read_secrets)
