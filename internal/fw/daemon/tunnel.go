package daemon

import (
	"os"

	"weir/internal/fw/rundir"
	"weir/internal/vpn/route"
)

// blockTunnels adds the blackholes behind the tunnels of rules, before these are in force: what they
// let through to a tunnel must not leave in clear while weir vpn run has not made it yet.
func (b *box) blockTunnels(source *Source, rules *compiled) error {
	if source.Builtin {
		return nil
	}
	err := route.Block(route.Blackholes(route.Of(rules.options.Tunnels())...))
	if err != nil {
		b.unblockTunnels()
	}
	return err
}

// unblockTunnels removes the blackholes of rules that did not come into force.
func (b *box) unblockTunnels() {
	if b.rules != nil && !b.source.Builtin {
		b.logTunnels(route.Unblock(route.Blackholes(route.Of(b.rules.options.Tunnels())...)))
	}
}

// noteTunnels records the tunnels of the rules in force for weir vpn run, and removes the blackholes
// of others. The built-in rules leave all as it is.
func (b *box) noteTunnels(source *Source, rules *compiled) {
	if source.Builtin {
		return
	}
	all := rules.options.Tunnels()
	if all.WireGuard != nil || all.IKEv2 != nil || exists(b.cfg.Folder.Tunnels()) || exists(b.cfg.Folder.VPN()) {
		b.logTunnels(rundir.WriteJSON(b.cfg.Folder.Tunnels(), all))
	}
	b.logTunnels(route.Unblock(route.Blackholes(route.Of(all)...)))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// logTunnels logs what went wrong with what weir vpn run is told. The rules hold all the same.
func (b *box) logTunnels(err error) {
	if err != nil {
		b.cfg.Log.Error("tunnels", "error", err)
	}
}
