/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A compiled ruleset in memory. All of these maps belong to one generation.
 * internal/fw/ruleset makes their contents, and internal/fw/dataplane writes them before
 * the programs run. Only counters, turns and pools change afterwards, and the contents
 * of tables (rules/table.h). docs/rules.md has the idea and the measurements.
 *
 * A rule's conditions are cut into fields. For each field, the packet's value is looked
 * up in a tree, which returns a class. A class is a vector with one bit for each rule
 * whose condition such values meet. The rules that match are those whose bit is in the
 * vectors of all fields.
 */
#ifndef WEIR_RULES_RULESET_H
#define WEIR_RULES_RULESET_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "config.h"
#include "packet/packet.h"

/* Vectors are cut into chunks of one cache line. A block is the set of chunks that one
 * bit of a class covers: one, or in large rulesets two or more (rule_set.block_shift). */
#define CHUNK_WORDS 8
#define CHUNK_RULES (64 * CHUNK_WORDS)

/* What a rule asks for, and the key under which a packet's value is looked up:
 * interface:	direction << 31 | ifindex
 * protocol:	(family == 6) << 24 | protocol << 16 | detail, which is
 *		tree_flags_key() of TCP flags, type << 8 | code of ICMP, else 0;
 *		of a frame ETHER_KEY | EtherType
 * addresses:	IPv4: the address. IPv6: its upper 64 bits, and where these do
 *		not decide its lower 64 bits in another tree
 * ports:	TCP and UDP: the port; others: NO_PORT
 * tables:	as addresses, in the trees of rules/table.h. They lead to the set of
 *		tables that the address is in; each field has a class for each set
 * Numbers are in host order. The most telling fields stand first. */
enum field {
	FIELD_DST,
	FIELD_DPORT,
	FIELD_SRC,
	FIELD_PROTOCOL,
	FIELD_INTERFACE,
	FIELD_SPORT,
	FIELD_DST_TABLES,
	FIELD_SRC_TABLES,
	FIELD_COUNT,
};
#define FIELD_TREES FIELD_DST_TABLES /* fields before it have trees of their own */

/* Fields that few rules ask for. Their vectors are not intersected: each visited rule that
 * asks looks at its own bit (rules/late.h). Keys: the numbers of the user and the group
 * whose socket the packet belongs to, or NOBODY; the index of the interface that the
 * packet came in by, or 0 if the box sends it; the number of the fingerprint of a SYN, 0
 * if it has none, or NO_SYSTEM. */
enum late {
	LATE_USER,
	LATE_GROUP,
	LATE_RECEIVED,
	LATE_SYSTEM,
	LATE_COUNT,
};

#define NOBODY ~0u /* the packet belongs to no socket of the box */

#define NO_SYSTEM ~0u /* the packet is not TCP */

#define NO_PORT 65536

#define ETHER_KEY (1 << 26)

/* Indices of trees. Trees of lower halves of IPv6 addresses begin at TREE_FIRST_LOW. */
enum tree {
	TREE_DST4 = FIELD_DST,
	TREE_DPORT = FIELD_DPORT,
	TREE_SRC4 = FIELD_SRC,
	TREE_PROTOCOL = FIELD_PROTOCOL,
	TREE_INTERFACE = FIELD_INTERFACE,
	TREE_SPORT = FIELD_SPORT,
	TREE_DST6,
	TREE_SRC6,
	TREE_LATE, /* LATE_COUNT trees */
	TREE_FIRST_LOW = TREE_LATE + LATE_COUNT,
};

/* A cache line of a search tree (rules/search.h). */
struct tree_line {
	__u64 word[8];
};

#define NODE_KEYS   8
#define TREE_LEVELS 8 /* 9^8 nodes */

/* A search tree: its lines begin at rule_lines[first]. In a tree without nodes, all
 * numbers have the value first. A value is the index of a class, or SPAN_TREE and the
 * index of a tree. */
struct rule_tree {
	__u32 first;
	__u32 nodes;
};

#define SPAN_TREE 0x80000000u

/* A chunk: 512 bits of a vector. */
struct rule_bits {
	__u64 word[CHUNK_WORDS];
};

/*
 * A class of a field's values. Chunk c of its vector is rule_bits[common + c], the chunk
 * of the vector that most values of the field have. If the bit of its block is set in
 * differs, it is the exclusive-or of that chunk and one of the chunks at own: those of
 * all blocks in differs, in order. So what 10,000 classes have in common is stored once.
 */
