/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Pools: the addresses that a nat-to or an rdr-to chooses from, and the next hops of
 * route-to and the like.
 */
#ifndef WEIR_RULES_POOL_H
#define WEIR_RULES_POOL_H

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "config.h"
#include "packet/packet.h"
#include "rules/pool_load.h"

enum pool_kind {
	POOL_TURNS,   /* one address after the other */
	POOL_BITMASK, /* a network's bits, and the other bits of the address that it replaces */
	POOL_RANDOM,  /* any */
	POOL_HASH,    /* the same for the same source, by a hash with a key */
	POOL_LEAST,   /* that with the fewest states */
};

/* Adjacent addresses: a prefix. turn counts the addresses of the pool before its first. In
 * a pool of POOL_BITMASK, which has one row, both are the halves of the mask of the bits
 * that an address keeps, in host order. */
struct pool_address {
	struct addr first; /* of next hops: unspecified is the packet's own destination */
	__u64 turn;
	__u64 count; /* at least 1 */
	__u32 ifindex; /* of next hops: the interface that the rule names; 0: none, ~0: it is not there */
	__u32 weight;  /* of POOL_LEAST: how many states weigh as one; at least 1 */
};

/* A pool's rows in pool_addresses: first | number of rows << 32. It is one word, so a
 * reader sees the old rows or the new ones. */
struct pool {
	__u64 rows4;
	__u64 rows6;
	__u32 ifindex; /* of the interface in parentheses, if the pool has nothing else; else 0 */
	__u16 kind;	   /* enum pool_kind */
	__u16 sticky;  /* a source keeps its address: pool_sticky */
	__u64 key[2];  /* of POOL_HASH; of POOL_LEAST the first is pool_choice.states */
};

#define POOL_MAX_ROWS 65536 /* in one pool and family */
#define POOL_SEARCH   17 /* steps: log2(POOL_MAX_ROWS) + 1 */

/* Belongs to one generation. Written by the daemon at load, and again when the addresses
 * of an interface in parentheses change. Read by pool_take. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* pools, by the loader */
	__type(key, __u32);
	__type(value, struct pool);
} pools SEC(".maps");

/* The rows of all pools. Each pool with an interface in parentheses has room for two
 * sets of rows: the daemon writes the unused set, then the pool. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* rows, by the loader */
	__type(key, __u32);
	__type(value, struct pool_address);
} pool_addresses SEC(".maps");

/* How many addresses each pool has given out, in a pool of POOL_LEAST where the next look
 * begins: [2 * pool + (family == 6)]. Only pool_take writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* twice the pools, by the loader */
	__type(key, __u32);
	__type(value, __u64);
} pool_turns SEC(".maps");

/* A source of a pool, and what the pool has given it. */
struct pool_source {
	__u32 pool;
	struct addr addr;
};

struct pool_given {
	__u64 rows; /* struct pool's word: another one voids this */
	struct addr addr;
	__u32 ifindex; /* as in struct pool_address */
	__u32 pad0;
};

/* The addresses that sources keep. Belongs to one generation. If it is full, the source
 * that has asked least lately is forgotten. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* by the loader */
	__type(key, struct pool_source);
	__type(value, struct pool_given);
} pool_sticky SEC(".maps");

/* A pool of next hops has none for a packet, or its interface is not there. */
#define HOP_NONE ~0u

/* Returns the gateway of a next hop that a rule has chosen: its own, or the address itself
 * to which packets go. */
static __always_inline const struct addr *hop_gateway(const struct pool_choice *hop, const struct addr *to)
{
	const struct addr *a = &hop->addr;

	return a->word[0] | a->word[1] | a->word[3] ? a : to;
}

/* The look for the address with the fewest states. */
struct pool_look {
	struct pool_choice at; /* the address that is looked at */
	struct pool_choice best;
	__u64 turn;  /* of the address that is looked at */
	__u64 total; /* addresses in the pool */
	__u64 load;  /* of the best */
	__u32 row;   /* that is looked at, counted from first */
	__u32 first; /* as in struct pool's word */
	__u32 free;  /* the best has no states */
	__u32 pad0;
};

/* How many addresses a look compares at most. */
#define POOL_LOOKS 64

/* The work space of pool_take: the stack is nearly used up. */
struct pool_work {
	struct pool_given given;
	struct pool_source source;
	struct pool_look look;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pool_work);
} pool_works SEC(".maps");

/* Returns the interface whose addresses are the whole pool; 0: it has others too. */
static __always_inline __u32 pool_interface(__u32 number)
{
	const struct pool *pool = bpf_map_lookup_elem(&pools, &number);

	return pool ? pool->ifindex : 0;
}

