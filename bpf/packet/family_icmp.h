/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* ICMP errors of the other address family: types, codes, MTU and pointer (RFC 7915, 4.2 and
 * 5.2). */
#ifndef WEIR_PACKET_FAMILY_ICMP_H
#define WEIR_PACKET_FAMILY_ICMP_H

#include "packet/family.h"

/* The header of an ICMP error. */
struct family_error_header {
	__u8 type;
	__u8 code;
	__u16 check;
	__be32 rest; /* MTU, pointer or length of the quote */
};

/* Errors with more than the quote say behind how much of it that begins (RFC 4884). Shorter
 * quotes have nothing behind them. */
#define FAMILY_QUOTE_LEAST 128

/* Returns the bytes of the quote if more follows it; 0: nothing does. */
static __always_inline __u32 family_quote_length(__u8 family, const struct family_error_header *h)
{
	__u32 rest = bpf_ntohl(h->rest), length;

	if (family == 4)
		length = (rest >> 16 & 0xff) * 4;
	else
		length = h->type == 1 || h->type == 3 ? (rest >> 24) * 8 : 0;
	return length < FAMILY_QUOTE_LEAST ? 0 : length;
}

/* Returns the likely MTU of a path by a router that names none: the next smaller size of a
 * link (RFC 1191, 7). */
static __always_inline __u32 family_plateau(__u32 length)
{
	if (length > 32000)
		return 32000;
	if (length > 17914)
		return 17914;
	if (length > 8166)
		return 8166;
	if (length > 4352)
		return 4352;
	if (length > 2002)
		return 2002;
	return length > 1492 ? 1492 : FAMILY_CUTS;
}

/* Returns where IPv6's header has the field at a place of IPv4's; < 0: nowhere. */
static __always_inline int family_pointer6(__u32 at)
{
	switch (at) {
	case 0:
	case 1:
		return at;
	case 2:
	case 3:
		return 4;
	case 8:
		return 7;
	case 9:
		return 6;
	}
	if (at >= 12 && at < 16)
		return 8;
	return at >= 16 && at < 20 ? 24 : -1;
}

/* The other way round. */
static __always_inline int family_pointer4(__u32 at)
{
	switch (at) {
	case 0:
	case 1:
		return at;
	case 4:
	case 5:
		return 2;
	case 6:
		return 9;
	case 7:
		return 8;
	}
	if (at >= 8 && at < 24)
		return 12;
	return at >= 24 && at < 40 ? 16 : -1;
}

/* Changes "destination unreachable" of IPv4. length: of the packet that it quotes. */
static __always_inline int family_unreachable6(struct family_error_header *h, __u32 length)
{
	__u32 mtu = bpf_ntohl(h->rest) & 0xffff;

	h->type = 1;
	h->rest = 0;
	switch (h->code) {
	case 0: /* network, host, no route for this service */
	case 1:
	case 5:
	case 6:
	case 7:
	case 8:
	case 11:
	case 12:
		h->code = 0;
		return 0;
	case 2: /* protocol: next header */
		h->type = 4;
		h->code = 1;
		h->rest = bpf_htonl(6);
		return 0;
	case 3: /* port */
		h->code = 4;
		return 0;
	case 4: /* fragmentation needed: packet too big */
		mtu = (mtu ? mtu : family_plateau(length)) + sizeof(struct ipv6hdr) - sizeof(struct iphdr);
		h->type = 2;
		h->code = 0;
		h->rest = bpf_htonl(mtu < FAMILY_LEAST_MTU ? FAMILY_LEAST_MTU : mtu);
		return 0;
	case 9: /* prohibited */
	case 10:
	case 13:
	case 15:
		h->code = 1;
		return 0;
	}
	return -1;
}

/* Changes the header of an error of IPv4. < 0: IPv6 has none like it. */
static __always_inline int family_error6(struct family_error_header *h, __u32 length)
{
	int pointer;

	switch (h->type) {
	case 3:
		return family_unreachable6(h, length);
	case 11: /* time exceeded */
		h->type = 3;
		h->rest = 0;
		return 0;
	case 12: /* parameter problem */
		pointer = family_pointer6(bpf_ntohl(h->rest) >> 24);
		if (pointer < 0 || (h->code != 0 && h->code != 2))
			return -1;
		h->type = 4;
		h->code = 0;
		h->rest = bpf_htonl(pointer);
		return 0;
	}
	return -1;
}

/* Changes "destination unreachable" of IPv6. */
static __always_inline int family_unreachable4(struct family_error_header *h)
{
	h->type = 3;
	h->rest = 0;
	switch (h->code) {
	case 0:
	case 2:
	case 3:
		h->code = 1; /* host */
		return 0;
	case 1:
		h->code = 10; /* prohibited */
		return 0;
	case 4:
		h->code = 3; /* port */
		return 0;
	}
	return -1;
}

/* Changes the header of an error of IPv6. shorter: bytes by which IPv4's headers in front of
 * the quoted packet are shorter. < 0: IPv4 has none like it. */
static __always_inline int family_error4(struct family_error_header *h, __u32 shorter)
{
	__u32 value = bpf_ntohl(h->rest);
	int pointer;

	switch (h->type) {
	case 1:
		return family_unreachable4(h);
	case 2: /* packet too big: fragmentation needed */
		if (value < FAMILY_LEAST_MTU)
			value = FAMILY_LEAST_MTU;
		value -= shorter;
		h->type = 3;
		h->code = 4;
		h->rest = bpf_htonl(value > 0xffff ? 0xffff : value);
		return 0;
	case 3: /* time exceeded */
		h->type = 11;
		h->rest = 0;
		return 0;
	case 4: /* parameter problem */
		pointer = family_pointer4(value);
		if (h->code == 1) { /* next header: protocol */
			h->type = 3;
			h->code = 2;
			h->rest = 0;
			return 0;
		}
		if (pointer < 0 || h->code != 0)
			return -1;
		h->type = 12;
		h->rest = bpf_htonl(pointer << 24);
		return 0;
	}
	return -1;
}

#endif
