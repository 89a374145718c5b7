/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The frame's bytes in the context of a program, of either hook. */
#ifndef WEIR_HOOK_CONTEXT_H
#define WEIR_HOOK_CONTEXT_H

/* The context declares these as 32 bits wide, and clang would spill them as such; the
 * verifier knows them as pointers. The empty asm hides the width (any kernel). */
#define as_pointer(field)                       \
	({                                      \
		void *pointer = (void *)(long)(field); \
		asm volatile("" : "+r"(pointer));  \
		pointer;                        \
	})
#define hook_data(ctx)	   as_pointer((ctx)->data)
#define hook_data_end(ctx) as_pointer((ctx)->data_end)

#endif
