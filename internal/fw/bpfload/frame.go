package bpfload

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// A Run is one frame that is given to a program. The frame seems to come in by (XDP, TCX
// ingress) or to leave by (TCX egress) a device of the calling thread's network
// namespace.
type Run struct {
	Frame    []byte // at least 14 bytes, with the Ethernet header
	Ifindex  int
	Meta     []byte    // XDP: metadata before the frame, a multiple of 4 bytes
	Mark     uint32    // TCX
	Priority uint32    // TCX
	Note     [5]uint32 // TCX: skb->cb
	From     int       // TCX egress: index of the interface that it came in by; 0: the box sent it
	Repeat   uint32    // how often the program runs, each time on the previous result; 0: once
	GSO      uint32    // TCX: payload bytes per segment of a super-packet; 0: no super-packet
}

// An Outcome is what a program did with a frame.
type Outcome struct {
	Result   uint32    // the program's return value
	Frame    []byte    // the frame afterwards
	Meta     []byte    // XDP: the metadata before it
	Mark     uint32    // TCX
	Priority uint32    // TCX
	Note     [5]uint32 // TCX: skb->cb
}

// headroom is how many bytes a program may add to a frame.
const headroom = 256

// RunXDP runs an XDP program once. The device must have some XDP program.
func RunXDP(p *Program, r Run) (Outcome, error) {
	data := append(append([]byte(nil), r.Meta...), r.Frame...)
	out := make([]byte, len(data)+headroom)
	var context xdpContext
	o := ebpf.RunOptions{
		Data:    data,
		DataOut: out,
		Repeat:  r.Repeat,
		Context: xdpContext{
			Data: uint32(len(r.Meta)), DataEnd: uint32(len(data)), IngressIfindex: uint32(r.Ifindex),
		},
		ContextOut: &context,
	}
	result, err := p.Run(&o)
	if err != nil {
		return Outcome{}, fmt.Errorf("run on a frame of interface %d: %w", r.Ifindex, err)
	}
	return Outcome{Result: result, Meta: o.DataOut[:context.Data], Frame: o.DataOut[context.Data:]}, nil
}

// skbContext is struct __sk_buff of linux/bpf.h.
type skbContext struct {
	Len, PktType, Mark, QueueMapping, Protocol uint32
	VlanPresent, VlanTci, VlanProto, Priority  uint32
	IngressIfindex, Ifindex, TcIndex           uint32
	Cb                                         [5]uint32
	Hash, TcClassid, Data, DataEnd, NapiID     uint32
	Family, RemoteIP4, LocalIP4                uint32
	RemoteIP6, LocalIP6                        [4]uint32
	RemotePort, LocalPort, DataMeta            uint32
	FlowKeys, Tstamp                           uint64
	WireLen, GSOSegs                           uint32
	Sk                                         uint64
	GSOSize                                    uint32
	TstampType                                 uint8
	Pad                                        [3]uint8
	Hwtstamp                                   uint64
}

// RunTC runs a TCX program once.
func RunTC(p *Program, r Run) (Outcome, error) {
	out := make([]byte, len(r.Frame)+headroom)
	var context skbContext
	o := ebpf.RunOptions{
		Data:    r.Frame,
		DataOut: out,
		Repeat:  r.Repeat,
		Context: skbContext{
			Ifindex: uint32(r.Ifindex), IngressIfindex: uint32(r.From), Mark: r.Mark, Priority: r.Priority, Cb: r.Note, GSOSize: r.GSO,
		},
		ContextOut: &context,
	}
	result, err := p.Run(&o)
	if err != nil {
		return Outcome{}, fmt.Errorf("run on a frame of interface %d: %w", r.Ifindex, err)
	}
	return Outcome{Result: result, Frame: o.DataOut, Mark: context.Mark, Priority: context.Priority, Note: context.Cb}, nil
}
