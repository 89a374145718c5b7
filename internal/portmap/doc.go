// Package portmap lets hosts behind the box open ports for themselves: a server for UPnP's
// internet gateway device, NAT-PMP and PCP. It keeps the mappings and has the daemon load
// their rules into one anchor. Packets do not go through it.
//
//	host ── UPnP, NAT-PMP, PCP ──▶ sockets ─▶ keeper ── anchor ──▶ daemon
//	host ◀══════════ rdr-to, pass ══════════ wan                    packets
//
// One task, the keeper, changes the mappings. Whoever asks meanwhile waits for the same
// load. Each socket is bound to one interface of the LAN, so nothing that comes by another
// reaches it.
package portmap
