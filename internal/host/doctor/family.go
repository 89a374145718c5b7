package doctor

import (
	"slices"
	"strings"
)

// Drivers name what they count as they like, but of the same words. A name of ethtool -S that no form matches is
// judged by its words.
var (
	roomWords   = []string{"miss", "missed", "fifo", "overrun", "overruns", "overflow", "overflows", "nobuf", "nobufs", "nobuffer", "nodesc", "discard", "discards", "discarded", "oob", "starved"}
	noWords     = []string{"no", "out", "without", "lack", "empty", "full", "insufficient", "unavail", "unavailable"}
	placeWords  = []string{"buf", "bufs", "buff", "buffer", "buffers", "desc", "descs", "descriptor", "descriptors", "descr", "resource", "resources", "rbd", "rbds", "rsrc", "bd", "bds", "credit", "credits"}
	damageWords = []string{"crc", "crcerr", "fcs", "fcserr", "symbol", "align", "alignment", "jabber", "jabbers", "dribble"}
	errorWords  = []string{"err", "errs", "error", "errors", "bad", "crcerr", "fcserr", "crcerrs", "fcserrs"}
	// receiveWords and sendWords say which way a counter is about.
	receiveWords = []string{"rx", "in", "rcv", "rcvd", "recv", "receive", "received", "ingress", "rxq", "rxd"}
	sendWords    = []string{"tx", "out", "sent", "send", "xmit", "transmit", "transmitted", "egress", "txq", "collision", "collisions"}
	// besideWords are of counters of something else: what a filter refuses by design, a cache of the driver, packets
	// that are not lost.
	besideWords = []string{"cache", "filter", "filtered", "filtering", "vlan", "steer", "ptp", "hwtstamp", "timestamp", "ts", "beacon", "lro", "gro", "xdp", "xsk", "almost", "unknown", "unsupported", "acl", "csum", "checksum", "pause", "xoff", "xon", "pfc", "ecn", "cnp", "roce", "rdma", "fec", "macsec", "ipsec", "tls", "good", "ok", "size", "depth", "level", "address", "addr", "dest", "umac", "arfs", "fdir", "mode", "enabled"}
)

// counterWords splits a counter's name: "RxNoBuffer_cnt" has rx, no, buffer and cnt.
func counterWords(name string) (all []string) {
	for _, word := range nameWord.FindAllString(name, -1) {
		all = append(all, strings.ToLower(word))
	}
	return all
}

func some(of, among []string) bool {
	return slices.ContainsFunc(of, func(word string) bool { return slices.Contains(among, word) })
}

// lacksRoom reports whether a card's counter is of packets that it received and had no room for.
func lacksRoom(name string) bool {
	if noRoom.MatchString(name) {
		return true
	}
	w := counterWords(name)
	if !some(w, receiveWords) || some(w, besideWords) || some(w, damageWords) {
		return false
	}
	without := some(w, noWords) && some(w, placeWords)
	return without || !some(w, sendWords) && some(w, roomWords)
}

// isDamage reports whether a card's counter is of frames that came damaged.
func isDamage(name string) bool {
	w := counterWords(name)
	if some(w, sendWords) {
		return false
	}
	return badFrames.MatchString(name) || some(w, damageWords) && some(w, errorWords) && !some(w, besideWords)
}
