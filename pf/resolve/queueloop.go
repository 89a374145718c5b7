package resolve

import (
	"fmt"
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
)

// mostOfLoop is how many parents of a loop of queues are named.
const mostOfLoop = 8

// queueLoops reports the loops of parents, each once. It returns the queues of loops and those below them.
func (r *resolver) queueLoops() map[*ast.Queue]bool {
	homeless := make(map[string][]*ast.Queue) // queues below no root, by name
	for _, q := range r.queues.listed {
		if !r.queues.placed[q] {
			homeless[q.Name.Text] = append(homeless[q.Name.Text], q)
		}
	}
	looped := make(map[*ast.Queue]bool) // false: looked at, and no loop is above
	for _, q := range r.queues.listed {
		if !r.queues.placed[q] {
			r.climb(q, homeless, looped)
		}
	}
	return looped
}

// climb follows the parents of a queue up to one that has been looked at, or to its end, and reports a loop.
func (r *resolver) climb(from *ast.Queue, homeless map[string][]*ast.Queue, looped map[*ast.Queue]bool) {
	var path []*ast.Queue
	at := make(map[*ast.Queue]int)
	found := false
	for q := from; q != nil; q = parentAmong(q, homeless[q.Parent.Text]) {
		if known, seen := looped[q]; seen {
			found = known
			break
		}
		if start, again := at[q]; again {
			r.loop(path[start:])
			found = true
			break
		}
		at[q] = len(path)
		path = append(path, q)
	}
	for _, q := range path {
		looped[q] = found
	}
}

// parentAmong returns the first queue that can be the parent of another; nil: none can.
func parentAmong(child *ast.Queue, queues []*ast.Queue) *ast.Queue {
	for _, q := range queues {
		if len(q.On) == 0 || belongs(child, q) {
			return q
		}
	}
	return nil
}

// loop reports queues of which each has the next one as its parent, and the last one the first.
func (r *resolver) loop(queues []*ast.Queue) {
	first := 0
	for i, q := range queues {
		if q.Span.Pos < queues[first].Span.Pos {
			first = i
		}
	}
	queues = append(queues[first:len(queues):len(queues)], queues[:first]...)
	d := diag.Diagnostic{Span: queues[0].Parent.Span, Message: fmt.Sprintf("queue %s is below itself: it is its own parent", queues[0].Name.Text)}
	if len(queues) > 1 {
		var parents []string
		for i, q := range queues[:min(len(queues), mostOfLoop)] {
			parents = append(parents, q.Parent.Text)
			if i > 0 {
				d.Related = append(d.Related, diag.Related{Span: q.Parent.Span})
			}
		}
		if len(queues) > mostOfLoop {
			parents = append(parents, "others")
		}
		d.Message = fmt.Sprintf("queue %s is below itself: its parent is %s", queues[0].Name.Text, strings.Join(parents, ", then "))
	}
	r.faults.Add(d)
}
