package dataplane

import (
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/limits"
)

// stateLayout is STATE_LAYOUT of bpf/state/state.h.
const stateLayout = 16

// Limits of bpf/config.h, bpf/shared.h and bpf/observe/count.h.
const (
	maxStates = limits.MaxStates
	maxPaths  = limits.MaxPaths
	pathNone  = 0 // counts packets that no rule matched
	pathFull  = 1 // counts packets of states that found no path
	firstPath = 2
	// the last paths, which hold a single deciding rule each
	reservedPaths = 4096
	nexthopLocal  = 1 // the box itself
	nexthopXDP    = 0x02
	nexthopL3     = 0x04
	nexthopChosen = 0x10 // a rule has chosen it
	nexthopFixed  = 0x20 // and names its interface
	nexthopNear   = 0x40 // and its gateway is the neighbour
	nexthopNarrow = 0x80 // its route has an MTU of its own
	nexthopHow    = nexthopChosen | nexthopFixed
)

// Capacities.
const (
	MaxNextHops = limits.MaxNexthops - 2               // known at once
	MaxPaths    = maxPaths - reservedPaths - firstPath // sets of matched rules with their own counters
)

// ErrLayout is returned (wrapped) if pinned maps hold values of another form than this
// program's: another version of weir made them.
var ErrLayout = errors.New("another version of weir loaded this dataplane")

// layouts holds the key and value sizes that Go code relies on, by map.
var layouts = map[string][2]uintptr{
	mapShared:            {4, unsafe.Sizeof(xdpShared{})},
	mapStates:            {4, unsafe.Sizeof(xdpState{})},
	mapHints:             {4, unsafe.Sizeof(xdpHints{})},
	mapExtras:            {4, unsafe.Sizeof(xdpExtra{})},
	mapTuples:            {4, unsafe.Sizeof(xdpBucket{})},
	mapSpilled:           {unsafe.Sizeof(xdpTuple{}), 4},
	mapNexthopIndex:      {unsafe.Sizeof(xdpNexthopKey{}), 4},
	mapNexthopsFree:      {0, 4},
	mapInterfaceCounters: {4, unsafe.Sizeof(xdpCounter{})},
	mapPathCounters:      {4, unsafe.Sizeof(xdpPathCounter{})},
	mapPaths:             {unsafe.Sizeof(xdpPath{}), 4},
	mapAddresses:         {unsafe.Sizeof(xdpAddr{}), 4},
	mapSpreadSlots:       {4, unsafe.Sizeof(xdpSpreadSlot{})},
	mapSpreadCores:       {4, unsafe.Sizeof(xdpSpreadCore{})},
	mapRuleCounters:      {4, unsafe.Sizeof(xdpRuleCounter{})},
	mapRejectSources:     {unsafe.Sizeof(xdpRejectSourceKey{}), unsafe.Sizeof(xdpAddr{})},
	mapBroadcasts:        {unsafe.Sizeof(xdpAddr{}), 4},
	mapRejectCounters:    {4, unsafe.Sizeof(xdpCounter{})},
	mapFragments:         {unsafe.Sizeof(xdpFragmentKey{}), unsafe.Sizeof(xdpFragmentEntry{})},
	mapHandoffs:          {unsafe.Sizeof(xdpTuple{}), unsafe.Sizeof(xdpHandoff{})},
	mapTableCounters:     {unsafe.Sizeof(xdpTableEntry{}), unsafe.Sizeof(xdpTableCounter{})},
	mapTableLengths:      {4, unsafe.Sizeof(xdpTableLengths{})},
	mapTableRules:        {4, unsafe.Sizeof(xdpTableRule{})},
	mapLimits:            {4, unsafe.Sizeof(xdpLimit{})},
	mapSources:           {4, unsafe.Sizeof(xdpSource{})},
	mapSourceIndex:       {unsafe.Sizeof(xdpSourceKey{}), 4},
	mapEndpoints:         {unsafe.Sizeof(xdpEndpointKey{}), unsafe.Sizeof(xdpEndpoint{})},
	mapLimiters:          {4, unsafe.Sizeof(xdpLimiter{})},
	mapLimited:           {4, unsafe.Sizeof(xdpLimited{})},
	mapPoolLoads:         {unsafe.Sizeof(xdpPoolChoice{}), 4},
	mapPoolUses:          {4, unsafe.Sizeof(xdpPoolUse{})},
	mapNormals:           {4, unsafe.Sizeof(xdpNormal{})},
	mapLogRing:           {0, 0},
	mapCaptureRing:       {0, 0},
	mapRecordsLost:       {4, 8},
	mapEarlyFragments:    {0, 0},
	mapQueueData:         {4, unsafe.Sizeof(xdpQueueSection{})},
	mapQueueClasses:      {4, unsafe.Sizeof(xdpQueueClass{})},
	mapQueueCounters:     {4, unsafe.Sizeof(xdpQueueCounter{})},
	mapQueueHosts:        {4, unsafe.Sizeof(xdpQueueHost{})},
	mapQueueLosses:       {4, unsafe.Sizeof(xdpQueueLoss{})},
	mapQueueRTTs:         {4, unsafe.Sizeof(xdpQueueRtt{})},
	mapCaptureFilters:    {4, unsafe.Sizeof(xdpCaptureSetting{})},
	mapPolicies:          {unsafe.Sizeof(xdpPolicyKey{}), unsafe.Sizeof(xdpPolicy{})},
}

// checkLayout compares the sizes of a map's keys and values with the Go types'.
func checkLayout(name string, m *bpfload.Map) error {
	want, ok := layouts[name]
	if !ok {
		return nil
	}
	if uintptr(m.KeySize()) != want[0] || uintptr(m.ValueSize()) != want[1] {
		return fmt.Errorf("map %s has keys of %d and values of %d bytes, not %d and %d: %w",
			name, m.KeySize(), m.ValueSize(), want[0], want[1], ErrLayout)
	}
	return nil
}

// rawAddr returns an address as the programs keep it, IPv4 as ::ffff:a.b.c.d.
func rawAddr(a netip.Addr) xdpAddr {
	bytes := a.As16()
	return *(*xdpAddr)(unsafe.Pointer(&bytes))
}

func (a *xdpAddr) addr() netip.Addr {
	return netip.AddrFrom16(*(*[16]byte)(unsafe.Pointer(a))).Unmap()
}

// fromWire converts between host and network order.
func fromWire(p uint16) uint16 { return p>>8 | p<<8 }
