package dataplane

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/spd"
	"weir/internal/killpoint"
)

// Bits of shared.policies (bpf/route/policy_key.h).
const (
	policyAll    = 0x01
	policySecond = 0x02
	policyList   = 0x10
)

// SetPolicies puts a table of IPsec policies in force. It is written beside the one in force, over the
// one before that, when no program searches that any more. So no packet meets half of each. After an
// error everything that is forwarded goes up to the stack.
func (d *Dataplane) SetPolicies(t *spd.Table) error {
	err := d.tables.setPolicies(t)
	if err != nil {
		d.tables.setPolicyWord(policyAll)
		return fmt.Errorf("follow IPsec policies: %w", err)
	}
	return nil
}

// KeepsTables reports whether the generation before uses the same tables.
func (d *Dataplane) KeepsTables() bool { return d.kept }

// FollowsPolicies reports whether the way of any packet depends on one.
func (d *Dataplane) FollowsPolicies() bool {
	return d.tables != nil && atomic.LoadUint32(&d.tables.shared.Policies) != 0
}

func (t *tables) setPolicies(table *spd.Table) error {
	if table.All != "" {
		t.setPolicyWord(policyAll)
		return nil
	}
	var word uint32
	second := atomic.LoadUint32(&t.shared.Policies)&policySecond == 0
	if !t.policiesRest {
		if err := waitForRuns(); err != nil {
			return err
		}
		t.policiesRest = true
	}
	if err := t.clearPolicies(second); err != nil {
		return err
	}
	if table.Idle() {
		t.setPolicyWord(0)
		return nil
	}
	first := uint8(0)
	if second {
		word, first = policySecond, spd.Lists
	}
	for i := range table.Lists {
		*(*xdpPolicyList)(unsafe.Pointer(&t.shared.PolicyLists[int(first)+i])) = rawPolicyList(&table.Lists[i])
		if !table.Lists[i].Empty() {
			word |= policyList << i
		}
	}
	m := t.maps[mapPolicies]
	for k, e := range table.Entries {
		key := rawPolicyKey(&k)
		key.List += first
		if err := m.Put(&key, &xdpPolicy{Priority: e.Priority, Verdict: uint32(e.Verdict)}); err != nil {
			return fmt.Errorf("add to %s: %w", mapPolicies, err)
		}
	}
	t.setPolicyWord(word)
	return nil
}

func (t *tables) setPolicyWord(word uint32) {
	if word == policyAll { // the table stays the one to which the next is written beside
		word |= atomic.LoadUint32(&t.shared.Policies) & policySecond
	} else {
		t.policiesRest = false
	}
	atomic.StoreUint32(&t.shared.Policies, word)
	killpoint.Done("set the IPsec policies")
}

// clearPolicies removes the entries of the table that is not in force.
func (t *tables) clearPolicies(second bool) error {
	m := t.maps[mapPolicies]
	var stale []xdpPolicyKey
	var key xdpPolicyKey
	var value xdpPolicy
	entries := m.Iterate()
	for entries.Next(&key, &value) {
		if key.List >= spd.Lists == second {
			stale = append(stale, key)
		}
	}
	if err := entries.Err(); err != nil {
		return fmt.Errorf("list the entries of %s: %w", mapPolicies, err)
	}
	for i := range stale {
		if err := m.Delete(&stale[i]); err != nil && !errors.Is(err, bpfload.ErrNoKey) {
			return fmt.Errorf("remove from %s: %w", mapPolicies, err)
		}
	}
	return nil
}

func rawPolicyList(l *spd.List) xdpPolicyList {
	raw := xdpPolicyList{Count: uint32(len(l.Shapes)), Otherwise: uint32(l.Otherwise)}
	for i := range l.Shapes {
		raw.Shape[i] = rawPolicyKey(&l.Shapes[i])
		raw.Shape[i].List, raw.Shape[i].Shape = 0, 0
	}
	return raw
}

func rawPolicyKey(k *spd.Key) xdpPolicyKey {
	return xdpPolicyKey{
		Src: *(*xdpAddr)(unsafe.Pointer(&k.Src)), Dst: *(*xdpAddr)(unsafe.Pointer(&k.Dst)),
		Sport: *(*uint16)(unsafe.Pointer(&k.Sport)), Dport: *(*uint16)(unsafe.Pointer(&k.Dport)),
		Mark: k.Mark, Ifindex: k.Ifindex, Proto: k.Proto, List: k.List, Shape: k.Shape, Portless: asByte(k.Portless),
	}
}
