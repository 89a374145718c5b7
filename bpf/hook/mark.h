/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* weir's own bits of skb->mark: enum mark in config.h. All other bits stay as they are. */
#ifndef WEIR_HOOK_MARK_H
#define WEIR_HOOK_MARK_H

#include <linux/types.h>

#include "config.h"

static __always_inline __u32 mark_bits(enum mark value)
{
	return value << mark_shift & mark_mask;
}

static __always_inline __u32 mark_value(__u32 mark)
{
	return (mark & mark_mask) >> mark_shift;
}

static __always_inline __u32 mark_set(__u32 mark, enum mark value)
{
	return (mark & ~mark_mask) | mark_bits(value);
}

/* Returns the mark with which a packet without a state leaves. */
static __always_inline __u32 mark_leaving(__u32 mark, const struct out_mark *out)
{
	return (mark & ~out->mask) | out->bits;
}

#endif
