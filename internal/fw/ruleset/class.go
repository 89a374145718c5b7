package ruleset

import (
	"fmt"
	"slices"
)

// Limits on the compiled rules, so that a file cannot fill the memory. In bytes: classes
// 32 MiB, vectors 64 MiB, lines of trees 96 MiB.
const (
	maxClasses = 1 << 20
	maxVectors = 1 << 20
	maxLines   = 3 << 19
)

// A condition is what rules require of a field: the numbers that meet it in each of the
// field's spaces, and the rules that have it or its negation.
type condition struct {
	spans [2][]span
	rules []int
}

// A field holds all conditions on one field. In common the bits are set of rules without
// a condition on the field, and of rules with a negated condition.
type field struct {
	conditions []*condition
	common     []uint64
}

// A classifier finds the classes of a field's numbers.
type classifier struct {
	program *Program
	field   *field
	block   int                  // chunks in one
	at      uint32               // index of field.common in program.Vectors
	all     []uint64             // the vector of all rules
	known   map[[2]uint64]uint32 // classes by the hash of the conditions met
	met     []int                // conditions that the present number meets
	places  []int                // index of each condition in met, or -1
	hash    [2]uint64            // of met
}

func newClassifier(p *Program, f *field) *classifier {
	c := &classifier{
		program: p, field: f, block: 1 << p.Set.BlockShift,
		at:     uint32(len(p.Vectors)),
		all:    newVector(len(p.Order)),
		known:  map[[2]uint64]uint32{},
		places: slices.Repeat([]int{-1}, len(f.conditions)),
	}
	for i := range p.Order {
		c.all[i/64] |= 1 << (i % 64)
	}
	p.Vectors = appendVector(p.Vectors, f.common)
	return c
}

func newVector(rules int) []uint64 { return make([]uint64, Chunks(rules)*chunkWords) }

func appendVector(vectors []Bits, v []uint64) []Bits {
	for chunk := range slices.Chunk(v, chunkWords) {
		vectors = append(vectors, Bits(chunk))
	}
	return vectors
}

// A stretch is the first of a run of numbers that have the same class.
type stretch struct {
	from  number
	class uint32
}

// An edge is a number at which a condition begins or ceases to be met.
type edge struct {
	at        number
	condition int
}

// stretches returns the stretches of one of the field's spaces.
func (c *classifier) stretches(space int) ([]stretch, error) {
	var edges []edge
	for i, condition := range c.field.conditions {
		for _, s := range condition.spans[space] {
			edges = append(edges, edge{s.first, i})
			if next, ok := s.last.next(); ok {
				edges = append(edges, edge{next, i})
			}
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return a.at.compare(b.at) })
	c.reset()
	var found []stretch
	at := number{}
	for {
		for len(edges) > 0 && edges[0].at == at {
			c.toggle(edges[0].condition)
			edges = edges[1:]
		}
		class, err := c.class()
		if err != nil {
			return nil, err
		}
		if len(found) == 0 || found[len(found)-1].class != class {
			found = append(found, stretch{at, class})
		}
		if len(edges) == 0 {
			return found, nil
		}
		at = edges[0].at
	}
}

func (c *classifier) reset() {
	for _, i := range c.met {
		c.places[i] = -1
	}
	c.met, c.hash = c.met[:0], [2]uint64{}
}

func (c *classifier) toggle(condition int) {
	if at := c.places[condition]; at >= 0 {
		last := c.met[len(c.met)-1]
		c.met[at], c.places[last] = last, at
		c.met, c.places[condition] = c.met[:len(c.met)-1], -1
	} else {
		c.places[condition] = len(c.met)
		c.met = append(c.met, condition)
	}
	c.hash[0] ^= mix(2 * uint64(condition))
	c.hash[1] ^= mix(2*uint64(condition) + 1)
}

// mix returns a random-looking number for n (splitmix64). Among a million sets of
// conditions, the chance that two have the same 128-bit hash is below 2^-88.
func mix(n uint64) uint64 {
	n = (n + 1) * 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// class returns the class of numbers that meet exactly the present conditions.
func (c *classifier) class() (uint32, error) {
	if class, ok := c.known[c.hash]; ok {
		return class, nil
	}
	p := c.program
	class := uint32(len(p.Classes))
	made, own := c.make()
	if len(p.Classes) == maxClasses || len(p.Vectors)+len(own) > maxVectors {
		return 0, c.tooMany()
	}
	made.Own = uint32(len(p.Vectors))
	p.Vectors = append(p.Vectors, own...)
	p.Classes = append(p.Classes, made)
	c.known[c.hash] = class
	return class, nil
}

// make makes the class of the present conditions and its own chunks. The caller decides
// where these go.
func (c *classifier) make() (made Class, own []Bits) {
	made.Common = c.at
	differing := c.differing()
	for block := range c.program.Chunks() / c.block {
		differs, filled, full := false, false, true
		chunks := make([]Bits, c.block)
		for i := range chunks {
			chunk := block*c.block + i
			vector := Bits(c.field.common[chunk*chunkWords:])
			if bits := differing[chunk]; bits != nil {
				differs, chunks[i] = true, *bits
				for k := range vector {
					vector[k] ^= bits[k]
				}
			}
			filled = filled || vector != (Bits{})
			full = full && vector == Bits(c.all[chunk*chunkWords:])
		}
		if differs {
			own = append(own, chunks...)
		}
		made.Differs |= bit(block, differs)
		made.Filled |= bit(block, filled)
		made.Full |= bit(block, full)
	}
	return made, own
}

func bit(n int, set bool) uint64 {
	if set {
		return 1 << n
	}
	return 0
}

// differing returns the rules of the present conditions, by chunk. Their bits differ from
// those in common.
func (c *classifier) differing() map[int]*Bits {
	own := map[int]*Bits{}
	for _, i := range c.met {
		for _, rule := range c.field.conditions[i].rules {
			chunk := own[rule/ChunkRules]
			if chunk == nil {
				chunk = new(Bits)
				own[rule/ChunkRules] = chunk
			}
			chunk[rule%ChunkRules/64] |= 1 << (rule % 64)
		}
	}
	return own
}

func (c *classifier) tooMany() error {
	rule := 0
	if len(c.met) > 0 {
		rule = c.field.conditions[c.met[len(c.met)-1]].rules[0]
	}
	return &Error{
		Rule: rule,
		What: fmt.Sprintf("its conditions overlap those of other rules in too many ways (more than %d classes or %d chunks of vectors)", maxClasses, maxVectors),
	}
}
