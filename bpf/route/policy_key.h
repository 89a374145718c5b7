/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a search for an IPsec policy compares (path/policy.h). */
#ifndef WEIR_ROUTE_POLICY_KEY_H
#define WEIR_ROUTE_POLICY_KEY_H

#include <linux/bpf.h>

#include "packet/tuple.h"

/* shared.policies; 0: no policy selects anything. */
#define POLICY_ALL    0x01 /* they are not known: the stack forwards everything */
#define POLICY_SECOND 0x02 /* the second table is in force, else the first */
#define POLICY_LIST   0x10 /* list 0 is not empty; shifted by its number the others */

/* Lists of a table: direction << 1, and 1 for IPv6. */
#define POLICY_LISTS  4

/* As the kernel's directions. */
enum policy_direction {
	POLICY_FORWARD, /* may it be forwarded as it came in */
	POLICY_OUT,	/* how it leaves */
};

enum policy_verdict {
	POLICY_CLEAR,  /* no policy selects the packet, or one that lets it pass as it is */
	POLICY_STACK,  /* only the stack knows: it may leave in clear */
	POLICY_SECRET, /* a policy blocks it or has it encrypted: it never leaves in clear */
	POLICY_HELD,   /* likewise, but the kernel does not know that: the policy has gone */
};

struct policy_key {
	struct addr src;
	struct addr dst;
	__be16 sport;
	__be16 dport;
	__u32 mark;
	__u32 ifindex; /* where the packet leaves */
	__u8 proto;
	__u8 list; /* of either table */
	__u8 shape;
	__u8 portless; /* 1: for packets whose ports are not known; the entry's are 0 */
};
_Static_assert(sizeof(struct policy_key) == 48, "masked as six words");

/* The shapes of one direction and address family. */
struct policy_list {
	__u32 count;
	__u32 otherwise; /* enum policy_verdict: of what no policy selects */
	__u32 pad[2];
	struct policy_key shape[POLICY_SHAPES]; /* the bits that it tests; list and shape are 0 */
};

/* A search. The stack is too small for it. */
struct policy_search {
	struct policy_key packet;
	struct policy_key key;
	struct tuple tuple; /* that is searched for */
	struct bpf_xfrm_state opened; /* of a packet that has been decrypted; not used */
	__u32 list;
	__u32 known; /* the packet's ports are */
	__u32 found; /* priority is that of a policy */
	__u32 priority;
	__u32 verdict; /* enum policy_verdict */
	__u32 doubted; /* a policy selects it with some ports, which are not known */
	__u32 doubt;   /* the least priority of such */
};

#endif
