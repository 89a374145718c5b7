package resolve

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"strings"

	"weir/pf/diag"
)

// ReadHost reads a Host from a JSON file. It ignores other fields, because weir
// interfaces --json writes more, unless they look misspelt.
func ReadHost(path string) (*Host, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read host: %w", err)
	}
	host := &Host{}
	if err := json.Unmarshal(data, host); err != nil {
		return nil, fmt.Errorf("read host %s: %w", path, err)
	}
	return host, nil
}

// UnmarshalJSON reads a host whose interfaces have unique names.
func (h *Host) UnmarshalJSON(data []byte) error {
	type plain Host
	if _, err := object(data, plain{}); err != nil {
		return err
	}
	if err := json.Unmarshal(data, (*plain)(h)); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for i := range h.Interfaces {
		name := h.Interfaces[i].Name
		if seen[name] {
			return fmt.Errorf("there are two interfaces %q", name)
		}
		seen[name] = true
	}
	return nil
}

// UnmarshalJSON reads an interface. Errors name it.
func (i *HostInterface) UnmarshalJSON(data []byte) error {
	type plain HostInterface
	all, err := object(data, plain{})
	if err != nil {
		return err
	}
	var name string
	if json.Unmarshal(all["name"], &name) != nil || name == "" {
		return errors.New("an interface has no name")
	}
	read := struct {
		*plain
		Addresses []interfaceAddress `json:"addresses"`
	}{plain: (*plain)(i)}
	if err := json.Unmarshal(data, &read); err != nil {
		return fmt.Errorf("interface %q: %w", name, err)
	}
	i.Addresses = make([]netip.Prefix, len(read.Addresses))
	for k, a := range read.Addresses {
		i.Addresses[k] = a.Prefix
	}
	return nil
}

// interfaceAddress is an address with the prefix length of its network.
type interfaceAddress struct{ netip.Prefix }

// UnmarshalText describes errors without Go's names.
func (a *interfaceAddress) UnmarshalText(text []byte) (err error) {
	if a.Prefix, err = netip.ParsePrefix(string(text)); err != nil {
		return fmt.Errorf("%q is not an address with the length of its network, such as 192.0.2.1/24", text)
	}
	return nil
}

// object returns the fields of a JSON object that is read into a struct like like. It
// returns an error if one of them looks misspelt.
func object(data []byte, like any) (map[string]json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(like)) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
			names = append(names, name)
		}
	}
	return all, diag.MisspeltField(all, names)
}
