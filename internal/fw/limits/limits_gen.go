// Code generated from bpf/config.h by internal/fw/limits/gen; DO NOT EDIT.

package limits

// See bpf/config.h.
const (
	TickNs            = 10000000
	TicksPerSecond    = 100
	MaxIfindex        = 16384
	MaxNexthops       = 32768
	MaxPaths          = 16384
	MaxRules          = 65536
	MaxMatches        = 8
	Ipv6ExtMaxChain   = 8
	Ipv6ExtMaxBytes   = 512
	HeadersMax        = 4096
	TcpMaxOptions     = 40
	EncapLayers       = 2
	MaxLogicals       = 16384
	LogicalBucket     = 8
	BucketSlots       = 7
	TuplesTries       = 64
	NatPortTries      = 1024
	HomeProbes        = 3
	HintProbes        = 8
	AllocTries        = 64
	DeadGrace         = 10
	GcSlice           = 4096
	GcNs              = 10000000
	NexthopFresh      = (1 * TicksPerSecond)
	NexthopProbe      = (30 * TicksPerSecond)
	NexthopIdle       = (60 * TicksPerSecond)
	NexthopWalk       = 50
	NexthopSlice      = 64
	DaemonDead        = (3 * TicksPerSecond)
	DhcpPatience      = (64 * TicksPerSecond)
	RejectRate        = 1000
	RejectBurst       = 200
	HandoffRecords    = 8
	HandoffLife       = (10 * TicksPerSecond)
	MaxLimits         = 16384
	MaxSources        = 0x00ffffff
	SourceTries       = 4
	MaxLimiters       = 512
	RateTries         = 8
	SourceSlice       = 1024
	SourceOver        = (3600 * TicksPerSecond)
	MaxStates         = 0x03ffffff
	MaxNumber         = (MaxStates<<1 | 1)
	QosPrio           = 0x8000
	QosPrioMask       = 0x7
	QosQueueShift     = 16
	MetadataRedirect  = 0x80000000
	MetadataNexthop   = 0x40000000
	MetadataProbe     = 0x20000000
	MetadataAlone     = 0x10000000
	MetadataBridge    = 0x08000000
	MetadataMagic     = 0x77656972
	PrefetchBatch     = 16
	Hinted            = 256
	PrefetchMisses    = 64
	PrefetchMissesMax = 1024
	GcRevisit         = (10 * TicksPerSecond)
	HashKeys          = 10
)
