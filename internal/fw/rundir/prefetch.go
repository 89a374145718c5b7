package rundir

// Prefetch says why packets that come in at XDP are not prefetched.
type Prefetch struct {
	Why string `json:"why,omitempty"` // empty: they are, or there is no XDP
}
