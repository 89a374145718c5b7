package daemon

import (
	"fmt"
	"strings"

	"weir/internal/host/netif"
)

// Mode is the value of `weir run --hook`: which hook to use if there is a choice.
type Mode string

// Values of Mode.
const (
	Auto     Mode = "auto" // XDP on physical NICs, TCX elsewhere
	ForceXDP Mode = "xdp"  // XDP wherever the device can; a refusal is an error
	ForceTCX Mode = "tcx"  // TCX everywhere
)

// ParseMode parses a mode.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Auto, ForceXDP, ForceTCX:
		return m, nil
	}
	return "", fmt.Errorf("hook %q: expected auto, xdp or tcx", s)
}

// Hook is where an interface's incoming packets are filtered.
type Hook string

// Hooks. Interfaces with XDP also have the TCX programs. These then only carry out XDP's
// verdict and filter what the box itself sends.
const (
	NoHook Hook = "none"
	TCX    Hook = "tcx"
	XDP    Hook = "xdp"
)

// Choice is the hook of an interface and the reason for it.
type Choice struct {
	Hook Hook
	Why  string
}

// Choose chooses the hook of an interface without asking its driver, which may still
// refuse XDP. It never chooses generic XDP, which costs more than TCX and linearises
// every packet.
func Choose(l *netif.Link, m Mode) Choice {
	switch {
	case l.Port():
		return Choice{NoHook, fmt.Sprintf("port of %s: its master's hooks see its packets", oneOf(l.MasterOf))}
	case l.Kind == netif.Loopback:
		return Choice{TCX, "loopback has no driver"}
	case m == ForceTCX:
		return Choice{TCX, "forced by --hook tcx"}
	}
	if why := cannotXDP(l); why != "" {
		return Choice{TCX, why}
	}
	if m == ForceXDP {
		return Choice{XDP, "forced by --hook xdp"}
	}
	switch l.Kind {
	case netif.Physical:
		return Choice{XDP, "physical device"}
	case netif.Bond:
		return Choice{XDP, "bond of physical devices"}
	}
	return Choice{TCX, "sockets at the other end send frames whose checksum only TCX can complete"}
}

// cannotXDP says why a link can never run native XDP. It returns "" if it may.
func cannotXDP(l *netif.Link) string {
	if !l.Ethernet {
		return "no Ethernet header"
	}
	switch l.Kind {
	case netif.Physical, netif.Bond, netif.Veth, netif.TAP:
		return ""
	}
	return fmt.Sprintf("%s device has no native XDP", oneOf(string(l.Kind)))
}

// oneOf puts an article before the kernel's name for a kind of device.
func oneOf(kind string) string {
	if kind != "" && strings.ContainsRune("aeio", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}
