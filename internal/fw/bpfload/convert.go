package bpfload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// ErrTooLarge is returned (wrapped) for a number that does not fit its destination.
var ErrTooLarge = errors.New("a number is too large")

// Renames maps a "struct.field" of the first shape to the field's name in the other
// shape.
type Renames map[string]string

// A Conversion converts values of one shape to another, field by field. Fields with the
// same name are the same. Fields that only the other shape has become 0.
type Conversion struct {
	from, to *Shape
	renames  Renames
	steps    []step
	left     []string
}

// A step converts one run of bytes. Numbers are little-endian, as on all of weir's
// machines.
type step struct {
	name       string
	from, to   int // offsets
	size       int // bytes copied or read
	room       int // size of the number written; 0: bytes are copied
	signed     bool
	each       *Conversion // converts an array's elements; else nil
	count      int
	fromStride int
	toStride   int
}

// NewConversion compares two shapes.
func NewConversion(from, to *Shape, renames Renames) (*Conversion, error) {
	c := &Conversion{from: from, to: to, renames: renames}
	if err := c.add("", from.kind, to.kind, 0, 0); err != nil {
		return nil, err
	}
	return c, nil
}

// Dropped returns the fields that the other shape does not have.
func (c *Conversion) Dropped() []string { return c.left }

// Same reports whether both shapes are the same, so that bytes need no conversion.
func (c *Conversion) Same() bool {
	return c.from.size == c.to.size && len(c.left) == 0 && c.covers()
}

// covers reports whether all steps copy bytes to the same offset and fill the other
// shape, apart from padding.
func (c *Conversion) covers() bool {
	fields := 0
	for i := range c.steps {
		s := &c.steps[i]
		if s.room != 0 || s.from != s.to {
			return false
		}
		if s.each != nil && (s.fromStride != s.toStride || !s.each.Same()) {
			return false
		}
		fields += s.size
	}
	return fields == content(c.to.kind)
}

// content returns how many bytes of a type are not padding.
func content(t btf.Type) int {
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Struct:
		sum := 0
		for i := range t.Members {
			if !isPadding(t.Members[i].Name) {
				sum += content(t.Members[i].Type)
			}
		}
		return sum
	case *btf.Array:
		return int(t.Nelems) * content(t.Type)
	default:
		size, _ := btf.Sizeof(t)
		return size
	}
}

func isPadding(name string) bool {
	return strings.HasPrefix(name, "pad") || strings.HasPrefix(name, "spare")
}

func (c *Conversion) add(name string, from, to btf.Type, fromAt, toAt int) error {
	from, to = btf.UnderlyingType(from), btf.UnderlyingType(to)
	switch f := from.(type) {
	case *btf.Struct:
		if t, ok := to.(*btf.Struct); ok {
			return c.addStruct(name, f, t, fromAt, toAt)
		}
	case *btf.Array:
		if t, ok := to.(*btf.Array); ok {
			return c.addArray(name, f, t, fromAt, toAt)
		}
	case *btf.Int, *btf.Enum:
		switch to.(type) {
		case *btf.Int, *btf.Enum:
			return c.addNumber(name, from, to, fromAt, toAt)
		}
	}
	return fmt.Errorf("convert %s: %v does not become %v", name, from, to)
}

func (c *Conversion) addStruct(name string, from, to *btf.Struct, fromAt, toAt int) error {
	for i := range from.Members {
		f := &from.Members[i]
		if isPadding(f.Name) {
			continue
		}
		wanted := f.Name
		if other, ok := c.renames[from.Name+"."+f.Name]; ok {
			wanted = other
		}
		path := strings.TrimPrefix(name+"."+f.Name, ".")
		t := member(to, wanted)
		if t == nil {
			c.left = append(c.left, path)
			continue
		}
		if f.BitfieldSize != 0 || t.BitfieldSize != 0 {
			return fmt.Errorf("convert %s: it is a bit field", path)
		}
		if err := c.add(path, f.Type, t.Type, fromAt+int(f.Offset.Bytes()), toAt+int(t.Offset.Bytes())); err != nil {
			return err
		}
	}
	return nil
}

// addArray converts as many elements as both arrays have.
func (c *Conversion) addArray(name string, from, to *btf.Array, fromAt, toAt int) error {
	f, err := newShape(from.Type)
	if err != nil {
		return err
	}
	t, err := newShape(to.Type)
	if err != nil {
		return err
	}
	each, err := NewConversion(f, t, c.renames)
	if err != nil {
		return fmt.Errorf("convert the elements of %s: %w", name, err)
	}
	count := int(min(from.Nelems, to.Nelems))
	if from.Nelems > to.Nelems {
		c.left = append(c.left, fmt.Sprintf("%s[%d:]", name, to.Nelems))
	}
	for _, left := range each.left {
		c.left = append(c.left, name+"[]."+left)
	}
	s := step{
		name: name, from: fromAt, to: toAt, size: count * content(to.Type),
		each: each, count: count, fromStride: f.size, toStride: t.size,
	}
	if each.Same() && content(to.Type) == t.size {
		s = step{name: name, from: fromAt, to: toAt, size: count * t.size}
	}
	c.push(s)
	return nil
}

func (c *Conversion) addNumber(name string, from, to btf.Type, fromAt, toAt int) error {
	f, err := btf.Sizeof(from)
	if err != nil {
		return err
	}
	t, err := btf.Sizeof(to)
	if err != nil {
		return err
	}
	s := step{name: name, from: fromAt, to: toAt, size: f}
	if f != t {
		i, ok := from.(*btf.Int)
		s.room, s.signed = t, ok && i.Encoding == btf.Signed
	}
	c.push(s)
	return nil
}

// push adds a step. It extends the previous step if the bytes are adjacent.
func (c *Conversion) push(s step) {
	if n := len(c.steps); n > 0 && s.room == 0 && s.each == nil {
		last := &c.steps[n-1]
		if last.room == 0 && last.each == nil && last.from+last.size == s.from && last.to+last.size == s.to {
			last.size += s.size
			return
		}
	}
	c.steps = append(c.steps, s)
}

// Convert writes a value into to. Other bytes of to do not change. Both slices have the
// sizes of their shapes.
func (c *Conversion) Convert(to, from []byte) error {
	for i := range c.steps {
		s := &c.steps[i]
		switch {
		case s.each != nil:
			for n := range s.count {
				f, t := s.from+n*s.fromStride, s.to+n*s.toStride
				if err := s.each.Convert(to[t:t+s.each.to.size], from[f:f+s.each.from.size]); err != nil {
					return err
				}
			}
		case s.room == 0:
			copy(to[s.to:s.to+s.size], from[s.from:s.from+s.size])
		default:
			if err := s.number(to, from); err != nil {
				return err
			}
		}
	}
	return nil
}

// number writes a number with another size.
func (s *step) number(to, from []byte) error {
	var wide [8]byte
	copy(wide[:], from[s.from:s.from+s.size])
	value := binary.LittleEndian.Uint64(wide[:])
	unused := uint(64 - 8*s.size)
	if s.signed {
		value = uint64(int64(value<<unused) >> unused)
	}
	binary.LittleEndian.PutUint64(wide[:], value)
	copy(to[s.to:s.to+s.room], wide[:])
	lost := uint(64 - 8*s.room)
	back := value << lost >> lost
	if s.signed {
		back = uint64(int64(value<<lost) >> lost)
	}
	if back != value {
		return fmt.Errorf("convert %s, which is %d, to %d bytes: %w", s.name, value, s.room, ErrTooLarge)
	}
	return nil
}
