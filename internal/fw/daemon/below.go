package daemon

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/fw/control"
	"weir/internal/pppoe/client"
	"weir/internal/pppoe/ppp"
)

// overhead is what PPPoE adds to a packet, in bytes.
const overhead = 8

// youngSession is for how long after its begin a session is made anew if the interface below gets room for larger packets: at the
// start of a machine others may set its MTU later. Afterwards that is asked for by a command.
const youngSession = time.Minute

// resizePatience is how long a session may take to end and begin anew for another size of packets.
const resizePatience = 30 * time.Second

// roomFor returns how large packets may be asked for on an interface, and if that is less than wanted, why. What has no
// room there would only seem to be lost on the way.
func roomFor(wanted uint16, on *net.Interface) (mtu uint16, why string) {
	if wanted <= ppp.MaxMRU || on.MTU >= int(wanted)+overhead {
		return wanted, ""
	}
	mtu = uint16(max(ppp.MaxMRU, on.MTU-overhead))
	return mtu, fmt.Sprintf("%s has an MTU of %d, and packets of %d bytes need %d there: %d are asked for", on.Name, on.MTU, wanted, wanted+overhead, mtu)
}

// isDark reports whether an interface has no carrier.
func isDark(on *net.Interface) bool { return on.Flags&net.FlagRunning == 0 }

// interfaceNamed returns an interface. It asks for that one alone: a list of all may lack some while others come and go.
func interfaceNamed(name string) (*net.Interface, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return nil, err
	}
	a := l.Attrs()
	n := &net.Interface{Index: a.Index, MTU: a.MTU, Name: a.Name, HardwareAddr: a.HardwareAddr, Flags: a.Flags}
	if a.RawFlags&unix.IFF_RUNNING != 0 {
		n.Flags |= net.FlagRunning
	}
	return n, nil
}

// watchBelow tells the client what has become of the session's interface, and of the one below. An interface below that was made anew, or has
// another Ethernet address, is another one to concentrators, and to the client's sockets, which do not say so.
func (s *dial) watchBelow() {
	n, err := interfaceNamed(s.of.On)
	was := s.running.on
	var gone string
	switch {
	case errors.As(err, &netlink.LinkNotFoundError{}):
		gone = s.of.On + " is not there any more"
	case err != nil: // nothing is known
		return
	case n.Index != was.Index:
		gone = s.of.On + " is another interface now"
	case !slices.Equal(n.HardwareAddr, was.HardwareAddr):
		gone = fmt.Sprintf("%s has another Ethernet address now, %s", s.of.On, n.HardwareAddr)
	}
	if _, err := netlink.LinkByIndex(s.device.Index); errors.As(err, &netlink.LinkNotFoundError{}) {
		gone = s.of.Name + " was removed"
	}
	if gone != "" {
		s.running.ask(client.Command{Do: client.Abandon, Why: errors.New(gone)})
		return
	}
	if dark := isDark(n); dark != s.dark {
		c := client.Command{Do: client.CarrierOn}
		if dark {
			c.Do = client.CarrierOff
		}
		if s.running.ask(c) {
			s.dark = dark
		}
		return
	}
	s.watchRoom(n)
}

// watchRoom tells the client if there is room for other packets. A session whose packets have no room ends; so does a young one
// that could have larger ones.
func (s *dial) watchRoom(n *net.Interface) {
	mtu, why := roomFor(s.of.MTU, n)
	s.mu.Lock()
	up, has, age := s.state == control.PPPoEUp, s.session.MTU, time.Since(s.since)
	s.mu.Unlock()
	late := up && has > mtu && time.Since(s.resized) > resizePatience // the room shrank while the session was held, or no daemon ran
	if mtu == s.room && !late {
		if up && has >= s.of.MTU {
			s.small = ""
		}
		return
	}
	anew := up && (has > mtu || has < mtu && age < youngSession)
	if !s.running.ask(client.Command{Do: client.Resize, MTU: mtu, Anew: anew}) {
		return
	}
	s.resized = time.Now()
	if up && !anew && why == "" {
		why = fmt.Sprintf("%s has room for packets of %d bytes now: weir pppoe reconnect %s asks for them", s.of.On, mtu, s.of.Name)
	}
	s.room, s.small = mtu, why
}
