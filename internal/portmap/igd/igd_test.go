package igd

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir/internal/portmap/mapping"
)

var (
	client = netip.MustParseAddr("192.168.1.10")
	own    = netip.MustParseAddrPort("192.168.1.1:5000")
)

func newDevice() (*Device, *mapping.Table) {
	t := &mapping.Table{
		Limits: mapping.Limits{All: 10, Host: 3}, Allowed: mapping.DefaultPermissions().Allow,
		Own: func(_ mapping.Protocol, port uint16) bool { return port == 7000 },
	}
	lan := []netip.Prefix{netip.MustParsePrefix("192.168.1.0/24"), netip.MustParsePrefix("fd00:1::/64"), netip.MustParsePrefix("fe80::/64"), netip.MustParsePrefix("127.0.0.0/8")}
	return &Device{
		Change:   func(_ context.Context, do func(*mapping.Table) error) error { return do(t) },
		Table:    func() *mapping.Table { return t },
		Clock:    func() (int64, uint32) { return 1000, 16 },
		External: func() netip.Addr { return netip.MustParseAddr("203.0.113.2") },
		Local: func(a netip.Addr) bool {
			for _, p := range lan {
				if p.Contains(a) {
					return true
				}
			}
			return false
		},
		Same:    func(a, b netip.Addr) bool { return a.As16()[15] == b.As16()[15] },
		Traffic: func() Traffic { return Traffic{BytesSent: 1<<32 + 5} },
		UUID:    [16]byte{1}, Version: "1", Port: 5000, Log: slog.New(slog.DiscardHandler),
	}, t
}

// request asks a device as a host that has connected to an address of it.
func request(d *Device, host netip.Addr, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = own.String()
	at := own
	if host.Is6() {
		at = netip.MustParseAddrPort("[fd00:1::1]:5000")
		r.Host = at.String()
	}
	r.RemoteAddr = netip.AddrPortFrom(host, 40000).String()
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.TCPAddrFromAddrPort(at)))
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

