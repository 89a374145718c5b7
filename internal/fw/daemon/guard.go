package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/internal/host/netif"
	"weir/internal/killpoint"
)

// The guard backs up the dataplane. With nftables it drops packets that the stack
// forwards but that no program of weir has handed off. It recognises a hand-off by weir's
// own mark bits, which no incoming packet has. It leaves other tables alone, and its
// accept does not overrule their drops.
const (
	GuardTable = "inet weir"
	guardRules = `table inet weir
delete table inet weir
table inet weir {
	comment "drops packets that bypass weir"
	chain forward {
		type filter hook forward priority filter; policy drop;
%s	}
}
`
)

// guardAccept is the guard's rule for one mark mask. nft prints the condition in another
// form but keeps the comment.
const guardAccept = "\t\tmeta mark & 0x%08[1]x != 0x00000000 accept comment \"mark-mask 0x%08[1]x\"\n"

var guardMask = regexp.MustCompile(`"mark-mask (0x[0-9a-f]{8})"`)

// errNoNft is returned if the machine has no nft program or its kernel has no nftables.
// TCX egress drops the same packets.
var errNoNft = errors.New("nftables cannot hold the guard")

// raiseGuard installs a guard that accepts packets with a bit of one of the masks. It
// replaces a guard that exists.
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

// lowerGuard removes the guard. It is not an error if there is none.
func lowerGuard() error {
	if _, err := exec.LookPath("nft"); err != nil {
		return nil
	}
	_, installed, err := installedGuard()
	if errors.Is(err, errNoNft) || err == nil && !installed {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = nft("", "delete", "table", "inet", "weir")
	if err == nil {
		killpoint.Done("lower the guard")
	}
	return err
}

// installedGuard returns the masks of the installed guard, and whether there is one.
func installedGuard() (masks []uint32, installed bool, err error) {
	out, err := nft("", "list", "table", "inet", "weir")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	for _, m := range guardMask.FindAllSubmatch(out, -1) {
		if mask, err := strconv.ParseUint(string(m[1]), 0, 32); err == nil {
			masks = append(masks, uint32(mask))
		}
	}
	return masks, true, nil
}

// widenGuard makes the guard also accept the bits of mask. The old programs run until the
// new ones have replaced them, so both masks are in use.
func widenGuard(mask uint32) error {
	masks, _, err := installedGuard()
	if err != nil {
		return err
	}
	if !slices.Contains(masks, mask) {
		masks = append(masks, mask)
	}
	return raiseGuard(masks)
}

// narrowGuard makes the guard accept only the bits of mask.
func narrowGuard(mask uint32) error {
	masks, installed, err := installedGuard()
	if err != nil && !errors.Is(err, errNoNft) {
		return err
	}
	if want := []uint32{mask}; installed && !slices.Equal(masks, want) {
		return raiseGuard(want)
	}
	return nil
}

// ForeignDrops lists the forward chains of other software whose policy is drop, as
// "nftables family table chain", "iptables table chain" or "ip6tables table chain"
// (Docker, ufw, firewalld). They see what weir hands off to the stack. Only the nft
// program shows the nftables ones.
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

// noteForeignDrops warns about such chains at the start, so that the user does not blame
// weir for packets that they drop.
func (b *box) noteForeignDrops() {
	names, err := ForeignDrops()
	if err != nil {
		b.cfg.Log.Warn("cannot tell whether another firewall drops forwarded packets", "error", err)
	}
	for _, name := range names {
		b.cfg.Log.Warn("another firewall drops forwarded packets by default, also those that weir hands to the stack: accept them there", "chain", name)
	}
}

// noteMarkRules warns about policy routing rules that compare weir's own bits of the mark.
// They match none of the packets that weir hands to the stack, although they steer those
// that weir redirects.
func (b *box) noteMarkRules(own uint32) {
	rules, err := netif.MarkRules()
	if err != nil {
		b.cfg.Log.Warn("cannot tell whether policy routing rules compare weir's bits of the mark", "error", err)
	}
	for _, rule := range rules {
		if rule.Mask&own == 0 {
			continue
		}
		b.cfg.Log.Warn("a policy routing rule compares weir's own bits of the mark, so it misses packets that weir hands to the stack: "+
			"give its fwmark a mask without these bits", "rule", rule.String(), "bits", fmt.Sprintf("%#x", own))
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

// nft runs the nft program in this network namespace. The error wraps errNoNft if the
// machine has no nft program or its kernel no nftables, and fs.ErrNotExist if there is no
// such table.
func nft(input string, args ...string) ([]byte, error) {
	cmd := exec.Command("nft", args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C") // its messages are read here
	cmd.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("%w: the nft program is not installed", errNoNft)
	}
	said := strings.TrimSpace(strings.SplitN(stderr.String(), "\n", 2)[0])
	if strings.Contains(said, "Protocol not supported") || strings.Contains(said, "Operation not supported") {
		return nil, fmt.Errorf("%w: the kernel has no nftables (%s)", errNoNft, said)
	}
	if strings.Contains(said, "No such file or directory") {
		err = fs.ErrNotExist
	}
	return nil, fmt.Errorf("nft %s: %s: %w", strings.Join(args, " "), said, err)
}
