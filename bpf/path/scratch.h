/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the fast path passes to the programs behind the tail call, and what these keep
 * there because the 512-byte stack is too small. One per CPU: packets are handled with
 * bottom halves off, so no packet interrupts another.
 */
#ifndef WEIR_PATH_SCRATCH_H
#define WEIR_PATH_SCRATCH_H

#include <bpf/bpf_helpers.h>

#include "rules/crossing.h"
#include "packet/family_icmp.h"
#include "packet/packet.h"
#include "path/handoff_map.h"
#include "observe/record.h"
#include "queue/queue.h"
#include "route/policy_key.h"
#include "state/endpoint_key.h"
#include "state/limit.h"
#include "state/pool_count.h"
#include "state/state_scrub.h"

/* The packet that an ICMP error quotes. */
#define QUOTE_L4_MAX 20
struct quote {
	struct tuple tuple;
	__u32 l3_offset;
	__u32 l4_offset;
	__u32 l4_length; /* bytes in l4, 8 to QUOTE_L4_MAX */
	__u32 seq;	 /* valid iff proto is TCP			*/
	__u8 icmp_type;
	__u8 pad[3];
	__u8 l3[40];
	__u8 l3_new[40];
	__u8 l4[QUOTE_L4_MAX];
	__u8 l4_new[QUOTE_L4_MAX];
};

/* An ICMP error on its way to the other address family (path/af_to_error.h). */
struct family_error {
	struct family_error_header header;
	struct family_error_header new_header;
	__u32 inner[FAMILY_WORDS]; /* union family_header: of the quoted packet */
	struct family_fragment fragment; /* of the quoted packet, as it comes; of IPv6 */
	__u32 quoted;	    /* bytes of the quoted IP header, as it comes */
	__u32 inner_length; /* of the new one */
	__u32 end;	    /* where what remains of the error ends, from the frame's start */
	__u32 length;	    /* of the packet in its new family */
	int more;	    /* bytes by which what is in front of the quoted L4 header gets longer */
	__u16 size;	    /* of the quoted packet without its IP header, as it says */
	__u8 fragmented;    /* the quoted packet is a first fragment */
	__u8 pad;
};

/* The search for a free port of a translation. */
struct nat_port_search {
	__u32 number; /* of the state that needs it */
	__u32 reason; /* why the last try failed */
	__u16 low;
	__u16 span; /* ports to choose from - 1 */
	__u16 at;   /* which of them is tried next */
	__u8 stride; /* as in struct nat_ports */
	__u8 block;
};

/* The source translation of the last connection that got one with a port. */
struct nat_last {
	struct addr addr;
	__u32 ifindex; /* where the connection came in; 0: there was none yet */
	__u32 family;
};

/* Why a packet of a state comes to the program with the rules. */
enum slow_then {
	SLOW_END,      /* it does not: its state alone decides */
	SLOW_EVALUATE, /* the state has sides that keep none: their rules come next */
	SLOW_ANSWER,   /* it does not fit the handshake, and is answered by a reset */
	SLOW_MADE,     /* TAIL_FAMILY: it has just made its state */
	SLOW_LEFT,     /* TAIL_FAMILY: XDP has left it to TCX, and counted it */
	SLOW_JOINED,   /* TAIL_FAMILY: the rules have let it cross by its state, which is bound elsewhere */
	SLOW_FRAGMENT, /* TAIL_MISS: a fragment that may meet the rules for itself: a scrub rule says so */
};

/* Whose socket a packet belongs to: numbers, or NOBODY. */
struct owner {
	__u32 user;
	__u32 group;
};

/* What ether rules test of a frame. */
struct ether_frame {
	__u32 mac[3];  /* both addresses, in the order of the frame */
	__u32 type;    /* EtherType in host order | direction << 31 */
	__u32 ifindex;
	__u32 epoch;   /* of the rule set */
	struct addr src; /* of an IP packet, else 0 */
	struct addr dst;
} __attribute__((aligned(8)));
_Static_assert(sizeof(struct ether_frame) == 56, "compared as seven words");

