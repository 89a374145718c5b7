package summary

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"

	"weir/internal/vpn/ipsec"
	"weir/pf/resolve"
)

// Site is what one end of a tunnel of IPsec is configured as, for the other.
type Site struct {
	Time        time.Time      `json:"time"`
	Interface   string         `json:"interface"`
	SrcID       string         `json:"srcid,omitempty"` // empty: the subject of the certificate, or the address that packets leave from
	DstID       string         `json:"dstid"`
	Local       string         `json:"local,omitempty"`
	Peer        string         `json:"peer,omitempty"` // empty: it comes from anywhere
	Passive     bool           `json:"passive,omitempty"`
	IKE         []string       `json:"ike_proposals"`
	ESP         []string       `json:"esp_proposals"`
	From        []netip.Prefix `json:"from"`
	To          []netip.Prefix `json:"to"`
	Networks    []netip.Prefix `json:"networks,omitempty"`
	Addresses   []netip.Prefix `json:"addresses,omitempty"`
	MTU         uint16         `json:"mtu"`
	Lifetime    uint32         `json:"lifetime"` // seconds
	IKELifetime uint32         `json:"ikelifetime"`
}

// siteFile is such a summary with its seal.
type siteFile struct {
	Version int             `json:"weir_vpn_summary"`
	Body    json.RawMessage `json:"ikev2"`
	Seal    *ipsec.Seal     `json:"seal"`
}

// siteOf returns the summary of an end.
func siteOf(t *resolve.IKEv2, now time.Time) *Site {
	s := &Site{
		Time: now.UTC().Truncate(time.Second), Interface: t.Name, SrcID: t.SrcID, DstID: t.DstID, Local: t.Local, Peer: t.Peer, Passive: t.Passive,
		From: t.From, To: t.To, Networks: t.Networks, Addresses: t.Addresses, MTU: t.MTU, Lifetime: t.Lifetime, IKELifetime: t.IKELifetime,
	}
	s.IKE, s.ESP = ipsec.Algorithms(t.Proposals)
	return s
}

// WriteSite returns the summary of an end, sealed.
func WriteSite(t *resolve.IKEv2, now time.Time) ([]byte, error) {
	body, err := json.Marshal(siteOf(t, now))
	if err != nil {
		return nil, err
	}
	f := siteFile{Version: version, Body: body}
	if f.Seal, err = ipsec.SealText(t, body, now); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(&f, "", "  ")
	return append(text, '\n'), err
}

// A SealedSite is a summary whose seal has yet to be checked.
type SealedSite struct {
	Site
	body []byte
	seal ipsec.Seal
}

// ReadSite reads the summary of an end of IPsec.
func ReadSite(text []byte) (*SealedSite, error) {
	var f siteFile
	if err := json.Unmarshal(text, &f); err != nil || f.Version == 0 || f.Body == nil || f.Seal == nil {
		return nil, ErrNone
	}
	if f.Version != version {
		return nil, ErrVersion
	}
	var body bytes.Buffer
	s := &SealedSite{seal: *f.Seal}
	if err := json.Compact(&body, f.Body); err != nil || json.Unmarshal(body.Bytes(), &s.Site) != nil {
		return nil, ErrNone
	}
	for _, text := range slices.Concat([]string{s.Interface, s.SrcID, s.DstID, s.Local, s.Peer}, s.IKE, s.ESP) {
		if strings.ContainsFunc(text, unicode.IsControl) { // it is printed
			return nil, ErrNone
		}
	}
	s.body = body.Bytes()
	return s, nil
}

// Fits reports whether the summary may be that of the other end of a tunnel, by what both call each other.
func (s *SealedSite) Fits(t *resolve.IKEv2) bool {
	theirs := s.SrcID == "" || ipsec.SameIdentity(s.SrcID, t.DstID)
	ours := t.SrcID == "" || ipsec.SameIdentity(t.SrcID, s.DstID)
	return theirs && ours && !s.Own(t)
}

// Own reports whether the summary is that of this end: both ends have the same names, or all is the same but
// the time.
func (s *SealedSite) Own(t *resolve.IKEv2) bool {
	if s.SrcID != "" && ipsec.SameIdentity(s.SrcID, t.SrcID) && ipsec.SameIdentity(s.DstID, t.DstID) {
		return true
	}
	mine := siteOf(t, s.Time)
	mine.Time = s.Time
	body, err := json.Marshal(mine)
	return err == nil && bytes.Equal(body, s.body)
}