/* Whether the pool has more than one address of the family. */
static __always_inline int pool_has_choice(__u32 number, __u32 family)
{
	const struct pool *pool = bpf_map_lookup_elem(&pools, &number);
	const struct pool_address *row;
	__u64 rows;
	__u32 last;

	if (!pool)
		return 0;
	rows = family == 6 ? pool->rows6 : pool->rows4;
	last = (__u32)rows + (rows >> 32) - 1;
	row = bpf_map_lookup_elem(&pool_addresses, &last);
	return row && (pool->kind == POOL_BITMASK || row->turn + row->count > 1);
}

static __always_inline __u64 pool_next(__u32 pool, __u32 is6)
{
	__u32 key = 2 * pool + is6;
	__u64 *turn = bpf_map_lookup_elem(&pool_turns, &key);

	return turn ? __sync_fetch_and_add(turn, 1) : 0;
}

/* Returns the n-th address of a row. A row is a prefix, so nothing is carried into the
 * upper half. */
static __always_inline void row_address(struct addr *to, const struct pool_address *row, __u64 n)
{
	const __be64 *first = (const __be64 *)&row->first;
	__be64 *half = (__be64 *)to;

	half[0] = first[0];
	half[1] = bpf_cpu_to_be64(bpf_be64_to_cpu(first[1]) + n);
}

/* Returns the row of a turn: the last of rows[first .. first + count - 1] that does not
 * begin after it. */
static __always_inline const struct pool_address *pool_row(__u32 first, __u32 count, __u64 turn)
{
	const struct pool_address *row;
	__u32 i, middle;

	for (i = 0; i < POOL_SEARCH && count > 1; i++) {
		middle = first + count / 2;
		row = bpf_map_lookup_elem(&pool_addresses, &middle);
		if (!row)
			return 0;
		if (row->turn <= turn) {
			first = middle;
			count -= count / 2;
		} else {
			count /= 2;
		}
	}
	return bpf_map_lookup_elem(&pool_addresses, &first);
}

/* Moves an address into a network. */
static __always_inline void row_masked(struct addr *to, const struct pool_address *row, const struct addr *replaced)
{
	const __be64 *first = (const __be64 *)&row->first, *old = (const __be64 *)replaced;
	__be64 *half = (__be64 *)to;

	half[0] = first[0] | (old[0] & bpf_cpu_to_be64(row->turn));
	half[1] = first[1] | (old[1] & bpf_cpu_to_be64(row->count));
}

