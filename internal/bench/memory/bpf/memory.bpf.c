// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Measures one touch of memory that nothing could request earlier. Like a packet with
 * its state, it reads an entry of an array in its first cache line and writes it in its
 * second. The value that it read selects the next entry.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define SLOT_WORDS 32 /* four cache lines, as in struct state */

struct slot {
	__u64 word[SLOT_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); /* pages of 4 KiB, as for the states */
	__type(key, __u32);
	__type(value, struct slot);
	__uint(max_entries, 1); /* set to the measured size */
} places SEC(".maps");

const volatile __u32 place_count; /* number of entries */

struct walk {
	__u32 at; /* position in a sequence of 2^32, scattered over the entries */
	__u32 missing;
};

/* A sequence that visits all numbers once before it repeats (Hull and Dobell). The word
 * read is always 0, which only the memory knows. */
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
	__u32 touches; /* at most 2^23, the limit of bpf_loop */
	__u32 start;
	__u64 ns; /* time that they took */
	__u64 at; /* position at the end */
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
