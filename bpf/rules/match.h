/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * One crossing's rules: which of them match a packet, and what follows.
 *
 * The packet's fields are looked up to classes, the classes' vectors are
 * intersected. Of the rules whose bits are left, the stations are visited in
 * order; of the plain ones only the last is looked for, from the end. rules/ruleset.h
 * says what is in the maps, docs/rules.md why.
 */
#ifndef WEIR_RULES_MATCH_H
#define WEIR_RULES_MATCH_H

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "rules/crossing.h"
#include "rules/pool.h"
#include "observe/reason.h"
#include "rules/ruleset.h"
#include "rules/tree.h"
#include "rules/cache.h"

/* A walk through the rules. One per CPU: the stack does not hold it. */
struct walk {
	struct rule_class class[FIELD_COUNT]; /* what the packet is now	*/
	__u64 bits[CHUNK_WORDS]; /* of the chunk at hand: rules that match	*/
	__u64 todo;		 /* chunks not yet looked at			*/
	__u32 chunk;		 /* the one at hand				*/
	__u32 words;		 /* bit i: bits[i] is not 0			*/
	__u32 from;		 /* rules before it were judged by other addresses */
	__u32 last;		 /* deciding so far, or NO_RULE			*/
	__u32 stop;		 /* asked no further than here, or NO_RULE	*/
	__u32 translates;	 /* the station that a stretch ended at, or NO_RULE */
	__u32 broken;		 /* the tables contradict each other		*/
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk);
} walks SEC(".maps");

/* Fetches the classes that a walk works with. */
static __always_inline void walk_start(struct walk *w, const struct judge *j)
{
	const struct rule_class *c;
	__u32 f, index;

	for (f = 0; f < FIELD_COUNT; f++) {
		index = j->class[f];
		c = bpf_map_lookup_elem(&rule_classes, &index);
		if (c)
			w->class[f] = *c;
		else
			w->broken = 1;
	}
	w->words = 0;
}

/* Chunks in which every field has a rule that it allows. */
static __always_inline __u64 walk_chunks(const struct walk *w)
{
	__u64 chunks = ~0ULL;
	int f;

	for (f = 0; f < FIELD_COUNT; f++)
		chunks &= w->class[f].filled;
	return chunks;
}

/* Intersects w->bits with a chunk of one field's vector. */
static __always_inline void bits_intersect(struct walk *w, const struct rule_class *c, __u32 chunk)
{
	__u64 bit = 1ULL << (chunk % 64);
	const struct rule_bits *common, *own;
	__u32 at = c->common + chunk;
	int i;

	if (c->full & bit)
		return;
	common = bpf_map_lookup_elem(&rule_vectors, &at);
	if (!common) {
		w->broken = 1;
		return;
	}
	if (!(c->differs & bit)) {
		for (i = 0; i < CHUNK_WORDS; i++)
			w->bits[i] &= common->word[i];
		return;
	}
	at = c->own + __builtin_popcountll(c->differs & (bit - 1));
	own = bpf_map_lookup_elem(&rule_vectors, &at);
	if (!own) {
		w->broken = 1;
		return;
	}
	for (i = 0; i < CHUNK_WORDS; i++)
		w->bits[i] &= common->word[i] ^ own->word[i];
}

/* Takes the rules before w->from and after w->stop out of w->bits. */
__noinline int bits_limit(struct walk *w, __u32 chunk)
{
	__u32 i, first;

	if (!w)
		return 0;
	for (i = 0; i < CHUNK_WORDS; i++) {
		first = chunk * CHUNK_RULES + i * 64;
		if (w->from > first)
			w->bits[i] &= w->from - first < 64 ? ~0ULL << ((w->from - first) & 63) : 0;
		if (w->stop < first + 63)
			w->bits[i] &= w->stop >= first ? ~0ULL >> ((first + 63 - w->stop) & 63) : 0;
	}
	return 0;
}

