package xfrm

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// watchBuffer is the size of the socket's buffer in bytes. If events are lost, everything is
// listed again.
const watchBuffer = 1 << 18

// Watcher hears that policies have changed.
type Watcher struct{ socket *nl.NetlinkSocket }

// Watch starts to listen. No later change is missed. The error wraps ErrNone if the kernel has
// no IPsec.
func Watch() (*Watcher, error) {
	// a policy that ends by its own lifetime is reported as an expiry alone
	s, err := nl.Subscribe(unix.NETLINK_XFRM, nl.XFRMNLGRP_POLICY, nl.XFRMNLGRP_EXPIRE)
	if err != nil {
		return nil, none(fmt.Errorf("listen to the kernel's IPsec events: %w", err))
	}
	if err := s.SetReceiveBufferSize(watchBuffer, true); err != nil {
		s.Close()
		return nil, fmt.Errorf("size the buffer of IPsec events: %w", err)
	}
	return &Watcher{socket: s}, nil
}

// Close ends a waiting Next.
func (w *Watcher) Close() { w.socket.Close() }

// Next waits until a policy or a default has changed. It fails only if the watcher is closed or
// the socket breaks.
func (w *Watcher) Next() error {
	for {
		messages, _, err := w.socket.Receive()
		if errors.Is(err, unix.ENOBUFS) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("hear IPsec events: %w", err)
		}
		for i := range messages {
			switch messages[i].Header.Type {
			case nl.XFRM_MSG_NEWPOLICY, nl.XFRM_MSG_DELPOLICY, nl.XFRM_MSG_UPDPOLICY, nl.XFRM_MSG_FLUSHPOLICY,
				nl.XFRM_MSG_POLEXPIRE, msgSetDefault, msgGetDefault:
				return nil
			}
		}
	}
}
