package hostinfo

import (
	"fmt"
	"strconv"

	"weir/internal/host/netif"
)

// Sysctls of conntrack, shared by all network namespaces.
const (
	ConntrackMax     = "net/netfilter/nf_conntrack_max"
	ConntrackBuckets = "net/netfilter/nf_conntrack_buckets"
)

// Conntrack holds the machine's connection limits that the nft paths need.
type Conntrack struct {
	Max     int `json:"max"`
	Buckets int `json:"buckets"`
}

// ReadConntrack reads the limits. The error is fs.ErrNotExist if the kernel has no
// conntrack, or has not loaded it yet.
func ReadConntrack() (Conntrack, error) {
	var c Conntrack
	for _, s := range []struct {
		name  string
		value *int
	}{{ConntrackMax, &c.Max}, {ConntrackBuckets, &c.Buckets}} {
		text, err := netif.Sysctl(s.name)
		if err != nil {
			return c, err
		}
		if *s.value, err = strconv.Atoi(text); err != nil {
			return c, fmt.Errorf("read sysctl %s: %w", s.name, err)
		}
	}
	return c, nil
}
