package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"weir/internal/fw/rundir"
	"weir/internal/units"
	"weir/internal/vpn/inquiry"
	"weir/internal/vpn/ipsec"
	"weir/internal/vpn/keeper"
	"weir/internal/vpn/summary"
	"weir/pf/resolve"
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

// readTunnels reads which tunnels the rules in force have.
func readTunnels(folder rundir.Folder) (t resolve.Tunnels, err error) {
	if err = rundir.ReadJSON(folder.Tunnels(), &t); err != nil {
		err = fmt.Errorf("read which tunnels there are: %w", err)
	}
	return t, err
}

// compareSite compares a tunnel of IPsec with the summary of its other end. Without a name it is the one that
// fits who the summary says that the ends are.
func compareSite(folder rundir.Folder, s *summary.SealedSite, on string, args []string) ([]inquiry.Finding, error) {
	tunnels, err := readTunnels(folder)
	if err != nil {
		return nil, err
	}
	var found, own *resolve.IKEv2
	for i := range tunnels.IKEv2 {
		t := &tunnels.IKEv2[i]
		if s.Own(t) {
			own = t
		}
		if on != "" && t.Name != on || len(args) > 0 && t.Name != args[0] || len(args) == 0 && on == "" && !s.Fits(t) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("the summary may be that of the other end of %s or of %s: name the interface", found.Name, t.Name)
		}
		found = t
	}
	switch {
	case found != nil:
		return summary.CompareSite(found, s, time.Now()), nil
	case own != nil && len(args) == 0 && on == "": // which says so
		return summary.CompareSite(own, s, time.Now()), nil
	case len(args) > 0 && on != "" && on != args[0]:
		return nil, fmt.Errorf("the summary is that of a tunnel of IPsec, which has no peers: %s is not on %s", args[0], on)
	case len(args) > 0 || on != "":
		return nil, fmt.Errorf("the summary is that of a tunnel of IPsec, and the rules in force have none named %s", cmp.Or(on, strings.Join(args, "")))
	}
	return nil, errors.New("no tunnel of the rules in force fits who the summary says that the ends are: name the interface to compare with one")
}
