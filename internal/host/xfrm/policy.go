package xfrm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Direction says which packets a policy is for.
type Direction uint8

// Directions, as the kernel numbers them. Those beyond are of policies that a program has set for one
// socket alone.
const (
	In      Direction = iota // what comes in for the machine itself
	Out                      // what leaves, also what is forwarded
	Forward                  // what is forwarded, as it came in
)

func (d Direction) String() string {
	switch d {
	case In:
		return "in"
	case Out:
		return "out"
	case Forward:
		return "fwd"
	}
	return fmt.Sprintf("direction %d", uint8(d))
}

// Selector says which packets a policy selects. Fields of 0 select all.
type Selector struct {
	Src, Dst           netip.Prefix // of one family
	Sport, Dport       uint16       // of ICMP: type and code
	SportMask          uint16       // the bits that count
	DportMask          uint16
	Proto              uint8
	Ifindex            uint32 // of the interface by which they leave
	Mark, MarkMask     uint32
	SecurityContextual bool // and those of a security context
}

// Policy is an IPsec policy.
type Policy struct {
	Selector
	Direction Direction
	Priority  uint32 // the least one wins
	Index     uint32 // the kernel's number for it
	IfID      uint32 // of the xfrm interface that it belongs to; 0: none
	Sub       bool   // of the table that the kernel searches first
	Block     bool   // the packets are dropped
	Templates int    // transformations; 0 without Block: the packets pass as they are
	Required  int    // those without which no packet passes
	Offloaded bool   // a network card encrypts the packets, after they have left the stack in clear
}

// Defaults says what the kernel does with packets that no policy selects.
type Defaults struct {
	BlockIn, BlockOut, BlockForward bool
}

// ErrNone is returned, wrapped, by a kernel without IPsec.
var ErrNone = errors.New("this kernel has no IPsec (CONFIG_XFRM_USER)")

// Messages and values of linux/xfrm.h that nl lacks.
const (
	msgSetDefault = 0x27
	msgGetDefault = 0x28
	defaultBlock  = 1
	typeSub       = 1
)

// Offsets in struct xfrm_userpolicy_info, of which the first member is struct xfrm_selector.
const (
	atSource       = 16
	atDport        = 32
	atDportMask    = 34
	atSport        = 36
	atSportMask    = 38
	atFamily       = 40
	atDstBits      = 42
	atSrcBits      = 43
	atProto        = 44
	atIfindex      = 48
	atPriority     = 152
	atIndex        = 156
	atDirection    = 160
	atAction       = 161
	templateBytes  = nl.SizeofXfrmUserTmpl
	atOptional     = 50 // in struct xfrm_user_tmpl
	actionBlock    = 1
	sizeofDefaults = 3 // struct xfrm_userpolicy_default
)

// Policies lists the policies, in no order, and the defaults.
func Policies() ([]Policy, Defaults, error) {
	policies, err := list()
	if err != nil {
		return nil, Defaults{}, none(fmt.Errorf("list the IPsec policies: %w", err))
	}
	defaults, err := readDefaults()
	if err != nil {
		return nil, Defaults{}, none(fmt.Errorf("read the default IPsec policies: %w", err))
	}
	return policies, defaults, nil
}

func none(err error) error {
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EAFNOSUPPORT) {
		return fmt.Errorf("%w: %w", ErrNone, err)
	}
	return err
}

func list() ([]Policy, error) {
	messages, err := nl.NewNetlinkRequest(nl.XFRM_MSG_GETPOLICY, unix.NLM_F_DUMP).Execute(unix.NETLINK_XFRM, nl.XFRM_MSG_NEWPOLICY)
	if err != nil {
		return nil, err
	}
	policies := make([]Policy, 0, len(messages))
	for _, m := range messages {
		p, err := parse(m)
		if err != nil {
			return nil, err
		}
		policies = append(policies, p)
	}
	return policies, nil
}

