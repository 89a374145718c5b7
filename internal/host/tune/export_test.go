package tune

// Lock holds the lock as a second weir tune does.
func (h *Host) Lock() (unlock func(), err error) { return h.lock(true) }

// PlanAgain has a plan be made again behind other queues by another function.
func (p *Plan) PlanAgain(again func() (*Plan, error)) { p.again = again }
