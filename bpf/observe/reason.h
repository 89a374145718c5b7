/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Why a packet was passed or dropped: the only list. Counters, logs, metrics and the
 * table in docs/packet-path.md are generated from it or tested against it.
 *
 * A line reads: REASON_NAME, then the comment "name: what it means". Reasons up to
 * REASON_LAST_PASS pass the packet on or up, the rest drop it.
 */
#ifndef WEIR_OBSERVE_REASON_H
#define WEIR_OBSERVE_REASON_H

enum reason {
	REASON_STATE,		/* state: belongs to a state and goes on its way */
	REASON_RULE,		/* rule: passed by a rule that this packet met */
	REASON_NO_RULE,		/* no-rule: no rule matched; such packets pass */
	REASON_IMPLICIT,	/* implicit: passed before the rules (ARP, ND, DHCP client, MLD, ...) */
	REASON_SKIP,		/* skip: the interface is under set skip */
	REASON_LOCAL,		/* local: passed to the box itself */
	REASON_OTHER_MAC,	/* other-mac: unicast for another station, left to the stack */
	REASON_UP_NEIGHBOUR,	/* up-neighbour: the stack resolves the next hop's address */
	REASON_UP_TTL,		/* up-ttl: TTL or hop limit is used up; the stack answers */
	REASON_UP_MTU,		/* up-mtu: larger than the next hop's MTU; the stack answers or fragments */
	REASON_UP_OPTIONS,	/* up-options: allowed IP options are processed by the stack */
	REASON_UP_MULTICAST,	/* up-multicast: multicast is routed by the stack */
	REASON_UP_PROBE,	/* up-probe: goes by the stack so that it probes the neighbour */
	REASON_UP_DEVICE,	/* up-device: the next hop's device cannot be reached by this hook */
	REASON_UP_COPY,		/* up-copy: the packet may have to be copied or diverted (dup-to, divert-packet), which XDP cannot do */
	REASON_UP_PROGRAM,	/* up-program: a program has it now (divert-packet), and may write it back */
	REASON_UP_NEXTHOP,	/* up-nexthop: the table of next hops is full; the stack forwards */
	REASON_UP_ROUTE,	/* up-route: no route leads on; the stack answers */
	REASON_UP_MARK,		/* up-mark: the kernel's route look-up knows no marks; the stack routes by them */
	REASON_UP_POLICY,	/* up-policy: an IPsec policy of the box may select it; the stack forwards or encrypts it */
	REASON_MARKED,		/* marked: decided at its ingress already */
	REASON_LAST_PASS = REASON_MARKED,

