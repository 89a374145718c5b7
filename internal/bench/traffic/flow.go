package traffic

// The numbering of flows, as in bpf/flow.h.
const (
	FlowBits       = 24
	FlowMask       = 1<<FlowBits - 1
	flowScatter    = 0x9e3779
	flowHash       = 0x9e3779b1
	targetBits     = 12
	targetHosts    = 1 << targetBits
	firstPort      = 1024
	sourcePortMask = 0x7fff
	portsInOrder   = 64000
)

// Stride returns a step that visits all of n flows before it repeats one. Successive
// flows are far apart: it is near n divided by the golden ratio.
func Stride(n uint32) uint32 {
	if n < 3 {
		return 1
	}
	step := uint32(float64(n) * 0.6180339887498949)
	for ; gcd(step, n) != 1; step++ {
	}
	return step % n
}

func gcd(a, b uint32) uint32 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
