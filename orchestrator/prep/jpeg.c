/* SPDX-License-Identifier: Apache-2.0 */
/* Before base.h: a macro of the library's names a call that base/banned.h takes away. */
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>

#include "base/base.h"

#include "prep/jpeg.h"

#include <setjmp.h>

#define ROWS_AT_ONCE 16

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

struct jpeg_decoder {
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr errors;
    jmp_buf on_error;
    struct err *err;
    uint8_t *row; /* owned: one row of CMYK */
    size_t row_bytes;
};

static unsigned be16(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

bool jpeg_is(struct str bytes)
{
    return bytes.len >= 3 && memcmp(bytes.ptr, "\xff\xd8\xff", 3) == 0;
}

/* ---- headers ---- */

/* Orientation of an Exif segment (TIFF, tag 0x0112); 1 where there is none. Source: Exif 2.32, 4.6.4 and 4.6.8. */
static unsigned exif_orientation(const uint8_t *at, size_t len)
{
    size_t ifd;
    if (len < 14 || memcmp(at, "Exif\0\0", 6) != 0) {
        return 1;
    }
    at += 6;
    len -= 6;
    bool is_little = at[0] == 'I';
#define GET16(p) (is_little ? (unsigned)(p)[1] << 8 | (p)[0] : be16(p))
#define GET32(p)                                                                                   \
    (is_little ? (size_t)GET16((p) + 2) << 16 | GET16(p) : (size_t)GET16(p) << 16 | GET16((p) + 2))
    ifd = GET32(at + 4);
    if (ifd > len || len - ifd < 2) {
        return 1;
    }
    for (size_t idx = 0, n = GET16(at + ifd); idx < n; idx++) {
        size_t entry = ifd + 2 + idx * 12;
        if (entry + 12 > len) {
            return 1;
        }
        if (GET16(at + entry) == 0x0112) {
            return GET16(at + entry + 8);
        }
    }
#undef GET16
#undef GET32
    return 1;
}

/* ---- decoding ---- */

static void fail(struct jpeg_decoder *decoder, j_common_ptr cinfo)
{
    char text[JMSG_LENGTH_MAX];
    decoder->errors.format_message(cinfo, text);
    int unused = err_set(decoder->err, ERR_INTEGRITY, "JPEG: %s", text);
    (void)unused; /* the error is in err; the way back is the jump */
    longjmp(decoder->on_error, 1);
}

static void on_error_exit(j_common_ptr cinfo)
{
    fail(cinfo->client_data, cinfo);
}

/* Negative level: a warning. */
static void on_message(j_common_ptr cinfo, int level)
{
    if (level >= 0) {
        return;
    }
    switch (cinfo->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
        cinfo->err->num_warnings++;
        return;
    default:
        fail(cinfo->client_data, cinfo);
    }
}

static void on_output(j_common_ptr cinfo UNUSED)
{
    /* Nothing is printed: what matters is an error. */
}

struct jpeg_decoder *jpeg_decoder_new(void)
{
    struct jpeg_decoder *decoder = xcalloc(1, sizeof(*decoder));
    decoder->cinfo.err = jpeg_std_error(&decoder->errors);
    decoder->errors.error_exit = on_error_exit;
    decoder->errors.emit_message = on_message;
    decoder->errors.output_message = on_output;
    decoder->cinfo.client_data = decoder;
    /* Fails only where the library is of another version than the header, or without memory. */
    struct err err = {0};
    decoder->err = &err;
    if (setjmp(decoder->on_error)) {
        ASSERT(!"jpeg_create_decompress");
    }
    jpeg_create_decompress(&decoder->cinfo);
    decoder->cinfo.client_data = decoder;
    decoder->err = NULL;
    return decoder;
}

void jpeg_decoder_free(struct jpeg_decoder *decoder)
{
    if (decoder) {
        jpeg_destroy_decompress(&decoder->cinfo);
        free(decoder->row);
        free(decoder);
    }
}

static int check_size(const struct jpeg_decompress_struct *cinfo, const char *name, struct err *err)
{
    if (cinfo->image_width > SHARD_SIDE_MAX || cinfo->image_height > SHARD_SIDE_MAX) {
        return err_set(err, ERR_INTEGRITY, "%s: JPEG of %u x %u pixels, expected 1 to %d", name,
                       cinfo->image_width, cinfo->image_height, SHARD_SIDE_MAX);
    }
    return cinfo->num_components == 1 || cinfo->num_components == 3 || cinfo->num_components == 4
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: JPEG of %d components, expected 1, 3 or 4", name,
                         cinfo->num_components);
}

