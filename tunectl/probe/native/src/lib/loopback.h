/* Connections within this host, over 127.0.0.1 or VMADDR_CID_LOCAL, and what any socket can be asked. */
#pragma once

enum { LOOPBACK_RECEIVES, LOOPBACK_SENDS, LOOPBACK_ENDS };

/* Return 0 or -errno. What was opened is in `fds` either way, -1 where nothing is. No other process gets between the two. */
int loopback_tcp(int fds[LOOPBACK_ENDS]);
int loopback_udp(int fds[LOOPBACK_ENDS]);

/* vsock(7), as between a host and its guest; within one host the kernel's vsock_loopback (5.6) carries it. */
int loopback_vsock(int fds[LOOPBACK_ENDS]);

/* To a group that nobody joins but this process: what is sent does not leave the host. `group` tells groups apart, below 256. */
int loopback_multicast(int fds[LOOPBACK_ENDS], unsigned group);

/* SO_BUSY_POLL for so long. Returns 0 or -errno. */
int socket_busy_poll(int fd, unsigned us);

/* The id of the NAPI instance (the receive queue of a device) that fed the socket last; 0 when none did. */
unsigned socket_napi_id(int fd);
