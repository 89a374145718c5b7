/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Flows are numbered, and the number determines the flow. The address and port at the
 * far end contain the number, so any frame seen there identifies its flow.
 * flow.go has the same code in Go.
 */
#ifndef WEIR_BENCH_FLOW_H
#define WEIR_BENCH_FLOW_H

#include <linux/types.h>

#define FLOW_BITS	  24
#define FLOW_MASK	  ((1u << FLOW_BITS) - 1)
#define FLOW_SCATTER	  0x9e3779u /* odd: a bijection of FLOW_BITS bits	     */
#define FLOW_GATHER	  0xb382c9u /* its inverse: the product is 1 mod 2^FLOW_BITS */
#define TARGET_BITS	  12	    /* 4,096 hosts at the far end		     */
#define TARGET_MASK	  ((1u << TARGET_BITS) - 1)
#define SOURCE_MASK	  63u	    /* 64 hosts at the near end			     */
#define FIRST_PORT	  1024
#define SOURCE_PORT_MASK  0x7fff
#define PORTS_IN_ORDER	  64000 /* flows of one pair of addresses, if they are in order */

/* Flows in order: numbers that follow each other have ports that follow each other, and
 * PORTS_IN_ORDER of them have the same addresses. Without it the number is scattered. */
const volatile __u8 in_order;

struct flow {
	__u32 source; /* numbers of the hosts, added to their network */
	__u32 target;
	__u16 source_port; /* host order */
	__u16 target_port;
};

/* What the far end saw of a flow: where its answers go. */
struct answer {
	__u32 addr; /* the lowest 32 bits, host order */
	__u16 port; /* host order */
	__u8 out;   /* which of its frames was the last at the far end; 0: none */
	__u8 back;  /* which was the last at the near end */
};

static __always_inline struct flow flow_of(__u32 number)
{
	__u32 scattered = (number * FLOW_SCATTER) & FLOW_MASK;
	__u32 hash = scattered * 0x9e3779b1u;

	if (in_order)
		return (struct flow){
			.source = 0,
			.target = number / PORTS_IN_ORDER,
			.source_port = FIRST_PORT + (number & SOURCE_PORT_MASK),
			.target_port = FIRST_PORT + number % PORTS_IN_ORDER,
		};
	return (struct flow){
		.source = hash >> 26,
		.target = scattered & TARGET_MASK,
		.source_port = FIRST_PORT + ((hash >> 8) & SOURCE_PORT_MASK),
		.target_port = FIRST_PORT + (scattered >> TARGET_BITS),
	};
}

/* Returns the number of the flow with that far end, or any number if there is none. */
static __always_inline __u32 flow_number(__u32 target, __u16 target_port)
{
	__u32 scattered;

	if (in_order)
		return ((target & TARGET_MASK) * PORTS_IN_ORDER + (__u16)(target_port - FIRST_PORT)) & FLOW_MASK;
	scattered = (target & TARGET_MASK) | ((__u32)(target_port - FIRST_PORT) << TARGET_BITS);

	return (scattered * FLOW_GATHER) & FLOW_MASK;
}

#endif
