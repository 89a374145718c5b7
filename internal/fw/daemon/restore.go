package daemon

import (
	"weir/internal/pppoe/client"
	"weir/internal/pppoe/line"
)

func (s *dial) addressesOf(at *client.Session) line.Addresses {
	return line.Addresses{IPv4: at.IPv4, PeerIPv4: at.PeerIPv4, IPv6: client.LinkLocal(at.ID6), PeerIPv6: client.LinkLocal(at.PeerID6), OnlyIPv6: !s.of.Inet}
}

// setAddresses gives the interface its addresses. What of others is lost meanwhile does not end the session.
func (s *dial) setAddresses(a line.Addresses) error {
	lost, err := s.device.SetAddresses(a)
	if lost != nil {
		s.dialler.box.cfg.Log.Warn("keep the addresses and routes of others of a PPPoE interface", "interface", s.of.Name, "error", lost)
	}
	return err
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
	addresses := s.addressesOf(&s.session)
	s.mu.Unlock()
	log := s.dialler.box.cfg.Log
	lacks, err := s.device.Lacks(addresses, s.of.Order, s.of.Route)
	if err == nil && lacks {
		if err = s.setAddresses(addresses); err == nil && s.of.Route {
			err = s.device.SetRoutes(addresses, s.of.Order)
		}
		if err == nil {
			log.Warn("somebody had removed addresses or default routes of a PPPoE interface: they are set again", "interface", s.of.Name)
		}
	}
	if isNews(&s.unrestored, err) {
		log.Warn("set again what a PPPoE interface lacks", "interface", s.of.Name, "error", err)
	}
	return err == nil
}
