// Package ftp is a proxy for FTP's control connections (RFC 959, 2428). FTP tells the
// addresses of its data connections inside the control connection, so a firewall that
// reads headers can neither pass nor translate them. The proxy reads along, and has rules
// loaded for each data connection before either end learns of it. The data itself does not
// go through the proxy.
//
//	client ── divert-to ──▶ proxy ── from the box's address ──▶ server       control
//	client ◀═════ rules of the session's anchor, NAT ═════▶ server           data
//
// It does what OpenBSD's ftp-proxy(8) does, for both families.
package ftp
