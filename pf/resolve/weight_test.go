package resolve

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/pf/ast"
	"weir/pf/source"
)

// Weighted round-robin goes in rounds of falling weight, each with every address of at
// least that weight.
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

// Weights are not printed, and a warning says so even if the pool's type ignores them.
func TestWeightsAreNotPrinted(t *testing.T) {
	for _, test := range []struct {
		rules string
		want  int
	}{
		{"pass in on em0 rdr-to { 10.0.0.1 weight 2, 10.0.0.2 }\n", 1},
		{"pass in on em0 rdr-to { 10.0.0.1 weight 2, 10.0.0.2 } random\n", 1},
		{"table <t> { 10.0.0.1 weight 2, 10.0.0.2 }\npass in on em0 rdr-to <t>\npass in on em0 rdr-to 10.0.0.1 weight 2\n", 1},
		{"pass in on em0 rdr-to { 10.0.0.1, 10.0.0.2 }\n", 0},
	} {
		host, err := ReadHost("testdata/host.json")
		if err != nil {
			t.Fatal(err)
		}
		_, list := LoadWith("in", []byte(test.rules), host, Settings{})
		list.Fold()
		got := 0
		for i := range list.Items {
			if list.Items[i].Kind == "weight" {
				got++
			}
		}
		if got != test.want {
			t.Errorf("%s%d warnings, not %d", test.rules, got, test.want)
		}
	}
}

// Addresses from a table's files weigh 1 if others have weights; what files exclude has no
// share.
func TestWeightsBesideFiles(t *testing.T) {
	host, err := ReadHost("testdata/host.json")
	if err != nil {
		t.Fatal(err)
	}
	const rules = "table <t> { 10.0.0.1 weight 2 } file \"more\" { 10.0.0.3 weight 2 }\npass in on em0 inet proto tcp to port 80 rdr-to <t>\n"
	read, list := LoadWith("in", []byte(rules), host, Settings{Files: source.Files{"more": {Text: "10.0.0.2\n!10.0.0.8\n10.0.0.8/31\n"}}})
	if read == nil {
		t.Fatal(list.Err())
	}
	var got []string
	for _, a := range read.Rules[0].Rdr.Addrs {
		got = append(got, a.Prefix.String())
	}
	want := []string{"10.0.0.1/32", "10.0.0.3/32", "10.0.0.1/32", "10.0.0.2/32", "10.0.0.9/32", "10.0.0.3/32"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses in turn (-want +got):\n%s", diff)
	}
	if list.Enforce(); list.HasErrors() {
		t.Error(list.Err())
	}
}

// All addresses of a network have its weight; what the table excludes has no share.
func TestWeightsOfNetworks(t *testing.T) {
	for _, test := range []struct {
		rules string
		want  []string
	}{
		{
			"pass in on em0 rdr-to { 10.0.0.0/24 weight 3, 10.0.1.0/24 }\n",
			[]string{"10.0.0.0/24", "10.0.0.0/24", "10.0.0.0/24", "10.0.1.0/24"},
		},
		{
			"table <t> { 10.0.0.0/30 weight 2, !10.0.0.2/31, 10.0.1.1 }\npass in on em0 rdr-to <t>\n",
			[]string{"10.0.0.0/31", "10.0.0.0/31", "10.0.1.1/32"},
		},
		{
			"rdr on em0 inet proto tcp from any to any port 80 -> { 10.0.0.1 weight 2, 10.0.0.2 }\n",
			[]string{"10.0.0.1/32", "10.0.0.1/32", "10.0.0.2/32"},
		},
	} {
		host, err := ReadHost("testdata/host.json")
		if err != nil {
			t.Fatal(err)
		}
		read, list := LoadWith("in", []byte(test.rules), host, Settings{})
		if read == nil {
			t.Fatal(list.Err())
		}
		var got []string
		for _, a := range read.Sequence()[0].Rdr.Addrs {
			got = append(got, a.Prefix.String())
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s(-want +got):\n%s", test.rules, diff)
		}
		if list.Enforce(); list.HasErrors() {
			t.Errorf("%s%v", test.rules, list.Err())
		}
	}
}
