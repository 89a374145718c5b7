package resolve

import (
	"slices"
	"strconv"
)

// Service is a port with its names. The first one is printed.
type Service struct {
	Names    []string `json:"names"`
	Port     uint16   `json:"port"`
	Protocol string   `json:"protocol"` // tcp, udp, …
}

// Protocol is an IP protocol with its names. The first one is printed.
type Protocol struct {
	Names  []string `json:"names"`
	Number uint8    `json:"number"`
}

// database holds the names of a host for look-up, followed by the built-in ones.
type database struct {
	ports     map[string]uint16
	protocols map[string]uint8
	services  map[service]string
	numbers   map[uint8]string
}

// service is a port of a protocol.
type service struct {
	port     uint16
	protocol string
}

// newDatabase takes the names of a host. As in pfctl, if services share a name, TCP's
// counts first, then UDP's.
func newDatabase(h *Host) database {
	d := database{make(map[string]uint16), make(map[string]uint8), make(map[service]string), make(map[uint8]string)}
	for _, proto := range []string{"tcp", "udp", ""} {
		for i := range h.Services {
			if s := &h.Services[i]; s.Protocol == proto || proto == "" {
				enter(s.Names, s.Port, service{s.Port, s.Protocol}, d.ports, d.services)
			}
		}
	}
	for _, p := range h.Protocols {
		enter(p.Names, p.Number, p.Number, d.protocols, d.numbers)
	}
	return d
}

// enter stores a name's number and a number's printed name, unless they are known
// already.
func enter[N, K comparable](names []string, number N, key K, numbers map[string]N, printed map[K]string) {
	for _, name := range names {
		if _, known := numbers[name]; !known {
			numbers[name] = number
		}
	}
	if _, known := printed[key]; !known && len(names) > 0 {
		printed[key] = names[0]
	}
}

// port returns the number of a port.
func (d *database) port(name string) (uint16, bool) {
	if n, ok := d.ports[name]; ok {
		return n, true
	}
	n, ok := services[name]
	return n, ok
}

// portText prints a port of a protocol; anything but UDP counts as TCP. It prints a name
// if the name means the same here, else the number.
func (d *database) portText(port uint16, udp bool) string {
	protocol := "tcp"
	if udp {
		protocol = "udp"
	}
	for _, name := range []string{d.services[service{port, protocol}], serviceName(port, udp)} {
		if n, known := d.port(name); known && n == port {
			return name
		}
	}
	return strconv.Itoa(int(port))
}

// protocol returns the number of a protocol.
func (d *database) protocol(name string) (uint8, bool) {
	if n, ok := d.protocols[name]; ok {
		return n, true
	}
	return protocolByName(name)
}

// protocolText prints a protocol by pf's name if that means the same here, else by the
// machine's name or by its number.
func (d *database) protocolText(number uint8) string {
	for _, name := range []string{protocolName(number), d.numbers[number]} {
		if n, known := d.protocol(name); known && n == number {
			return name
		}
	}
	return strconv.Itoa(int(number))
}

// Unusual returns the services and protocols of a host that have another meaning without
// its databases.
func (h *Host) Unusual() (ports []Service, protocols []Protocol) {
	for _, s := range h.Services {
		if slices.ContainsFunc(s.Names, func(name string) bool { return services[name] != s.Port }) {
			ports = append(ports, s)
		}
	}
	for _, p := range h.Protocols {
		if slices.ContainsFunc(p.Names, func(name string) bool {
			n, known := protocolByName(name)
			return !known || n != p.Number
		}) {
			protocols = append(protocols, p)
		}
	}
	return ports, protocols
}
