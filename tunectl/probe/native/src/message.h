/* What travels from the sender to the receiver. */
#ifndef TUNECTL_MESSAGE_H
#define TUNECTL_MESSAGE_H

#include <stdint.h>

/* Sequence numbers that are no message's: the last one a receiver takes, and one that is sent before measuring begins. */
#define SEQUENCE_END UINT64_MAX
#define SEQUENCE_WARM_UP (UINT64_MAX - 1)

struct message {
    uint64_t sequence;
    uint64_t sent;          /* the sender's counter just before it called send */
    uint64_t far_received;  /* on the other host, in its counter's ticks: just after its receive */
    uint64_t far_sent;      /* and just before it sent the message back; both 0 within one host */
};

#endif
