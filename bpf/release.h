/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The end of a state: its tuples leave the table, its slot is free again. */
#ifndef WEIR_RELEASE_H
#define WEIR_RELEASE_H

#include "lookup.h"

/* Gives a slot back whose tuples are not, or no longer, in the table. */
static __always_inline void slot_return(struct state *st)
{
	__sync_lock_test_and_set(&st->status, STATUS_FREE);
	__sync_fetch_and_add(&shared.states_released, 1);
}

#endif
