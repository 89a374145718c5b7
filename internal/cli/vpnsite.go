package cli

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"weir/internal/units"
	"weir/internal/vpn/ipsec"
	"weir/internal/vpn/keeper"
)

// printSite prints what is known of a tunnel of IPsec.
func printSite(w io.Writer, s *keeper.Site, now time.Time) {
	who := s.DstID
	if s.Peer != "" && s.Peer != s.DstID {
		who += " at " + s.Peer
	}
	fmt.Fprintf(w, "  %s: ", who)
	switch ike := s.Speaking(); {
	case ike == nil && s.Passive:
		fmt.Fprintln(w, "not up; the peer has to begin")
	case ike == nil:
		fmt.Fprintln(w, "not up")
	case !ike.Established():
		fmt.Fprintln(w, "not up; a connection is being made")
	case s.Up() == nil:
		fmt.Fprintln(w, "authenticated, but there are no keys for packets")
	default:
		fmt.Fprintln(w, "up")
	}
	for i := range s.SAs {
		printIKE(w, &s.SAs[i])
	}
	if len(s.Networks) > 0 {
		fmt.Fprintf(w, "    networks %s\n", prefixList(s.Networks))
	}
	if s.Note != "" {
		fmt.Fprintf(w, "    note: %s\n", s.Note)
	}
	if s.Error != "" {
		fmt.Fprintf(w, "    %s ago: %s\n", now.Sub(s.ErrorTime).Round(time.Second), s.Error)
	}
}

func printIKE(w io.Writer, ike *ipsec.IKE) {
	fmt.Fprintf(w, "    IKE %s: %s, from %s [%s] to %s [%s]", ike.ID, strings.ToLower(ike.State), ike.Local, ike.LocalID, ike.Remote, ike.RemoteID)
	if ike.Established() {
		fmt.Fprintf(w, ", %s, for %s, new keys in %s", ike.Algorithms, ike.Age, ike.Rekey)
	}
	if ike.NAT {
		fmt.Fprint(w, ", behind NAT")
	}
	fmt.Fprintln(w)
	for i := range ike.Children {
		c := &ike.Children[i]
		protocol := "ESP"
		if c.Encap {
			protocol = "ESP in UDP"
		}
		fmt.Fprintf(w, "    %s %s/%s: %s, %s, received %sB, sent %sB, for %s, new keys in %s, %s to %s\n", protocol, c.In, c.Out, strings.ToLower(c.State), c.Algorithms,
			units.Short(float64(c.Received)), units.Short(float64(c.Sent)), c.Age, c.Rekey, prefixList(c.From), prefixList(c.To))
	}
}

func prefixList(all []netip.Prefix) string {
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = p.String()
	}
	return strings.Join(texts, " ")
}
