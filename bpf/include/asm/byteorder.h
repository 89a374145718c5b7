/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* weir: the BPF target is 64-bit little-endian whatever machine builds it. */
#include <linux/byteorder/little_endian.h>
