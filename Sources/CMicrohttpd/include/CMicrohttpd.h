#ifndef LOCKSTEP_C_Microhttpd_H
#define LOCKSTEP_C_Microhttpd_H
#include <microhttpd.h>
#endif
