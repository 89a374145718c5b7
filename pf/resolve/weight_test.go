package resolve

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/pf/ast"
)

// Weighted round-robin takes, in rounds of falling weight, each address that
// weighs as much.
func TestShares(t *testing.T) {
	tests := []struct {
		weights []uint16
		want    []int
	}{
		{[]uint16{0, 0}, []int{0, 1}},
		{[]uint16{3, 1}, []int{0, 0, 0, 1}},
		{[]uint16{1, 3}, []int{1, 1, 0, 1}},
		{[]uint16{20, 10, 30}, []int{2, 0, 2, 0, 1, 2}},
		{[]uint16{65535, 65534}, nil},
	}
	for _, test := range tests {
		hosts := make([]ast.Host, len(test.weights))
		for i, w := range test.weights {
			hosts[i].Weight = w
		}
		if diff := cmp.Diff(test.want, shares(hosts)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.weights, diff)
		}
	}
}
