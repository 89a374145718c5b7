package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"time"
)

// resolvedPatience is how long systemd-resolved may take.
const resolvedPatience = 3 * time.Second

// resolvedPause is the time from an attempt that failed to the next one.
const resolvedPause = 10 * time.Second

// untold is an attempt to tell systemd-resolved that failed: some of it may have been understood. Its zero
// value is none.
type untold struct {
	why   error
	again time.Time
}

// tellResolved tells systemd-resolved which name servers an interface has; nil: none any more. All
// names are asked for there.
func tellResolved(name string, servers []netip.Addr) error {
	steps := [][]string{{"revert", name}}
	if len(servers) > 0 {
		dns := []string{"dns", name}
		for _, a := range servers {
			dns = append(dns, a.String())
		}
		steps = [][]string{dns, {"domain", name, "~."}, {"default-route", name, "yes"}}
	}
	ctx, cancel := context.WithTimeout(context.Background(), resolvedPatience)
	defer cancel()
	for _, args := range steps {
		if out, err := exec.CommandContext(ctx, "resolvectl", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("tell systemd-resolved of the name servers of %s: %w %s", name, err, out)
		}
	}
	return nil
}

// forgetResolved has systemd-resolved forget an interface whose statement is gone or another.
func (s *dial) forgetResolved() {
	if len(s.resolved) > 0 || s.untold.why != nil {
		s.dialler.box.logPPPoE(tellResolved(s.of.Name, nil))
	}
	s.resolved, s.untold = nil, untold{}
}

// nameServers are those of the session and of the delegated prefix.
func (s *dial) nameServers() []netip.Addr {
	s.mu.Lock()
	servers := slices.Clone(s.session.DNS)
	s.mu.Unlock()
	if p := s.prefix.snapshot(); p != nil {
		servers = append(servers, p.DNS...)
	}
	return servers
}

// followResolved tells systemd-resolved of name servers that are others than it knows. The log has each error
// once.
func (s *dial) followResolved() {
	if !s.of.Resolved {
		return
	}
	var servers []netip.Addr
	if s.isUp() {
		servers = s.nameServers()
	}
	before := s.untold
	if before.why == nil && slices.Equal(servers, s.resolved) || time.Now().Before(before.again) {
		return
	}
	err := tellResolved(s.of.Name, servers)
	if err == nil {
		s.resolved, s.untold = servers, untold{}
		return
	}
	s.untold = untold{why: err, again: time.Now().Add(resolvedPause)}
	if before.why == nil || before.why.Error() != err.Error() {
		s.dialler.box.logPPPoE(err)
	}
}
