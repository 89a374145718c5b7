package tune

// Lock holds the lock as a second weir tune does.
func (h *Host) Lock() (unlock func(), err error) { return h.lock(true) }
