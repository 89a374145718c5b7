/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Thresholds, as pf's pf_add_threshold() has them: a count that falls in proportion to the
 * time since the last event, to 0 after the whole span. Whole seconds.
 */
#ifndef WEIR_STATE_RATE_H
#define WEIR_STATE_RATE_H

#include "config.h"
#include "shared.h"

/* Adds an event. *rate: second of the last event << 32 | count, in thousandths of an
 * event. Returns the count; ~0: so many cores add one now that there are too many. */
__noinline __u64 rate_add(__u64 *rate, __u32 seconds)
{
	__u32 now = shared.now / TICKS_PER_SECOND, passed, i;
	__u64 old, count;

	if (!rate)
		return ~0ULL;
	for (i = 0; i < RATE_TRIES; i++) {
		old = *(volatile __u64 *)rate;
		passed = now - (__u32)(old >> 32);
		count = (__u32)old;
		count = passed >= seconds ? 0 : count - count * passed / seconds;
		count += 1000;
		if (count > 0xffffffff)
			count = 0xffffffff;
		if (__sync_val_compare_and_swap(rate, old, (__u64)now << 32 | count) == old)
			return count;
	}
	return ~0ULL;
}

#endif
