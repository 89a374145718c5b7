/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * How a packet is normalised: packet.scrub from its state and its rules, and the MSS of
 * SYNs. The header itself is changed when the packet goes on (packet/scrub_header.h).
 * docs/packet-path.md, 16.
 *
 * Cost when no rule says scrub: the byte of the state that priorities test, and a word of
 * the packet where its TTL is changed.
 */
#ifndef WEIR_PATH_SCRUB_H
#define WEIR_PATH_SCRUB_H

#include "packet/rewrite.h"
#include "packet/scrub_header.h"
#include "packet/tcp_option.h"
#include "packet/tcp_stamp.h"
#include "path/scratch.h"
#include "state/state_scrub.h"
#include "verifier.h"

/* Sets packet.scrub. Whether the TTL ends here is asked after it was raised. */
static __always_inline void scrub_set(struct packet *p, __u32 word)
{
	p->scrub = word;
	if (p->ttl < SCRUB_ENTERS(word))
		p->ttl = SCRUB_ENTERS(word);
}

/* Sets packet.scrub from the packet's state. */
static __always_inline void scrub_set_state(struct packet *p, const struct state *st, __u32 number)
{
	if (st->qos & KEPT_SCRUB)
		scrub_set(p, state_scrub(st, number));
}

/* Returns what either of two words asks for, with the larger TTLs, and the type of service
 * of b, which comes later. */
static __always_inline __u32 scrub_join(__u32 a, __u32 b)
{
	return scrub_raised(((a | b) & (SCRUB_NO_DF | SCRUB_RANDOM_ID)) | (a & SCRUB_TTLS(0xff, 0xff)), b) | scrub_tos_then(a, b);
}

/* Returns the word for flags, and the type of service that goes with them. */
static __always_inline __u32 scrub_word(__u8 flags, __u8 tos)
{
	return (flags & (SCRUB_NO_DF | SCRUB_RANDOM_ID)) | (flags & SCRUB_TOS ? SCRUB_SET_TOS(tos) : 0);
}

/* Whether the rules of a crossing were evaluated for the packet and normalise it. */
static __always_inline int scrub_is_asked(const struct crossing *cr)
{
	return cr->evaluated && (cr->scrub | cr->min_ttl | cr->max_mss | cr->listed.flags | cr->listed.min_ttl |
				 cr->listed.max_mss);
}

/* Returns what the rules of a crossing ask for, without the TTLs. */
__noinline __u32 scrub_words(const struct crossing *cr)
{
	return cr ? scrub_join(scrub_word(cr->listed.flags, cr->listed.set_tos), scrub_word(cr->scrub, cr->set_tos)) : 0;
}

/* Returns the larger TTL of a crossing's rules. */
static __always_inline __u32 scrub_ttl_of(const struct crossing *cr)
{
	return cr->min_ttl < cr->listed.min_ttl ? cr->listed.min_ttl : cr->min_ttl;
}

/* Returns packet.scrub by the in crossing, if it was evaluated for the packet. */
static __always_inline __u32 scrub_by_in(const struct scratch *s)
{
	const struct crossing *cr = &s->in;

	return scrub_is_asked(cr) ? scrub_words(cr) | SCRUB_TTLS(scrub_ttl_of(cr), 0) : 0;
}

/* The same by the out crossing. */
static __always_inline __u32 scrub_by_out(const struct scratch *s)
{
	const struct crossing *cr = &s->out;

	return scrub_is_asked(cr) ? scrub_words(cr) | SCRUB_TTLS(0, scrub_ttl_of(cr)) : 0;
}

/* Returns packet.scrub for the crossings that were evaluated for a packet. */
static __always_inline __u32 scrub_evaluated(const struct scratch *s)
{
	return scrub_join(scrub_by_in(s), scrub_by_out(s));
}

/* Returns the type of service that the rules on the way out see: the way in may have set
 * it. As in struct packet, IPv6's has no bits of congestion. */
static __always_inline __u8 scrub_tos_seen(const struct packet *p, __u32 word)
{
	if (!(word & SCRUB_TOS))
		return p->tos;
	return p->family == 6 ? SCRUB_TOS_OF(word) & ~IP_ECN : SCRUB_TOS_OF(word) | (p->tos & IP_ECN);
}

/* Lowers the MSS that a SYN offers to mss. < 0: the frame is gone, which cannot happen. */
__noinline int scrub_mss(hook_ctx *ctx, struct scratch *s, __u32 mss)
{
	struct tcp_option_walk w = { .s = s, .mss = mss };
	__u32 length = tcp_option_run(ctx, &w);
	struct headers h;

	if (!s || !w.diff || !length || length > TCP_MAX_OPTIONS)
		return 0;
	if (hook_store(ctx, s->packet.l4_offset + sizeof(struct tcphdr), s->options, length) ||
	    headers_reload(&h, &s->packet, hook_data(ctx), hook_data_end(ctx)) || !header_tcp(&h))
		return -1;
	rewrite_csum(ctx, h.l4, s->packet.l4_offset, CSUM_AT_TCP, 0, csum_fold(w.diff), 0);
	return 0;
}

