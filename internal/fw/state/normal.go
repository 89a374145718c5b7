package state

// A Normal is what scrub (reassemble tcp) knows of packets of one direction. Timestamps are as
// their end sends them.
type Normal struct {
	Offset uint32 // random; added to its timestamps
	First  uint32 // the lowest timestamp
	Value  uint32 // the largest timestamp
	Echo   uint32 // the largest timestamp of the other end that it has echoed
	Seen   Tick   // of the last timestamp
	TTL    uint8  // the largest one: where packets come in with NormalEnters, else where they leave
	Flags  NormalFlags
}

// NormalFlags are the bits NORMAL_* of bpf/state/normal.h.
type NormalFlags uint8

// Flags of a Normal. With none of the first two, packets of that direction stay as they are.
const (
	NormalEnters      NormalFlags = 1 << iota // rules ask for it where its packets come in
	NormalLeaves                              // or where they leave
	NormalStamped                             // its SYN had timestamps: they get the offset
	NormalChecked                             // a timestamp has been echoed: they are checked
	NormalIdled                               // too old, or idle for too long: they no longer are
	NormalDataStamped                         // its first data had timestamps
	NormalDataBare                            // or had none
	NormalBegun                               // it has had a packet
)
