/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The form of endpoint-independent mappings: state/endpoint.h. */
#ifndef WEIR_STATE_ENDPOINT_KEY_H
#define WEIR_STATE_ENDPOINT_KEY_H

#include "packet/addr.h"

struct endpoint_key {
	struct addr addr;
	__be16 port;
	__u16 zone;    /* as in a tuple */
	__u32 outside; /* ENDPOINT_* */
};

#define ENDPOINT_OUTSIDE 1 /* addr and port are what the source's become */
#define ENDPOINT_OTHER	 2 /* not outside: that is of the other address family (af-to) */

struct endpoint {
	struct addr addr; /* what the source's address and port become */
	__be16 port;	  /* 0: it is being chosen */
	__u16 pad0;
	__u32 states;	  /* that have it, and ENDPOINT_GONE; only of the source's entry */
};

#define ENDPOINT_GONE 0x80000000u /* the mapping has ended: its entries are being removed */

/* What a rule asks for: crossing.endpoint. */
enum endpoint_rule {
	ENDPOINT_ANY = 1, /* a mapping to one of the pool's addresses */
	ENDPOINT_ONE,	  /* the pool has one address: a mapping to another is out of date */
};

/* How the state that is being made gets its address and port. */
enum endpoint_stage {
	ENDPOINT_NOT,	/* as other translations do */
	ENDPOINT_FIRST,	/* it chooses them for its source */
	ENDPOINT_KNOWN, /* its source has them */
};

/* The work on the state that is being made: the stack is nearly used up. */
struct endpoint_work {
	struct endpoint_key source;
	struct endpoint_key outside;
	struct endpoint value;
	__u32 stage; /* enum endpoint_stage; not ENDPOINT_NOT: one state more is counted */
};

#endif
