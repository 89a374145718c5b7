package igd

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// ServeHTTP serves the device of each version under /v1/ and /v2/.
func (d *Device) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, ok := d.asks(r)
	if !ok {
		http.Error(w, "not from here", http.StatusForbidden)
		return
	}
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	for _, version := range versions {
		if path[0] == fmt.Sprintf("v%d", version) {
			d.route(w, r, version, path[1:], host)
			return
		}
	}
	http.NotFound(w, r)
}

func (d *Device) route(w http.ResponseWriter, r *http.Request, version int, path []string, host netip.Addr) {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if len(path) == 1 && path[0] == rootFile && reads {
		d.send(w, http.StatusOK, d.root(version))
		return
	}
	if len(path) != 2 {
		http.NotFound(w, r)
		return
	}
	s := find(version, path[1])
	switch {
	case s == nil:
		http.NotFound(w, r)
	case path[0] == "scpd" && reads:
		d.send(w, http.StatusOK, s.description())
	case path[0] == "ctl" && r.Method == http.MethodPost:
		d.control(w, r, s, version, host)
	case path[0] == "evt" && (r.Method == "SUBSCRIBE" || r.Method == "UNSUBSCRIBE"):
		d.subscription(w, r, s, version, host)
	default:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// asks returns the host that asks, and whether it may. A browser that was led here by a name
// of its page's owner (DNS rebinding) tells that name as Host; UPnP uses addresses only.
func (d *Device) asks(r *http.Request) (host netip.Addr, ok bool) {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return host, false
	}
	// The zone of a link-local address is the interface, to which the socket is bound.
	host = from.Addr().Unmap().WithZone("")
	local, isAddr := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !isAddr || !d.Local(host) || r.Header.Get("Origin") != "" {
		return host, false
	}
	own, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return host, false
	}
	return host, namesAddress(r.Host, own)
}

// namesAddress reports whether a Host header is an address with or without its port.
func namesAddress(text string, own netip.AddrPort) bool {
	want := own.Addr().Unmap().WithZone("")
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().WithZone("") == want && at.Port() == own.Port()
	}
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return err == nil && addr.WithZone("") == want
}

const rootFile = "root.xml"

// root is the description of the device.
func (d *Device) root(version int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?>
<root xmlns="urn:schemas-upnp-org:device-1-0" configId="%d"><specVersion><major>1</major><minor>%d</minor></specVersion>`, configID, version-1)
	d.describe(&b, 0, version)
	b.WriteString("</root>\n")
	return b.String()
}

// configID would have to change with the descriptions (UDA 1.1, 2.2).
const configID = 1

// describe writes a part of the device with the parts in it.
func (d *Device) describe(b *strings.Builder, part, version int) {
	fmt.Fprintf(b, `
<device><deviceType>%s</deviceType><friendlyName>%s</friendlyName><manufacturer>weir</manufacturer><manufacturerURL>http://www.upnp.org/</manufacturerURL>`+
		`<modelDescription>weir, a firewall and router</modelDescription><modelName>weir</modelName><modelNumber>%s</modelNumber>`+
		`<serialNumber>1</serialNumber><UDN>uuid:%s</UDN><serviceList>`,
		deviceType(part, version), escape(parts[part].name), escape(d.Version), d.partUUID(part, version))
	for _, s := range services(version) {
		if s.part == part {
			fmt.Fprintf(b, `
<service><serviceType>%s</serviceType><serviceId>urn:upnp-org:serviceId:%s</serviceId><SCPDURL>/v%d/scpd/%s</SCPDURL>`+
				`<controlURL>/v%d/ctl/%s</controlURL><eventSubURL>/v%d/evt/%s</eventSubURL></service>`, s.urn(), s.id, version, s.name, version, s.name, version, s.name)
		}
	}
	b.WriteString("</serviceList>")
	if part+1 < len(parts) {
		b.WriteString("<deviceList>")
		d.describe(b, part+1, version)
		b.WriteString("</deviceList>")
	}
	b.WriteString("</device>")
}

// description is the list of a service's actions and of the variables that they name.
func (s *service) description() string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"?>
<scpd xmlns="urn:schemas-upnp-org:service-1-0"><specVersion><major>1</major><minor>0</minor></specVersion><actionList>`)
	var names []string
	seen := map[string]bool{}
	list := func(way string, all []argument) {
		for _, a := range all {
			fmt.Fprintf(&b, "<argument><name>%s</name><direction>%s</direction><relatedStateVariable>%s</relatedStateVariable></argument>", a.name, way, a.variable)
			if !seen[a.variable] {
				seen[a.variable] = true
				names = append(names, a.variable)
			}
		}
	}
	for _, a := range s.actions {
		fmt.Fprintf(&b, "\n<action><name>%s</name>", a.name)
		if len(a.in)+len(a.out) > 0 {
			b.WriteString("<argumentList>")
			list("in", a.in)
			list("out", a.out)
			b.WriteString("</argumentList>")
		}
		b.WriteString("</action>")
	}
	b.WriteString("</actionList><serviceStateTable>")
	for _, name := range names {
		describeVariable(&b, name)
	}
	b.WriteString("</serviceStateTable></scpd>\n")
	return b.String()
}

func describeVariable(b *strings.Builder, name string) {
	v := variables[name]
	sends := "no"
	if v.event {
		sends = "yes"
	}
	fmt.Fprintf(b, "\n<stateVariable sendEvents=%q><name>%s</name><dataType>%s</dataType>", sends, name, v.kind)
	if len(v.values) > 0 {
		fmt.Fprintf(b, "<allowedValueList><allowedValue>%s</allowedValue></allowedValueList>", strings.Join(v.values, "</allowedValue><allowedValue>"))
	}
	b.WriteString("</stateVariable>")
}
