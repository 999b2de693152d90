#ifndef LOCKSTEP_C_Curl_H
#define LOCKSTEP_C_Curl_H
#include <curl/curl.h>

// curl_easy_setopt, curl_easy_getinfo and curl_multi_setopt are variadic, which Swift can't call.
// One function for each kind of argument, so that no caller can pass the wrong one by accident of promotion.

typedef size_t (*lockstep_curl_data_function)(char *bytes, size_t size, size_t count, void *context);
typedef int (*lockstep_curl_prereq_function)(void *context, char *remote_ip, char *local_ip, int remote_port,
                                             int local_port);

CURLcode lockstep_curl_set_long(CURL *easy, CURLoption option, long value);
CURLcode lockstep_curl_set_offset(CURL *easy, CURLoption option, curl_off_t value);
CURLcode lockstep_curl_set_string(CURL *easy, CURLoption option, const char *value);
CURLcode lockstep_curl_set_pointer(CURL *easy, CURLoption option, const void *value);
CURLcode lockstep_curl_set_list(CURL *easy, CURLoption option, struct curl_slist *value);
CURLcode lockstep_curl_set_data_function(CURL *easy, CURLoption option, lockstep_curl_data_function value);
CURLcode lockstep_curl_set_prereq_function(CURL *easy, lockstep_curl_prereq_function value);

CURLcode lockstep_curl_get_long(CURL *easy, CURLINFO info, long *value);
CURLcode lockstep_curl_get_offset(CURL *easy, CURLINFO info, curl_off_t *value);
CURLcode lockstep_curl_get_pointer(CURL *easy, CURLINFO info, void **value);

CURLMcode lockstep_curl_multi_set_long(CURLM *multi, CURLMoption option, long value);

// curl_version_info of the version that this was compiled with; the macro for that is not one that Swift sees.
const curl_version_info_data *lockstep_curl_version(void);

// The name of the calling thread, at most 15 bytes, for who looks at a running process.
void lockstep_curl_name_thread(const char *name);

// The message's union, whose member Swift would have to reach through an anonymous type.
CURLcode lockstep_curl_message_result(const CURLMsg *message);

// What libcurl would only find out at the first handshake, or ask a terminal about: 0 when the files are as they
// should be, otherwise one of the numbers below.
enum lockstep_curl_pem {
  LOCKSTEP_CURL_PEM_GOOD = 0,
  LOCKSTEP_CURL_PEM_NO_CERTIFICATE = 1,
  LOCKSTEP_CURL_PEM_NO_KEY = 2,
  LOCKSTEP_CURL_PEM_MISMATCH = 3,
};
int lockstep_curl_check_certificates(const void *pem, int length);
int lockstep_curl_check_pair(const void *certificate, int certificate_length, const void *key, int key_length);
#endif
