/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Rule paths: the sets of matched rules that packets are counted under. */
#ifndef WEIR_OBSERVE_RULE_PATH_H
#define WEIR_OBSERVE_RULE_PATH_H

#include "observe/count.h"
#include "path/scratch.h"
#include "state/state.h"

static __always_inline int rule_path_equal(const struct path *a, const struct path *b)
{
	const word64 *x = (const word64 *)a, *y = (const word64 *)b;
	__u64 differ = 0;
	int i;

	for (i = 0; i < MAX_MATCHES; i++)
		differ |= x[i] ^ y[i];
	return !differ;
}

/* Returns the index under which packets of these matched rules are counted. */
__noinline __u32 rule_path_index(struct scratch *s, __u8 both)
{
	__u32 *known, index;
	struct path *key;
	int i;

	if (!s)
		return PATH_NONE;
	key = &s->path_key;
	__builtin_memset(key, 0, sizeof(*key));
	if (both & STATE_IN)
		for (i = 0; i < MAX_MATCHES && i < s->in.matches; i++)
			key->rule[i] = s->in.matched[i];
	if (both & STATE_OUT)
		for (i = 0; i < MAX_MATCHES && i < s->out.matches; i++)
			key->rule[MAX_MATCHES + i] = s->out.matched[i];
	if (!key->rule[0] && !key->rule[MAX_MATCHES])
		return PATH_NONE;
	if (rule_path_equal(key, &s->path_last))
		return s->path_last_index;
	known = bpf_map_lookup_elem(&paths, key);
	if (known) {
		s->path_last = *key;
		s->path_last_index = *known;
		return *known;
	}
	if (shared.paths_high < MAX_PATHS - PATHS_RESERVED - PATH_FIRST) {
		index = __sync_fetch_and_add(&shared.paths_high, 1) + PATH_FIRST;
		if (index >= MAX_PATHS - PATHS_RESERVED)
			return PATH_OVERFLOW;
	} else {
		__builtin_memset(key, 0, sizeof(*key));
		key->rule[0] = both & STATE_IN ? s->in.rule : 0;
		key->rule[MAX_MATCHES] = both & STATE_OUT ? s->out.rule : 0;
		known = bpf_map_lookup_elem(&paths, key);
		if (known)
			return *known;
		if (shared.paths_reserved >= PATHS_RESERVED)
			return PATH_OVERFLOW;
		index = __sync_fetch_and_add(&shared.paths_reserved, 1) + MAX_PATHS - PATHS_RESERVED;
		if (index >= MAX_PATHS)
			return PATH_OVERFLOW;
	}
	if (bpf_map_update_elem(&paths, key, &index, BPF_NOEXIST)) {
		known = bpf_map_lookup_elem(&paths, key);
		return known ? *known : PATH_OVERFLOW;
	}
	return index;
}

#endif
