package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/portmap"
	"weir/internal/portmap/mapping"
)

// portmapTask holds the flags of portmap.
type portmapTask struct {
	wan, anchor     string
	lan, permit     []string
	external, state string
	all, host       int
	least, most     time.Duration
	port            uint16
	noUPnP, noPCP   bool
	hairpin, others bool
	verbose         bool
}

func newPortmapCommand(env *Env) *cobra.Command {
	t := &portmapTask{}
	c := &cobra.Command{
		Use:   "portmap --wan INTERFACE --lan INTERFACE",
		Short: "let hosts open ports for themselves: UPnP, NAT-PMP, PCP",
		Long: `portmap is a server for UPnP (internet gateway device 1 and 2), NAT-PMP (RFC 6886)
and PCP (RFC 6887). Hosts of the LAN ask it to open ports of the external address, or
of their own IPv6 addresses. It has rules loaded into an anchor for each. It runs until
it is interrupted, beside weir run. Mappings outlive it.

    anchor "portmap"
    match out on wan from (lan:network) nat-to (wan)
    pass in on lan proto udp from (lan:network) to any port { 1900, 5351 }
    pass in on lan proto tcp from (lan:network) to (lan) port 5000
    pass out on lan from self

By default a host may map only to itself, and only ports from 1024 on, outside and
inside. --permit changes that, as a list whose first matching line decides:

    --permit 'deny 3389 192.168.1.0/24 3389' --permit 'allow 80 192.168.1.5 8080'
    --permit 'allow 1024-65535 192.168.1.0/24 1024-65535'

What no line of the list matches is denied. "weir portmap list" prints what is open.`,
		Args: exactly(0, "portmap takes only flags"),
		RunE: func(c *cobra.Command, _ []string) error { return env.portmap(c.Context(), t) },
	}
	t.flags(c)
	c.AddCommand(newPortmapListCommand(env))
	return c
}

func (t *portmapTask) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&t.wan, "wan", "", "`interface` with the external address")
	f.StringSliceVar(&t.lan, "lan", nil, "`interface` of the hosts that are served; may be repeated")
	f.StringVar(&t.anchor, "anchor", "portmap", "`path` of the anchor for the rules")
	f.StringArrayVar(&t.permit, "permit", nil, "who may map what, as `'allow|deny EXTERNAL-PORTS HOSTS INTERNAL-PORTS'`; may be repeated")
	f.StringVar(&t.external, "external", "", "`address` that hosts are told, if another box before this one has it; else the first of --wan")
	f.IntVar(&t.all, "mappings", 1000, "most mappings of all hosts")
	f.IntVar(&t.host, "per-host", 100, "most mappings of a host")
	f.DurationVar(&t.least, "least", 2*time.Minute, "shortest `time` of a mapping of PCP")
	f.DurationVar(&t.most, "most", 24*time.Hour, "longest `time` of a mapping of NAT-PMP and PCP")
	f.Uint16Var(&t.port, "http-port", 5000, "TCP `port` of UPnP's descriptions and actions")
	f.BoolVar(&t.noUPnP, "no-upnp", false, "do not serve UPnP")
	f.BoolVar(&t.noPCP, "no-pcp", false, "serve neither NAT-PMP nor PCP")
	f.BoolVar(&t.hairpin, "hairpin", false, "hosts of the LAN reach mappings by the external address, too")
	f.BoolVar(&t.others, "others", false, "hosts may map, and end mappings, for other hosts of the LAN")
	f.StringVar(&t.state, "state", "", "`file` that keeps the mappings over a restart, and over a boot if it is there still; else one in the run folder")
	f.BoolVarP(&t.verbose, "verbose", "v", false, "also log what is usual")
}

func (e *Env) portmap(ctx context.Context, t *portmapTask) error {
	s := &portmap.Server{
		Anchor: t.anchor, Shortest: t.least, Longest: t.most, HTTPPort: t.port, UPnP: !t.noUPnP, PCP: !t.noPCP, Others: t.others, Version: strings.Fields(version())[1],
		Interfaces: mapping.Interfaces{WAN: t.wan, LAN: t.lan, Hairpin: t.hairpin}, Limits: mapping.Limits{All: t.all, Host: t.host},
	}
	if err := t.fill(s); err != nil {
		return &UsageError{err}
	}
	folder, err := e.daemonFolder()
	if err != nil {
		return err
	}
	if s.State = t.state; s.State == "" {
		s.State = folder.Portmap(t.anchor)
	}
	machine, err := portmap.NewMachine()
	if err != nil {
		return err
	}
	s.Machine = machine
	s.Log = e.helperLog(t.verbose)
	s.Rules = newAnchorLoader(folder)
	s.Started = func() { s.Log.Info("ready", "wan", t.wan, "lan", t.lan, "anchor", t.anchor) }
	return s.Run(ctx)
}

// fill reads the flags.
func (t *portmapTask) fill(s *portmap.Server) (err error) {
	switch {
	case t.wan == "" || len(t.lan) == 0:
		return errors.New("--wan and --lan name the interfaces")
	case slices.Contains(t.lan, t.wan):
		return fmt.Errorf("%s cannot be both wan and lan", t.wan)
	case t.all < 1 || t.host < 1 || t.all > 10_000:
		return errors.New("--mappings is a number from 1 to 10000, --per-host a number from 1")
	case t.least < time.Second || t.most < t.least || t.most > 365*24*time.Hour:
		return errors.New("--least is a second or more, --most is not less than that, and a year at most")
	case t.port == 0:
		return errors.New("--http-port is a port")
	case t.noUPnP && t.noPCP:
		return errors.New("with --no-upnp and --no-pcp nothing is left to serve")
	}
	for _, name := range append([]string{t.wan}, t.lan...) {
		if !plainInterface(name) {
			return fmt.Errorf("%q is no name of an interface that rules can have", name)
		}
	}
	if err := checkHelperAnchor(t.anchor); err != nil {
		return err
	}
	if t.external != "" {
		if s.External, err = netip.ParseAddr(t.external); err != nil || !s.External.Is4() {
			return fmt.Errorf("--external %q is no IPv4 address", t.external)
		}
	}
	s.Permissions = mapping.DefaultPermissions()
	if t.permit != nil {
		s.Permissions = nil
	}
	for _, line := range t.permit {
		p, err := mapping.ParsePermission(line)
		if err != nil {
			return fmt.Errorf("--permit: %w", err)
		}
		s.Permissions = append(s.Permissions, p)
	}
	return nil
}

// plainInterface reports whether a name is one word of the language.
func plainInterface(name string) bool {
	for _, r := range name {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '.' && r != '_' && r != '-' {
			return false
		}
	}
	return name != ""
}
