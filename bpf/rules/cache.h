/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What was found out about a stretch of rules: from a place in them to their end,
 * or to a match rule that translates. Rules do not change within a generation, so
 * packets of the same classes get the same answer, and most packets are of a few
 * classes: for them the vectors are not intersected again.
 */
#ifndef WEIR_RULES_CACHE_H
#define WEIR_RULES_CACHE_H

#include <bpf/bpf_helpers.h>

#include "rules/crossing.h"
#include "rules/ruleset.h"

#define NO_RULE MAX_RULES /* as a rule's number: none */

/* Kept per CPU: a cache line each. */
#define STRETCHES 1024

/* What the answer depends on. */
struct stretch_key {
	word64 word[4];
};
_Static_assert(FIELD_COUNT == 8, "stretch_ask() packs so many classes");
_Static_assert(sizeof(struct stretch_key) == 32, "compared as four words");

struct stretch {
	struct stretch_key key;
	__u16 last;
	__u16 stop;
	__u16 translates;
	__u16 tag;
	__u16 matched[MAX_MATCHES - 1]; /* those before it included, but not noted */
	__u16 matches;			/* judge.matches at its end		    */
	__u8 logs;			/* JUDGE_LOG* of its own match rules	    */
	__u8 pad0[7];
};
_Static_assert(sizeof(struct stretch) == 64, "a stretch is one cache line");
_Static_assert(NO_RULE <= 0xffff, "numbers of rules are kept in 16 bits");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STRETCHES);
	__type(key, __u32);
	__type(value, struct stretch);
} stretches SEC(".maps");

/* The place where the answer to the key is kept, or would be. */
static __always_inline struct stretch *stretch_get(const struct stretch_key *key)
{
	const word64 *k = key->word;
	__u64 h = (k[0] * 0x9e3779b97f4a7c15ULL) ^ (k[1] * 0xc2b2ae3d27d4eb4fULL);
	__u32 at;

	h += (k[2] * 0x165667b19e3779f9ULL) ^ (k[3] * 0x27d4eb2f165667c5ULL);
	at = (h ^ h >> 29) >> 22 & (STRETCHES - 1);
	return bpf_map_lookup_elem(&stretches, &at);
}

static __always_inline int stretch_is(const struct stretch *s, const struct stretch_key *key)
{
	const word64 *a = s->key.word, *b = key->word;

	return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]));
}

#endif
