package ipsec

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/strongswan/govici/vici"
)

// State is what is known of a tunnel.
type State struct {
	Problem   string    `json:"problem,omitempty"` // it is not what the rules say; it is tried again
	Note      string    `json:"note,omitempty"`    // what charon or the kernel cannot do for it
	Error     string    `json:"last_error,omitempty"`
	ErrorTime time.Time `json:"last_error_time,omitzero"`
	SAs       []IKE     `json:"ike_sas"`
	Missing   []string  `json:"missing_pairs,omitempty"` // pairs of networks that there are no keys for, if each has its own
}

// IKE is what both ends have agreed upon to speak with each other: an IKE_SA.
type IKE struct {
	ID         string  `json:"id"`
	State      string  `json:"state"` // ESTABLISHED, CONNECTING and others, as charon calls them
	Local      string  `json:"local"`
	Remote     string  `json:"remote"`
	LocalID    string  `json:"local_id"`
	RemoteID   string  `json:"remote_id"`
	Initiator  bool    `json:"initiator"`
	NAT        bool    `json:"nat"` // one of the ends is behind NAT
	Algorithms string  `json:"algorithms,omitempty"`
	Age        Seconds `json:"age_seconds"`
	Rekey      Seconds `json:"rekey_in_seconds"`
	Children   []Child `json:"children"`

	making bool // charon is at keys for packets
}

// Child has the keys for packets: a CHILD_SA.
type Child struct {
	ID         string         `json:"id"`
	State      string         `json:"state"` // INSTALLED and others
	Encap      bool           `json:"encap"` // ESP in UDP
	In         string         `json:"spi_in"`
	Out        string         `json:"spi_out"`
	CPU        string         `json:"cpu,omitempty"`
	Algorithms string         `json:"algorithms,omitempty"`
	Received   uint64         `json:"received_bytes"`
	Sent       uint64         `json:"sent_bytes"`
	Age        Seconds        `json:"age_seconds"`
	Rekey      Seconds        `json:"rekey_in_seconds"`
	From       []netip.Prefix `json:"from"`
	To         []netip.Prefix `json:"to"`
}

// What charon calls states.
const (
	established = "ESTABLISHED"
	connecting  = "CONNECTING"
	installed   = "INSTALLED"
)

// Up returns an IKE_SA with keys for packets, or nil.
func (s *State) Up() *IKE {
	for i := range s.SAs {
		for j := range s.SAs[i].Children {
			if s.SAs[i].Children[j].carries() {
				return &s.SAs[i]
			}
		}
	}
	return nil
}

// Speaking returns an IKE_SA that is established, or else one that is being made, or nil.
func (s *State) Speaking() (found *IKE) {
	for i := range s.SAs {
		if found == nil || s.SAs[i].State == established {
			found = &s.SAs[i]
		}
	}
	return found
}

// Established reports whether both ends know each other.
func (i *IKE) Established() bool { return i.State != connecting && i.State != "CREATED" }

// carries reports whether packets go: those of old keys do, until the new ones are there.
func (c *Child) carries() bool {
	return c.State == installed || c.State == "REKEYING" || c.State == "UPDATING"
}

// Covers reports whether packets to a network go through, as far as charon and the peer have agreed.
func (i *IKE) Covers(n netip.Prefix) bool {
	return slices.ContainsFunc(i.Children, func(c Child) bool { return c.carries() && within(c.To, n) })
}

// Takes likewise reports whether packets from a network go through.
func (i *IKE) Takes(n netip.Prefix) bool {
	return slices.ContainsFunc(i.Children, func(c Child) bool { return c.carries() && within(c.From, n) })
}

func within(all []netip.Prefix, n netip.Prefix) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Bits() <= n.Bits() && p.Contains(n.Addr()) })
}

// steady reports whether keys for packets are there for some time: what a peer gives and takes away
// again at once does not count.
func (i *IKE) steady() bool {
	return i.Age >= steadyAge || slices.ContainsFunc(i.Children, func(c Child) bool { return c.carries() && c.Age >= steadyAge })
}

const steadyAge = Seconds(10)

func readIKE(m *vici.Message) IKE {
	at := func(host, port string) string {
		a, err := netip.ParseAddr(text(m, host))
		p, err2 := strconv.ParseUint(text(m, port), 10, 16)
		if err != nil || err2 != nil {
			return text(m, host)
		}
		return netip.AddrPortFrom(a, uint16(p)).String()
	}
	i := IKE{
		ID: text(m, "uniqueid"), State: text(m, "state"), Local: at("local-host", "local-port"), Remote: at("remote-host", "remote-port"),
		LocalID: text(m, "local-id"), RemoteID: text(m, "remote-id"), Initiator: text(m, "initiator") == "yes", NAT: text(m, "nat-any") == "yes",
		Algorithms: algorithms(m), Age: duration(m, "established"), Rekey: duration(m, "rekey-time"), Children: []Child{},
	}
	for _, key := range []string{"tasks-active", "tasks-queued"} {
		tasks, _ := m.Get(key).([]string)
		i.making = i.making || slices.Contains(tasks, "CHILD_CREATE")
	}
	children, _ := m.Get("child-sas").(*vici.Message)
	if children == nil {
		return i
	}
	for _, name := range children.Keys() {
		if c, ok := children.Get(name).(*vici.Message); ok {
			i.Children = append(i.Children, readChild(c))
		}
	}
	return i
}

func readChild(m *vici.Message) Child {
	number := func(key string) uint64 {
		n, _ := strconv.ParseUint(text(m, key), 10, 64) //nolint:errcheck // 0 while charon does not say
		return n
	}
	return Child{
		ID: text(m, "uniqueid"), State: text(m, "state"), Encap: text(m, "encap") == "yes", In: text(m, "spi-in"), Out: text(m, "spi-out"), CPU: text(m, "cpu"),
		Algorithms: algorithms(m), Received: number("bytes-in"), Sent: number("bytes-out"), Age: duration(m, "install-time"), Rekey: duration(m, "rekey-time"),
		From: selectors(m, "local-ts"), To: selectors(m, "remote-ts"),
	}
}

// selectors reads networks. What has a protocol or ports behind it is for a part of them.
func selectors(m *vici.Message, key string) (all []netip.Prefix) {
	texts, _ := m.Get(key).([]string)
	for _, t := range texts {
		if p, err := netip.ParsePrefix(t); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// Seconds is a time as charon tells it.
type Seconds int64

func (s Seconds) String() string { return (time.Duration(s) * time.Second).String() }

func duration(m *vici.Message, key string) Seconds {
	n, _ := strconv.ParseInt(text(m, key), 10, 64) //nolint:errcheck // 0 while charon does not say
	return Seconds(n)
}

// algorithms names what keys are used with.
func algorithms(m *vici.Message) string {
	var all []string
	for _, kind := range []string{"encr", "integ"} {
		name := text(m, kind+"-alg")
		if size := text(m, kind+"-keysize"); name != "" && size != "" {
			name += "-" + size
		}
		all = append(all, name)
	}
	all = append(all, text(m, "prf-alg"), text(m, "dh-group"))
	if text(m, "esn") == "1" {
		all = append(all, "ESN")
	}
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "/")
}
