package optimize

// step is a skip step as it could be: rules that ask the same by one criterion.
type step struct {
	rules      []int32 // in order; those that have moved elsewhere are still in it
	count      int     // those that have not
	prev, next *step   // of the same count
}

// steps are the skip steps of one criterion.
type steps struct {
	byCount []ring
	top     int // count of the largest; if not more than 1, the criterion is of no more use
}

// ring is a list of steps of one count.
type ring struct{ first, last *step }

// gather makes the steps of a criterion. Where all rules ask the same, or no
// two, there is nothing to gain. Of steps of one count that comes first which
// was complete first: so it is in pfctl, where a step that grows overtakes.
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

// alive reports whether the criterion still gathers any two rules. pfctl does
// not look again at one that does not.
func (s *steps) alive() bool { return s.top > 1 }

// take removes the first of the largest steps.
func (s *steps) take() *step {
	st := s.byCount[s.top].first
	s.byCount[s.top].remove(st)
	s.settle()
	return st
}

// shrink takes one rule out of a step. It is overtaken by larger ones only.
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
