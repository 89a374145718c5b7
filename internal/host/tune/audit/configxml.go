package audit

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
)

// An element is one of config.xml that is open.
type element struct {
	name    string
	at      int // its line
	text    string
	tunable string
	line    int // the tunable's
	value   *string

	whole     bool     // the whole part or interface of a configuration, not an excerpt
	overwrite bool     // the interface has switches of its own
	switches  []Line   // of an interface
	set       []string // their names
}

// configXML is a firewall's config.xml that is being read.
type configXML struct {
	file  string
	open  []*element
	lines []Line
	given map[int]bool // lines of entries that cannot be read
	root  string       // the outermost element
	set   []string     // switches of the whole firewall that are there
	on    []Line       // switches of the whole firewall that are missing
	newer bool         // OPNsense's settings of its interfaces are in their newer place
}

// readConfigXML reads a firewall's config.xml, or the list of its tunables alone. whole is
// false if the text is something else. An entry without a value has the firewall's own, as
// one with the value default. Of the rest only the switches of offloads and commands in texts
// set something.
func readConfigXML(text, file string) (lines []Line, given map[int]bool, whole bool) {
	c := configXML{file: file, given: map[int]bool{}}
	d := xml.NewDecoder(strings.NewReader(text))
	d.Entity = xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return c.lines, c.given, whole
		} else if err != nil {
			return nil, nil, false
		}
		at, _ := d.InputPos()
		switch token := token.(type) {
		case xml.StartElement:
			if len(c.open) == 0 && !slices.Contains([]string{"opnsense", "pfsense", "sysctl"}, token.Name.Local) {
				return nil, nil, false
			}
			if whole = true; len(c.open) == 0 {
				c.root = token.Name.Local
			}
			c.open = append(c.open, &element{name: token.Name.Local, at: at})
		case xml.CharData:
			switch said := string(token); {
			case len(c.open) > 0:
				c.open[len(c.open)-1].text += said
				c.commands(said, at-strings.Count(said, "\n"))
			case strings.TrimSpace(said) != "":
				return nil, nil, false
			}
		case xml.EndElement:
			c.end()
		}
	}
}

// commands adds the settings of commands in a text that begins at a line.
func (c *configXML) commands(text string, at int) {
	for i, line := range strings.Split(text, "\n") {
		for _, l := range readCommand(strings.TrimSpace(line), c.file) {
			l.File, l.Line = c.file, at+i
			c.lines = append(c.lines, l)
		}
	}
}

// end ends the innermost element.
func (c *configXML) end() {
	e, above := c.open[len(c.open)-1], &element{}
	if c.open = c.open[:len(c.open)-1]; len(c.open) > 0 {
		above = c.open[len(c.open)-1]
	}
	switch text := strings.TrimSpace(e.text); {
	case firewallSwitches[e.name].name != "":
		c.addSwitch(e, above, text)
	case above.name == "system" && e.name == "hostname", e.name == "if":
		above.whole = true
	case above.name == "Interfaces" && e.name == "settings":
		c.newer = true
	case e.name == "hw_settings_overwrite":
		above.overwrite = text != "" && text != "0"
	case e.name == "system" && e.whole && len(c.open) == 1:
		c.on = c.missing(e, "", c.set)
	case len(c.open) == 0 && !c.newer:
		c.lines = append(c.lines, c.on...)
	case e.overwrite:
		c.lines = append(c.lines, e.switches...)
		if e.whole {
			c.lines = append(c.lines, c.missing(e, e.name+".", e.set)...)
		}
	case e.name == "tunable" && above.tunable == "":
		above.tunable, above.line = text, e.at
	case e.name == "tunable":
		c.given[e.at] = true
	case e.name == "value":
		if text == "" {
			text = asShipped
		}
		above.value = &text
	case e.tunable != "" && e.value != nil:
		c.lines = append(c.lines, Line{File: c.file, Line: e.line, Key: e.tunable, Value: *e.value})
	case e.tunable != "":
		c.given[e.line] = true
	case e.name == "item" && above.name == "sysctl":
		c.given[e.at] = true
	}
}

// addSwitch adds a switch of a card's offloads. pfSense's is on where its element is there, whatever
// it says; so is OPNsense's in the part system, but for 0. In its newer place OPNsense's says 0 or 1,
// and a missing one is as shipped. An interface's own count only where it overrides the firewall's.
func (c *configXML) addSwitch(e, above *element, text string) {
	value := text
	switch {
	case c.root == "pfsense", text == "" && above.name == "system":
		value = "1"
	case text == "":
		value = "0"
	case text != "0" && text != "2":
		value = "1"
	}
	l := Line{File: c.file, Line: e.at, Key: e.name, Value: value}
	switch {
	case above.name == "system" || above.name == "settings":
		c.set = append(c.set, e.name)
		c.lines = append(c.lines, l)
	case len(c.open) > 1 && c.open[len(c.open)-2].name == "interfaces":
		l.Key = above.name + "." + e.name
		above.switches, above.set = append(above.switches, l), append(above.set, e.name)
	}
}

// missing returns the switches that a firewall sets when it is installed and that an element does not
// have: the web interface takes a switch away whose box is not checked, and then the offload is on.
func (c *configXML) missing(e *element, of string, set []string) (lines []Line) {
	for _, name := range shippedSwitches[c.root] {
		if !slices.Contains(set, name) {
			lines = append(lines, Line{File: c.file, Line: e.at, Key: of + name, Value: "0"})
		}
	}
	return lines
}
