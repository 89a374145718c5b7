package db

// formulas maps the names that records use for functions of package arith to the formula
// as people write it.
var formulas = map[string]string{
	"socket-buffer":  "2 x bandwidth x round-trip time / 8, in whole pages; window scale = smallest w with 65535 x 2^w >= buffer",
	"socket-limit":   "9/8 of the socket buffer (256 bytes of an mbuf with each cluster of 2048), in whole pages",
	"mss":            "MTU - 40 (IPv4) or - 60 (IPv6); PPPoE takes 8 of the MTU; timestamps take 12 of each segment",
	"initial-window": "65535 / MSS",
	"queues":         "physical cores / ports in use, at least 1; on Linux those of the card's NUMA node, at least 2, but no more than there are",
	"ifqmaxlen":      "max(256 x ports, packets of 1460 bytes in 50 ms)",
	"backlog":        "4 x (connections in a burst - those accepted meanwhile), up to a power of two, at least 128",
	"budget":         "packets in 2 ms at the line's rate of 1500-byte frames, between 300 and 4096",
	"netdev-backlog": "packets of 1500 bytes in 10 ms at the line's rate, at least 1000",
	"keepalive":      "keepidle + keepintvl x keepcnt",
	"power-of-two":   "a power of two",
	"ring":           "twice as long, where packets were missed, at most 4096",
	"udp-hash":       "addresses and ports: sdfn",
	"all-queues":     "all queues in turn",
	"spread":         "the cores in turn, those of the card's NUMA node first, one thread of each",
	"conntrack":      "1 state per 16 KB of memory, between 65536 and 1048576",
}
