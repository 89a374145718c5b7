/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The translation that a rule asks for: what nat-to or rdr-to puts into the crossing. */
#ifndef WEIR_RULES_TRANSLATE_H
#define WEIR_RULES_TRANSLATE_H

#include <bpf/bpf_endian.h>

#include "rules/crossing.h"
#include "rules/pool.h"
#include "rules/ruleset.h"
#include "rules/tree.h"
#include "state/endpoint_key.h"

/* Returns the new destination port of rdr-to, whose range repeats (pf.conf(5)). */
static __always_inline __be16 translate_rdr_port(const struct rule *r, __be16 dport)
{
	__u16 span = r->rdr_high - r->rdr_low + 1, offset = bpf_ntohs(dport) - r->rdr_base;

	return bpf_htons(r->rdr_low + (span ? offset % span : offset));
}

/* Whether the rule translates. A rule with a translation has a direction. */
static __always_inline int translate_asked(const struct rule *r)
{
	return r->nat_pool || r->rdr_pool;
}

static __always_inline void translate_nat(struct crossing *cr, const struct rule *r)
{
	cr->flags &= ~(CROSSING_NAT | CROSSING_NAT_STATIC | CROSSING_NO_NAT);
	if (pool_take(r->nat_pool - 1, cr->family, &cr->src, &cr->src, &cr->nat)) {
		cr->flags |= CROSSING_NO_NAT;
		return;
	}
	cr->nat_ifindex = pool_interface(r->nat_pool - 1);
	cr->endpoint = 0;
	if (r->more & RULE_MORE_ENDPOINT)
		cr->endpoint = pool_has_choice(r->nat_pool - 1, cr->family) ? ENDPOINT_ANY : ENDPOINT_ONE;
	cr->nat_ports = (struct nat_ports){r->nat_low, r->nat_high, r->nat_stride, r->nat_block};
	cr->flags |= CROSSING_NAT | (r->flags & RULE_STATIC_PORT ? CROSSING_NAT_STATIC : 0);
}

/* If this rdr-to has no port, the port of an earlier one stays, as in pf. */
static __always_inline void translate_rdr(struct crossing *cr, const struct rule *r)
{
	cr->flags &= ~(CROSSING_RDR | CROSSING_NO_RDR);
	if (pool_take(r->rdr_pool - 1, cr->family, &cr->src, &cr->dst, &cr->rdr)) {
		cr->flags |= CROSSING_NO_RDR;
		return;
	}
	cr->flags |= CROSSING_RDR;
	if (r->rdr_low && tuple_translates_ports(cr->proto)) {
		cr->rdr_port = translate_rdr_port(r, cr->dport);
		cr->flags |= CROSSING_RDR_PORT;
	}
}

/* Notes a rule's translations. Each replaces an earlier one of its kind. */
__noinline int translate_note(struct crossing *cr, const struct rule *r)
{
	if (!cr || !r)
		return 0;
	if (r->rdr_pool)
		translate_rdr(cr, r);
	if (r->nat_pool)
		translate_nat(cr, r);
	return 0;
}

/* Takes a next hop of a rule that decides. The source is that of the packet as later rules
 * see it. With af-to, packets go on in the other family, and their replies in their own. */
__noinline int translate_route(struct crossing *cr, const struct rule *r)
{
	__u8 family;

	if (!cr || !r)
		return 0;
	cr->route = r->route;
	family = af_to && r->family && r->route == ROUTES_TO ? r->family : cr->family;
	if (pool_take(r->route_pool, family, &cr->src, &cr->dst, &cr->hop))
		cr->hop.ifindex = HOP_NONE;
	return 0;
}

/* Applies the translations of a match rule, so that later rules see them. */
static __always_inline void translate_apply(struct crossing *cr, const struct rule *r, const struct rule_set *set)
{
	translate_note(cr, r);
	if (r->nat_pool && cr->flags & CROSSING_NAT) {
		cr->src = cr->nat.addr;
		cr->known &= ~(1 << FIELD_SRC | 1 << FIELD_SRC_TABLES);
	}
	if (r->rdr_pool && cr->flags & CROSSING_RDR) {
		cr->dst = cr->rdr.addr;
		if (cr->flags & CROSSING_RDR_PORT)
			cr->dport = cr->rdr_port;
		cr->known &= ~(1 << FIELD_DST | 1 << FIELD_DPORT | 1 << FIELD_DST_TABLES);
	}
	tree_classify(cr, set);
}

#endif
