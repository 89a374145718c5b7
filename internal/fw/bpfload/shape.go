package bpfload

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// ErrNoBTF is returned (wrapped) for a map whose types the kernel does not know.
var ErrNoBTF = errors.New("the kernel has no BTF of the map")

// A Shape is the memory layout of a type's values, according to BTF.
type Shape struct {
	kind btf.Type
	size int
}

func newShape(t btf.Type) (*Shape, error) {
	size, err := btf.Sizeof(t)
	if err != nil {
		return nil, fmt.Errorf("find the size of a type: %w", err)
	}
	return &Shape{kind: t, size: size}, nil
}

// Size returns the number of bytes of a value.
func (s *Shape) Size() int { return s.size }

// Field returns a field's offset and shape. Its path consists of field names with dots
// between: "flow_forth.seqlo".
func (s *Shape) Field(path string) (offset int, field *Shape, err error) {
	field = s
	for name := range strings.SplitSeq(path, ".") {
		composite, ok := btf.As[*btf.Struct](field.kind)
		if !ok {
			return 0, nil, fmt.Errorf("find field %s: what is in front of %s is no struct", path, name)
		}
		m := member(composite, name)
		if m == nil {
			return 0, nil, fmt.Errorf("find field %s: struct %s has no %s", path, composite.Name, name)
		}
		offset += int(m.Offset.Bytes())
		if field, err = newShape(m.Type); err != nil {
			return 0, nil, err
		}
	}
	return offset, field, nil
}

func member(s *btf.Struct, name string) *btf.Member {
	for i := range s.Members {
		if s.Members[i].Name == name {
			return &s.Members[i]
		}
	}
	return nil
}

// SpecShapes returns the shapes of a map's keys and values from an object's declaration.
// A section's value is its only variable.
func SpecShapes(spec *MapSpec) (key, value *Shape, err error) {
	if spec.Key == nil || spec.Value == nil {
		return nil, nil, fmt.Errorf("the object has no BTF of map %s", spec.Name)
	}
	return shapes(spec.Key, spec.Value)
}

// TypeShape returns the shape of a struct of an object.
func TypeShape(spec *Spec, name string) (*Shape, error) {
	var t *btf.Struct
	if err := spec.Types.TypeByName(name, &t); err != nil {
		return nil, fmt.Errorf("find struct %s: %w", name, err)
	}
	return newShape(t)
}

// MapShapes returns the shapes of a map's keys and values as the kernel has them.
func MapShapes(m *Map) (key, value *Shape, err error) {
	info, err := mapTypes(m)
	if err != nil {
		return nil, nil, err
	}
	if info.btf == 0 {
		return nil, nil, fmt.Errorf("%s: %w", m, ErrNoBTF)
	}
	handle, err := btf.NewHandleFromID(btf.ID(info.btf))
	if err != nil {
		return nil, nil, fmt.Errorf("open the BTF of %s: %w", m, err)
	}
	defer handle.Close()
	spec, err := handle.Spec(nil)
	if err != nil {
		return nil, nil, fmt.Errorf("read the BTF of %s: %w", m, err)
	}
	k, err := spec.TypeByID(btf.TypeID(info.key))
	if err != nil {
		return nil, nil, fmt.Errorf("find the keys' type of %s: %w", m, err)
	}
	v, err := spec.TypeByID(btf.TypeID(info.value))
	if err != nil {
		return nil, nil, fmt.Errorf("find the values' type of %s: %w", m, err)
	}
	return shapes(k, v)
}

func shapes(key, value btf.Type) (k, v *Shape, err error) {
	if section, ok := value.(*btf.Datasec); ok {
		if len(section.Vars) != 1 || section.Vars[0].Offset != 0 {
			return nil, nil, fmt.Errorf("section %s has not one variable, but %d", section.Name, len(section.Vars))
		}
		value = section.Vars[0].Type.(*btf.Var).Type
	}
	if _, none := key.(*btf.Void); none { // a section or a queue
		key = &btf.Int{Size: 4}
	}
	if k, err = newShape(key); err != nil {
		return nil, nil, err
	}
	v, err = newShape(value)
	return k, v, err
}

// mapInfo is the head of struct bpf_map_info (linux/bpf.h).
type mapInfo struct {
	_               [64]byte
	btf, key, value uint32
}

// mapTypes asks the kernel for the ids of a map's types, because the library cannot.
func mapTypes(m *Map) (mapInfo, error) {
	const getInfoByFD = 15 // BPF_OBJ_GET_INFO_BY_FD
	var info mapInfo
	attr := struct {
		fd, size uint32
		info     unsafe.Pointer
	}{uint32(m.FD()), uint32(unsafe.Sizeof(info)), unsafe.Pointer(&info)}
	_, _, errno := unix.Syscall(unix.SYS_BPF, getInfoByFD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return info, fmt.Errorf("ask about %s: %w", m, errno)
	}
	return info, nil
}

// Elements returns the shape of an array's elements, and their number.
func (s *Shape) Elements() (element *Shape, count int, err error) {
	array, ok := btf.As[*btf.Array](s.kind)
	if !ok {
		return nil, 0, fmt.Errorf("find the elements of %v: it is no array", s.kind)
	}
	element, err = newShape(array.Type)
	return element, int(array.Nelems), err
}