/* All up to the first scan. Bytes that end before are not enough. */
static int read_headers(struct jpeg_decoder *decoder, struct str bytes, struct err *err)
{
    decoder->err = err;
    if (setjmp(decoder->on_error)) {
        return -1;
    }
    jpeg_save_markers(&decoder->cinfo, JPEG_APP0 + 1, UINT16_MAX);
    jpeg_mem_src(&decoder->cinfo, (const unsigned char *)bytes.ptr, (unsigned long)bytes.len);
    (void)jpeg_read_header(&decoder->cinfo, TRUE);
    return 0;
}

int jpeg_probe(struct str bytes, bool is_all, const char *name, struct pixel_info *ret_info,
               struct err *err)
{
    CLEANUP(jpeg_decoder) struct jpeg_decoder *decoder = jpeg_decoder_new();
    const struct jpeg_decompress_struct *cinfo = &decoder->cinfo;
    struct pixel_info info = {.format = IMAGE_JPEG};
    if (read_headers(decoder, bytes, err) < 0) {
        err->code = is_all ? ERR_INTEGRITY : ERR_PARSE;
        return err_wrap(err, "%s", name);
    }
    if (check_size(cinfo, name, err) < 0) {
        return -1;
    }
    info.width = cinfo->image_width;
    info.height = cinfo->image_height;
    info.traits = cinfo->num_components == 1   ? TRAIT_GREY
                  : cinfo->num_components == 4 ? TRAIT_CMYK
                                               : 0;
    for (jpeg_saved_marker_ptr marker = cinfo->marker_list; marker; marker = marker->next) {
        info.traits |= exif_orientation(marker->data, marker->data_length) != 1 ? TRAIT_ROTATED : 0;
    }
    *ret_info = info;
    return 0;
}

/* a*b/255, rounded. */
static uint8_t mul255(unsigned a, unsigned b)
{
    unsigned product = a * b + 128;
    return (uint8_t)((product + (product >> 8)) >> 8);
}

/* Inverted CMYK, as Adobe writes it: 255 is no ink. */
static void cmyk_to_rgb(const uint8_t *cmyk, uint32_t width, uint8_t *rgb)
{
    for (uint32_t x = 0; x < width; x++, cmyk += 4, rgb += 3) {
        for (int channel = 0; channel < 3; channel++) {
            rgb[channel] = mul255(cmyk[channel], cmyk[3]);
        }
    }
}

static void start(struct jpeg_decoder *decoder, struct str file, const struct pixel_info *info,
                  unsigned eighths)
{
    struct jpeg_decompress_struct *cinfo = &decoder->cinfo;
    jpeg_mem_src(cinfo, (const unsigned char *)file.ptr, (unsigned long)file.len);
    (void)jpeg_read_header(cinfo, TRUE);
    cinfo->out_color_space = cinfo->num_components == 4 ? JCS_CMYK : JCS_RGB;
    cinfo->dct_method = JDCT_ISLOW;
    cinfo->do_fancy_upsampling = TRUE;
    cinfo->scale_num = eighths;
    cinfo->scale_denom = 8;
    jpeg_calc_output_dimensions(cinfo);
    if (cinfo->image_width != info->width || cinfo->image_height != info->height ||
        cinfo->output_width != (info->width * eighths + 7) / 8 ||
        cinfo->output_height != (info->height * eighths + 7) / 8) {
        ERREXIT(cinfo, JERR_BAD_DCTSIZE); /* not the image that was looked at */
    }
    (void)jpeg_start_decompress(cinfo);
}

