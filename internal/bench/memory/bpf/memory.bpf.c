// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * What one touch of memory costs that nothing before it could have asked for: a
 * place in an array like that of the states is read in its first cache line and
 * written in its second, as a packet does to its state, and what was read says
 * where the next place is.
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

const volatile __u32 place_count; /* of the array */

struct walk {
	__u32 at; /* of all 2^32 places of the order, scattered over those that are there */
	__u32 missing;
};

/* An order that passes all numbers once before it comes back (Hull and Dobell);
 * the word read is 0, which nobody but the memory knows. */
static long touch(__u32 i, void *data)
{
	struct walk *w = data;
	__u32 place = (__u64)w->at * place_count >> 32;
	struct slot *s = bpf_map_lookup_elem(&places, &place);

	(void)i;
	if (!s) {
		w->missing++;
		return 1;
	}
	w->at = w->at * 2891336453u + 12345 + (__u32)s->word[0];
	s->word[8]++;
	return 0;
}

struct request {
	__u32 touches; /* 2^23 at most, as bpf_loop can */
	__u32 start;
	__u64 ns; /* that they took */
	__u64 at; /* where it went on */
};

SEC("syscall")
int touches(struct request *r)
{
	struct walk w = { .at = r->start };
	__u64 begin = bpf_ktime_get_ns();
	long done = bpf_loop(r->touches, touch, &w, 0);

	r->ns = bpf_ktime_get_ns() - begin;
	r->at = w.at;
	return w.missing || done != (long)r->touches;
}

char _license[] SEC("license") = "Dual BSD/GPL";
