/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Results for runs of rules. A run goes from one rule to the last, or to a match rule
 * that translates. The meaning of a class does not change within an epoch of the rule
 * set. So packets of the same classes get the same result. Most packets are of a few
 * classes, and for them the vectors are not intersected again.
 */
#ifndef WEIR_RULES_CACHE_H
#define WEIR_RULES_CACHE_H

#include <bpf/bpf_helpers.h>

#include "rules/crossing.h"
#include "rules/ruleset.h"

#define NO_RULE MAX_RULES /* as a rule's number: none */

/* One cache per CPU; an entry is a cache line. */
#define CACHE_BITS    10
#define CACHE_ENTRIES (1 << CACHE_BITS)

/* What a result depends on. */
struct cache_key {
	word64 word[4];
};
_Static_assert(FIELD_COUNT == 8, "cache_key_fill() packs so many classes");
_Static_assert(sizeof(struct cache_key) == 32, "compared as four words");
_Static_assert(NO_RULE < 1 << 17 && MAX_MATCHES <= 8, "cache_key_fill() packs so large numbers");

struct cache_entry {
	struct cache_key key;
	__u16 last; /* its highest bit is in high: NO_RULE needs it */
	__u16 stop;
	__u16 translates;
	__u16 tag;
	__u16 matched[MAX_MATCHES - 1]; /* the earlier ones count as matches, but are not listed */
	__u16 matches;			/* crossing.matches at its end		    */
	__u8 logs;			/* CROSSING_LOG* of its own match rules	    */
	__u8 high;			/* bit 16 of last, stop and translates; SCRUB_* above them */
	__u8 prio;			/* set by its own match rules; 0: none */
	__u8 min_ttl;			/* likewise				    */
	__u16 queue;			/* likewise				    */
	__u16 max_mss;			/* likewise				    */
};
#define CACHE_SCRUB_SHIFT 3 /* of SCRUB_* in high */
_Static_assert(sizeof(struct cache_entry) == 64, "an entry is one cache line");
_Static_assert(NO_RULE <= 1 << 16, "numbers of rules are kept in 16 bits, NO_RULE in 17");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CACHE_ENTRIES);
	__type(key, __u32);
	__type(value, struct cache_entry);
} rule_cache SEC(".maps");

/* Returns the entry for the key, whether or not it holds its result. It is chosen by the
 * highest bits of the products, which all bits of the key change: also the direction, which may
 * be all that differs between the two crossings of a packet. */
static __always_inline struct cache_entry *cache_get(const struct cache_key *key)
{
	const word64 *k = key->word;
	__u64 h = (k[0] * 0x9e3779b97f4a7c15ULL) ^ (k[1] * 0xc2b2ae3d27d4eb4fULL);
	__u32 at;

	h += (k[2] * 0x165667b19e3779f9ULL) ^ (k[3] * 0x27d4eb2f165667c5ULL);
	at = h >> (64 - CACHE_BITS);
	return bpf_map_lookup_elem(&rule_cache, &at);
}

static __always_inline int cache_is(const struct cache_entry *s, const struct cache_key *key)
{
	const word64 *a = s->key.word, *b = key->word;

	return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]));
}

#endif
