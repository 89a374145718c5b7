package ipsec

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
)

// flushKernel removes what the kernel still has for an xfrm interface: keys and policies of a charon
// that was killed.
func flushKernel(id uint32) error {
	states, err := netlink.XfrmStateList(netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list the kernel's keys of IPsec: %w", err)
	}
	var errs []error
	for i := range states {
		if s := &states[i]; s.Ifid == int(id) {
			errs = append(errs, netlink.XfrmStateDel(s))
		}
	}
	policies, err := netlink.XfrmPolicyList(netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list the kernel's policies of IPsec: %w", err)
	}
	for i := range policies {
		if p := &policies[i]; p.Ifid == int(id) {
			errs = append(errs, netlink.XfrmPolicyDel(p))
		}
	}
	return errors.Join(errs...)
}
