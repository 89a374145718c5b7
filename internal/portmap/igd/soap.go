package igd

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// mostBody is how long a request may be in bytes. Real ones have less than 2,000.
const mostBody = 16 << 10

// A fault is an error with UPnP's number.
type fault struct {
	code int
	text string
}

func (f *fault) Error() string { return f.text }

// Faults that several services have.
var (
	errInvalidAction = &fault{401, "Invalid Action"}
	errInvalidArgs   = &fault{402, "Invalid Args"}
	errActionFailed  = &fault{501, "Action Failed"}
	errNotAuthorized = &fault{606, "Action not authorized"}
)

// A call is one action that a host asks for.
type call struct {
	*Device
	ctx     context.Context
	host    netip.Addr
	version int
	action  *action
	given   map[string]string
	answer  []string
}

// text returns an argument.
func (c *call) text(name string) string { return c.given[name] }

// number returns an argument that is a number of so many bits.
func (c *call) number(name string, bits int) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(c.given[name]), 10, bits)
	if err != nil {
		return 0, errInvalidArgs
	}
	return n, nil
}

// truth returns an argument that is a boolean.
func (c *call) truth(name string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(c.given[name])) {
	case "1", "true", "yes":
		return true, nil
	case "0", "false", "no":
		return false, nil
	}
	return false, errInvalidArgs
}

// give sets what the action answers, in the order of its arguments.
func (c *call) give(values ...any) {
	for _, v := range values {
		c.answer = append(c.answer, fmt.Sprint(v))
	}
}

// An envelope is the body of a request.
type envelope struct {
	XMLName xml.Name `xml:"http://schemas.xmlsoap.org/soap/envelope/ Envelope"`
	Body    struct {
		Actions []struct {
			XMLName   xml.Name
			Arguments []struct {
				XMLName xml.Name
				Value   string `xml:",chardata"`
			} `xml:",any"`
		} `xml:",any"`
	} `xml:"http://schemas.xmlsoap.org/soap/envelope/ Body"`
}

var errDirective = errors.New("a document type is not taken")

// undirected hides what a parser could be attacked by: a request needs no DOCTYPE.
type undirected struct{ *xml.Decoder }

func (u undirected) Token() (xml.Token, error) {
	t, err := u.Decoder.RawToken()
	if _, is := t.(xml.Directive); is {
		return nil, errDirective
	}
	return t, err
}

// readCall reads the action of a request and its arguments.
func readCall(body io.Reader) (urn, name string, given map[string]string, err error) {
	text := xml.NewDecoder(io.LimitReader(body, mostBody))
	var e envelope
	if err := xml.NewTokenDecoder(undirected{text}).Decode(&e); err != nil {
		return "", "", nil, err
	}
	if len(e.Body.Actions) != 1 {
		return "", "", nil, errInvalidAction
	}
	a := &e.Body.Actions[0]
	given = make(map[string]string, len(a.Arguments))
	for _, one := range a.Arguments {
		given[one.XMLName.Local] = one.Value
	}
	return a.XMLName.Space, a.XMLName.Local, given, nil
}

// control serves the actions of a service.
func (d *Device) control(w http.ResponseWriter, r *http.Request, s *service, version int, host netip.Addr) {
	// A web page cannot send this header to another origin without asking, which is
	// answered with no.
	urn, name, ok := strings.Cut(strings.Trim(r.Header.Get("SOAPAction"), `" `), "#")
	if !ok {
		http.Error(w, "SOAPAction is missing", http.StatusBadRequest)
		return
	}
	inner, innerName, given, err := readCall(http.MaxBytesReader(w, r.Body, mostBody))
	switch {
	case errors.Is(err, errInvalidAction):
		d.fail(w, errInvalidAction)
		return
	case err != nil:
		http.Error(w, "the body is no SOAP", http.StatusBadRequest)
		return
	}
	c := &call{Device: d, ctx: r.Context(), host: host, version: version, action: s.action(name), given: given}
	if c.action == nil || name != innerName || inner != urn || !s.speaks(urn) {
		d.fail(w, errInvalidAction)
		return
	}
	for _, a := range c.action.in {
		if _, ok := given[a.name]; !ok {
			d.fail(w, errInvalidArgs)
			return
		}
	}
	if err := c.action.do(c); err != nil {
		d.Log.Info("an action of upnp is refused", "host", host, "action", name, "error", err)
		d.fail(w, err)
		return
	}
	d.reply(w, c, urn)
}

// speaks reports whether a service answers to a name: that of an older version, too.
func (s *service) speaks(urn string) bool {
	kind, version, _ := strings.Cut(strings.TrimPrefix(urn, "urn:schemas-upnp-org:service:"), ":")
	n, err := strconv.Atoi(version)
	return kind == s.kind && err == nil && n >= 1 && n <= s.version
}

const soapHead = `<?xml version="1.0"?>
<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" s:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"><s:Body>`

const soapTail = "</s:Body></s:Envelope>\n"

func (d *Device) reply(w http.ResponseWriter, c *call, urn string) {
	var b strings.Builder
	fmt.Fprintf(&b, `%s<u:%sResponse xmlns:u="%s">`, soapHead, c.action.name, urn)
	for i, a := range c.action.out {
		fmt.Fprintf(&b, "<%s>%s</%s>", a.name, escape(c.answer[i]), a.name)
	}
	fmt.Fprintf(&b, "</u:%sResponse>%s", c.action.name, soapTail)
	d.send(w, http.StatusOK, b.String())
}

func (d *Device) fail(w http.ResponseWriter, err error) {
	f := errActionFailed
	errors.As(err, &f)
	d.send(w, http.StatusInternalServerError, fmt.Sprintf(`%s<s:Fault><faultcode>s:Client</faultcode><faultstring>UPnPError</faultstring><detail>`+
		`<UPnPError xmlns="urn:schemas-upnp-org:control-1-0"><errorCode>%d</errorCode><errorDescription>%s</errorDescription></UPnPError>`+
		`</detail></s:Fault>%s`, soapHead, f.code, escape(f.text), soapTail))
}

func (d *Device) send(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", `text/xml; charset="utf-8"`)
	h.Set("Content-Length", strconv.Itoa(len(text)))
	h.Set("Server", d.server())
	h.Set("Ext", "")
	w.WriteHeader(status)
	io.WriteString(w, text) //nolint:errcheck // the host may be gone
}

// escaped is what text between tags needs: clients with parsers of their own know no
// further entities. Control characters are not in it.
var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func escape(text string) string { return escaped.Replace(text) }