// soap calls an action and returns what it answers.
func soap(d *Device, host netip.Addr, path, urn, action string, arguments ...string) (status int, text string) {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" s:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"><s:Body><u:%s xmlns:u="%s">`, action, urn)
	for i := 0; i < len(arguments); i += 2 {
		fmt.Fprintf(&b, "<%s>%s</%s>", arguments[i], arguments[i+1], arguments[i])
	}
	fmt.Fprintf(&b, "</u:%s></s:Body></s:Envelope>", action)
	w := request(d, host, "POST", path, b.String(), "SOAPAction", fmt.Sprintf("%q", urn+"#"+action))
	return w.Code, w.Body.String()
}

const (
	ip1     = "urn:schemas-upnp-org:service:WANIPConnection:1"
	ip2     = "urn:schemas-upnp-org:service:WANIPConnection:2"
	pinhole = "urn:schemas-upnp-org:service:WANIPv6FirewallControl:1"
)

func entry(external, internal, host, lease string) []string {
	return []string{
		"NewRemoteHost", "", "NewExternalPort", external, "NewProtocol", "TCP", "NewInternalPort", internal, "NewInternalClient", host,
		"NewEnabled", "1", "NewPortMappingDescription", "x &lt;y&gt; &amp;\n", "NewLeaseDuration", lease,
	}
}

func want(t *testing.T, status int, text string, wantStatus int, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if status != wantStatus || !strings.Contains(text, part) {
			t.Errorf("status %d, want %d with %q:\n%s", status, wantStatus, part, text)
		}
	}
}

func TestPortMappings(t *testing.T) {
	d, table := newDevice()
	call := func(host, action string, arguments ...string) (int, string) {
		return soap(d, netip.MustParseAddr(host), "/v1/ctl/IPConn", ip1, action, arguments...)
	}
	status, text := call("192.168.1.10", "AddPortMapping", entry("9000", "8080", "192.168.1.10", "0")...)
	want(t, status, text, 200, `<u:AddPortMappingResponse xmlns:u="`+ip1+`"></u:AddPortMappingResponse>`)
	status, text = call("192.168.1.11", "GetGenericPortMappingEntry", "NewPortMappingIndex", "0")
	want(t, status, text, 200, "<NewExternalPort>9000</NewExternalPort><NewProtocol>TCP</NewProtocol><NewInternalPort>8080</NewInternalPort><NewInternalClient>192.168.1.10</NewInternalClient>"+
		"<NewEnabled>1</NewEnabled><NewPortMappingDescription>x &lt;y&gt; &amp;</NewPortMappingDescription><NewLeaseDuration>0</NewLeaseDuration>")
	for code, arguments := range map[string][]string{
		"718": entry("9000", "8080", "192.168.1.11", "0"),
		"606": entry("9001", "8080", "192.168.1.10", "0"), // for another host
		"716": entry("0", "8080", "192.168.1.11", "0"),
		"732": entry("9001", "0", "192.168.1.11", "0"),
		"402": entry("65536", "8080", "192.168.1.11", "0"),
	} {
		status, text = call("192.168.1.11", "AddPortMapping", arguments...)
		want(t, status, text, 500, "<errorCode>"+code+"</errorCode>")
	}
	for _, bad := range [][]string{entry("9001", "8080", "host", "0"), entry("9001", "8080", "192.168.1.11", "-1"), entry("9001", "8080", "192.168.1.11", "4294967296"), entry("", "8080", "192.168.1.11", "0"), entry("9001", "8080", "192.168.1.11", "0")[2:]} {
		status, text = call("192.168.1.11", "AddPortMapping", bad...)
		want(t, status, text, 500, "<errorCode>402</errorCode>")
	}
	key := []string{"NewRemoteHost", "", "NewExternalPort", "9000", "NewProtocol", "TCP"}
	status, text = call("192.168.1.11", "DeletePortMapping", key...)
	want(t, status, text, 500, "<errorCode>606</errorCode>")
	status, text = call("192.168.1.10", "DeletePortMapping", key...)
	want(t, status, text, 200, "DeletePortMappingResponse")
	status, text = call("192.168.1.10", "DeletePortMapping", key...)
	want(t, status, text, 500, "<errorCode>714</errorCode>")
	status, text = call("192.168.1.10", "GetGenericPortMappingEntry", "NewPortMappingIndex", "0")
	want(t, status, text, 500, "<errorCode>713</errorCode>")
	if len(table.All()) != 0 {
		t.Errorf("left: %v", table.All())
	}
	status, text = soap(d, client, "/v1/ctl/CmnIfCfg", "urn:schemas-upnp-org:service:WANCommonInterfaceConfig:1", "GetTotalBytesSent")
	want(t, status, text, 200, "<NewTotalBytesSent>5</NewTotalBytesSent>")
	d.Change = func(context.Context, func(*mapping.Table) error) error { return io.ErrUnexpectedEOF }
	status, text = call("192.168.1.10", "AddPortMapping", entry("9000", "8080", "192.168.1.10", "0")...)
	want(t, status, text, 500, "<errorCode>501</errorCode>")
}

func TestVersion2(t *testing.T) {
	d, table := newDevice()
	call := func(action string, arguments ...string) (int, string) {
		return soap(d, client, "/v2/ctl/IPConn", ip2, action, arguments...)
	}
	status, text := call("AddAnyPortMapping", entry("9000", "8080", "192.168.1.10", "0")...)
	want(t, status, text, 200, "<NewReservedPort>9000</NewReservedPort>")
	if m, _ := table.At(mapping.TCP, 9000); m.Leases[mapping.UPnP].Ends != 1000+7*24*3600 {
		t.Errorf("version 2 maps for ever: %+v", m)
	}
	status, text = soap(d, netip.MustParseAddr("192.168.1.11"), "/v2/ctl/IPConn", ip2, "AddAnyPortMapping", entry("9000", "8081", "192.168.1.11", "60")...)
	want(t, status, text, 200, "<NewReservedPort>8081</NewReservedPort>")
	ports := []string{"NewStartPort", "0", "NewEndPort", "65535", "NewProtocol", "TCP", "NewManage", "1", "NewNumberOfPorts", "0"}
	status, text = call("GetListOfPortMappings", ports...)
	want(t, status, text, 200, "&lt;p:NewExternalPort&gt;9000&lt;/p:NewExternalPort&gt;")
	if strings.Contains(text, "8081") {
		t.Errorf("the mappings of others are in\n%s", text)
	}
	status, text = call("DeletePortMappingRange", ports[:8]...)
	want(t, status, text, 200, "DeletePortMappingRangeResponse")
	if all := table.All(); len(all) != 1 || all[0].External != 8081 {
		t.Errorf("left: %v", all)
	}
	status, text = call("DeletePortMappingRange", ports[:8]...)
	want(t, status, text, 500, "<errorCode>730</errorCode>")
	// A program that knows only version 1 may speak it.
	status, text = soap(d, client, "/v2/ctl/IPConn", ip1, "GetExternalIPAddress")
	want(t, status, text, 200, "<NewExternalIPAddress>203.0.113.2</NewExternalIPAddress>")
	status, text = soap(d, client, "/v1/ctl/IPConn", ip2, "GetExternalIPAddress")
	want(t, status, text, 500, "<errorCode>401</errorCode>")
}

func TestPinholes(t *testing.T) {
	d, table := newDevice()
	host := netip.MustParseAddr("fd00:1::10")
	call := func(from netip.Addr, action string, arguments ...string) (int, string) {
		return soap(d, from, "/v1/ctl/IP6FCtl", pinhole, action, arguments...)
	}
	ends := func(remote, client, protocol string) []string {
		return []string{"RemoteHost", remote, "RemotePort", "0", "InternalClient", client, "InternalPort", "8080", "Protocol", protocol, "LeaseTime", "600"}
	}
	status, text := call(host, "AddPinhole", ends("2001:db8::1", "fd00:1::10", "6")...)
	want(t, status, text, 200, "<UniqueID>1</UniqueID>")
	status, text = call(netip.MustParseAddr("fe80::10"), "AddPinhole", ends("", "fd00:1::10", "17")...) // the host's other address
	want(t, status, text, 200, "<UniqueID>2</UniqueID>")
	status, text = call(netip.MustParseAddr("fd00:1::11"), "AddPinhole", ends("", "fd00:1::10", "6")...)
	want(t, status, text, 500, "<errorCode>606</errorCode>")
	status, text = call(client, "AddPinhole", ends("", "fd00:1::10", "6")...) // over IPv4
	want(t, status, text, 500, "<errorCode>606</errorCode>")
	status, text = call(host, "AddPinhole", ends("", "fd00:1::10", "65535")...)
	want(t, status, text, 500, "<errorCode>707</errorCode>")
	status, text = call(host, "UpdatePinhole", "UniqueID", "1", "NewLeaseTime", "900")
	want(t, status, text, 200, "UpdatePinholeResponse")
	if m, _ := table.Pinhole(1); m.Leases[mapping.UPnP].Ends != 1900 || len(m.Filters) != 1 {
		t.Errorf("updated: %+v", m)
	}
	status, text = call(netip.MustParseAddr("fd00:1::11"), "DeletePinhole", "UniqueID", "1")
	want(t, status, text, 500, "<errorCode>606</errorCode>")
	for _, id := range []string{"1", "2"} {
		status, text = call(host, "DeletePinhole", "UniqueID", id)
		want(t, status, text, 200, "DeletePinholeResponse")
	}
	status, text = call(host, "DeletePinhole", "UniqueID", "1")
	want(t, status, text, 500, "<errorCode>704</errorCode>")
	if len(table.All()) != 0 {
		t.Errorf("left: %v", table.All())
	}
}

// Requests that must not get through: from elsewhere, by a name (DNS rebinding), from a web
// page, too long, with entities that grow, or that name something else than they call.
func TestRefused(t *testing.T) {
	d, table := newDevice()
	body := func(inner string) string {
		return `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>` + inner + "</s:Body></s:Envelope>"
	}
	good := body(`<u:GetExternalIPAddress xmlns:u="` + ip1 + `"/>`)
	action := []string{"SOAPAction", ip1 + "#GetExternalIPAddress"}
	if w := request(d, client, "POST", "/v1/ctl/IPConn", good, action...); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	bomb := `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>`
	for name, w := range map[string]*httptest.ResponseRecorder{
		"from elsewhere":    request(d, netip.MustParseAddr("198.51.100.1"), "POST", "/v1/ctl/IPConn", good, action...),
		"a name":            request(d, client, "POST", "/v1/ctl/IPConn", good, append(action, "Host", "evil.example:5000")...),
		"another address":   request(d, client, "POST", "/v1/ctl/IPConn", good, append(action, "Host", "203.0.113.2:5000")...),
		"another port":      request(d, client, "POST", "/v1/ctl/IPConn", good, append(action, "Host", "192.168.1.1:80")...),
		"no host":           request(d, client, "POST", "/v1/ctl/IPConn", good, append(action, "Host", "")...),
		"a web page":        request(d, client, "POST", "/v1/ctl/IPConn", good, append(action, "Origin", "http://evil.example")...),
		"no action":         request(d, client, "POST", "/v1/ctl/IPConn", good),
		"another action":    request(d, client, "POST", "/v1/ctl/IPConn", good, "SOAPAction", ip1+"#GetStatusInfo"),
		"another service":   request(d, client, "POST", "/v1/ctl/L3F", good, action...),
		"no such service":   request(d, client, "POST", "/v1/ctl/x", good, action...),
		"get":               request(d, client, "GET", "/v1/ctl/IPConn", good, action...),
		"options":           request(d, client, "OPTIONS", "/v1/ctl/IPConn", "", "Access-Control-Request-Method", "POST"),
		"two actions":       request(d, client, "POST", "/v1/ctl/IPConn", body(`<u:GetExternalIPAddress xmlns:u="`+ip1+`"/><u:GetExternalIPAddress xmlns:u="`+ip1+`"/>`), action...),
		"a bomb":            request(d, client, "POST", "/v1/ctl/IPConn", bomb+body(`<u:GetExternalIPAddress xmlns:u="`+ip1+`">&b;</u:GetExternalIPAddress>`), action...),
		"a doctype":         request(d, client, "POST", "/v1/ctl/IPConn", "<!DOCTYPE x>"+good, action...),
		"too long":          request(d, client, "POST", "/v1/ctl/IPConn", body(strings.Repeat(" ", mostBody)+`<u:GetExternalIPAddress xmlns:u="`+ip1+`"/>`), action...),
		"deep":              request(d, client, "POST", "/v1/ctl/IPConn", strings.Repeat("<a>", 5000), action...),
		"not xml":           request(d, client, "POST", "/v1/ctl/IPConn", "\x00\xff<", action...),
		"a path":            request(d, client, "GET", "/v1/scpd/../../etc/passwd", ""),
		"force termination": request(d, client, "POST", "/v1/ctl/IPConn", body(`<u:ForceTermination xmlns:u="`+ip1+`"/>`), "SOAPAction", ip1+"#ForceTermination"),
	} {
		if w.Code < 400 || strings.Contains(w.Body.String(), "203.0.113.2") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if len(table.All()) != 0 {
		t.Errorf("mapped: %v", table.All())
	}
}

// The descriptions are well-formed, and what they name is there. Every action answers as many
// values as it declares.
func TestDescriptions(t *testing.T) {
	d, _ := newDevice()
	for _, version := range versions {
		w := request(d, client, "GET", fmt.Sprintf("/v%d/root.xml", version), "")
		var any struct {
			Inner string `xml:",innerxml"`
		}
		if err := xml.Unmarshal(w.Body.Bytes(), &any); w.Code != 200 || err != nil {
			t.Fatalf("version %d: %d, %v", version, w.Code, err)
		}
		for _, s := range services(version) {
			if !strings.Contains(w.Body.String(), fmt.Sprintf("<SCPDURL>/v%d/scpd/%s</SCPDURL>", version, s.name)) {
				t.Errorf("%s is not described", s.name)
			}
			scpd := request(d, client, "GET", fmt.Sprintf("/v%d/scpd/%s", version, s.name), "")
			if err := xml.Unmarshal(scpd.Body.Bytes(), &any); scpd.Code != 200 || err != nil {
				t.Errorf("%s: %d, %v", s.name, scpd.Code, err)
			}
			for _, a := range s.actions {
				for _, one := range join(a.in, a.out) {
					if variables[one.variable].kind == "" {
						t.Errorf("%s: the variable %s has no type", a.name, one.variable)
					}
				}
				if len(a.in) == 0 {
					status, text := soap(d, client, fmt.Sprintf("/v%d/ctl/%s", version, s.name), s.urn(), a.name)
					if status == 200 && strings.Count(text, "</New")+strings.Count(text, "</FirewallEnabled")+strings.Count(text, "</Inbound") != len(a.out) {
						t.Errorf("%s: %s", a.name, text)
					}
				}
			}
		}
	}
}

func TestSearch(t *testing.T) {
	d, _ := newDevice()
	search := func(st string) string {
		var b strings.Builder
		for _, a := range d.AnswerSearch([]byte("M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: \"ssdp:discover\"\r\nMX: 2\r\nST: "+st+"\r\n\r\n"), own.Addr()) {
			b.Write(a)
		}
		return b.String()
	}
	for st, version := range map[string]int{
		"urn:schemas-upnp-org:device:InternetGatewayDevice:1": 1, "urn:schemas-upnp-org:device:InternetGatewayDevice:2": 2, ip1: 1, ip2: 2, "upnp:rootdevice": 1, "ssdp:all": 1,
	} {
		got := search(st)
		if n := strings.Count(got, "HTTP/1.1 200 OK\r\n"); n == 0 || st != "ssdp:all" && n != 1 || strings.Count(got, fmt.Sprintf("\r\nLOCATION: http://192.168.1.1:5000/v%d/root.xml\r\n", version)) != n {
			t.Errorf("%s finds\n%s", st, got)
		}
	}
	for _, st := range []string{"urn:schemas-upnp-org:device:MediaServer:1", "", "urn:schemas-upnp-org:device:InternetGatewayDevice:3"} {
		if got := search(st); got != "" {
			t.Errorf("%s finds\n%s", st, got)
		}
	}
	for _, datagram := range []string{"NOTIFY * HTTP/1.1\r\n\r\n", "M-SEARCH * HTTP/1.1\r\nST: upnp:rootdevice\r\n\r\n", "M-SEARCH * HTTP/1.1", "", "GET / HTTP/1.1\r\n\r\n"} {
		if got := d.AnswerSearch([]byte(datagram), own.Addr()); got != nil {
			t.Errorf("%q is answered", datagram)
		}
	}
	byebye := d.Announcements(Group4, own.Addr(), false)
	if alive := d.Announcements(Group4, own.Addr(), true); len(alive) != len(byebye) || !strings.Contains(string(alive[0]), "NTS: ssdp:alive\r\n") || !strings.Contains(string(byebye[0]), "NTS: ssdp:byebye\r\n") || strings.Contains(string(byebye[0]), "LOCATION") {
		t.Errorf("announcements: %s%s", alive[0], byebye[0])
	}
}

// Events go to the subscriber and to nobody else.
func TestCallback(t *testing.T) {
	for header, want := range map[string]bool{
		"<http://192.168.1.10:4000/e>":                           true,
		"<http://192.168.1.10/e><http://8.8.8.8/>":               true, // the first one alone is used
		"<http://8.8.8.8/><http://192.168.1.10/e>":               false,
		"<http://192.168.1.11:4000/e>":                           false,
		"<http://127.0.0.1/>":                                    false,
		"<http://router.example/>":                               false,
		"<https://192.168.1.10/>":                                false,
		"<ftp://192.168.1.10/>":                                  false,
		"<http://u@192.168.1.10/>":                               false,
		"<http://192.168.1.10@8.8.8.8/>":                         false,
		"http://192.168.1.10/":                                   false,
		"<http://192.168.1.10/" + strings.Repeat("x", 600) + ">": false,
		"": false,
	} {
		if _, ok := callbackOf(header, client); ok != want {
			t.Errorf("%s: %v", header, ok)
		}
	}
	d, _ := newDevice()
	w := request(d, client, "SUBSCRIBE", "/v1/evt/IPConn", "", "CALLBACK", "<http://8.8.8.8/>", "NT", "upnp:event")
	if w.Code != http.StatusPreconditionFailed {
		t.Errorf("a callback elsewhere: %d", w.Code)
	}
}

func TestEvents(t *testing.T) {
	d, table := newDevice()
	type event struct{ seq, sid, body string }
	events := make(chan event, 10)
	subscriber := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		events <- event{r.Header.Get("SEQ"), r.Header.Get("SID"), string(body)}
	}))
	defer subscriber.Close()
	host := netip.MustParseAddr("127.0.0.1")
	w := request(d, host, "SUBSCRIBE", "/v1/evt/IPConn", "", "CALLBACK", "<"+subscriber.URL+"/e>", "NT", "upnp:event", "TIMEOUT", "Second-infinite")
	sid := w.Header().Get("SID")
	if w.Code != 200 || sid == "" || w.Header().Get("TIMEOUT") != "Second-1800" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	hear := func(seq, part string) {
		t.Helper()
		d.Notify(t.Context())
		select {
		case e := <-events:
			if e.seq != seq || e.sid != sid || !strings.Contains(e.body, part) {
				t.Errorf("event %+v", e)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no event")
		}
		for busy := true; busy; time.Sleep(time.Millisecond) { // until it is known that it was heard
			d.events.mu.Lock()
			busy = d.events.subs[sid].busy
			d.events.mu.Unlock()
		}
	}
	hear("0", "<ExternalIPAddress>203.0.113.2</ExternalIPAddress></e:property><e:property><PortMappingNumberOfEntries>0<")
	if _, err := table.Add(&mapping.Request{By: mapping.UPnP, Protocol: mapping.TCP, Internal: netip.MustParseAddrPort("192.168.1.10:8080"), External: 9000}); err != nil {
		t.Fatal(err)
	}
	hear("1", "<PortMappingNumberOfEntries>1<")
	d.Notify(t.Context())
	if w := request(d, client, "UNSUBSCRIBE", "/v1/evt/IPConn", "", "SID", sid); w.Code != http.StatusPreconditionFailed {
		t.Errorf("another host ends it: %d", w.Code)
	}
	if w := request(d, host, "SUBSCRIBE", "/v1/evt/IPConn", "", "SID", sid); w.Code != 200 {
		t.Errorf("a renewal: %d", w.Code)
	}
	if w := request(d, host, "UNSUBSCRIBE", "/v1/evt/IPConn", "", "SID", sid); w.Code != 200 || len(d.events.subs) != 0 || len(events) != 0 {
		t.Errorf("the end: %d, %d subscriptions, %d events", w.Code, len(d.events.subs), len(events))
	}
	for n := range mostSubscriptions {
		w := request(d, host, "SUBSCRIBE", "/v1/evt/IPConn", "", "CALLBACK", "<"+subscriber.URL+"/e>", "NT", "upnp:event")
		if want := n < mostSubscriptions/4; (w.Code == 200) != want {
			t.Errorf("subscription %d of a host: %d", n, w.Code)
		}
	}
}

func FuzzReadCall(f *testing.F) {
	f.Add(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><u:A xmlns:u="x"><B>1</B></u:A></s:Body></s:Envelope>`)
	f.Fuzz(func(t *testing.T, body string) {
		_, name, given, err := readCall(strings.NewReader(body))
		if err == nil && (name == "" || given == nil) {
			t.Errorf("%q is read as nothing", body)
		}
		for _, text := range given {
			if shown := printable(text); len([]rune(shown)) > mostDescription || strings.ContainsAny(shown, "\n\r\x00\x1b") {
				t.Errorf("%q is kept as %q", text, shown)
			}
		}
	})
}

func FuzzSearch(f *testing.F) {
	f.Add([]byte("M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: \"ssdp:discover\"\r\nMX: 2\r\nST: ssdp:all\r\n\r\n"))
	d, _ := newDevice()
	f.Fuzz(func(t *testing.T, datagram []byte) {
		if answers := d.AnswerSearch(datagram, own.Addr()); len(answers) > len(d.targets(1)) {
			t.Errorf("%d answers", len(answers))
		}
	})
}