/* Mixes the bits of a number (splitmix64, Steele et al., OOPSLA 2014). */
static __always_inline __u64 pool_mix(__u64 z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static __always_inline __u64 pool_hash(const struct pool *pool, const struct addr *source)
{
	const __be64 *half = (const __be64 *)source;
	__u64 h = pool_mix(pool->key[0] ^ bpf_be64_to_cpu(half[0]));

	return pool_mix(h ^ pool->key[1] ^ bpf_be64_to_cpu(half[1]));
}

/* Returns which of the pool's addresses is next. */
static __always_inline __u64 pool_turn(const struct pool *pool, __u32 number, __u32 is6, const struct addr *source)
{
	__u64 turn;

	if (pool->kind == POOL_HASH)
		return pool_hash(pool, source);
	turn = pool_next(number, is6);
	return pool->kind == POOL_RANDOM ? pool_mix(pool_secret + turn * 0x9e3779b97f4a7c15ULL) : turn;
}

/* Compares one address with the best so far. 1: it has no states, or there is nothing to
 * compare. A weight divides as in pf. */
static long pool_look_step(__u32 n, void *data)
{
	const struct pool_address *row;
	const struct pool_load *known;
	struct pool_work *work;
	struct pool_look *l;
	__u32 zero = 0, at;
	__u64 states, load;

	(void)data;
	work = bpf_map_lookup_elem(&pool_works, &zero);
	if (!work)
		return 1;
	l = &work->look;
	at = l->first + l->row;
	row = bpf_map_lookup_elem(&pool_addresses, &at);
	if (!row)
		return 1;
	row_address(&l->at.addr, row, l->turn - row->turn);
	l->at.ifindex = row->ifindex;
	known = bpf_map_lookup_elem(&pool_loads, &l->at);
	states = known ? *(const volatile __u32 *)&known->states & ~POOL_LOAD_GONE : 0;
	load = row->weight ? states * 0xffff / row->weight : states * 0xffff;
	if (!n || load < l->load) {
		l->best = l->at;
		l->load = load;
		l->free = !states;
	}
	if (l->free)
		return 1;
	l->turn++;
	if (l->turn - row->turn >= row->count)
		l->row++;
	if (l->turn >= l->total) {
		l->turn = 0;
		l->row = 0;
	}
	return 0;
}

/*
 * Takes the address with the fewest states, for a pool of rows with so many addresses. As in
 * pf, the look begins where the last one has ended, and ends at the first address without
 * states. In a large pool it compares POOL_LOOKS addresses, and the next look goes on behind
 * them. 0: done.
 */
__noinline int pool_least(__u32 turns, __u64 rows, __u64 total, struct pool_choice *to)
{
	const struct pool_address *row;
	__u32 zero = 0, low, count, middle, i;
	struct pool_work *work;
	__u64 *turn, begin;
	struct pool_look *l;
	long looked;

	work = bpf_map_lookup_elem(&pool_works, &zero);
	turn = bpf_map_lookup_elem(&pool_turns, &turns);
	if (!work || !turn || !to || !total)
		return -1;
	l = &work->look;
	begin = *(volatile __u64 *)turn % total;
	l->turn = begin;
	l->total = total;
	l->first = (__u32)rows;
	l->free = 0;
	l->at.states = to->states;
	low = 0;
	count = rows >> 32;
	for (i = 0; i < POOL_SEARCH && count > 1; i++) {
		middle = l->first + low + count / 2;
		row = bpf_map_lookup_elem(&pool_addresses, &middle);
		if (!row)
			return -1;
		if (row->turn <= begin) {
			low += count / 2;
			count -= count / 2;
		} else {
			count /= 2;
		}
	}
	l->row = low;
	looked = bpf_loop(total < POOL_LOOKS ? total : POOL_LOOKS, pool_look_step, 0, 0);
	if (looked <= 0)
		return -1;
	*to = l->best;
	if (l->free) /* the last one, or behind the first */
		begin += looked > 1 ? looked - 1 : 1;
	else if (total > POOL_LOOKS)
		begin += POOL_LOOKS;
	*(volatile __u64 *)turn = begin;
	return 0;
}

/* Finds the address that a source keeps. 0: found. The work space then says whose address
 * it is. */
__noinline int pool_sticky_find(__u32 number, __u64 rows, const struct addr *source, struct pool_choice *to)
{
	const struct pool_given *given;
	struct pool_work *work;
	__u32 zero = 0;

	work = bpf_map_lookup_elem(&pool_works, &zero);
	if (!work || !source || !to)
		return -1;
	work->source.pool = number;
	work->source.addr = *source;
	given = bpf_map_lookup_elem(&pool_sticky, &work->source);
	if (!given || given->rows != rows)
		return -1;
	to->addr = given->addr;
	to->ifindex = given->ifindex;
	return 0;
}

/* Has the source of the work space keep an address. If another core has given it one
 * meanwhile, the later one counts. */
__noinline int pool_sticky_keep(__u64 rows, const struct pool_choice *choice)
{
	struct pool_work *work;
	__u32 zero = 0;

	work = bpf_map_lookup_elem(&pool_works, &zero);
	if (!work || !choice)
		return -1;
	work->given.rows = rows;
	work->given.addr = choice->addr;
	work->given.ifindex = choice->ifindex;
	return bpf_map_update_elem(&pool_sticky, &work->source, &work->given, BPF_ANY);
}

/*
 * Takes an address of the pool, of the family (4 or 6): what replaces another one, for a
 * packet of a source. 0: done, -1: the pool has none.
 */
static __always_inline int pool_take(__u32 number, __u32 family, const struct addr *source,
				     const struct addr *replaced, struct pool_choice *to)
{
	const struct pool_address *row;
	__u32 first, count, last;
	struct pool *pool;
	__u64 rows, total, turn = 0;

	pool = bpf_map_lookup_elem(&pools, &number);
	if (!pool)
		return -1;
	rows = *(volatile __u64 *)(family == 6 ? &pool->rows6 : &pool->rows4);
	first = (__u32)rows;
	count = rows >> 32;
	last = first + count - 1;
	row = count ? bpf_map_lookup_elem(&pool_addresses, &last) : 0;
	if (!row)
		return -1;
	to->ifindex = row->ifindex;
	to->states = least_states && pool->kind == POOL_LEAST ? pool->key[0] : 0;
	if (pool->kind == POOL_BITMASK) {
		row_masked(&to->addr, row, replaced);
		return 0;
	}
	total = row->turn + row->count;
	if (total <= 1) { /* it needs no turns, which all cores would write */
		to->addr = row->first;
		return 0;
	}
	if (pool->sticky && !pool_sticky_find(number, rows, source, to))
		return 0;
	if (to->states) {
		if (pool_least(2 * number + (family == 6), rows, total, to))
			return -1;
	} else {
		turn = pool_turn(pool, number, family == 6, source) % total;
		row = pool_row(first, count, turn);
		if (!row)
			return -1;
		row_address(&to->addr, row, turn - row->turn);
		to->ifindex = row->ifindex;
	}
	if (pool->sticky)
		pool_sticky_keep(rows, to);
	return 0;
}

#endif
