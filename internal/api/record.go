package api

import "weir/internal/record"

// Record is what a reader of records gets: a packet that a rule logged or that
// was captured.
type Record = record.Record
