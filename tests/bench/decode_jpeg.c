/* SPDX-License-Identifier: Apache-2.0 */
/* Yardstick of bench_pack.sh: libjpeg-turbo alone. Reads the files of a list (one path a line), takes each COUNT-th from INDEX on,
   decodes each into one buffer, and does nothing else; with OUT it also writes the pixels there, one after the other. Prints how
   many there were and a sum over their last bytes. */
#include <stdio.h>

#include <jpeglib.h>

#include "base/base.h"

#include <fcntl.h>

#include "base/fs.h"

static size_t decode(struct jpeg_decompress_struct *cinfo, struct str file, uint8_t **buf,
                     size_t *size)
{
    size_t row_bytes, n_bytes;
    jpeg_mem_src(cinfo, (const unsigned char *)file.ptr, file.len);
    (void)jpeg_read_header(cinfo, TRUE);
    if (cinfo->num_components == 4) {
        cinfo->out_color_space = JCS_CMYK; /* as it is */
    } else {
        cinfo->out_color_space = JCS_RGB;
    }
    (void)jpeg_start_decompress(cinfo);
    row_bytes = (size_t)cinfo->output_width * (size_t)cinfo->output_components;
    n_bytes = row_bytes * cinfo->output_height;
    if (*size < n_bytes) {
        free(*buf);
        *buf = xmalloc(n_bytes);
        *size = n_bytes;
    }
    while (cinfo->output_scanline < cinfo->output_height) {
        JSAMPROW rows[16];
        JDIMENSION left = cinfo->output_height - cinfo->output_scanline;
        JDIMENSION n = left < ARRAY_LEN(rows) ? left : (JDIMENSION)ARRAY_LEN(rows);
        for (JDIMENSION idx = 0; idx < n; idx++) {
            rows[idx] = *buf + (cinfo->output_scanline + idx) * row_bytes;
        }
        (void)jpeg_read_scanlines(cinfo, rows, n);
    }
    (void)jpeg_finish_decompress(cinfo);
    return n_bytes;
}

int main(int argc, char **argv)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr errors;
    struct err err = {0};
    struct str list, line;
    int64_t index = 0, count = 1;
    uint64_t n = 0, sum = 0;
    uint8_t *buf = NULL;
    size_t size = 0;
    CLEANUP(fd) int fd = -1;
    if ((argc != 4 && argc != 5) || str_to_i64(str_of(argv[2]), 0, 1000, &index, &err) < 0 ||
        str_to_i64(str_of(argv[3]), 1, 1000, &count, &err) < 0 ||
        fs_read(&arena, argv[1], 1u << 30, &list, &err) < 0) {
        fprintf(stderr, "usage: decode_jpeg LIST INDEX COUNT [OUT] %s\n", err.msg);
        return 2;
    }
    if (argc == 5 && (fd = open(argv[4], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) < 0) {
        return 1;
    }
    cinfo.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&cinfo);
    for (int64_t at = 0; str_next(&list, '\n', &line); at++) {
        CLEANUP(arena) struct arena one = ARENA_EMPTY;
        struct str file;
        if (!line.len || at % count != index) {
            continue;
        }
        if (fs_read(&one, str_z(&one, line), 1u << 28, &file, &err) < 0) {
            fprintf(stderr, "%s\n", err.msg);
            return 1;
        }
        size_t n_bytes = decode(&cinfo, file, &buf, &size);
        sum += buf[n_bytes - 1];
        if (fd >= 0 && fs_write_all(fd, buf, n_bytes, argv[4], &err) < 0) {
            fprintf(stderr, "%s\n", err.msg);
            return 1;
        }
        n++;
    }
    jpeg_destroy_decompress(&cinfo);
    free(buf);
    printf("%" PRIu64 " %" PRIu64 "\n", n, sum);
    return 0;
}
