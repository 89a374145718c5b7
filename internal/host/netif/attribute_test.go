package netif

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Pieces are found by their lengths, and a damaged one ends the search.
func TestPieces(t *testing.T) {
	five, eight := []byte{5, 0, 1, 0, 7}, []byte{8, 0, 2, 0, 1, 2, 3, 4}
	whole := append(append(append([]byte{}, five...), 0, 0, 0), eight...)
	for _, c := range []struct {
		what   string
		b      []byte
		header int
		want   [][]byte
	}{
		{"none", nil, 4, nil},
		{"less than a header", []byte{4, 0, 1}, 4, nil},
		{"two, the first with padding", whole, 4, [][]byte{five, eight}},
		{"the last one without its padding", append(append([]byte{}, eight...), five...), 4, [][]byte{eight, five}},
		{"no length", append(append([]byte{}, eight...), 0, 0, 0, 0), 4, [][]byte{eight}},
		{"longer than the message", append(append([]byte{}, eight...), 9, 0, 0, 0), 4, [][]byte{eight}},
		{"shorter than its header", eight[:8:8], 12, nil},
		{"a header alone", eight, 8, [][]byte{eight}},
	} {
		if diff := cmp.Diff(c.want, Pieces(c.b, c.header)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
	}
}
