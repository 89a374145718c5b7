/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The programs behind the tail call. The fast path holds what every packet of
 * a known connection needs; whatever is rarer lives here, where the stack and
 * the instruction cache of the fast path do not pay for it. The rules are in one
 * of them alone, for the verifier's sake: what turns out to need them goes on
 * there. The one that captures goes the entry program's way; else no program
 * behind a tail call calls another.
 */
#ifndef WEIR_HOOK_TAIL_H
#define WEIR_HOOK_TAIL_H

enum tail {
	TAIL_MISS,     /* no state: sanity, implicit passes, rules, route, NAT, creation;
			* or one with sides that keep none: their rules		       */
	TAIL_ERROR,    /* ICMP errors: the state is that of the quoted packet	       */
	TAIL_FRAGMENT, /* fragments but the first: the state is that of the first      */
	TAIL_SLOW,     /* a state, but: SYN, next hop to look up, side that keeps none */
	TAIL_CAPTURE,  /* entered from the entry program: the whole way, watched       */
	TAIL_COUNT,
};

#endif