struct rule_class {
	__u64 filled;  /* blocks with any bit set			*/
	__u64 full;    /* blocks with the bits of all rules set	*/
	__u64 differs; /* blocks that are not those of common		*/
	__u32 common;
	__u32 own;
};

/*
 * What exists once, and where to find all that is replaced under traffic. The rule set
 * is replaced whole, in one word (rule_sets), and then has another epoch: results and
 * classes of one epoch are void in another.
 *
 * There are two kinds of rules. A plain pass or block rule matters only if it is the
 * last to match. The others (quick, match, tag, tagged, those in quick anchors) are
 * stations: each that matches is visited, in order. The rules of FreeBSD's translation lists are stations before all
 * others, and lead past the rest of their list. The first of all are the ether rules, which
 * frames meet, and packets do not (path/ether.h).
 */
struct rule_set {
	__u64 stations; /* blocks with any station			*/
	__u64 plains;	/* blocks with any plain rule			*/
	__u64 tables4;	/* the trees of tables: first line | nodes << 32; */
	__u64 tables6;	/* without nodes the set of all addresses	*/
	__u64 asked;	/* evaluations before this set */
	__u32 stations_at; /* their vectors: rule_bits[stations_at + c]	*/
	__u32 plains_at;
	__u32 rules;	/* number of rules				*/
	__u32 none;	/* index into rule_counters: no rule		*/
	__u32 order_at;	/* rule n is rules[rule_order[order_at + n].index] */
	__u32 trees_at;	/* its trees: rule_trees[trees_at + enum tree]	*/
	__u32 dst_tables_at; /* class of the empty set of tables; the others follow */
	__u32 src_tables_at;
	__u32 tables_at; /* the first line of the trees of tables */
	__u32 changes;	/* index into table_changes + 1; 0: nothing has changed */
	__u32 epoch;	/* 1 to MAX_EPOCH				*/
	__u8 asks_tables; /* 1 << FIELD_*_TABLES - FIELD_TREES: a rule tests it */
	__u8 block_shift; /* log2 of the chunks in a block */
	__u8 asks_mark;	  /* a rule tests the mark */
	__u8 pad0;
	__u16 asks_more;  /* ASKS_MORE, ASKS_PRIO, and the FACT_*, ASKS_LATE and ASKS_LOG_USER of rules */
	__u8 ether_tables; /* an ether rule tests tables */
	__u8 no_implicit;  /* set implicit-pass no (rules/implicit.h) */
	__u32 scrubs; /* the first rule behind FreeBSD's list of scrub rules; 0: there are none */
	__u32 ethers; /* the first rules: the ether rules */
	__u32 all; /* a class with the bits of all rules; valid iff there are ether rules */
	__u32 fingerprints; /* how many there are, if a rule asks for a system */
};

#define EPOCH_BITS 28
#define MAX_EPOCH ((1 << EPOCH_BITS) - 1)

/* Bits of rule.flags. */
#define RULE_BLOCK	   0x01
#define RULE_MATCH	   0x02
#define RULE_QUICK	   0x04
#define RULE_KEEP_STATE	   0x08
#define RULE_ALLOW_OPTIONS 0x10
#define RULE_NOT_TAGGED	   0x20 /* tagged matches any tag but this */
#define RULE_STATIC_PORT   0x40
#define RULE_LOG	   0x80
#define RULE_LOG_ALL	   0x100 /* with RULE_LOG				*/
#define RULE_RETURN_RST	   0x200 /* block: a reset for TCP */
#define RULE_RETURN_ICMP   0x400 /* "unreachable" for all else */
#define RULE_NOT_MARKED	   0x800 /* marked matches any mark but this */
#define RULE_COUNTS	   0x1000 /* it names a table with counters: it is in table_rules */
#define RULE_LEADS	   0x2000 /* match: the rule evaluated next is rule_order.next */
#define RULE_SILENT	   0x4000 /* match: it counts no packets, because it is not a user's */
#define RULE_ASKS_MORE	   0x8000 /* it has one of the conditions from facts to late */

/* Bits of rule.more. */
#define RULE_MORE_BOUND 0x01 /* its states are bound to the interface (state/bound.h) */
#define RULE_MORE_ONCE	0x02 /* after its first packet it matches no more (state/limit_map.h) */
#define RULE_MORE_RATED 0x08 /* max-pkt-rate (state/limit_map.h) */
#define RULE_MORE_ENDS	0x10 /* pass, block: if it matches, the evaluation ends before rule_order.next */
#define RULE_MORE_LOG	0x04 /* match: all later rules that match are logged, too */
#define RULE_MORE_ENDPOINT 0x20 /* nat-to: endpoint-independent (state/endpoint.h) */
#define RULE_MORE_LIMITED 0x40 /* it has a limiter (state/limiter.h) */
#define RULE_MORE_MACS	0x80 /* an ether rule: it has conditions in mac */

