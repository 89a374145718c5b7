package paths

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/examples"
	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/internal/host/netif"
	"weir/internal/lab"
)

// startNft loads examples/gateway.nft with a case's further rules. It begins without
// known connections: one left by an earlier path would pass without translation.
func startNft(ctx context.Context, w *traffic.Setup, undo *UndoList) error {
	undo.Add(func() error {
		err := runNft(context.WithoutCancel(ctx), w.Testbed, "flush ruleset\n")
		return errors.Join(err, flushConnections(w.Testbed))
	})
	if err := runNft(ctx, w.Testbed, nftRules(w.Case)); err != nil {
		return err
	}
	return flushConnections(w.Testbed)
}

// runNft passes a text to nft in the firewall's namespace.
func runNft(ctx context.Context, n *testbed.Testbed, text string) error {
	cmd := exec.CommandContext(ctx, "nft", "-f", "-")
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(text), &stderr
	if err := n.Lab.Start(lab.FW, cmd); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("load rules with nft: %w: %s", err, firstLine(stderr.String()))
	}
	return nil
}

// flushConnections removes all connections from conntrack in the firewall's namespace,
// and checks that they are gone.
func flushConnections(n *testbed.Testbed) error {
	return n.Lab.Do(lab.FW, func() error {
		h, err := netlink.NewHandle(unix.NETLINK_NETFILTER)
		if err != nil {
			return fmt.Errorf("open conntrack: %w", err)
		}
		defer h.Close()
		if err := h.ConntrackTableFlush(netlink.ConntrackTable); err != nil {
			return fmt.Errorf("flush conntrack: %w", err)
		}
		left, err := netif.Sysctl("net/netfilter/nf_conntrack_count")
		if err != nil {
			return err
		}
		// A packet of the kernel itself may have arrived in the meantime.
		if count, err := strconv.Atoi(left); err != nil || count > 8 {
			return fmt.Errorf("flush conntrack: %s connections are left", left)
		}
		return nil
	})
}

// Missing returns why paths of those named cannot run on this machine, by name. No path
// may be in place.
func Missing(ctx context.Context, b *testbed.Testbed, names []string) map[string]string {
	found := map[string]string{}
	for _, kind := range []struct {
		paths []string
		why   func(context.Context, *testbed.Testbed) string
	}{{[]string{Nft, NftNAT}, nftMissing}, {[]string{KernelHTB}, htbMissing}} {
		if !slices.ContainsFunc(kind.paths, func(name string) bool { return slices.Contains(names, name) }) {
			continue
		}
		if why := kind.why(ctx, b); why != "" {
			for _, name := range kind.paths {
				found[name] = why
			}
		}
	}
	return found
}

// nftMissing returns why the nft paths cannot run here, or "" if they can.
func nftMissing(ctx context.Context, n *testbed.Testbed) string {
	if _, err := exec.LookPath("nft"); err != nil {
		return "the program nft is not installed"
	}
	err := runNft(ctx, n, examples.GatewayNft)
	if err == nil {
		err = runNft(ctx, n, "flush ruleset\n")
	}
	if err != nil {
		return "this kernel or nft does not take examples/gateway.nft: " + err.Error()
	}
	return ""
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
