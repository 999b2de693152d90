#include "CCurl.h"
#include <sys/prctl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

CURLcode lockstep_curl_set_long(CURL *easy, CURLoption option, long value) {
  return curl_easy_setopt(easy, option, value);
}

CURLcode lockstep_curl_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
  return curl_easy_setopt(easy, option, value);
}

CURLcode lockstep_curl_set_string(CURL *easy, CURLoption option, const char *value) {
  return curl_easy_setopt(easy, option, value);
}

CURLcode lockstep_curl_set_pointer(CURL *easy, CURLoption option, const void *value) {
  return curl_easy_setopt(easy, option, value);
}

CURLcode lockstep_curl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
  return curl_easy_setopt(easy, option, value);
}

CURLcode lockstep_curl_set_data_function(CURL *easy, CURLoption option, lockstep_curl_data_function value) {
  return curl_easy_setopt(easy, option, value);
}

CURLcode lockstep_curl_set_prereq_function(CURL *easy, lockstep_curl_prereq_function value) {
  return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, value);
}

CURLcode lockstep_curl_get_long(CURL *easy, CURLINFO info, long *value) {
  return curl_easy_getinfo(easy, info, value);
}

CURLcode lockstep_curl_get_offset(CURL *easy, CURLINFO info, curl_off_t *value) {
  return curl_easy_getinfo(easy, info, value);
}

CURLcode lockstep_curl_get_pointer(CURL *easy, CURLINFO info, void **value) {
  return curl_easy_getinfo(easy, info, value);
}

CURLMcode lockstep_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}

const curl_version_info_data *lockstep_curl_version(void) { return curl_version_info(CURLVERSION_NOW); }

void lockstep_curl_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

CURLcode lockstep_curl_message_result(const CURLMsg *message) { return message->data.result; }

// An encrypted key is refused: the default would ask for its passphrase on the terminal, in the middle of a handshake.
static int no_passphrase(char *buffer, int size, int writing, void *context) {
  (void)buffer, (void)size, (void)writing, (void)context;
  return -1;
}

static X509 *first_certificate(const void *pem, int length) {
  BIO *bio = BIO_new_mem_buf(pem, length);
  X509 *certificate = bio ? PEM_read_bio_X509(bio, NULL, no_passphrase, NULL) : NULL;
  BIO_free(bio);
  return certificate;
}

int lockstep_curl_check_certificates(const void *pem, int length) {
  X509 *certificate = first_certificate(pem, length);
  int found = certificate != NULL;
  X509_free(certificate);
  ERR_clear_error();
  return found ? LOCKSTEP_CURL_PEM_GOOD : LOCKSTEP_CURL_PEM_NO_CERTIFICATE;
}

int lockstep_curl_check_pair(const void *certificate, int certificate_length, const void *key, int key_length) {
  X509 *leaf = first_certificate(certificate, certificate_length);
  BIO *bio = BIO_new_mem_buf(key, key_length);
  EVP_PKEY *private_key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
  int result = LOCKSTEP_CURL_PEM_GOOD;
  if (!leaf) {
    result = LOCKSTEP_CURL_PEM_NO_CERTIFICATE;
  } else if (!private_key) {
    result = LOCKSTEP_CURL_PEM_NO_KEY;
  } else if (X509_check_private_key(leaf, private_key) != 1) {
    result = LOCKSTEP_CURL_PEM_MISMATCH;
  }
  X509_free(leaf);
  EVP_PKEY_free(private_key);
  BIO_free(bio);
  ERR_clear_error();
  return result;
}