/* Bits of rule.limiter_blocks: what the limiter refuses is dropped. */
#define RULE_STATE_BLOCKS  0x01
#define RULE_SOURCE_BLOCKS 0x02

/* The actions of a rule whose fields match. Ports are in host order. */
struct rule {
	__u16 flags;
	__u16 tag;	/* set on the packet; 0: none			*/
	__u16 tagged;	/* condition on the packet's tag; 0: none */
	__u16 nat_low;	/* range of nat-to; both 0: none */
	__u16 nat_high;
	__u16 rdr_low;	/* range of rdr-to; both 0: the port stays	*/
	__u16 rdr_high;
	__u16 rdr_base; /* the port that becomes rdr_low		*/
	__u32 nat_pool; /* index into pools + 1; 0: no nat-to		*/
	__u32 rdr_pool; /* likewise					*/
	__u8 return_ttl; /* of a reset; 0: REJECT_TTL			*/
	__u8 return_code4; /* of "unreachable"				*/
	__u8 return_code6;
	__u8 prio;   /* priorities of packets: PRIO_*; 0: none */
	__u16 queue; /* the queue that set queue names; 0: none */
	__u16 max_mss; /* of SYNs; 0: none */
	__u32 mark;	   /* set on the packet, of the bits of mark_mask	*/
	__u32 mark_mask;   /* 0: nothing is set				*/
	__u32 marked;	   /* condition on the packet's mark; 0 mask: none */
	__u32 marked_mask;
	__u8 scrub;   /* SCRUB_NO_DF, SCRUB_RANDOM_ID, SCRUB_TOS, SCRUB_PIECES, SCRUB_TCP */
	__u8 min_ttl; /* 0: none */
	__u8 facts;   /* condition: FACT_* that hold, of those in facts_mask */
	__u8 facts_mask;
	__u32 chance;	/* condition: of 2^32 packets, as many match; 0: all */
	__u16 max_size; /* condition on the bytes of the IP packet; 0: any */
	__u16 late;	/* conditions: 1 << (ASKS_LATE_SHIFT + enum late); ASKS_LOG_USER */
	__u16 limit;	/* number of what limits its states (state/limit.h); 0: nothing does */
	__u8 more;	/* RULE_MORE_*: bits that flags has no room for */
	__u8 set_tos;	/* the type of service that packets get, with SCRUB_TOS */
	__u32 route_pool; /* index into pools: the next hops of route, or the socket */
	__u8 route;	/* enum routes */
	__u8 nat_stride; /* map-e-portset, as in struct nat_ports */
	__u8 nat_block;
	__u8 tos;	/* condition on the packet's; 0: any */
	__u8 enters;	/* an anchor: bit + 1 of walk.entered that it sets; 0: none */
	__u8 inside;	/* condition: bit + 1 of walk.entered, of the anchor that it is in; 0: none */
	__u8 asks_prio; /* condition: the packet's priority + 1; 0: any */
	__u8 family;	/* af-to: the family that packets get, 4 or 6; 0: none. nat_pool is from, rdr_pool is to */
	__u32 rtable; /* number of the routing table for the packet + 1; 0: as it is */
	__u8 src_bits;	/* af-to inet6: the old source goes behind so many bits of the new one; 0: nowhere */
	__u8 dst_bits;	/* the same for the destination; without rdr_pool: it is taken out from behind them, or goes behind those of the new source */
	__u8 state_limiter;  /* id; 0: none */
	__u8 source_limiter;
	__u8 limiter_blocks; /* RULE_*_BLOCKS */
	__u8 mac_not;  /* bit 0: the condition on the destination is negated; bit 1: on the source */
	__u16 mac[6];  /* that the addresses of a frame, the destination first, must agree with */
	__u16 mac_mask[6]; /* in these bits */
	__u8 asks_dscp; /* condition: the upper six bits of the packet's tos + 1; 0: any */
	__u8 exported; /* pflow: its states are told to collectors */
	__u16 bridge; /* an ether rule: index of the interface that frames go to; 0: they stay */
	__u8 pad1[6];
};

