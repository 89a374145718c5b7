package optimize

// step is a possible skip step: rules that ask for the same in one criterion.
type step struct {
	rules      []int32 // in order; those that have moved elsewhere are still in it
	count      int     // rules that have not moved elsewhere
	prev, next *step   // neighbours with the same count
}

// steps holds the skip steps of one criterion.
type steps struct {
	byCount []ring
	top     int // count of the largest step; if it is 1 or less, the criterion has no more use
}

// ring is a list of steps with the same count.
type ring struct{ first, last *step }

// gather makes the steps of a criterion. If all rules ask the same, or no two do, there
// is nothing to gain. Of steps with the same count, the one that was complete first comes
// first. This matches pfctl, where a growing step overtakes others.
func (o *orderer) gather(c int, rules []int32) steps {
	found := o.found[c]
	top := 0
	for _, i := range rules {
		o.steps[i][c] = nil
		n := o.asks[i][c]
		if n == 0 {
			continue
		}
		if found[n] == nil {
			found[n] = &step{}
		}
		st := found[n]
		st.rules = append(st.rules, i)
		st.count++
		top = max(top, st.count)
		o.steps[i][c] = st
	}
	for _, i := range rules {
		found[o.asks[i][c]] = nil
	}
	if top <= 1 || top == len(rules) {
		return steps{}
	}
	s := steps{byCount: make([]ring, top+1), top: top}
	for _, i := range rules {
		if st := o.steps[i][c]; st != nil && st.rules[len(st.rules)-1] == i {
			s.byCount[st.count].append(st)
		}
	}
	return s
}

// alive reports whether the criterion still joins two rules. Like pfctl, weir does not
// look at a dead criterion again.
func (s *steps) alive() bool { return s.top > 1 }

// take removes the first of the largest steps.
func (s *steps) take() *step {
	st := s.byCount[s.top].first
	s.byCount[s.top].remove(st)
	s.settle()
	return st
}

// shrink removes one rule from a step. Only larger steps overtake it.
func (s *steps) shrink(st *step) {
	if !s.alive() {
		return
	}
	s.byCount[st.count].remove(st)
	st.count--
	s.byCount[st.count].prepend(st)
	s.settle()
}

// settle finds the largest step.
func (s *steps) settle() {
	for s.top > 0 && s.byCount[s.top].first == nil {
		s.top--
	}
}

func (r *ring) append(st *step) {
	st.prev, st.next = r.last, nil
	if r.last == nil {
		r.first = st
	} else {
		r.last.next = st
	}
	r.last = st
}

func (r *ring) prepend(st *step) {
	st.prev, st.next = nil, r.first
	if r.first == nil {
		r.last = st
	} else {
		r.first.prev = st
	}
	r.first = st
}

func (r *ring) remove(st *step) {
	if st.prev == nil {
		r.first = st.next
	} else {
		st.prev.next = st.next
	}
	if st.next == nil {
		r.last = st.prev
	} else {
		st.next.prev = st.prev
	}
}
