/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The programs behind the tail call. The fast path has what every packet of a known
 * connection needs. Everything rarer is here, so that the fast path pays for it neither
 * in stack nor in instruction cache. Only one program has the rules, because they cost
 * the verifier much time. Packets of the error and slow programs that turn out to need
 * them take a second tail call, to miss. The capturing program has the entry program's
 * path in it, with its tail calls. If rules ask for users or groups, one program more runs
 * in front of the rules: path/owner.h. If rules translate to the other address family, there
 * is one for the packets that they translate, and likewise for what programs write that
 * divert-packet gives packets to. If there are ether rules, one more has the entry program's path
 * in it. There are no others.
 */
#ifndef WEIR_HOOK_TAIL_H
#define WEIR_HOOK_TAIL_H

enum tail {
	TAIL_MISS,     /* no state: sanity, implicit passes, rules, route, NAT, creation;
			* or one with sides that keep none: their rules		       */
	TAIL_ERROR,    /* ICMP errors: the state is that of the quoted packet	       */
	TAIL_FRAGMENT, /* late fragments: the state is that of the first fragment */
	TAIL_SLOW,     /* there is a state, but: SYN, next hop to look up, side that keeps none */
	TAIL_CAPTURE,  /* entered from the entry program: the whole path, with capture */
	TAIL_FAMILY,   /* packets of states with sides of two address families: path/af_to.h */
	TAIL_PROGRAM,  /* what a program of divert-packet has written: path/divert_packet.h */
	TAIL_ETHER,    /* entered from the entry program, as TAIL_CAPTURE: frames that meet ether rules */
	TAIL_RULES,    /* if rules ask for users or groups, TAIL_MISS is the program that looks
			* up the packet's socket, and this is the one with the rules	       */
	TAIL_COUNT,
};

#endif