/* What a rule's next hops are for. */
enum routes {
	ROUTES_NOT,   /* it has none		   */
	ROUTES_TO,    /* packets: route-to	   */
	ROUTES_REPLY, /* their replies: reply-to */
	ROUTES_DIVERT, /* none: the address and, for ifindex, the port of the socket of divert-to */
	ROUTES_DIVERT_REPLY, /* none: replies go to the socket that sends the packets */
	ROUTES_DUP, /* copies of packets: dup-to */
	ROUTES_PROGRAM, /* packets, before they go on: the device of the program of divert-packet */
};

/* What rules can ask about the routes of a packet's addresses (rules/fact.h). */
#define FACT_NO_ROUTE_BACK 0x01 /* there is no route to the source */
#define FACT_NO_ROUTE	   0x02 /* there is no route to the destination */
#define FACT_URPF_FAILED   0x04 /* the route to the source leads to another interface */
#define FACTS		   0x07
#define ASKS_LATE_SHIFT	   3
#define ASKS_LATE	   (((1 << LATE_COUNT) - 1) << ASKS_LATE_SHIFT)
#define ASKS_OWNER	   ((1 << LATE_USER | 1 << LATE_GROUP) << ASKS_LATE_SHIFT)
#define ASKS_LOG_USER	   0x80 /* log (user): no condition */
#define ASKS_MORE	   0x100 /* rule_set.asks_more: a rule has RULE_ASKS_MORE */
#define ASKS_PRIO	   0x200 /* likewise: a rule has asks_prio */

/* The queues that a rule names with set queue: two numbers. The second is for packets
 * that carry no data or ask for a low delay. */
struct queue_pair {
	__u16 queue;
	__u16 ack;
};

struct rule_set_holder {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rule_set);
};

/* The one ruleset of this generation. The daemon replaces it; the kernel's call returns
 * when no packet uses the one before. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct rule_set_holder);
} rule_sets SEC(".maps");

static __always_inline const struct rule_set *rule_set_get(void)
{
	__u32 zero = 0;
	void *holder = bpf_map_lookup_elem(&rule_sets, &zero);

	return holder ? bpf_map_lookup_elem(holder, &zero) : 0;
}

/*
 * A rule's number is its position among the rules, and its bit in the vectors. Its index
 * is its position in rules and rule_counters; its global id is rule_base + index. If
 * rules are replaced under traffic, those that stay keep their index. With it they keep
 * their pools, their counters and their id in states. Others get a new one.
 *
 * These two arrays and those of trees, classes and vectors hold two rule sets: the one
 * in force in one half, and the one before or the next in the other.
 */
struct rule_order {
	__u32 index;
	__u32 next; /* with RULE_LEADS: number of the rule that it leads to, later than its own; with
		     * RULE_MORE_ENDS: of the first rule behind the quick anchor that it is in */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* rules, twice, by the loader */
	__type(key, __u32);
	__type(value, struct rule_order);
} rule_order SEC(".maps");

/* The counts of rules when the set was put in force, by order_at + number. Written by
 * the daemon, read by whoever shows counters. */
struct rule_carried {
	__u64 evaluations;
	__u64 stops; /* of rule_counters */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* rules, twice, by the loader */
	__type(key, __u32);
	__type(value, struct rule_carried);
} rule_carried SEC(".maps");

/* Rules by index. Rules are only added. Read by rules/match.h when a rule matches. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* rules, by the loader */
	__type(key, __u32);
	__type(value, struct rule);
} rules SEC(".maps");

/* Trees by enum tree. Read by rules/match.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* trees, by the loader */
	__type(key, __u32);
	__type(value, struct rule_tree);
} rule_trees SEC(".maps");

/* The lines of all trees. Read by rules/search.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* lines, by the loader */
	__type(key, __u32);
	__type(value, struct tree_line);
} rule_lines SEC(".maps");

/* The classes of all fields. Read by rules/match.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* classes, by the loader */
	__type(key, __u32);
	__type(value, struct rule_class);
} rule_classes SEC(".maps");

/* The chunks of all vectors. Read by rules/match.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* chunks, by the loader */
	__type(key, __u32);
	__type(value, struct rule_bits);
} rule_vectors SEC(".maps");

/*
 * Counters by the rules' index, written by rules/match.h, read by weir rules -v. The
 * evaluations of a rule follow from the stops: all evaluations less the stops at rules
 * before it. stops of [rule_set.none], the last entry, counts evaluations that no rule
 * stopped.
 */
struct rule_counter {
	__u64 stops;  /* evaluations that ended here */
	__u64 states; /* states made with this rule deciding	     */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* rules + 1, by the loader */
	__type(key, __u32);
	__type(value, struct rule_counter);
} rule_counters SEC(".maps");

#endif
