#ifndef LOCKSTEP_C_Curl_H
#define LOCKSTEP_C_Curl_H
#include <curl/curl.h>
#endif