// readDefaults reads what `ip xfrm policy setdefault` sets. A kernel before 5.15 knows no
// defaults.
func readDefaults() (Defaults, error) {
	request := nl.NewNetlinkRequest(msgGetDefault, 0)
	request.AddRawData(make([]byte, sizeofDefaults+1))
	messages, err := request.Execute(unix.NETLINK_XFRM, msgGetDefault)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		return Defaults{}, nil
	}
	if err != nil {
		return Defaults{}, err
	}
	if len(messages) != 1 || len(messages[0]) < sizeofDefaults {
		return Defaults{}, errors.New("the kernel's answer has another form")
	}
	in, forward, out := messages[0][0], messages[0][1], messages[0][2]
	return Defaults{BlockIn: in == defaultBlock, BlockForward: forward == defaultBlock, BlockOut: out == defaultBlock}, nil
}

// parse reads a message of the kernel.
func parse(m []byte) (Policy, error) {
	if len(m) < nl.SizeofXfrmUserpolicyInfo {
		return Policy{}, fmt.Errorf("a policy of %d bytes", len(m))
	}
	p := Policy{
		Selector: Selector{
			Sport:     binary.BigEndian.Uint16(m[atSport:]),
			SportMask: binary.BigEndian.Uint16(m[atSportMask:]),
			Dport:     binary.BigEndian.Uint16(m[atDport:]),
			DportMask: binary.BigEndian.Uint16(m[atDportMask:]),
			Proto:     m[atProto],
			Ifindex:   binary.NativeEndian.Uint32(m[atIfindex:]),
		},
		Direction: Direction(m[atDirection]),
		Priority:  binary.NativeEndian.Uint32(m[atPriority:]),
		Index:     binary.NativeEndian.Uint32(m[atIndex:]),
		Block:     m[atAction] == actionBlock,
	}
	var err error
	family := binary.NativeEndian.Uint16(m[atFamily:])
	if p.Src, err = prefix(family, m[atSource:], m[atSrcBits]); err != nil {
		return Policy{}, err
	}
	if p.Dst, err = prefix(family, m, m[atDstBits]); err != nil {
		return Policy{}, err
	}
	return p, p.attributes(m[nl.SizeofXfrmUserpolicyInfo:])
}

func prefix(family uint16, address []byte, bits uint8) (netip.Prefix, error) {
	var a netip.Addr
	switch family {
	case unix.AF_INET:
		a = netip.AddrFrom4([4]byte(address))
	case unix.AF_INET6:
		a = netip.AddrFrom16([16]byte(address))
	default:
		return netip.Prefix{}, fmt.Errorf("a policy of address family %d", family)
	}
	return a.Prefix(int(bits))
}

func (p *Policy) attributes(m []byte) error {
	attributes, err := nl.ParseRouteAttr(m)
	if err != nil {
		return fmt.Errorf("a policy's attributes: %w", err)
	}
	for _, a := range attributes {
		v := a.Value
		switch {
		case a.Attr.Type == nl.XFRMA_TMPL:
			for ; len(v) >= templateBytes; v = v[templateBytes:] {
				p.Templates++
				if v[atOptional] == 0 {
					p.Required++
				}
			}
		case a.Attr.Type == nl.XFRMA_MARK && len(v) >= 8:
			p.Mark, p.MarkMask = binary.NativeEndian.Uint32(v), binary.NativeEndian.Uint32(v[4:])
		case a.Attr.Type == nl.XFRMA_IF_ID && len(v) >= 4:
			p.IfID = binary.NativeEndian.Uint32(v)
		case a.Attr.Type == nl.XFRMA_POLICY_TYPE && len(v) >= 1:
			p.Sub = v[0] == typeSub
		case a.Attr.Type == nl.XFRMA_OFFLOAD_DEV: // only of cards that do all of it
			p.Offloaded = true
		case a.Attr.Type == nl.XFRMA_SEC_CTX:
			p.SecurityContextual = true
		}
	}
	return nil
}
