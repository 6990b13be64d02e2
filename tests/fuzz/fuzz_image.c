/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a JPEG or PNG file: refused with a message, or decoded to exactly the size that was announced, whole, smaller and as a
   label map; the same header is found where only the beginning of the file is there. */
#include "tests/fuzz/fuzz.h"

#include "prep/pixels.h"

#define PIXELS_MAX 65536u /* larger ones only have their header read: memory and time */
#define SHORT_SIDE 9

/* Guarded by the sanitizer on both sides. */
static void decode(struct str file, const struct pixel_info *info, int64_t short_side)
{
    CLEANUP(image_decoder) struct image_decoder decoder = IMAGE_DECODER_EMPTY;
    struct err err = {0};
    uint32_t width = 0, height = 0;
    image_packed_size(info, short_side, &width, &height);
    ASSERT(width >= 1 && height >= 1 && width <= info->width && height <= info->height);
    uint8_t *pixels = xmalloc((size_t)width * height * IMAGE_RGB);
    for (int round = 0; round < 2; round++) { /* a decoder that has failed is used again */
        err = (struct err){0};
        if (image_decode_rgb(&decoder, file, info, short_side, pixels, &err) < 0) {
            ASSERT(err.code == ERR_INTEGRITY && err.msg[0] != '\0');
        }
    }
    free(pixels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str file = {(const char *)data, size};
    struct pixel_info info = {0}, head_info = {0};
    struct err err = {0};
    if (image_probe(file, true, "fuzz", &info, &err) < 0) {
        ASSERT(err.code == ERR_INTEGRITY && err.msg[0] != '\0');
        return 0;
    }
    if (image_probe(str_sub(file, 0, size / 2), false, "fuzz", &head_info, &err) == 0) {
        ASSERT(memcmp(&info, &head_info, sizeof(info)) == 0);
    }
    if ((uint64_t)info.width * info.height > PIXELS_MAX) {
        return 0;
    }
    decode(file, &info, -1);
    decode(file, &info, SHORT_SIDE);
    uint8_t *labels = xmalloc((size_t)info.width * info.height);
    err = (struct err){0};
    if (image_decode_labels(file, &info, labels, &err) < 0) {
        ASSERT(err.code == ERR_INTEGRITY && err.msg[0] != '\0');
    }
    free(labels);
    return 0;
}
