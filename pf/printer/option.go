package printer

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"weir/pf/ast"
)

// option prints a set statement.
func option(w io.Writer, s ast.Stmt) {
	switch s := s.(type) {
	case *ast.Timeout:
		settings(w, "timeout", s.Items)
	case *ast.Limit:
		settings(w, "limit", s.Items)
	case *ast.BlockPolicy:
		fmt.Fprintf(w, "set block-policy %s\n", s.Policy.Text)
	case *ast.ImplicitPass:
		fmt.Fprintf(w, "set implicit-pass %s\n", pick(s.Yes, "yes", "no"))
	case *ast.MarkMask:
		fmt.Fprintf(w, "set mark-mask 0x%x\n", s.Mask)
	case *ast.Skip:
		fmt.Fprintf(w, "set skip on %s\n", pick(len(s.Interfaces) > 0, members(s.Interfaces), "none"))
	case *ast.InterfaceGroup:
		fmt.Fprintf(w, "set interface-group %s %s\n", name(s.Name.Text), members(s.Interfaces))
	case *ast.Spread:
		c := clauses{"set", "spread", name(s.Interface.Text), s.Mode.Text}
		c.addIf(len(s.Cores) > 0, coreList(s.Cores))
		fmt.Fprintln(w, c)
	case *ast.Gateway:
		c := clauses{"set", "gateway", s.Address.Text, "monitor", s.Monitor.Text}
		c.addIf(s.Target.Text != "", s.Target.Text)
		c.addIf(s.Kill, "states kill")
		fmt.Fprintln(w, c)
	case *ast.PFlow:
		c := clauses{"set", "pflow", "to", s.To.Text, "port", s.Port.Text}
		c.addIf(s.Source.Text != "", "source "+s.Source.Text)
		c.addIf(s.Version.Text != "", "version "+s.Version.Text)
		fmt.Fprintln(w, c)
	case *ast.HostID:
		fmt.Fprintf(w, "set hostid 0x%08x\n", s.ID)
	case *ast.Reassemble:
		c := clauses{"set", "reassemble", pick(s.Yes, "yes", "no")}
		c.addIf(s.NoDF.IsValid(), "no-df")
		fmt.Fprintln(w, c)
	case *ast.Syncookies:
		fmt.Fprintf(w, "set syncookies %s%s\n", s.Mode.Text, marks(s))
	case *ast.StateDefaults:
		fmt.Fprintf(w, "set state-defaults %s\n", stateOptions(s.Options))
	case *ast.Option:
		c := clauses{"set", s.Name.Text}
		c.add(optionValue(s))
		fmt.Fprintln(w, c)
	}
}

// coreList prints one number, or several in braces.
func coreList(cores []int) string {
	if len(cores) == 1 {
		return strconv.Itoa(cores[0])
	}
	c := clauses{"{"}
	for _, core := range cores {
		c.add(strconv.Itoa(core))
	}
	c.add("}")
	return c.String()
}

func settings(w io.Writer, option string, items []ast.Setting) {
	for _, i := range items {
		fmt.Fprintf(w, "set %s %s %d\n", option, i.Name.Text, i.Count)
	}
}

// members prints the names of interfaces in braces, between blanks as pfctl does.
func members(list []ast.Interface) string {
	c := clauses{"{"}
	for i := range list {
		c.add(name(list[i].Name))
	}
	c.add("}")
	return c.String()
}

// marks prints the given limits of set syncookies.
func marks(s *ast.Syncookies) string {
	var given []string
	if s.High > 0 {
		given = append(given, fmt.Sprintf("start %d%%", s.High))
	}
	if s.Low > 0 {
		given = append(given, fmt.Sprintf("end %d%%", s.Low))
	}
	if len(given) == 0 {
		return ""
	}
	return " (" + strings.Join(given, ", ") + ")"
}

func optionValue(o *ast.Option) string {
	switch o.Name.Text {
	case "keepcounters":
		return ""
	case "fingerprints", "table-store":
		return quote(o.Value.Text)
	}
	return word(o.Value.Text)
}
