package doctor

import "slices"

// helped is work that a card does for what it sends, and that some drivers, or hosts, do wrongly. Nothing counts that:
// the far end drops what comes.
type helped struct {
	features []string // any of them is on
	off      string   // of ethtool -K
	text     string
	needs    func(*view) bool
}

// cardHelp lists what cards do for tunnels. Of paravirtual cards, it is the host that does so.
var cardHelp = []helped{
	{
		features: []string{"tx-udp_tnl-segmentation", "tx-udp_tnl-csum-segmentation"}, off: "tx-udp_tnl-segmentation off tx-udp_tnl-csum-segmentation off",
		text: "try first without the card's help for tunnels over UDP: it cuts what is inside, and some drivers and hosts (vmxnet3) do that wrongly; it is undone at once (on)",
		needs: func(v *view) bool {
			return slices.ContainsFunc(v.Interfaces, func(d Interface) bool { return d.Up && overUDP[d.Kind] })
		},
	},
	{
		features: []string{"tx-gre-segmentation", "tx-gre-csum-segmentation", "tx-ipxip4-segmentation", "tx-ipxip6-segmentation"},
		off:      "tx-gre-segmentation off tx-gre-csum-segmentation off tx-ipxip4-segmentation off tx-ipxip6-segmentation off",
		text:     "try first without the card's help for tunnels: it cuts what is inside; it is undone at once (on)",
		needs: func(v *view) bool {
			return slices.ContainsFunc(v.Interfaces, func(d Interface) bool { return d.Up && overIP[d.Kind] })
		},
	},
	{
		features: []string{"esp-hw-offload"}, off: "esp-hw-offload off esp-tx-csum-hw-offload off",
		text: "try first without the card's encryption (the associations must be made anew): some cards lose short packets, or damage them, and count none",
		needs: func(v *view) bool {
			return slices.ContainsFunc(v.Tunnels, func(t Tunnel) bool { return t.Kind == "ipsec" })
		},
	},
}

// overIP lists kinds of tunnels without UDP that cards cut packets for.
var overIP = map[string]bool{"gre": true, "gretap": true, "ip6gre": true, "ip6gretap": true, "erspan": true, "ipip": true, "sit": true, "ip6tnl": true}

// on reports whether one of these features of a card is known to be on.
func (n *nic) on(features ...string) bool {
	return slices.ContainsFunc(features, func(name string) bool { on, known := n.feature(name); return known && on })
}

// withoutHelp returns the commands that let the kernel, not the cards, do what a card is known to do for tunnels here.
func (v *view) withoutHelp() (remedies []Remedy) {
	for _, h := range cardHelp {
		for _, n := range v.nics {
			if n.virtual || n.link.TxPackets == 0 || !n.on(h.features...) || !h.needs(v) {
				continue
			}
			remedies = append(remedies, Remedy{Command: "ethtool -K " + n.Name + " " + h.off, Text: h.text})
		}
	}
	return remedies
}

// withoutChecksums returns the commands that let the kernel fill in checksums: the last of such tests, for it costs most.
func (v *view) withoutChecksums() (remedies []Remedy) {
	for _, n := range v.nics {
		if n.virtual || paravirtual[n.Driver] || n.link.TxPackets == 0 || n.Features != nil && !n.on("tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-tcp-segmentation") {
			continue
		}
		remedies = append(remedies, Remedy{Command: "ethtool -K " + n.Name + " rx off tx off", Text: "if that does not help, without checksums by the card, either (segmentation needs them): it costs time, and is undone at once (on)"})
	}
	return remedies
}