	REASON_BLOCK,		/* block: blocked by a rule */
	REASON_UNLOADED,	/* unloaded: no ruleset is loaded; only the management port is open */
	REASON_SHORT,		/* short: the frame ends before its headers do */
	REASON_MALFORMED,	/* malformed: header fields contradict each other or the frame */
	REASON_IP_CHECKSUM,	/* ip-checksum: the checksum of the IPv4 header is wrong */
	REASON_TCP_FLAGS,	/* tcp-flags: TCP flags that no connection sends together */
	REASON_MARTIAN_SOURCE,	/* martian-source: such a source address cannot come in here */
	REASON_MARTIAN_DEST,	/* martian-destination: such a destination cannot be forwarded */
	REASON_LAND,		/* land: source and destination are the same */
	REASON_OPTIONS,		/* ip-option: IP options without a rule that allows them */
	REASON_ROUTING_HEADER,	/* routing-header: IPv6 routing header type 0 (RFC 5095) */
	REASON_EXTENSION_CHAIN, /* extension-chain: too many or too long IPv6 extension headers */
	REASON_FRAGMENT_SHORT,	/* fragment-short: a first fragment without the whole L4 header */
	REASON_FRAGMENT_OVERLAP, /* fragment-overlap: a fragment that overlaps an earlier one */
	REASON_FRAGMENT_ORPHAN, /* fragment-orphan: a fragment that came before its first, and could not wait */
	REASON_FRAGMENT_HELD,	/* fragment-held: a fragment waits for its first; it comes again if that passes */
	REASON_FRAGMENT_MEMORY, /* fragment-memory: too many fragmented packets or holes at once */
	REASON_STATE_MISMATCH,	/* state-mismatch: TCP sequence, window or flags, or the interface do not fit the state */
	REASON_MAX_PKT_RATE,	/* max-pkt-rate: a rule of the state has had more packets than it allows */
	REASON_STATE_LIMIT,	/* state-limit: the state table is full */
	REASON_MAX_STATES,	/* max-states: the rule has as many states as its max allows */
	REASON_MAX_SRC_NODES,	/* max-src-nodes: as many sources as the rule allows have states by it */
	REASON_MAX_SRC_STATES,	/* max-src-states: the source has as many states as the rule allows */
	REASON_MAX_SRC_CONN,	/* max-src-conn: the source has opened more connections than the rule allows */
	REASON_MAX_SRC_RATE,	/* max-src-conn-rate: the source has opened connections faster than the rule allows */
	REASON_OVERLOAD,	/* overload: the source is on its way into the rule's overload table */
	REASON_SRC_NODES,	/* src-nodes: the table of sources is full */
	REASON_STATE_BUSY,	/* state-busy: another core changes this connection's entry right now */
	REASON_TUPLE_ERROR,	/* tuple-error: the tuple table refused an entry */
	REASON_TUPLE_TAKEN,	/* tuple-taken: another connection's replies have this tuple */
	REASON_NAT_PORTS,	/* nat-ports: no free port found in the translation's range */
	REASON_NAT_ADDRESS,	/* nat-address: the translation has no address of this family */
	REASON_AF_TO,		/* af-to: nothing in the other address family corresponds to the packet */
	REASON_MARK_TAKEN,	/* mark-taken: no value of the mark is left to tell packets of one tuple apart */
	REASON_ICMP_MISMATCH,	/* icmp-mismatch: an ICMP error about nothing we know */
	REASON_GUARD,		/* guard: forwarded by the stack without having met the rules */
	REASON_HINT_STALE,	/* hint-stale: the state is no longer as its hint said (prefetch) */
	REASON_METADATA,	/* metadata: the driver has no room for XDP's verdict; TCX takes over from now on */
	REASON_GATEWAY,		/* gateway: the gateway that a rule has chosen cannot be reached; the sender is told */
	REASON_GATEWAY_TTL,	/* gateway-ttl: TTL or hop limit is used up on the way to a chosen gateway; the sender is told */
	REASON_GATEWAY_MTU,	/* gateway-mtu: larger than the MTU towards a chosen gateway; the sender is told */
	REASON_DIVERT,		/* divert: no socket or program takes what divert-to or divert-packet gives it */
	REASON_INTERFACE,	/* interface: weir's programs are not attached to the interface */
	REASON_INTERNAL,	/* internal: cannot happen; please report it */
	REASON_STATE_LIMITER,	/* state-limiter: the rule's state limiter has no room, and says block */
	REASON_SOURCE_LIMITER,	/* source-limiter: the rule's source limiter has no room for the source, and says block */
	REASON_QUEUE,		/* queue: the connection's queue is full, or that of another core */
	REASON_POLICY,		/* policy: an IPsec policy of the box forbids that it leaves in clear */
	REASON_BAD_TIMESTAMP,	/* bad-timestamp: TCP timestamps do not fit the connection (reassemble tcp) */
	REASON_COUNT,
};

/* No verdict yet: the next step decides. */
#define UNDECIDED REASON_COUNT

/* Whether a reason drops the packet; UNDECIDED does not. */
static inline int reason_is_drop(enum reason r)
{
	return r > REASON_LAST_PASS && r != UNDECIDED;
}

#endif
