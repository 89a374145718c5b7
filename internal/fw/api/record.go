package api

import "weir/internal/fw/pktrecord"

// Record is what a reader of records gets: a packet that a rule logged or that
// was captured.
type Record = pktrecord.Record
