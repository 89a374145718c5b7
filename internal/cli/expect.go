package cli

import (
	"fmt"
	"net/netip"
	"os"

	"weir/internal/host/netif"
	"weir/internal/oracle/ruletest"
	"weir/pf/resolve"
)

// readExpectations reads the file of --expect.
func (o *checkOptions) readExpectations() ([]*ruletest.Expectation, error) {
	if o.expect == "" {
		return nil, nil
	}
	data, err := os.ReadFile(o.expect)
	if err != nil {
		return nil, fmt.Errorf("read the expectations: %w", err)
	}
	return ruletest.Read(o.expect, data)
}

// test reports whether rules do what is expected of them. Packets are routed as the
// host's description says or, without one, as on this machine.
func (o *checkOptions) test(rules *resolve.Ruleset, host *resolve.Host, all []*ruletest.Expectation) (*ruletest.Report, error) {
	route := ruletest.Described(host)
	if o.host == "" {
		routes, err := netif.Routes()
		if err != nil {
			return nil, err
		}
		route = func(dst netip.Addr) (string, netip.Addr, bool) {
			r, ok := routes.To(dst)
			return r.Interface, r.Gateway, ok
		}
	}
	return ruletest.NewRunner(rules, host, route).Run(o.expect, all)
}
