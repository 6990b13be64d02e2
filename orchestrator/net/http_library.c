/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl, opened when it is needed. */
#include "base/base.h"

#include "net/http_impl.h"

#define CURL_DISABLE_TYPECHECK /* it makes macros of functions; the callers have it */
#include <curl/curl.h>
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

#include "base/library.h"

#define FUNCTIONS(X)                                                                               \
    X(OWN, CURLcode, curl_easy_setopt, (), ())                                                     \
    X(OWN, CURLcode, curl_easy_getinfo, (), ())                                                    \
    X(OWN, CURLMcode, curl_multi_setopt, (), ())                                                   \
    X(VALUE, CURLcode, curl_global_init, (long flags), (flags))                                    \
    X(VOID, void, curl_global_cleanup, (void), ())                                                 \
    X(VALUE, curl_version_info_data *, curl_version_info, (CURLversion age), (age))                \
    X(VALUE, CURL *, curl_easy_init, (void), ())                                                   \
    X(VOID, void, curl_easy_cleanup, (CURL * easy), (easy))                                        \
    X(VALUE, const char *, curl_easy_strerror, (CURLcode code), (code))                            \
    X(VALUE, CURLHcode, curl_easy_header,                                                          \
      (CURL * easy, const char *name, size_t idx, unsigned origin, int request,                    \
       struct curl_header **header),                                                               \
      (easy, name, idx, origin, request, header))                                                  \
    X(VALUE, CURLM *, curl_multi_init, (void), ())                                                 \
    X(VALUE, CURLMcode, curl_multi_cleanup, (CURLM * multi), (multi))                              \
    X(VALUE, CURLMcode, curl_multi_add_handle, (CURLM * multi, CURL * easy), (multi, easy))        \
    X(VALUE, CURLMcode, curl_multi_remove_handle, (CURLM * multi, CURL * easy), (multi, easy))     \
    X(VALUE, CURLMsg *, curl_multi_info_read, (CURLM * multi, int *n_left), (multi, n_left))       \
    X(VALUE, CURLMcode, curl_multi_socket_action,                                                  \
      (CURLM * multi, curl_socket_t fd, int events, int *n_running),                               \
      (multi, fd, events, n_running))                                                              \
    X(VALUE, const char *, curl_multi_strerror, (CURLMcode code), (code))                          \
    X(VALUE, struct curl_slist *, curl_slist_append, (struct curl_slist * list, const char *text), \
      (list, text))                                                                                \
    X(VOID, void, curl_slist_free_all, (struct curl_slist * list), (list))                         \
    X(VALUE, CURLU *, curl_url, (void), ())                                                        \
    X(VOID, void, curl_url_cleanup, (CURLU * url), (url))                                          \
    X(VALUE, CURLUcode, curl_url_get, (CURLU * url, CURLUPart what, char **part, unsigned flags),  \
      (url, what, part, flags))                                                                    \
    X(VALUE, CURLUcode, curl_url_set,                                                              \
      (CURLU * url, CURLUPart what, const char *part, unsigned flags), (url, what, part, flags))   \
    X(VOID, void, curl_free, (void *text), (text))

LIBRARY_DEFINE("libcurl.so.4", FUNCTIONS)

int http_library_open(struct err *err)
{
    return library_open(&LIBRARY, err);
}

/* What follows an option has the type that its number tells; pointers to functions have the bits of others. Source: curl/curl.h, CURLOPTTYPE_*. */
#define PASS_OPTION(ret_code, call, handle, option)                                                \
    do {                                                                                           \
        va_list list;                                                                              \
        va_start(list, option);                                                                    \
        if ((int)(option) < CURLOPTTYPE_OBJECTPOINT) {                                             \
            (ret_code) = (call)(handle, option, va_arg(list, long));                               \
        } else if ((int)(option) >= CURLOPTTYPE_OFF_T && (int)(option) < CURLOPTTYPE_BLOB) {       \
            (ret_code) = (call)(handle, option, va_arg(list, curl_off_t));                         \
        } else {                                                                                   \
            (ret_code) = (call)(handle, option, va_arg(list, void *));                             \
        }                                                                                          \
        va_end(list);                                                                              \
    } while (0)

LIBRARY_HIDDEN CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    CURLcode code;
    PASS_OPTION(code, LIBRARY_CALL(curl_easy_setopt), easy, option);
    return code;
}

LIBRARY_HIDDEN CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
    CURLMcode code;
    PASS_OPTION(code, LIBRARY_CALL(curl_multi_setopt), multi, option);
    return code;
}

LIBRARY_HIDDEN CURLcode curl_easy_getinfo(CURL *easy, CURLINFO what, ...)
{
    va_list list;
    CURLcode code;
    va_start(list, what);
    code = LIBRARY_CALL(curl_easy_getinfo)(easy, what, va_arg(list, void *));
    va_end(list);
    return code;
}
