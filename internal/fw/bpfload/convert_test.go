package bpfload

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"
)

func number(size uint32) *btf.Int { return &btf.Int{Name: "number", Size: size} }

func field(name string, t btf.Type, at uint32) btf.Member {
	return btf.Member{Name: name, Type: t, Offset: btf.Bits(8 * at)}
}

// Fields go to the offset of the field with the same name. Missing fields are reported,
// new ones are left alone, and padding is ignored.
func TestConversion(t *testing.T) {
	pair := func(a, b uint32) *btf.Struct {
		return &btf.Struct{Name: "pair", Size: 4, Members: []btf.Member{field("a", number(2), a), field("b", number(2), b)}}
	}
	from := &btf.Struct{Name: "old", Size: 24, Members: []btf.Member{
		field("x", number(4), 0), field("y", number(4), 4), field("gone", number(4), 8), field("pad0", number(2), 12),
		field("wide", number(2), 14), field("pairs", &btf.Array{Type: pair(0, 2), Nelems: 2}, 16),
	}}
	to := &btf.Struct{Name: "new", Size: 28, Members: []btf.Member{
		field("wide", number(8), 0), field("z", number(4), 8), field("x", number(4), 12), field("added", number(2), 16),
		field("pad0", number(2), 18), field("pairs", &btf.Array{Type: pair(2, 0), Nelems: 2}, 20),
	}}
	c := conversion(t, from, to, Renames{"old.y": "z"})
	if diff := cmp.Diff([]string{"gone"}, c.Dropped()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if c.Same() {
		t.Error("they are taken for the same")
	}
	old := binary.LittleEndian.AppendUint32(nil, 1)
	old = binary.LittleEndian.AppendUint32(old, 2)
	old = append(old, 3, 3, 3, 3, 9, 9, 0xff, 0xff, 1, 0, 2, 0, 3, 0, 4, 0)
	got := make([]byte, 28)
	if err := c.Convert(got, old); err != nil {
		t.Fatal(err)
	}
	want := []byte{0xff, 0xff, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 4, 0, 3, 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("converted (-want +got):\n%s", diff)
	}

	back := conversion(t, to, from, Renames{"new.z": "y"})
	again := make([]byte, 24)
	if err := back.Convert(again, got); err != nil {
		t.Fatal(err)
	}
	copy(again[8:14], old[8:14]) // the new shape lacks these
	if diff := cmp.Diff(old, again); diff != "" {
		t.Errorf("and back (-want +got):\n%s", diff)
	}
	got[2] = 1
	if err := back.Convert(again, got); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a number without room: %v", err)
	}
}

// A signed number keeps its sign in a larger and in a smaller field.
func TestConversionOfSigned(t *testing.T) {
	small := &btf.Int{Name: "small", Size: 2, Encoding: btf.Signed}
	large := &btf.Int{Name: "large", Size: 4, Encoding: btf.Signed}
	wide := make([]byte, 4)
	if err := conversion(t, small, large, nil).Convert(wide, []byte{0xfe, 0xff}); err != nil {
		t.Fatal(err)
	}
	if got := int32(binary.LittleEndian.Uint32(wide)); got != -2 {
		t.Errorf("-2 became %d", got)
	}
	narrow := make([]byte, 2)
	if err := conversion(t, large, small, nil).Convert(narrow, wide); err != nil || narrow[0] != 0xfe || narrow[1] != 0xff {
		t.Errorf("and back %x, %v", narrow, err)
	}
}

// Shapes are the same only if they differ in nothing but padding.
func TestSameShapes(t *testing.T) {
	shape := func(last string, pad string) *btf.Struct {
		return &btf.Struct{Name: "s", Size: 12, Members: []btf.Member{field("a", number(4), 0), field(pad, number(4), 4), field(last, number(4), 8)}}
	}
	for _, test := range []struct {
		from, to *btf.Struct
		want     bool
	}{
		{shape("b", "pad0"), shape("b", "spare"), true},
		{shape("b", "pad0"), shape("c", "pad0"), false},
		{shape("b", "pad0"), shape("b", "new"), false},
		{shape("b", "old"), shape("b", "pad0"), false},
	} {
		if got := conversion(t, test.from, test.to, nil).Same(); got != test.want {
			t.Errorf("%v to %v: same is %v, want %v", test.from.Members, test.to.Members, got, test.want)
		}
	}
}

func conversion(tb testing.TB, from, to btf.Type, renames Renames) *Conversion {
	tb.Helper()
	f, err := newShape(from)
	if err != nil {
		tb.Fatal(err)
	}
	g, err := newShape(to)
	if err != nil {
		tb.Fatal(err)
	}
	c, err := NewConversion(f, g, renames)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}
