#ifndef LOCKSTEP_C_Postgres_H
#define LOCKSTEP_C_Postgres_H
#include <postgresql/libpq-fe.h>
#include <sys/eventfd.h>

/* The flags are an enum and macros of themselves, which Swift can't tell apart. Returns -1 on failure. */
static inline int lockstep_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

#endif