static void read_rows(struct jpeg_decoder *decoder, uint8_t *dst)
{
    struct jpeg_decompress_struct *cinfo = &decoder->cinfo;
    size_t row_bytes = (size_t)cinfo->output_width * IMAGE_RGB;
    while (cinfo->output_scanline < cinfo->output_height) {
        JSAMPROW rows[ROWS_AT_ONCE];
        uint8_t *at = dst + cinfo->output_scanline * row_bytes;
        if (cinfo->out_color_space == JCS_CMYK) {
            rows[0] = decoder->row;
            (void)jpeg_read_scanlines(cinfo, rows, 1);
            cmyk_to_rgb(decoder->row, cinfo->output_width, at);
            continue;
        }
        unsigned left = cinfo->output_height - cinfo->output_scanline;
        unsigned n = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE;
        for (unsigned idx = 0; idx < n; idx++) {
            rows[idx] = at + idx * row_bytes;
        }
        (void)jpeg_read_scanlines(cinfo, rows, n);
    }
    (void)jpeg_finish_decompress(cinfo);
}

int jpeg_decode(struct jpeg_decoder *decoder, struct str file, const struct pixel_info *info,
                unsigned eighths, uint8_t *dst, struct err *err)
{
    ASSERT(eighths >= 1 && eighths <= 8);
    if (file.len == 0) {
        return err_set(err, ERR_INTEGRITY, "JPEG: empty");
    }
    if ((info->traits & TRAIT_CMYK) && decoder->row_bytes < (size_t)info->width * 4) {
        decoder->row_bytes = (size_t)info->width * 4;
        decoder->row = xrealloc(decoder->row, decoder->row_bytes);
    }
    decoder->err = err;
    if (setjmp(decoder->on_error)) {
        jpeg_abort_decompress(&decoder->cinfo);
        decoder->err = NULL;
        return -1;
    }
    start(decoder, file, info, eighths);
    read_rows(decoder, dst);
    decoder->err = NULL;
    return 0;
}

/* ---- encoding ---- */

struct encoder {
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr errors;
    jmp_buf on_error;
    struct err *err;
    unsigned char *bytes;
    unsigned long len;
};

static void on_encode_error(j_common_ptr cinfo)
{
    struct encoder *encoder = cinfo->client_data;
    char text[JMSG_LENGTH_MAX];
    encoder->errors.format_message(cinfo, text);
    int unused = err_set(encoder->err, ERR_INTERNAL, "JPEG encoder: %s", text);
    (void)unused;
    longjmp(encoder->on_error, 1);
}

static void encode(struct encoder *encoder, const struct jpeg_picture *picture)
{
    struct jpeg_compress_struct *cinfo = &encoder->cinfo;
    jpeg_create_compress(cinfo);
    jpeg_mem_dest(cinfo, &encoder->bytes, &encoder->len);
    cinfo->image_width = picture->width;
    cinfo->image_height = picture->height;
    cinfo->input_components = picture->n_channels;
    cinfo->in_color_space = picture->n_channels == 1   ? JCS_GRAYSCALE
                            : picture->n_channels == 4 ? JCS_CMYK
                                                       : JCS_RGB;
    jpeg_set_defaults(cinfo);
    jpeg_set_quality(cinfo, picture->quality, TRUE);
    jpeg_start_compress(cinfo, TRUE);
    while (cinfo->next_scanline < cinfo->image_height) {
        size_t row_bytes = (size_t)picture->width * (size_t)picture->n_channels;
        /* The library's type is not const, and it only reads. */
        JSAMPROW row = (JSAMPROW)(uintptr_t)(picture->pixels + cinfo->next_scanline * row_bytes);
        (void)jpeg_write_scanlines(cinfo, &row, 1);
    }
    jpeg_finish_compress(cinfo);
}

int jpeg_encode(const struct jpeg_picture *picture, uint8_t **ret_bytes, size_t *ret_len,
                struct err *err)
{
    struct encoder *encoder = xcalloc(1, sizeof(*encoder)); /* on the heap: setjmp */
    int result = 0;
    encoder->err = err;
    encoder->cinfo.err = jpeg_std_error(&encoder->errors);
    encoder->errors.error_exit = on_encode_error;
    encoder->cinfo.client_data = encoder;
    if (setjmp(encoder->on_error)) {
        free(encoder->bytes);
        jpeg_destroy_compress(&encoder->cinfo);
        free(encoder);
        return -1;
    }
    encode(encoder, picture);
    jpeg_destroy_compress(&encoder->cinfo);
    *ret_bytes = encoder->bytes;
    *ret_len = encoder->len;
    free(encoder);
    return result;
}

const char *jpeg_library(void)
{
    return "libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION);
}
