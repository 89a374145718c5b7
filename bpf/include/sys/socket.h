/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* weir: what <linux/if.h> wants from the C library, which BPF code has not. */
#ifndef WEIR_SYS_SOCKET_H
#define WEIR_SYS_SOCKET_H

#include <linux/socket.h>

struct sockaddr {
	__kernel_sa_family_t sa_family;
	char sa_data[14];
};

#endif