/* Gives the timestamps of a segment the offsets of its state. They are read once more, because a
 * program may have had the packet since it was tracked. < 0: the frame is gone. */
__noinline int scrub_stamps(hook_ctx *ctx, struct scratch *s, __u32 number)
{
	struct normal_way *own, *other;
	__u32 value, echo;
	struct state *st;
	struct normal *n;

	if (!s)
		return -1;
	st = state_get(STATE_INDEX(number));
	n = st ? normal_get(st, STATE_INDEX(number)) : 0;
	if (!n || s->packet.tuple.proto != IPPROTO_TCP || s->packet.fragment == FRAGMENT_LATER || s->then == SLOW_LEFT)
		return 0;
	stamp_read(ctx, s);
	if (s->stamp.count != 1)
		return 0;
	own = normal_way(n, STATE_DIRECTION(number));
	other = normal_way(n, !STATE_DIRECTION(number));
	value = s->stamp.value;
	echo = normal_echo(other, s->stamp.echo);
	if (value && own->flags & NORMAL_STAMPED)
		value += own->offset;
	return stamp_write(ctx, s, value, echo);
}

/* Clears the FIN of a SYN. < 0: the frame is gone. */
__noinline int scrub_fin(hook_ctx *ctx, struct scratch *s)
{
	struct headers h;
	__be16 *flags, old;

	if (!s || headers_reload(&h, &s->packet, hook_data(ctx), hook_data_end(ctx)) || !header_tcp(&h))
		return -1;
	flags = (__be16 *)h.l4 + 6; /* with the length of the header */
	old = *flags;
	*flags &= ~bpf_htons(TCP_FIN);
	rewrite_csum(ctx, h.l4, s->packet.l4_offset, CSUM_AT_TCP, 0, csum_fold(csum_word_diff(old, *flags)), 0);
	return 0;
}

/* scrub_packet() if the state or a crossing asks for anything. */
__noinline int scrub_asked(hook_ctx *ctx, struct scratch *s, __u32 number)
{
	const struct state *st;
	volatile __u32 *word;
	__u16 mss = 0;

	if (!s)
		return -1;
	/* in memory, where the verifier forgets how a word came about: else it would follow
	 * all ways of one for all ways of the others */
	word = &s->packet.scrub;
	*word = scrub_by_in(s);
	st = number ? state_get(STATE_INDEX(number)) : 0;
	if (st) {
		*word = scrub_join(*word, state_scrub(st, number));
		mss = state_max_mss(st, STATE_DIRECTION(number));
	}
	*word = scrub_join(*word, scrub_by_out(s));
	scrub_set(&s->packet, *word);
	if (reread(s->in.evaluated))
		mss = scrub_least(scrub_least(mss, s->in.max_mss), s->in.listed.max_mss);
	if (reread(s->out.evaluated))
		mss = scrub_least(scrub_least(mss, s->out.max_mss), s->out.listed.max_mss);
	if (mss && scrub_mss(ctx, s, mss))
		return -1;
	return st && normal_is(st) ? scrub_stamps(ctx, s, number) : 0;
}

/*
 * Sets packet.scrub of the packet in the scratch from its state, whose number is 0 if it
 * has none, and from the crossings that were evaluated for it. A crossing with a state of
 * its own has its values in the state, too. Lowers the MSS of a SYN, and clears its FIN. < 0:
 * the frame is gone.
 */
static __always_inline int scrub_packet(hook_ctx *ctx, struct scratch *s, const struct state *st, __u32 number)
{
	s->packet.scrub = 0;
	if (s->packet.flags & PACKET_FIN && scrub_fin(ctx, s))
		return -1;
	if (!(st && st->qos & KEPT_SCRUB) && !scrub_is_asked(&s->in) && !scrub_is_asked(&s->out))
		return 0;
	return scrub_asked(ctx, s, st ? number : 0);
}

/* Changes the header of a packet that goes up to the stack. < 0: the frame is gone. */
__noinline int scrub_up(hook_ctx *ctx, const struct packet *p)
{
	struct headers h;

	if (!p || headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return -1;
	scrub_header(&h, p, SCRUB_AT_UP);
	return 0;
}

/* The same for one that leaves the box. */
__noinline int scrub_out(hook_ctx *ctx, const struct packet *p)
{
	struct headers h;

	if (!p || headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return -1;
	scrub_header(&h, p, SCRUB_AT_OUT);
	return 0;
}

#endif
