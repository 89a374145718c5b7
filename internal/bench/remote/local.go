package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"weir/internal/lab"
)

// NotOursError refuses to measure a machine that the user has not claimed to own.
type NotOursError struct {
	Host string
	Addr netip.Addr
}

func (e *NotOursError) Error() string {
	return fmt.Sprintf("%s (%s) is another machine, and a benchmark fills its processor and the links to it; if it is yours, add --yes-i-own %s",
		e.Host, e.Addr, e.Host)
}

// target returns the address of a host, and whether it is this machine's or in a lab on
// it. If not, it refuses unless the user owns the host by name.
func target(ctx context.Context, host, owned string) (a netip.Addr, local bool, err error) {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err == nil && len(addrs) == 0 {
		err = errors.New("it has no address")
	}
	if err != nil {
		return a, false, fmt.Errorf("find %s: %w", plain(host), err)
	}
	a = addrs[0].Unmap()
	if local, err = lab.OnThisMachine(a); err == nil && !local && owned != host {
		err = &NotOursError{host, a}
	}
	return a, local, err
}
