package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/examples"
	"weir/internal/host/netif"
	"weir/internal/lab"
)

// startNft loads examples/gateway.nft, with a case's further rules, and begins with no known connection:
// one that an earlier path left would go by without being translated.
func startNft(ctx context.Context, _ *setting, w *way, undo *undoList) error {
	undo.add(func() error {
		err := runNft(context.WithoutCancel(ctx), w.net, "flush ruleset\n")
		return errors.Join(err, flushConnections(w.net))
	})
	if err := runNft(ctx, w.net, nftRules(w.c)); err != nil {
		return err
	}
	return flushConnections(w.net)
}

// runNft gives nft a text in the firewall's namespace.
func runNft(ctx context.Context, n *network, text string) error {
	cmd := exec.CommandContext(ctx, "nft", "-f", "-")
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(text), &stderr
	if err := n.lab.Start(lab.FW, cmd); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("load rules with nft: %w: %s", err, firstLine(stderr.String()))
	}
	return nil
}

// flushConnections forgets all connections that conntrack knows in the
// firewall's namespace, and makes sure of it.
func flushConnections(n *network) error {
	return n.lab.Do(lab.FW, func() error {
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
		// A packet of the kernel's own may have come in the meantime.
		if count, err := strconv.Atoi(left); err != nil || count > 8 {
			return fmt.Errorf("flush conntrack: %s connections are left", left)
		}
		return nil
	})
}

// nftMissing says why the nft paths cannot run here; "" if they can.
func nftMissing(ctx context.Context, n *network) string {
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
