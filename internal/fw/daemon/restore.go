package daemon

import (
	"weir/internal/pppoe/client"
	"weir/internal/pppoe/line"
)

func addressesOf(s *client.Session) line.Addresses {
	return line.Addresses{IPv4: s.IPv4, PeerIPv4: s.PeerIPv4, IPv6: client.LinkLocal(s.ID6), PeerIPv6: client.LinkLocal(s.PeerID6)}
}

// restore gives the interface its addresses and routes again if others have taken them away, as systemd-networkd does when it
// starts. It reports whether it is done: what is changing now is looked at later.
func (s *dial) restore() bool {
	if !s.setting.TryLock() {
		return false
	}
	defer s.setting.Unlock()
	if !s.carries {
		return true
	}
	s.mu.Lock()
	addresses := addressesOf(&s.session)
	s.mu.Unlock()
	log := s.dialler.box.cfg.Log
	lacks, err := s.device.Lacks(addresses, s.of.Order, s.of.Route)
	if err == nil && lacks {
		log.Warn("somebody has removed addresses or default routes of a PPPoE interface: they are set again", "interface", s.of.Name)
		if err = s.device.SetAddresses(addresses); err == nil && s.of.Route {
			err = s.device.SetRoutes(addresses, s.of.Order)
		}
	}
	if isNews(&s.unrestored, err) {
		log.Warn("look at what a PPPoE interface has", "interface", s.of.Name, "error", err)
	}
	return err == nil
}
