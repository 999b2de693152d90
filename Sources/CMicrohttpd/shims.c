#define _GNU_SOURCE
#include "CMicrohttpd.h"
#include <dlfcn.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static enum MHD_Result (*queue_response)(struct MHD_Connection *, unsigned int, struct MHD_Response *);
static _Atomic(void (*)(void *, unsigned int)) on_refusal;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_queue_response(void) { *(void **)&queue_response = dlsym(RTLD_NEXT, "MHD_queue_response"); }

enum MHD_Result lockstep_mhd_queue_response(
    struct MHD_Connection *connection, unsigned int status, struct MHD_Response *response) {
    return queue_response(connection, status, response);
}

enum MHD_Result MHD_queue_response(
    struct MHD_Connection *connection, unsigned int status, struct MHD_Response *response) {
    (void)response;
    on_refusal(lockstep_mhd_socket_context(connection), status);
    return MHD_NO;
}

// Paths and queries are handed on as they came; the library's default would decode them in place.
static size_t leave_escaped(void *context, struct MHD_Connection *connection, char *text) {
    (void)context;
    (void)connection;
    return strlen(text);
}

struct MHD_Daemon *lockstep_mhd_start(const struct lockstep_mhd_settings *settings) {
    pthread_once(&once, find_queue_response);
    if (queue_response == NULL) return NULL;
    on_refusal = settings->on_refusal;
    struct MHD_OptionItem pool[] = {
        {MHD_OPTION_END, 0, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    if (settings->threads > 1) {
        pool[0].option = MHD_OPTION_THREAD_POOL_SIZE;
        pool[0].value = (intptr_t)settings->threads;
    }
    // poll, not epoll: 0.9.75 with epoll loses connections that are resumed right after they were suspended.
    return MHD_start_daemon(
        MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC, 0, NULL, NULL, settings->on_request,
        settings->context, MHD_OPTION_LISTEN_SOCKET, settings->listening_socket, MHD_OPTION_CONNECTION_LIMIT,
        settings->connection_limit, MHD_OPTION_CONNECTION_MEMORY_LIMIT, settings->connection_memory_bytes,
        MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)1024, MHD_OPTION_NOTIFY_COMPLETED, settings->on_completed,
        settings->context, MHD_OPTION_NOTIFY_CONNECTION, settings->on_connection, settings->context,
        MHD_OPTION_URI_LOG_CALLBACK, settings->on_target, settings->context, MHD_OPTION_UNESCAPE_CALLBACK,
        leave_escaped, NULL, MHD_OPTION_ARRAY, pool, MHD_OPTION_END);
}

void *lockstep_mhd_socket_context(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

int lockstep_mhd_socket(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

const struct sockaddr *lockstep_mhd_client_address(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info ? info->client_addr : NULL;
}

size_t lockstep_mhd_header_bytes(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info ? info->header_size : 0;
}

// Older kernels know a shorter struct; both counts came with the same one.
static int tcp_counts(int socket, struct tcp_info *info) {
    socklen_t length = sizeof *info;
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, info, &length) != 0) return -1;
    return length < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info->tcpi_bytes_received ? -1 : 0;
}

int64_t lockstep_tcp_bytes_received(int socket) {
    struct tcp_info info;
    return tcp_counts(socket, &info) == 0 ? (int64_t)info.tcpi_bytes_received : -1;
}

int64_t lockstep_tcp_bytes_acknowledged(int socket) {
    struct tcp_info info;
    return tcp_counts(socket, &info) == 0 ? (int64_t)info.tcpi_bytes_acked : -1;
}
