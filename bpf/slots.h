/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The programs behind the tail call. The hit program holds what every packet of
 * a known connection needs; whatever is rarer lives here, where the stack and
 * the instruction cache of the hit path do not pay for it. One level deep:
 * no program behind a slot calls another, but for ICMP errors about nothing
 * known, which go on as ordinary misses, and for the one that captures, which
 * goes the entry program's way.
 */
#ifndef WEIR_SLOTS_H
#define WEIR_SLOTS_H

enum slot {
	SLOT_MISS,     /* no state: sanity, implicit passes, rules, route, NAT, creation */
	SLOT_ERROR,    /* ICMP errors: the state is that of the quoted packet	       */
	SLOT_FRAGMENT, /* fragments but the first: the state is that of the first      */
	SLOT_TURN,     /* a state, but: SYN, next hop to look up, crossing to judge    */
	SLOT_CAPTURE,  /* entered from the entry program: the whole way, watched       */
	SLOT_COUNT,
};

#endif
