package ppp

import (
	"encoding/binary"
	"fmt"
)

// Options of LCP (RFC 1661 6).
const (
	optionMRU   = 1
	optionAuth  = 3
	optionMagic = 5
)

// Sizes of packets, in bytes.
const (
	// MaxMRU is the largest PPP packet of an ordinary PPPoE session: 1,500 bytes of Ethernet
	// less 6 of PPPoE and 2 of PPP (RFC 2516 7).
	MaxMRU = 1492
	// defaultMRU is what an end that says nothing can receive (RFC 1661 6.1).
	defaultMRU = 1500
	// minMRU is the least that is agreed to. Less carries no IPv4 packet (RFC 791 3.1).
	minMRU = 68
)

// maxMRUNaks is how often the peer may ask for a larger MRU than there can be until none is named any more: it then has
// what it asks for, or near to it (RFC 1661 6.1).
const maxMRUNaks = 3

// maxLoops is how often the peer may name our own magic number before it is taken for
// ourselves (RFC 1661 6.4).
const maxLoops = 3

// lcpTerms are what both ends agree on for the link itself.
type lcpTerms struct {
	link *Link

	mru      uint16 // what we say we can receive
	sayMRU   bool
	mruNaks  int // that asked for one that cannot be
	magic    uint32
	sayMagic bool
	ask      Method // how the peer has to prove who it is; 0: not at all

	peerMRU   uint16
	peerMagic uint32
	prove     Method // how we have to; 0: not at all
	loops     int
	loopAt    uint32 // the magic number that came back last
	refusesUs bool   // the peer does not prove who it is
	unable    string // why this end cannot prove who it is as the peer wants it; "": it can
}

func newLCPTerms(l *Link) *lcpTerms {
	t := &lcpTerms{link: l, mru: l.config.MRU, sayMRU: true, sayMagic: true, peerMRU: defaultMRU, magic: l.newMagic()}
	if len(l.config.Ask.Methods) > 0 {
		t.ask = l.config.Ask.Methods[0]
	}
	return t
}

func (t *lcpTerms) request() []Option {
	var options []Option
	if t.sayMRU {
		options = append(options, Option{optionMRU, binary.BigEndian.AppendUint16(nil, t.mru)})
	}
	if t.ask != 0 {
		options = append(options, Option{optionAuth, t.ask.option()})
	}
	if t.sayMagic {
		options = append(options, Option{optionMagic, binary.BigEndian.AppendUint32(nil, t.magic)})
	}
	return options
}

func (t *lcpTerms) refused(code Code, options []Option) {
	for _, o := range options {
		switch {
		case o.Type == optionMRU && code == ConfigureReject:
			t.sayMRU = false
		case o.Type == optionMRU && len(o.Data) == 2:
			t.otherMRU(binary.BigEndian.Uint16(o.Data))
		case o.Type == optionMagic && code == ConfigureReject:
			t.sayMagic = false
		case o.Type == optionMagic:
			t.looped(t.magic)
			t.magic = t.link.newMagic()
		case o.Type == optionAuth:
			t.askOther(code, o.Data)
		}
	}
}

// otherMRU takes the MRU that the peer would like better, if it can be.
func (t *lcpTerms) otherMRU(mru uint16) {
	if mru >= minMRU && mru <= t.link.config.MRU {
		t.mru = mru
		return
	}
	t.mruNaks++
	t.sayMRU = t.mruNaks < maxMRUNaks
}

// askOther takes the way to prove that the peer would like better, or none.
func (t *lcpTerms) askOther(code Code, wanted []byte) {
	if method := parseMethod(wanted); code == ConfigureNak && has(t.link.config.Ask.Methods, method) {
		t.ask = method
		return
	}
	t.refusesUs = true
}

func (t *lcpTerms) judge(options []Option, last bool) (Code, []Option) {
	var rejects, naks []Option
	mru, magic, prove := uint16(defaultMRU), uint32(0), Method(0)
	t.unable = "" // each request says anew what the peer wants
	for _, o := range options {
		answer, asked := ConfigureReject, o
		switch o.Type {
		case optionMRU:
			answer, mru = judgeMRU(&o)
		case optionMagic:
			answer, magic = t.judgeMagic(&o)
		case optionAuth:
			answer, prove = t.judgeAuth(&o)
		}
		switch {
		case answer == ConfigureReject || answer == ConfigureNak && last:
			rejects = append(rejects, asked) // as it came (RFC 1661 5.4)
		case answer == ConfigureNak:
			naks = append(naks, o)
		}
	}
	switch {
	case len(rejects) > 0:
		return ConfigureReject, rejects
	case len(naks) > 0:
		return ConfigureNak, naks
	}
	t.peerMRU, t.peerMagic, t.prove = mru, magic, prove
	return ConfigureAck, nil
}

func judgeMRU(o *Option) (Code, uint16) {
	if len(o.Data) != 2 {
		return ConfigureReject, 0
	}
	mru := binary.BigEndian.Uint16(o.Data)
	if mru < minMRU {
		o.Data = binary.BigEndian.AppendUint16(nil, MaxMRU)
		return ConfigureNak, 0
	}
	return ConfigureAck, mru
}

// judgeMagic refuses our own number, which says that we hear ourselves, and 0 (RFC 1661 6.4).
func (t *lcpTerms) judgeMagic(o *Option) (Code, uint32) {
	if len(o.Data) != 4 {
		return ConfigureReject, 0
	}
	magic := binary.BigEndian.Uint32(o.Data)
	ours := magic == t.magic && t.sayMagic
	if ours {
		t.looped(magic)
	}
	if ours || magic == 0 {
		o.Data = binary.BigEndian.AppendUint32(nil, t.link.newMagic())
		return ConfigureNak, 0
	}
	return ConfigureAck, magic
}

// looped counts a sign that the peer is ourselves. A number counts once, as the peer's
// request and its Nak of ours are one sign.
func (t *lcpTerms) looped(magic uint32) {
	if magic != t.loopAt {
		t.loops++
	}
	t.loopAt = magic
}

func (t *lcpTerms) judgeAuth(o *Option) (Code, Method) {
	methods := t.link.config.Prove.methods()
	if method := parseMethod(o.Data); has(methods, method) {
		return ConfigureAck, method
	}
	if len(methods) == 0 {
		t.unable = fmt.Sprintf("the peer asks for %s, and there is no name and no password", describeMethod(o.Data))
		return ConfigureReject, 0
	}
	t.unable = fmt.Sprintf("the peer asks for %s, and allowed is %s", describeMethod(o.Data), listed(methods))
	o.Data = methods[0].option()
	return ConfigureNak, 0
}
