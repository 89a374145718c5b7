package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/internal/host/netif"
	"weir/internal/killpoint"
)

// The guard stands behind the dataplane: what the stack forwards and none of weir's
// programs has handed to it is dropped by nftables. It is known by weir's own bits of
// the mark, which no packet has that comes in. Other tables are left alone; an accept
// here does not overrule their drops.
const (
	GuardTable = "inet weir"
	guardRules = `table inet weir
delete table inet weir
table inet weir {
	comment "weir drops what is forwarded past it"
	chain forward {
		type filter hook forward priority filter; policy drop;
%s	}
}
`
)

// guardAccept is the guard's rule for a set mark-mask. nft prints the condition in
// another form, the comment as it is.
const guardAccept = "\t\tmeta mark & 0x%08[1]x != 0x00000000 accept comment \"mark-mask 0x%08[1]x\"\n"

var guardMask = regexp.MustCompile(`"mark-mask (0x[0-9a-f]{8})"`)

// errNoNft is returned where the guard cannot stand because the machine has no
// nft program or its kernel no nftables. TCX egress drops the same packets.
var errNoNft = errors.New("no guard in nftables")

// raiseGuard puts a guard up that accepts what bears bits of one of the masks, in the
// place of one that stands.
func raiseGuard(masks []uint32) error {
	if _, err := exec.LookPath("nft"); err != nil {
		return fmt.Errorf("%w: the nft program is not installed", errNoNft)
	}
	var rules strings.Builder
	for _, mask := range masks {
		fmt.Fprintf(&rules, guardAccept, mask)
	}
	_, err := nft(fmt.Sprintf(guardRules, rules.String()), "-f", "-")
	if err == nil {
		killpoint.Done("raise the guard")
	}
	return err
}

// lowerGuard takes the guard away; none standing is fine.
func lowerGuard() error {
	if _, err := exec.LookPath("nft"); err != nil {
		return nil
	}
	if _, stands := standingGuard(); !stands {
		return nil
	}
	_, err := nft("", "delete", "table", "inet", "weir")
	if err == nil {
		killpoint.Done("lower the guard")
	}
	return err
}

// standingGuard returns the masks of the guard that stands, and whether one does.
func standingGuard() (masks []uint32, stands bool) {
	out, err := nft("", "list", "table", "inet", "weir")
	if err != nil {
		return nil, false
	}
	for _, m := range guardMask.FindAllSubmatch(out, -1) {
		if mask, err := strconv.ParseUint(string(m[1]), 0, 32); err == nil {
			masks = append(masks, uint32(mask))
		}
	}
	return masks, true
}

// widenGuard has the guard accept what programs of a set mark-mask hand to the stack,
// besides what it accepts already: the programs before them run until these have
// replaced them.
func widenGuard(mask uint32) error {
	masks, _ := standingGuard()
	if !slices.Contains(masks, mask) {
		masks = append(masks, mask)
	}
	return raiseGuard(masks)
}

// narrowGuard has the guard accept that alone.
func narrowGuard(mask uint32) error {
	masks, stands := standingGuard()
	if want := []uint32{mask}; stands && !slices.Equal(masks, want) {
		return raiseGuard(want)
	}
	return nil
}

// ForeignDrops names the forward chains of others whose policy is drop, as
// "nftables family table chain", "iptables table chain" or "ip6tables table
// chain": they see what weir hands to the stack (Docker, ufw, firewalld). Those
// of nftables are seen by the nft program alone.
func ForeignDrops() ([]string, error) {
	names, err := netif.LegacyForwardDrops()
	if err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("nft"); err != nil {
		return names, nil
	}
	out, err := nft("", "-j", "list", "chains")
	if errors.Is(err, errNoNft) {
		return names, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := foreignDrops(out)
	return append(found, names...), err
}

// noteForeignDrops warns of such chains at the start: what a user then misses
// has not been lost by weir.
func (b *box) noteForeignDrops() {
	names, err := ForeignDrops()
	if err != nil {
		b.cfg.Log.Warn("cannot see whether another firewall drops what is forwarded", "error", err)
	}
	for _, name := range names {
		b.cfg.Log.Warn("another firewall drops what is forwarded unless it accepts it: it sees the packets that weir hands to the stack", "chain", name)
	}
}

func foreignDrops(list []byte) ([]string, error) {
	var all struct {
		Nftables []struct {
			Chain *struct{ Family, Table, Name, Hook, Policy string }
		}
	}
	if err := json.Unmarshal(list, &all); err != nil {
		return nil, fmt.Errorf("read the list of nft chains: %w", err)
	}
	var names []string
	for _, x := range all.Nftables {
		c := x.Chain
		if c == nil || c.Hook != "forward" || c.Policy != "drop" || c.Family+" "+c.Table == GuardTable {
			continue
		}
		names = append(names, strings.Join([]string{"nftables", c.Family, c.Table, c.Name}, " "))
	}
	return names, nil
}

// nft runs the nft program in this network namespace. The error is errNoNft
// where the kernel has no nftables.
func nft(input string, args ...string) ([]byte, error) {
	cmd := exec.Command("nft", args...)
	cmd.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}
	said := strings.TrimSpace(strings.SplitN(stderr.String(), "\n", 2)[0])
	if strings.Contains(said, "Protocol not supported") || strings.Contains(said, "Operation not supported") {
		return nil, fmt.Errorf("%w: the kernel has no nftables (%s)", errNoNft, said)
	}
	return nil, fmt.Errorf("nft %s: %s: %w", strings.Join(args, " "), said, err)
}