/*
 * Leaves in w->bits the rules of a chunk that match, are of the kind whose vector
 * stands at kind, and stand from w->from to w->stop; w->words says in which words.
 */
static __always_inline void walk_match(struct walk *w, __u32 chunk, __u32 kind)
{
	const struct rule_bits *mask;
	__u32 at = kind + chunk, i;

	mask = bpf_map_lookup_elem(&rule_vectors, &at);
	w->words = 0;
	if (!mask) {
		w->broken = 1;
		return;
	}
	for (i = 0; i < CHUNK_WORDS; i++)
		w->bits[i] = mask->word[i];
	for (i = 0; i < FIELD_COUNT; i++)
		bits_intersect(w, &w->class[i], chunk);
	if (w->from > chunk * CHUNK_RULES || w->stop < (chunk + 1) * CHUNK_RULES)
		bits_limit(w, chunk);
	/* Without branches, of which the verifier would follow all 2^CHUNK_WORDS ways;
	 * the asm keeps clang from making some. */
	for (i = 0; i < CHUNK_WORDS; i++) {
		__u64 sign = w->bits[i] | -w->bits[i];

		asm("" : "+r"(sign));
		w->words |= sign >> 63 << i;
	}
}

/* What a step of a walk needs. */
struct visit {
	struct judge *j;
	struct walk *w;
	const struct rule_set *set;
};

/* Looks for the last plain rule in the last of the chunks to do. 1: there is one. */
static __always_inline int walk_last_in(struct walk *w, const struct rule_set *set)
{
	__u32 chunk = 63 - __builtin_clzll(w->todo), word;

	w->todo &= ~(1ULL << (chunk % 64));
	walk_match(w, chunk, set->plains_at);
	if (!w->words)
		return 0;
	word = 31 - __builtin_clz(w->words);
	w->last = chunk * CHUNK_RULES + word * 64 + 63 - __builtin_clzll(w->bits[word % CHUNK_WORDS]);
	return 1;
}

static long walk_last_step(__u32 n, void *data)
{
	struct visit *v = data;

	(void)n;
	return !v->w->todo || walk_last_in(v->w, v->set);
}

/* The chunks in which a plain rule may match from w->from to w->stop and later
 * than the w->last that is known; nothing before that is looked for. */
static __always_inline void walk_last_start(struct walk *w, const struct rule_set *set)
{
	if (w->last != NO_RULE && w->last >= w->from)
		w->from = w->last + 1;
	w->todo = walk_chunks(w) & set->plains;
	w->todo &= ~0ULL << ((w->from / CHUNK_RULES) & 63);
	if (w->stop < MAX_RULES)
		w->todo &= ~0ULL >> (63 - w->stop / CHUNK_RULES);
}

/* Makes w->last the last plain rule that matches, if it comes after w->last. */
static __always_inline void walk_last(struct visit *v)
{
	walk_last_start(v->w, v->set);
	/* mostly the first is it: without a call */
	if (v->w->todo && !walk_last_in(v->w, v->set))
		bpf_loop(rule_chunks, walk_last_step, v, 0);
}

static __always_inline void matched_add(struct judge *j, __u32 number)
{
	if (j->matches < MAX_MATCHES)
		j->matched[j->matches++ % MAX_MATCHES] = rule_base + number + 1;
}

/* The new destination port of rdr-to, whose range repeats (pf.conf(5)). */
static __always_inline __be16 rdr_port(const struct rule *r, __be16 dport)
{
	__u16 span = r->rdr_high - r->rdr_low + 1, offset = bpf_ntohs(dport) - r->rdr_base;

	return bpf_htons(r->rdr_low + (span ? offset % span : offset));
}

/* Whether the rule translates in this direction. */
static __always_inline int rule_translates(const struct rule *r, const struct judge *j)
{
	return j->direction == DIRECTION_OUT ? r->nat_pool : r->rdr_pool;
}

