package qosinit

// A Kind is a kind of line.
type Kind struct {
	Word  string
	About string // for people who choose one
	Link  string // the queue's words for it
	Up    uint64 // per cent of the line's rate that the queues get
	Down  uint64
}

// Kinds are the kinds of lines. What comes in has waited at the provider before it is
// here, so the queue for it needs more distance than the one for what leaves. A rate that
// varies needs more still.
var Kinds = []Kind{
	{"ethernet", "Ethernet or fibre with an Ethernet port", "link ethernet", 95, 90},
	{"pppoe", "the same with PPPoE", "link ethernet overhead 46", 95, 90},
	{"cable", "TV cable (DOCSIS)", "link docsis", 95, 90},
	{"vdsl", "VDSL2 or G.fast with PPPoE in a VLAN", "link { pppoe-ptm, ether-vlan }", 95, 90},
	{"adsl", "ADSL with PPPoE", "link pppoe-llcsnap", 95, 85},
	{"mobile", "LTE, 5G or satellite: the rate varies", "link ethernet", 80, 80},
	{"unknown", "anything else", "link conservative", 90, 85},
}

// KindOf returns the kind with this word, or nil.
func KindOf(word string) *Kind {
	for i := range Kinds {
		if Kinds[i].Word == word {
			return &Kinds[i]
		}
	}
	return nil
}
