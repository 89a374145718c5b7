package userspace

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
)

// removals returns what has an engine forget peers, in the protocol of
// https://www.wireguard.com/xplatform/. It is said before all else, which may fail.
func removals(from, to *tunnel.Config) string {
	if from == nil {
		return "replace_peers=true\n" // whatever an attempt that failed has left
	}
	var b strings.Builder
	for i := range from.Peers {
		if find(to.Peers, from.Peers[i].Key) < 0 {
			fmt.Fprintf(&b, "public_key=%s\nremove=true\n", from.Peers[i].Key.Hex())
		}
	}
	return b.String()
}

// changes returns what else has an engine go from one configuration to another. Before the first there
// is none: from is nil.
func changes(from, to *tunnel.Config) string {
	var b strings.Builder
	if from == nil || from.Private != to.Private {
		private := to.Private.Reveal()
		fmt.Fprintf(&b, "private_key=%s\n", hex.EncodeToString(private[:]))
	}
	if from == nil || from.Port != to.Port {
		fmt.Fprintf(&b, "listen_port=%d\n", to.Port)
	}
	var before []tunnel.Peer
	if from != nil {
		before = from.Peers
	}
	for i := range to.Peers {
		p := &to.Peers[i]
		at := find(before, p.Key)
		if at < 0 {
			writePeer(&b, p, nil)
		} else if !reflect.DeepEqual(before[at], *p) {
			writePeer(&b, p, &before[at])
		}
	}
	return b.String()
}

func find(peers []tunnel.Peer, k key.Public) int {
	return slices.IndexFunc(peers, func(p tunnel.Peer) bool { return p.Key == k })
}

// writePeer writes what of a peer differs. The endpoint of one that roams stays as it is.
func writePeer(b *strings.Builder, p, was *tunnel.Peer) {
	fmt.Fprintf(b, "public_key=%s\n", p.Key.Hex())
	if was == nil || was.Preshared != p.Preshared {
		preshared := p.Preshared.Reveal()
		fmt.Fprintf(b, "preshared_key=%s\n", hex.EncodeToString(preshared[:]))
	}
	if p.Endpoint.IsValid() && (was == nil || was.Endpoint != p.Endpoint) {
		fmt.Fprintf(b, "endpoint=%s\n", p.Endpoint)
	}
	if was == nil || !slices.Equal(was.Allowed, p.Allowed) {
		b.WriteString("replace_allowed_ips=true\n")
		for _, a := range p.Allowed {
			fmt.Fprintf(b, "allowed_ip=%s\n", a)
		}
	}
	if was == nil || was.Keepalive != p.Keepalive {
		fmt.Fprintf(b, "persistent_keepalive_interval=%d\n", p.Keepalive)
	}
}

// readStates reads what an engine tells of its peers. It keeps no secret.
func readStates(r io.Reader) (all []tunnel.State, err error) {
	lines := bufio.NewScanner(r)
	var seconds int64
	for lines.Scan() {
		word, value, _ := strings.Cut(lines.Text(), "=")
		if word == "public_key" {
			b, err := hex.DecodeString(value)
			if err != nil || len(b) != key.Size {
				return nil, fmt.Errorf("a public key of %d characters", len(value))
			}
			all = append(all, tunnel.State{Key: key.Public(b)})
			continue
		}
		if len(all) == 0 {
			continue // it is about the device
		}
		s := &all[len(all)-1]
		switch word {
		case "endpoint":
			s.Endpoint, err = netip.ParseAddrPort(value)
		case "last_handshake_time_sec":
			seconds, err = strconv.ParseInt(value, 10, 64)
		case "last_handshake_time_nsec":
			var n int64
			if n, err = strconv.ParseInt(value, 10, 64); seconds != 0 || n != 0 {
				s.Handshake = time.Unix(seconds, n)
			}
		case "tx_bytes":
			s.Sent, err = strconv.ParseUint(value, 10, 64)
		case "rx_bytes":
			s.Received, err = strconv.ParseUint(value, 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("%s of a peer: %w", word, err)
		}
	}
	return all, lines.Err()
}