static __always_inline void judge_nat(struct judge *j, const struct rule *r)
{
	j->nat_ifindex = pool_interface(r->nat_pool - 1);
	j->nat_low = r->nat_low;
	j->nat_high = r->nat_high;
	j->flags |= JUDGE_NAT | (r->flags & RULE_STATIC_PORT ? JUDGE_NAT_STATIC : 0);
}

static __always_inline void judge_rdr(struct judge *j, const struct rule *r)
{
	j->flags |= JUDGE_RDR;
	if (r->rdr_low && judge_has_ports(j)) {
		j->rdr_port = rdr_port(r, j->dport);
		j->flags |= JUDGE_RDR_PORT;
	}
}

/* Notes a rule's translation in the place of an earlier one: JUDGE_NAT, JUDGE_RDR
 * or JUDGE_NO_ADDRESS. The port of an earlier rdr-to stays where this has none, as
 * in pf. */
__noinline int judge_translate(struct judge *j, const struct rule *r)
{
	int out;

	if (!j || !r)
		return 0;
	out = j->direction == DIRECTION_OUT;
	j->flags &= ~(JUDGE_NAT | JUDGE_NAT_STATIC | JUDGE_RDR | JUDGE_NO_ADDRESS);
	if (pool_take((out ? r->nat_pool : r->rdr_pool) - 1, j->family,
		      out ? &j->nat_addr : &j->rdr_addr))
		j->flags |= JUDGE_NO_ADDRESS;
	else if (out)
		judge_nat(j, r);
	else
		judge_rdr(j, r);
	return 0;
}

/* JUDGE_LOG* of a rule. */
static __always_inline __u8 rule_logs(const struct rule *r)
{
	return r->flags / RULE_LOG & (JUDGE_LOG | JUDGE_LOG_ALL);
}

/* A station whose fields match. 1: the rules are asked no further. */
static __always_inline int walk_visit(struct visit *v, __u32 number)
{
	const struct rule *r = bpf_map_lookup_elem(&rules, &number);
	struct judge *j = v->j;
	struct walk *w = v->w;

	if (!r) {
		w->broken = 1;
		return 1;
	}
	if (r->tagged && (j->tag == r->tagged) == !!(r->flags & RULE_NOT_TAGGED))
		return 0;
	if (r->tag)
		j->tag = r->tag;
	if (!(r->flags & RULE_MATCH)) {
		w->last = number;
	} else {
		j->logs |= rule_logs(r);
		if (j->matches < MAX_MATCHES - 1)
			matched_add(j, number);
		if (rule_translates(r, j)) {
			w->translates = number;
			return 1;
		}
	}
	if (!(r->flags & RULE_QUICK))
		return 0;
	w->stop = number;
	return 1;
}

/* The next station, or the next chunk of them. */
static long walk_step(__u32 n, void *data)
{
	struct visit *v = data;
	struct walk *w = v->w;
	__u32 word, bit;
	__u64 bits;

	(void)n;
	if (!w->words) {
		if (!w->todo)
			return 1;
		w->chunk = __builtin_ctzll(w->todo);
		w->todo &= w->todo - 1;
		walk_match(w, w->chunk, v->set->stations_at);
		if (!w->words)
			return 0;
	}
	word = __builtin_ctz(w->words) % CHUNK_WORDS;
	bits = w->bits[word];
	bit = __builtin_ctzll(bits);
	bits &= bits - 1;
	w->bits[word] = bits;
	if (!bits)
		w->words &= w->words - 1;
	return walk_visit(v, w->chunk * CHUNK_RULES + word * 64 + bit);
}

/* A match rule translates: what it leaves is what later rules see. */
static __always_inline void translate_matched(struct judge *j, const struct rule *r, const struct rule_set *set)
{
	judge_translate(j, r);
	if (j->flags & JUDGE_NAT)
		j->src = j->nat_addr;
	if (j->flags & JUDGE_RDR)
		j->dst = j->rdr_addr;
	if (j->flags & JUDGE_RDR_PORT)
		j->dport = j->rdr_port;
	j->known &= j->direction == DIRECTION_OUT ?
			    ~(1 << FIELD_SRC | 1 << FIELD_SRC_TABLES) :
			    ~(1 << FIELD_DST | 1 << FIELD_DPORT | 1 << FIELD_DST_TABLES);
	judge_classify(j, set);
}

