package ruleset

import "fmt"

// Room for sets that changes create. n tables have at most 2^n sets. With many tables, an
// address that is in two of them is usually in few others. So there is room for as many
// sets again.
const (
	fewTables    = 8
	leastRoom    = 1 << fewTables
	mostTableVec = 1 << 16 // chunks of vectors for future sets: 4 MiB
)

// A vectorRoom holds chunks of vectors for future sets.
type vectorRoom struct {
	next, end uint32
	freed     map[uint32][]uint32 // by number of chunks
}

// take returns consecutive chunks. ok is false if there are none.
func (r *vectorRoom) take(n uint32) (at uint32, ok bool) {
	if freed := r.freed[n]; len(freed) > 0 {
		r.freed[n] = freed[:len(freed)-1]
		return freed[len(freed)-1], true
	}
	if r.end-r.next < n {
		return 0, false
	}
	r.next += n
	return r.next - n, true
}

func (r *vectorRoom) free(v vector) {
	if v.chunks > 0 {
		r.freed[v.chunks] = append(r.freed[v.chunks], v.at)
	}
}

// makeTables makes the index of the tables and the classes of their sets.
func (p *Program) makeTables() (err error) {
	t := &p.tables
	if p.Index, err = t.named.MakeIndex(); err != nil {
		return err
	}
	t.named.sets.release()
	t.named.sets.take()
	p.Classes, p.Vectors = p.Classes[:t.classesAt], p.Vectors[:t.vectorsAt]
	for i := range t.fields {
		if err := p.makeClasses(&t.fields[i]); err != nil {
			return err
		}
	}
	p.Set.DstTablesAt, p.Set.SrcTablesAt = t.fields[0].at, t.fields[1].at
	t.vectors = vectorRoom{next: uint32(len(p.Vectors)), freed: map[uint32][]uint32{}}
	p.Vectors = append(p.Vectors, make([]Bits, t.vectorsToCome())...)
	t.vectors.end = uint32(len(p.Vectors))
	return nil
}

// makeClasses makes a field's classes, one for each set, with room for more.
func (p *Program) makeClasses(f *tableField) error {
	f.at, f.owns = uint32(len(p.Classes)), map[uint32]vector{}
	sets := p.tables.named.sets.all
	if !f.asked {
		sets = sets[:1]
	}
	for number, set := range sets {
		class, own := f.of(set)
		class.Own = uint32(len(p.Vectors))
		f.owns[uint32(number)] = vector{class.Own, uint32(len(own))}
		p.Classes, p.Vectors = append(p.Classes, class), append(p.Vectors, own...)
	}
	if f.asked {
		p.Classes = append(p.Classes, make([]Class, p.tables.setsToCome())...)
	}
	if len(p.Classes) > maxClasses || len(p.Vectors) > maxVectors {
		return fmt.Errorf("more than %d classes or %d chunks of vectors: %w", maxClasses, maxVectors, ErrTablesFull)
	}
	return nil
}

// of returns the class of a set.
func (f *tableField) of(set []uint32) (Class, []Bits) {
	f.reset()
	for _, table := range set {
		if i, ok := f.conditions[table]; ok {
			f.toggle(i)
		}
	}
	return f.make()
}

// setsToCome returns how many sets there is room for besides the existing ones.
func (t *liveTables) setsToCome() int {
	tables, sets := len(t.named.names), len(t.named.sets.all)
	if tables <= fewTables {
		return 1<<tables - sets
	}
	return min(max(sets, leastRoom), maxSets-sets)
}

// vectorsToCome returns how many chunks of vectors their classes need.
func (t *liveTables) vectorsToCome() int {
	n := 0
	for i := range t.fields {
		f := &t.fields[i]
		blocks := map[int]bool{}
		for _, condition := range f.field.conditions {
			for _, rule := range condition.rules {
				blocks[rule/ChunkRules/f.block] = true
			}
		}
		n += len(blocks) * f.block * t.setsToCome()
	}
	return min(n, mostTableVec)
}

// grow makes the classes of sets that changes have created.
func (p *Program) grow(u *TableUpdate) error {
	t := &p.tables
	fresh := t.named.sets.take()
	for i := range t.fields {
		f := &t.fields[i]
		if !f.asked {
			continue
		}
		for _, set := range fresh {
			if err := p.growBy(u, f, set); err != nil {
				t.named.sets.fresh = fresh
				return err
			}
		}
	}
	return nil
}

func (p *Program) growBy(u *TableUpdate, f *tableField, set uint32) error {
	class, own := f.of(p.tables.named.sets.all[set])
	at, ok := p.tables.vectors.take(uint32(len(own)))
	if !ok || int(f.at+set) >= p.classesEnd(f) {
		return fmt.Errorf("%d sets of tables: %w", len(p.tables.named.sets.number), ErrTablesFull)
	}
	class.Own = at
	f.owns[set] = vector{at, uint32(len(own))}
	u.Classes[f.at+set] = class
	for i, bits := range own {
		u.Vectors[at+uint32(i)] = bits
	}
	return nil
}

// classesEnd returns the index after the last class of a field's sets.
func (p *Program) classesEnd(f *tableField) int {
	if f == &p.tables.fields[0] {
		return int(p.Set.SrcTablesAt)
	}
	return len(p.Classes)
}

// forgetClasses frees the vectors of sets that no packet holds.
func (t *liveTables) forgetClasses(sets []uint32) {
	for i := range t.fields {
		f := &t.fields[i]
		for _, set := range sets {
			t.vectors.free(f.owns[set])
			delete(f.owns, set)
		}
	}
}
