// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * What one touch of memory costs that nothing before it could have asked for: a
 * place in an array like that of the states is read in its first cache line and
 * written in its second, as a packet does to its state, and what was read says
 * where the next place is. Once with all four lines of a place in a row, once with
 * its halves apart, as those of states are (bpf/state.h).
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define SLOT_WORDS 32 /* four cache lines, as struct state */

struct slot {
	__u64 word[SLOT_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); /* as the states: pages of 4 KiB */
	__type(key, __u32);
	__type(value, struct slot);
	__uint(max_entries, 1); /* set to the size that is measured */
} places SEC(".maps");

#define BLOCK 2048 /* places whose halves lie together */

struct half {
	__u64 word[SLOT_WORDS / 2];
};

struct block {
	struct half first[BLOCK];
	struct half second[BLOCK];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct block);
	__uint(max_entries, 1); /* set to the size that is measured */
} blocks SEC(".maps");

const volatile __u32 place_count; /* of either array */

struct walk {
	__u32 at; /* of all 2^32 places of the order, scattered over those that are there */
	__u32 missing;
};

static __always_inline __u32 walk_place(const struct walk *w)
{
	return (__u64)w->at * place_count >> 32;
}

/* An order that passes all numbers once before it comes back (Hull and Dobell);
 * the word read is 0, which nobody but the memory knows. */
static __always_inline long walk_on(struct walk *w, __u64 *line)
{
	if (!line) {
		w->missing++;
		return 1;
	}
	w->at = w->at * 2891336453u + 12345 + (__u32)line[0];
	line[8]++;
	return 0;
}

static long touch(__u32 i, void *data)
{
	__u32 place = walk_place(data);
	struct slot *s = bpf_map_lookup_elem(&places, &place);

	(void)i;
	return walk_on(data, s ? s->word : 0);
}

static long touch_half(__u32 i, void *data)
{
	__u32 place = walk_place(data), key = place / BLOCK;
	struct block *b = bpf_map_lookup_elem(&blocks, &key);

	(void)i;
	if (!b)
		return walk_on(data, 0);
	asm volatile("" : "+r"(b)); /* else it is added to before it is compared with 0 */
	return walk_on(data, b->first[place % BLOCK].word);
}

struct request {
	__u32 touches; /* 2^23 at most, as bpf_loop can */
	__u32 start;
	__u64 ns; /* that they took */
	__u64 at; /* where it went on */
};

#define walk_timed(r, step)                                                                \
	({                                                                                     \
		struct walk w = { .at = (r)->start };                                              \
		__u64 begin = bpf_ktime_get_ns();                                                  \
		long done = bpf_loop((r)->touches, step, &w, 0);                                   \
		(r)->ns = bpf_ktime_get_ns() - begin;                                              \
		(r)->at = w.at;                                                                    \
		w.missing || done != (long)(r)->touches;                                           \
	})

SEC("syscall")
int touches(struct request *r)
{
	return walk_timed(r, touch);
}

SEC("syscall")
int touches_half(struct request *r)
{
	return walk_timed(r, touch_half);
}

char _license[] SEC("license") = "Dual BSD/GPL";