/*
 * From w->from on to the end, or to the next station that translates: what that
 * leaves is what later rules see. The plain rules before it are judged now, as
 * long as the classes are theirs.
 */
static __always_inline void walk_go(struct judge *j, struct walk *w, const struct rule_set *set)
{
	struct visit v = {j, w, set};

	walk_start(w, j);
	w->todo = walk_chunks(w) & set->stations & ~0ULL << ((w->from / CHUNK_RULES) & 63);
	if (w->todo)
		bpf_loop(rule_chunks * (CHUNK_RULES + 1), walk_step, &v, 0);
	if (w->stop != NO_RULE && w->last == w->stop)
		return;
	if (w->translates != NO_RULE)
		w->stop = w->translates;
	walk_last(&v);
	if (w->translates != NO_RULE)
		w->stop = NO_RULE;
}

/* Counts where the rules were asked no further; without a stop behind the last. */
static __always_inline void count_stop(const struct rule_set *set, __u32 stop)
{
	__u32 key = stop == NO_RULE ? set->rules : stop;
	struct rule_counter *c = bpf_map_lookup_elem(&rule_counters, &key);

	if (c)
		c->stops++;
}

/* Counts a state under the rule that decided it: judge.rule. */
static __always_inline void rule_count_state(__u32 rule)
{
	__u32 key = rule - 1 - rule_base;
	struct rule_counter *c = bpf_map_lookup_elem(&rule_counters, &key);

	if (c)
		c->states++;
}

/* Fills the answers from the rule that decided. */
static __always_inline enum reason judge_answer(struct judge *j, __u32 last)
{
	const struct rule *r;

	if (last == NO_RULE)
		return j->flags & JUDGE_NO_ADDRESS ? REASON_NAT_ADDRESS : REASON_NO_RULE;
	r = bpf_map_lookup_elem(&rules, &last);
	if (!r)
		return REASON_INTERNAL;
	j->rule = rule_base + last + 1;
	matched_add(j, last);
	j->logs |= rule_logs(r);
	if (r->flags & RULE_BLOCK) {
		j->action = ACTION_BLOCK;
		return REASON_BLOCK;
	}
	if (r->flags & RULE_KEEP_STATE)
		j->flags |= JUDGE_KEEP_STATE;
	if (r->flags & RULE_ALLOW_OPTIONS)
		j->flags |= JUDGE_ALLOW_OPTIONS;
	if (rule_translates(r, j))
		judge_translate(j, r);
	return j->flags & JUDGE_NO_ADDRESS ? REASON_NAT_ADDRESS : REASON_RULE;
}

/* Packs what the answer depends on: 21 bits for each class, and for where the
 * stretch begins with the number of rules that matched before. */
static __always_inline void stretch_ask(struct stretch_key *key, const struct judge *j, const struct walk *w)
{
	const __u32 *c = j->class;

	key->word[0] = c[0] | (__u64)c[1] << 21 | (__u64)c[2] << 42 | 1ULL << 63; /* 0: an empty place */
	key->word[1] = c[3] | (__u64)c[4] << 21 | (__u64)c[5] << 42 | (__u64)j->direction << 63;
	key->word[2] = c[6] | (__u64)c[7] << 21 | (__u64)w->from << 42 | (__u64)j->matches << 59;
	key->word[3] = w->last | (__u64)j->tag << 32;
}

static __always_inline void stretch_recall(const struct stretch *s, struct judge *j, struct walk *w)
{
	int i;

	w->last = s->last;
	w->stop = s->stop;
	w->translates = s->translates;
	j->tag = s->tag;
	j->logs |= s->logs;
	for (i = 0; i < MAX_MATCHES - 1 && i < s->matches; i++)
		if (i >= j->matches)
			j->matched[i] = rule_base + s->matched[i] + 1;
	j->matches = s->matches;
}

