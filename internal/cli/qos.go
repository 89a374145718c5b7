package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/host/hostdb"
	"weir/internal/host/netif"
	"weir/internal/qosinit"
)

func newQoSCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "qos",
		Short: "share a line among its users with queues",
	}
	c.AddCommand(newQoSInitCommand(env), newQoSRateCommand(env), newQoSAutorateCommand(env))
	return c
}

// qosInit holds the flags of qos init.
type qosInit struct {
	iface, down, up, kind string
	output                string
}

func newQoSInitCommand(env *Env) *cobra.Command {
	o := &qosInit{}
	c := &cobra.Command{
		Use:   "init",
		Short: "write queues for a line to the internet",
		Long: `init writes a configuration of queues for a line: for both directions, with classes
for voice and DNS, for what people wait for, for everything else and for bulk, and
fair among hosts. It prints it, or writes the new file of --output, which a rule file
can include. Change it as you like.

It asks for what no flag says, and reads the answers, a line each, from standard input:
interface, kind of line, rate down, rate up. At a terminal it asks again after a wrong
answer. An empty answer takes what stands in brackets. Rates are what the line brings: measure
them, or take what the modem shows. The queues get less; the text says how much, and
why. Kinds of lines:

` + kindsText("    "),
		Args: exactly(0, "qos init takes only flags"),
		RunE: func(_ *cobra.Command, _ []string) error { return env.qosInit(o) },
	}
	f := c.Flags()
	f.StringVarP(&o.iface, "interface", "i", "", "`interface` of the line")
	f.StringVar(&o.down, "down", "", "`rate` at which the line brings packets, such as 100M")
	f.StringVar(&o.up, "up", "", "`rate` at which the line takes packets, such as 40M")
	f.StringVar(&o.kind, "line", "", "`kind` of line")
	f.StringVarP(&o.output, "output", "o", "", "new `file` for the configuration, instead of standard output")
	return c
}

// kindsText lists the kinds of lines.
func kindsText(indent string) string {
	var b strings.Builder
	for _, k := range qosinit.Kinds {
		fmt.Fprintf(&b, "%s%-9s %s\n", indent, k.Word, k.About)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (e *Env) qosInit(o *qosInit) error {
	line, err := o.read(e.answerer(), egress)
	if err != nil {
		return &UsageError{err}
	}
	if o.output == "" {
		return line.Fprint(e.Stdout)
	}
	file, err := os.OpenFile(o.output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	if err := errors.Join(line.Fprint(file), file.Close()); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	fmt.Fprintf(e.Stderr, "weir: wrote %s; include it in the rule file, before the rules\n", o.output)
	return nil
}

// egress returns an interface with a default route, or "".
func egress() string {
	links, err := netif.Links()
	if err != nil {
		return ""
	}
	host, err := hostdb.Host(links)
	if err != nil {
		return ""
	}
	for _, i := range host.Members("egress") {
		return i.Name
	}
	return ""
}