struct scratch {
	struct packet packet;	 /* as the fast path parsed it			*/
	__u32 state;		 /* index << 1 | direction; 0: none			*/
	__u32 path;		 /* the rule path to count under if there is no state */
	__u32 out_ifindex;	 /* where it leaves; 0: not known			*/
	__u32 random;		 /* xorshift32; 0: not seeded */
	__u32 why;		 /* enum reason: why the packet passes */
	__u32 blocked;		 /* global id + 1 of the rule that blocked it		*/
	__u32 replaces;		 /* the state that ends if the packet makes one; 0: none */
	__u8 tracked;		 /* this packet has updated the state */
	__u8 then;		 /* enum slow_then */
	__u8 no_nexthop;	 /* enum reason: why nexthop is 0 */
	__u16 nexthop;		 /* found by the route step				*/
	__u16 generation;	 /* of the routes, read before the look-up of nexthop */
	__u32 bridge;		 /* as in struct rule, of the ether rule that has passed the frame */
	__u16 tag;		 /* that ether rules have set; valid on interfaces with INTERFACE_ETHER_IN */
	__u16 reply_nexthop;	 /* that a rule has chosen for replies; 0: none does */
	__u8 chosen;		 /* a rule has chosen nexthop */
	__u8 refused;		 /* enum reason: with GATEWAY_REFUSED (path/gateway.h) */
	__u16 refused_mtu;	 /* likewise */
	__u8 skip_in;		 /* the crossing is under set skip			*/
	__u8 skip_out;
	__u8 quoted_forth;	 /* the quoted packet is as it came in */
	__u8 made;		 /* this packet has made its state */
	__u8 elsewhere;		 /* it would leave at an interface that its state is not bound to */
	__u8 leaves;		 /* records show the packet with s->tuple, not as it came */
	__u8 owned;		 /* owner is valid: its program is loaded */
	__u8 diverted;		 /* enum diverted (path/divert_packet.h) */
	__u8 alone;		 /* with FRAGMENTS_LISTED, of a late fragment: it meets the rules for itself */
	struct out_mark out_mark; /* of the packet, if it has no state */
	struct owner owner;	 /* path/owner.h */
	struct crossing in;
	struct crossing out;
	struct crossing reply;	 /* path/scrub_list.h, as the following */
	struct scrub_way ways[2]; /* by direction */
	struct scrub_listed listed[2]; /* for replies where the state's sides in and out are */
	struct tuple tuple;	 /* the reply tuple, while it is being reserved */
	__u64 reply_hash;	 /* of that tuple, as it was chosen first		*/
	struct limit_entry limit; /* of the state that is being made */
	struct endpoint_work endpoint; /* likewise */
	struct pool_use use;	 /* likewise */
	struct path path_key;
	struct path path_last;	 /* the last one that was looked up, and its index */
	__u32 path_last_index;
	__u8 options[TCP_MAX_OPTIONS + 8]; /* of a segment			*/
	__u32 option_at; /* where the next one is */
	struct stamp stamp; /* of a segment of a state with FLOW_NORMAL */
	struct nat_port_search search;
	struct nat_last nat_last;
	struct quote quote;
	__u32 outer[FAMILY_WORDS]; /* union family_header: that the packet gets */
	struct family_error error;
	struct addr quoter;	 /* source of an ICMP error, translated			*/
	struct tuple handoff;	 /* of the present packet on its way through the stack */
	struct handoff record;	 /* a new one; all but its first record are 0 */
	struct record log;	 /* the head of records of the present crossing */
	__u64 fib[8];		 /* struct bpf_fib_lookup, for path/gateway.h */
	__u64 neighbour[3];	 /* struct bpf_redir_neigh, likewise */
	struct ether_frame frame; /* path/ether.h */
	struct queue_ask ask; /* path/queue_packet.h */
	__u32 waits; /* likewise: the class of the qdisc in which the packet waits on its way to the stack; 0: it does not */
	struct metadata metadata; /* that XDP left; tc.bpf.c */
	struct policy_search policy; /* path/policy.h */
};
_Static_assert(sizeof(struct bpf_fib_lookup) <= 8 * 8 && sizeof(struct bpf_redir_neigh) <= 3 * 8, "their room");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static __always_inline struct scratch *scratch_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

/* Whether scratch.owner counts at a crossing. Where a packet is forwarded out it is nobody's,
 * also if it came in for a socket of the box and was translated. */
static __always_inline int scratch_is_owner(const struct scratch *s, const struct crossing *cr)
{
	return s->owned && (cr->direction == DIRECTION_IN || !cr->received);
}

#endif
