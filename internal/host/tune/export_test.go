package tune

// Lock takes the lock as a second weir tune would.
func (h *Host) Lock() (unlock func(), err error) { return h.lock(true) }

// PlanAgain sets the function that plans again after other queues are set.
func (p *Plan) PlanAgain(again func() (*Plan, error)) { p.again = again }
