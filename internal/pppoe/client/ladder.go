package client

import (
	"fmt"
	"slices"
	"strings"
)

// Ladder is how far a client has come, by the texts of its events.
type Ladder struct {
	Step   string   // that is not done: PADI, PADR, LCP, authentication, IPCP; session: it was up and has ended; "": it is up
	Why    string   // what was said last about that
	Quirks []string // what this provider does and others do not, each once
}

const (
	// mostPADI is after how many PADI without an answer an attempt counts as one that has failed.
	mostPADI = 3
	// mostQuirks is how many are kept: the last.
	mostQuirks = 4
)

// quirks are parts of what the client says where a provider does what others do not.
var quirks = []string{
	" is not taken: ", " gives no session: ", "no answer of ", "a second session ", "bytes do not pass", "no IPv4: ", "no IPv6: ", "looped back",
	"MS-CHAPv2 demands", "carries nothing",
}

// isOfSession reports whether a quirk is that of one session: the next may have what this one has not.
func isOfSession(quirk string) bool {
	return strings.HasPrefix(quirk, "no IPv4: ") || strings.HasPrefix(quirk, "no IPv6: ")
}

// NewLadder reads the texts of a client's events, oldest first. A try that goes on counts if there was none before, if it has
// waited long for an answer, or if there is something to say of it.
func NewLadder(texts []string) Ladder {
	var l, last Ladder
	var said []string                      // of quirks, in the session
	tries, ours, theirs := 0, false, false // theirs: what the peer asked of LCP is acknowledged; ours: what we did
	for _, text := range texts {
		if slices.ContainsFunc(quirks, func(part string) bool { return strings.Contains(text, part) }) {
			said = append(said, text)
			l.quirk(strings.TrimPrefix(strings.TrimPrefix(text, "down: "), "← "))
		}
		switch word := strings.TrimLeft(text, "←→ "); {
		case strings.HasPrefix(text, "down: "):
			l.Why = strings.TrimPrefix(text, "down: ")
			if l.Step == "" {
				l.Step = "session"
			}
			last, tries = l, 0
			l.Step, l.Why = "PADI", ""
		case text == "up" || text == "changed":
			l.Step, l.Why, tries = "", "", 0
			l.Quirks = slices.DeleteFunc(l.Quirks, func(quirk string) bool { return isOfSession(quirk) && !slices.Contains(said, quirk) })
		case strings.HasPrefix(text, "→ PADI"):
			l.Step, tries = "PADI", tries+1
			if tries >= mostPADI && l.Why == "" {
				l.Why = "no concentrator answers"
			}
		case strings.HasPrefix(text, "→ PADR"):
			l.Step = "PADR"
		case strings.HasPrefix(text, "← PADS") && strings.Contains(text, ": session "):
			l.Step, l.Why, tries, ours, theirs, said = "LCP", "", 0, false, false, nil
		case strings.HasPrefix(text, "← PAD") || strings.HasPrefix(text, "← no answer of "):
			if slices.Contains(l.Quirks, word) {
				l.Why = word
			}
		case l.Step == "LCP" && strings.HasPrefix(word, "LCP Configure-Ack "):
			ours, theirs = ours || strings.HasPrefix(text, "←"), theirs || strings.HasPrefix(text, "→")
			if ours && theirs {
				l.Step = "authentication"
			}
		case strings.HasPrefix(text, "authenticated: "):
			l.Step = "IPCP"
		}
	}
	if last.Step != "" && l.Step != "" && l.Why == "" && tries < mostPADI {
		l.Step, l.Why = last.Step, last.Why
	}
	return l
}

func (l *Ladder) quirk(text string) {
	l.Quirks = slices.DeleteFunc(l.Quirks, func(other string) bool { return other == text })
	l.Quirks = append(l.Quirks, text)
	l.Quirks = l.Quirks[max(0, len(l.Quirks)-mostQuirks):]
}

// String says at which step a session is, and why; "": it is up.
func (l *Ladder) String() string {
	switch {
	case l.Step == "":
		return ""
	case l.Why == "":
		return "at " + l.Step
	}
	return fmt.Sprintf("at %s: %s", l.Step, l.Why)
}
