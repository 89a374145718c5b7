package traffic

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"weir/internal/fw/bpfload"
)

// Patterns of steady traffic: in which order the connections' frames come.
const (
	Scattered = "scattered" // each connection in turn, far from the one before it
	Ordered   = "ordered"   // each in turn; ports follow each other, and up to 64,000 have the same addresses
	Bursts    = "bursts"    // as scattered, but in trains of 1 to 32 frames of one connection
	Zipf      = "zipf"      // the n-th most frequent connection has a share of about n^-1.1
	IMIX      = "imix"      // as scattered, in frames of three sizes: 7 of 64, 4 of 570 and 1 of 1,518 bytes (RFC 6985)
)

// Patterns are all of them.
var Patterns = []string{Scattered, Ordered, Bursts, Zipf, IMIX}

const (
	longestTrain = 32      // a power of 2
	zipfExponent = 1.1     // above 1
	orderLen     = 1 << 19 // frames until the order of connections is repeated; a power of 2
	imixLongest  = 1518
)

// An entry of the order: the connection, and from these bits on ORDER_* of the generator.
const (
	orderNumber = 32
	orderFrames = 48
)

// imix are the sizes of the frames in turn, with checksum.
var imix = [...]int{64, 570, 64, 64, 570, 64, imixLongest, 64, 570, 64, 64, 570}

// PatternSize returns the size of a case's frames with a pattern; 0: the pattern has sizes
// of its own.
func PatternSize(pattern string, size int) int {
	if pattern == IMIX {
		return 0
	}
	return size
}

// patternValues returns the generator's constants, and how many entries its order has.
func (r FlowRange) patternValues(spec *frameSpec) (values map[string]any, order uint32) {
	values = map[string]any{}
	switch r.Pattern {
	case Bursts:
		values["longest_train"] = uint32(longestTrain)
	case Zipf:
		order = orderLen
		values["order_len"] = order
	case IMIX:
		// Sizes below the minimum of the frame's kind are raised to it.
		var shorter [len(imix)]uint16
		for i, size := range imix {
			shorter[i] = uint16(imixLongest - TrueSize(size, spec.ipv6, spec.tcp != nil))
		}
		values["mixed"], values["shorter"] = flag(true), shorter
	}
	return values, max(order, 1)
}

// fillOrder writes the order of connections by their popularity.
func (r FlowRange) fillOrder(m *bpfload.Map) (err error) {
	memory, err := bpfload.MapMemory(m)
	if err != nil {
		return fmt.Errorf("write the order of connections: %w", err)
	}
	defer func() { err = errors.Join(err, memory.Close()) }()
	order, err := bpfload.Values[uint64](memory)
	if err != nil {
		return fmt.Errorf("write the order of connections: %w", err)
	}
	r.popularity(order)
	return nil
}

// popularity fills in which connection each frame is of, and the number of the frame
// within its connection: ORDER_* of the generator. The first frame is of connection 0, with
// which a generator begins. The same range always gets the same order.
func (r FlowRange) popularity(order []uint64) {
	ranks := rand.NewZipf(rand.New(rand.NewPCG(1, uint64(r.First))), zipfExponent, 1, uint64(r.Count-1))
	frames := make([]uint16, r.Count)
	for i := range order {
		flow := uint64(0)
		if i > 0 {
			flow = ranks.Uint64() * uint64(max(r.Step, 1)) % uint64(r.Count)
		}
		order[i] = flow | uint64(frames[flow])<<orderNumber
		frames[flow]++
	}
	for i, entry := range order {
		order[i] |= uint64(frames[entry&FlowMask]) << orderFrames
	}
}
