#ifndef LOCKSTEP_C_Microhttpd_H
#define LOCKSTEP_C_Microhttpd_H
#include <microhttpd.h>
#include <stdint.h>
#include <sys/socket.h>

// What a daemon is started with. A struct, because MHD_start_daemon is variadic, which Swift can't call.
struct lockstep_mhd_settings {
    int listening_socket;
    unsigned int connection_limit;
    unsigned int threads;
    size_t connection_memory_bytes;
    void *context;
    MHD_AccessHandlerCallback on_request;
    MHD_RequestCompletedCallback on_completed;
    MHD_NotifyConnectionCallback on_connection;
    void *(*on_target)(void *context, const char *target, struct MHD_Connection *connection);
    void (*on_refusal)(void *socket_context, unsigned int status);
};

// MHD_start_daemon with one poll thread (or several) and with suspending allowed; NULL if it can't start.
struct MHD_Daemon *lockstep_mhd_start(const struct lockstep_mhd_settings *settings);

// MHD_queue_response. What calls MHD_queue_response by that name is the library itself, which answers malformed
// requests without asking: with pages of HTML, and in 0.9.75 with two answers to a bad Content-Length. It has no hook
// for that, so the name is taken by a function here that calls on_refusal and makes the library close the connection.
enum MHD_Result lockstep_mhd_queue_response(
    struct MHD_Connection *connection, unsigned int status, struct MHD_Response *response);

// MHD_get_connection_info is variadic too.
void *lockstep_mhd_socket_context(struct MHD_Connection *connection);
int lockstep_mhd_socket(struct MHD_Connection *connection);
const struct sockaddr *lockstep_mhd_client_address(struct MHD_Connection *connection);
size_t lockstep_mhd_header_bytes(struct MHD_Connection *connection);

// How many bytes of payload the peer has sent over the life of the TCP connection; -1 if the kernel doesn't tell.
int64_t lockstep_tcp_bytes_received(int socket);

// How many bytes of payload the peer has acknowledged over the life of the TCP connection; -1 if the kernel doesn't tell.
int64_t lockstep_tcp_bytes_acknowledged(int socket);
#endif