static __always_inline void stretch_note(struct stretch *s, const struct stretch_key *key,
					 const struct judge *j, const struct walk *w)
{
	int i;

	s->last = w->last;
	s->stop = w->stop;
	s->translates = w->translates;
	s->tag = j->tag;
	s->logs = j->logs;
	for (i = 0; i < MAX_MATCHES - 1; i++)
		s->matched[i] = j->matched[i] - 1 - rule_base;
	s->matches = j->matches;
	s->key = *key;
}

/* Walks through a stretch that is not remembered, and remembers it. */
__noinline int stretch_learn(struct judge *j, struct walk *w, const struct rule_set *set)
{
	struct stretch_key key;
	struct stretch *s;
	__u8 before;

	if (!j || !w || !set)
		return 0;
	stretch_ask(&key, j, w);
	before = j->logs; /* not of this stretch */
	j->logs = 0;
	walk_go(j, w, set);
	s = stretch_get(&key);
	if (s && !w->broken)
		stretch_note(s, &key, j, w);
	j->logs |= before;
	return 0;
}

/*
 * One stretch of a crossing: from w->from to the end of the rules, or to a match
 * rule that translates, which is then w->translates.
 */
static __always_inline void stretch(struct judge *j, struct walk *w, const struct rule_set *set)
{
	struct stretch_key key;
	struct stretch *s;

	stretch_ask(&key, j, w);
	s = stretch_get(&key);
	if (s && stretch_is(s, &key))
		stretch_recall(s, j, w);
	else
		stretch_learn(j, w, set);
}

/* Goes on behind the match rule that ended the last stretch. 1: that was all. */
static __always_inline long stretch_next(struct judge *j, struct walk *w, const struct rule_set *set)
{
	__u32 number = w->translates;
	const struct rule *r;

	if (number == NO_RULE || w->broken)
		return 1;
	r = bpf_map_lookup_elem(&rules, &number);
	if (!r) {
		w->broken = 1;
		return 1;
	}
	translate_matched(j, r, set);
	w->translates = NO_RULE;
	w->from = number + 1;
	if (r->flags & RULE_QUICK)
		w->stop = number;
	else
		stretch(j, w, set);
	return 0;
}

static long stretch_step(__u32 n, void *data)
{
	struct visit *v = data;

	(void)n;
	return stretch_next(v->j, v->w, v->set);
}

/*
 * The rules' answers for one crossing (docs/packet-path.md, 5): REASON_RULE or
 * REASON_NO_RULE if it passes, REASON_BLOCK or REASON_NAT_ADDRESS if not; if the
 * tables contradict each other, which they never do, REASON_INTERNAL.
 */
__noinline enum reason rules_judge(struct judge *j)
{
	struct visit v = {};
	const struct rule_set *set;
	struct walk *w;
	__u32 zero = 0;

	if (!j)
		return REASON_INTERNAL;
	w = bpf_map_lookup_elem(&walks, &zero);
	set = bpf_map_lookup_elem(&rule_sets, &zero);
	if (!w || !set)
		return REASON_INTERNAL;
	j->rule = 0;
	j->action = ACTION_PASS;
	j->flags = 0;
	j->matches = 0;
	judge_classify(j, set);
	w->broken = 0;
	w->from = 0;
	w->last = NO_RULE;
	w->stop = NO_RULE;
	w->translates = NO_RULE;
	stretch(j, w, set);
	/* mostly one translation is all: without a call */
	if (!stretch_next(j, w, set) && w->translates != NO_RULE) {
		v.j = j;
		v.w = w;
		v.set = set;
		bpf_loop(MAX_RULES, stretch_step, &v, 0);
	}
	count_stop(set, w->stop);
	return w->broken ? REASON_INTERNAL : judge_answer(j, w->last);
}

#endif
