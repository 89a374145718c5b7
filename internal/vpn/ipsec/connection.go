package ipsec

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/strongswan/govici/vici"

	"weir/pf/resolve"
)

// prefix is what the names of weir's connections and preshared keys in charon begin with.
const prefix = "weir-"

// A section is a part of a message, in order.
type section []entry

// An entry has a string, a []string or a section. One that is empty is left out.
type entry struct {
	key   string
	value any
}

// message turns a section into what govici sends.
func (s section) message() *vici.Message {
	m := vici.NewMessage()
	for _, e := range s {
		value := e.value
		switch v := value.(type) {
		case string:
			if v == "" {
				continue
			}
		case []string:
			if len(v) == 0 {
				continue
			}
		case section:
			value = v.message()
		}
		if err := m.Set(e.key, value); err != nil {
			panic(err) // it takes all of these kinds
		}
	}
	return m
}

// connection returns a tunnel as charon takes it. It has certificates, which are public, and no keys.
func connection(t *resolve.IKEv2, c *credentials, perCPU bool) section {
	p := profiles[t.Proposals]
	auth := "psk"
	if t.PSKFile == "" {
		auth = "pubkey"
	}
	local := section{{"auth", auth}, {"id", t.SrcID}}
	remote := section{{"auth", auth}, {"id", t.DstID}}
	sendCert := ""
	if c.leaf != nil {
		local = append(local, entry{"certs", []string{string(c.leaf)}})
		remote = append(remote, entry{"cacerts", texts(c.cas)})
		sendCert = "always" // some peers do not ask, and have none
	}
	peer := t.Peer
	if peer == "" {
		peer = "%any"
	}
	return section{
		{"version", "2"},
		{"local_addrs", optional(t.Local)},
		{"remote_addrs", []string{peer}},
		{"proposals", p.ike},
		{"mobike", "no"}, // it would offer the addresses inside the tunnel as ways to it
		{"fragmentation", "yes"},
		{"encap", yes(t.Encap)},
		{"send_cert", sendCert},
		{"unique", "no"}, // a peer that begins anew says so; whoever replaces more can end both of two at once
		{"dpd_delay", seconds(uint32(t.DPD))},
		{"rekey_time", seconds(t.IKELifetime)},
		{"local", local},
		{"remote", remote},
		{"children", children(t, p.esp, perCPU)},
	}
}

// A pair is what keys for packets are for, and how charon calls them.
type pair struct {
	name     string
	from, to []netip.Prefix
}

// pairs are what a tunnel needs keys for: one for all, or each network here with each of the peer. Some peers agree to one
// network at either end at a time.
func pairs(t *resolve.IKEv2) (all []pair) {
	name := prefix + t.Name
	if !t.PerPair {
		return []pair{{name, t.From, t.To}}
	}
	for _, from := range t.From {
		for _, to := range t.To {
			if from.Addr().Is4() != to.Addr().Is4() {
				continue
			}
			p := pair{name, []netip.Prefix{from}, []netip.Prefix{to}}
			if len(all) > 0 {
				p.name = fmt.Sprintf("%s-%d", name, len(all)+1)
			}
			all = append(all, p)
		}
	}
	return all
}

func (p *pair) String() string {
	return strings.Join(prefixes(p.from), " ") + " to " + strings.Join(prefixes(p.to), " ")
}

// has reports whether there are keys for a pair.
func (i *IKE) has(p *pair) bool {
	return slices.ContainsFunc(i.Children, func(c Child) bool { return c.carries() && within(c.From, p.from[0]) && within(c.To, p.to[0]) })
}

// hasPart reports whether there are keys for a part of a pair: the peer has agreed to less, and asking again would bring more
// keys for that. Keys for exactly another one of all pairs are that one's.
func (i *IKE) hasPart(p *pair, all []pair) bool {
	return slices.ContainsFunc(i.Children, func(c Child) bool {
		others := slices.ContainsFunc(all, func(o pair) bool {
			return o.name != p.name && slices.Equal(c.From, o.from) && slices.Equal(c.To, o.to)
		})
		return c.carries() && !others && slices.ContainsFunc(c.From, p.from[0].Overlaps) && slices.ContainsFunc(c.To, p.to[0].Overlaps)
	})
}

// missing are the pairs that there are not all keys for, of a tunnel with keys for each.
func missing(t *resolve.IKEv2, up *IKE) []pair {
	return slices.DeleteFunc(pairs(t), func(p pair) bool { return !t.PerPair || up.has(&p) })
}

func children(t *resolve.IKEv2, proposals []string, perCPU bool) (all section) {
	for _, p := range pairs(t) {
		all = append(all, entry{p.name, child(t, &p, proposals, perCPU)})
	}
	return all
}

// replayWindow is how many packets may overtake others: those of several cores do.
const replayWindow = "1024"

func child(t *resolve.IKEv2, p *pair, proposals []string, perCPU bool) section {
	id, start, each := fmt.Sprint(t.ID), "none", ""
	if perCPU { // a packet on a core without keys has charon ask for some
		start, each = "trap", "yes"
	}
	return section{
		{"mode", "tunnel"},
		{"local_ts", prefixes(p.from)},
		{"remote_ts", prefixes(p.to)},
		{"esp_proposals", proposals},
		{"rekey_time", seconds(t.Lifetime)},
		{"if_id_in", id},
		{"if_id_out", id},
		{"replay_window", replayWindow},
		{"start_action", start}, // weir begins
		{"close_action", "none"},
		{"dpd_action", "clear"},
		{"per_cpu_sas", each},
	}
}

func seconds(n uint32) string { return fmt.Sprintf("%ds", n) }

func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

func optional(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

func prefixes(all []netip.Prefix) (texts []string) {
	for _, p := range all {
		texts = append(texts, p.String())
	}
	return texts
}

func texts(all [][]byte) (texts []string) {
	for _, b := range all {
		texts = append(texts, string(b))
	}
	return texts
}

// owners are the identities that a preshared key is for: the peer's alone. charon takes a key for any
// peer that speaks with one of the owners, so with this end's identity among them, each peer could pass
// as any other.
func owners(t *resolve.IKEv2) []string { return []string{t.DstID} }
