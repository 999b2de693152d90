#ifndef LOCKSTEP_C_Postgres_H
#define LOCKSTEP_C_Postgres_H
#include <postgresql/libpq-fe.h>
#endif
