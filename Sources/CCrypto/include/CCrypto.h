#ifndef LOCKSTEP_C_CRYPTO_H
#define LOCKSTEP_C_CRYPTO_H
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#endif
