package resolve_test

import (
	"encoding/json"
	"testing"

	"weir/pf/resolve"
)

// A misspelt field in the description of a machine must not be ignored.
func TestReadHostErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"interfces": []}`: `there is no field "interfces"; did you mean "interfaces"?`,
		`{"interfaces": [{"name": "em0", "adresses": []}]}`:       `there is no field "adresses"; did you mean "addresses"?`,
		`{"interfaces": [{"name": "em0", "default": []}]}`:        `there is no field "default"; did you mean "default_route"?`,
		`{"interfaces": [{"name": "em0"}, {"name": "em0"}]}`:      `there are two interfaces "em0"`,
		`{"interfaces": [{"addresses": ["bogus"]}]}`:              `an interface has no name`,
		`{"interfaces": [{"addresses": ["bogus"], "name": "x"}]}`: `interface "x": "bogus" is not an address with the length of its network, such as 192.0.2.1/24`,
		`{"interfaces": [{"name": "x", "default_route": "gw"}]}`:  `interface "x": "gw" is not an address`,
		`{"user": {"www": 67}}`:                                   `there is no field "user"; did you mean "users"?`,
	} {
		err := json.Unmarshal([]byte(text), &resolve.Host{})
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Remarks are ignored, and so are further fields of weir interfaces --json.
func TestReadHostRemarks(t *testing.T) {
	const text = `{"comment": "of the lab", "foreign_forward_drops": [], "interfaces": [{"name": "em0", "groups": ["em"],
		"addresses": ["192.0.2.1/24"], "index": 2, "kind": "physical", "up": true, "hook": "xdp", "mode": "native", "why": "",
		"driver": "em", "queues": 1, "mtu": 1500, "skip": true}]}`
	var host resolve.Host
	if err := json.Unmarshal([]byte(text), &host); err != nil {
		t.Fatal(err)
	}
	if em0 := host.Interface("em0"); em0 == nil || len(em0.Addresses) != 1 || em0.Addresses[0].String() != "192.0.2.1/24" || len(em0.Groups) != 1 {
		t.Errorf("read as %+v", host)
	}
}
