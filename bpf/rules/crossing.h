/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A crossing: one evaluation of the rules, for a packet at one interface in one
 * direction. It has what the rules test and what they decided. It is in the per-CPU
 * scratch (path/scratch.h), because the stack is too small.
 */
#ifndef WEIR_RULES_CROSSING_H
#define WEIR_RULES_CROSSING_H

#include "config.h"
#include "packet/packet.h"
#include "rules/pool.h"
#include "rules/ruleset.h"

enum direction {
	DIRECTION_IN,
	DIRECTION_OUT,
};

enum action {
	ACTION_PASS,
	ACTION_BLOCK,
};

/* Bits of crossing.flags: results. */
#define CROSSING_KEEP_STATE    0x01 /* the deciding rule keeps state			*/
#define CROSSING_ALLOW_OPTIONS 0x02 /* it allows IP options				*/
#define CROSSING_NAT	    0x04 /* all of nat_* are valid				*/
#define CROSSING_NAT_STATIC    0x08 /* static-port					*/
#define CROSSING_RDR	    0x10 /* rdr is valid					*/
#define CROSSING_RDR_PORT	    0x20 /* rdr_port is valid					*/
#define CROSSING_NO_NAT	    0x40 /* a nat-to that applies has no address: drop */
#define CROSSING_COUNTS	    0x80 /* the deciding rule has RULE_COUNTS */
#define CROSSING_NO_RDR	    0x100 /* an rdr-to that applies has no address: drop */
#define CROSSING_BOUND	    0x200 /* the deciding rule's states are bound to the interface */
#define CROSSING_ONCE	    0x400 /* the deciding rule may have only one packet */
#define CROSSING_RATED	    0x800 /* the deciding rule has max-pkt-rate, and keeps state */
#define CROSSING_FAMILY	    0x1000 /* af-to: nat and rdr are of the other address family */
#define CROSSING_EXPORTED	    0x2000 /* the deciding rule has pflow */
#define CROSSING_NO_ADDRESS (CROSSING_NO_NAT | CROSSING_NO_RDR)

/* Rules that log (matches) of an earlier one logs; further ones are not logged. */
#define MAX_FOLLOWED 16

/* Bits of crossing.logs: those of rule.flags, from RULE_LOG on. */
#define CROSSING_LOG     0x01
#define CROSSING_LOG_ALL 0x02

/* The ports that nat-to chooses from, in host order. With a stride they are blocks of
 * 2^block ports, 2^stride apart, of which low begins the first: RFC 7597, 5.1. */
struct nat_ports {
	__u16 low;
	__u16 high;
	__u8 stride; /* 0: all ports from low to high */
	__u8 block;
};

/* What the scrub rule of FreeBSD's list asks for that matched. */
struct scrub_listed {
	__u16 max_mss;
	__u8 min_ttl;
	__u8 flags; /* SCRUB_* */
	__u8 set_tos; /* with SCRUB_TOS */
	__u8 pad0[1];
};

struct crossing {
	/* input: what the rules test; src and dst follow the translations of match rules */
	struct addr src;
	struct addr dst;
	__be16 sport;
	__be16 dport;
	__u32 ifindex;
	__u8 proto;
	__u8 family;	/* 4 or 6 */
	__u8 direction; /* enum direction */
	__u8 tcp_flags;
	__u8 icmp_type;
	__u8 icmp_code;
	__u16 tag; /* input and result; 0: none */
	__u32 mark;	 /* input and result: skb->mark without weir's own bits */
	__u32 mark_keep; /* input: bits that the in crossing has set, which stay */
	__u32 length;	 /* bytes of the IP packet */
	__u8 tos;	 /* as in struct packet */
	__u8 facts;	 /* FACT_*, if a rule asks them */
	__u8 prio_now;	 /* the packet's priority, if a rule asks for it */
	__u8 fragment;	 /* 1: a fragment for itself, without L4 header */
	__u32 received;	 /* index of the interface that it came in by; 0: the box sends it */
	__u32 ether;	 /* of a frame that meets ether rules: ETHER_KEY | EtherType; else 0 */
	__u16 mac[6];	 /* likewise: its addresses, the destination first */
	__u32 late[LATE_COUNT]; /* classes, if a rule asks them */
	__u32 late_common; /* keys of rule_vectors */
	__u32 late_own;
	__u32 key[FIELD_TREES]; /* what the small trees are searched for: here, the verifier knows nothing of it */
	/* The present classes of the fields. known has a bit for each class that has
	 * been looked up, or was copied from the other crossing. */
	__u32 class[FIELD_COUNT];
	__u32 scrubs; /* result: rule_set.scrubs */
	__u32 epoch; /* under which the known classes were found */
	/* the result */
	__u32 mark_mask; /* bits of mark that rules have set here */
	__u32 rule; /* global id of the deciding rule + 1, 0: none matched */
	__u8 action;
	__u8 known;
	__u16 flags;
	/* Global ids + 1 of all rules that matched and count this packet, in order, the
	 * deciding rule last. Match rules beyond MAX_MATCHES - 1 are left out. Pass and
	 * block rules that were overruled do not count. */
	__u32 matched[MAX_MATCHES];
	struct pool_choice nat;
	struct pool_choice rdr;
	struct pool_choice hop; /* the next hop that the deciding rule has chosen, if route is not ROUTES_NOT */
	struct nat_ports nat_ports; /* to choose from; low 0: the default */
	__u32 nat_ifindex; /* the interface that had nat.addr when a daemon last looked; 0: not known */
	__be16 rdr_port;
	__u16 queue; /* the queue that set queue names; 0: none */
	__u16 max_mss; /* scrub (max-mss); 0: none */
	__u8 min_ttl; /* scrub (min-ttl); 0: none */
	__u8 scrub;   /* SCRUB_* of all rules that matched */
	__u8 set_tos; /* of the last rule that sets one, with SCRUB_TOS */
	struct scrub_listed listed; /* for this packet alone, in its own direction */
	__u8 prio;  /* the priorities of set prio, as in struct rule; 0: none */
	__u8 logs;  /* CROSSING_LOG* of all rules that matched */
	__u8 evaluated; /* the rules were evaluated for this packet here */
	__u8 matches;   /* how many of matched[] are valid */
	__u16 limit;	/* of the deciding rule, as in struct rule; 0: none */
	__u16 limiters; /* its state limiter | its source limiter << 8 */
	__u32 rtable;	/* the routing table that the rules name; 0: none */
	__u8 route;	/* enum routes, of the deciding rule */
	__u8 following; /* a rule with log (matches) has matched */
	__u8 followed;	/* how many of follows[] are valid */
	__u8 endpoint;	/* enum endpoint_rule; 0: nat-to without endpoint-independent */
	__u32 follows[MAX_FOLLOWED]; /* global ids + 1 of later rules, which are logged because of it */
};

/* Whether the deciding rule has a next hop for copies, or for the packets on a way of their own. */
static __always_inline int crossing_copies(const struct crossing *cr)
{
	return cr->route == ROUTES_DUP || cr->route == ROUTES_PROGRAM;
}

#endif
