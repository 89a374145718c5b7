package cli

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/host/tune"
	"weir/internal/host/tune/db"
	"weir/internal/host/tune/target"
)

// tuneFlags holds the flags of the commands that compute settings.
type tuneFlags struct {
	role, link, memory string
	rtt                time.Duration
	burst, accepted    int
	mtu, cores, ports  int
	pppoe              bool
	root               string

	target, driver string // for another system
}

// add adds the flags to a command.
func (f *tuneFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.role, "role", string(db.Forwarder), "what the host is: `forwarder`, endpoint (connections end on it), or hardening")
	flags.StringVar(&f.link, "link", "", "`speed` of the line, such as 100M or 10G; default: the fastest card's")
	flags.DurationVar(&f.rtt, "rtt", 0, "round-trip `time` to the far end, such as 80ms")
	flags.StringVar(&f.memory, "memory", "", "`size` of memory, such as 8G; default: the host's")
	flags.IntVar(&f.burst, "burst", 0, "new `connections` in the worst second")
	flags.IntVar(&f.accepted, "accepted", 0, "`connections` accepted per second")
	flags.IntVar(&f.mtu, "mtu", defaultMTU, "the line's MTU in `bytes`")
	flags.BoolVar(&f.pppoe, "pppoe", false, "the line is PPPoE")
	flags.IntVar(&f.cores, "cores", 0, "real `cores`; default: the host's")
	flags.IntVar(&f.ports, "ports", 0, "`ports` in use; default: the host's cards")
	f.addRoot(c)
}

func (f *tuneFlags) addRoot(c *cobra.Command) {
	c.Flags().StringVar(&f.root, "root", "", "act on a recorded tree in this `folder` instead of on this host")
}

// inputs reads the flags.
func (f *tuneFlags) inputs() (in tune.Inputs, err error) {
	if err := oneOfWords("--role", f.role, []string{string(db.Forwarder), string(db.Endpoint), string(db.Hardening)}); err != nil {
		return in, err
	}
	in = tune.Inputs{
		Role: db.Role(f.role), RTT: f.rtt, Burst: f.burst, Accepted: f.accepted,
		MTU: f.mtu, PPPoE: f.pppoe, Cores: f.cores, Ports: f.ports,
	}
	switch {
	case f.rtt < 0 || f.rtt > time.Minute:
		return in, &UsageError{fmt.Errorf("--rtt %v: want 0 to 1m", f.rtt)}
	case f.burst < 0 || f.accepted < 0 || f.burst > maxBurst || f.accepted > maxBurst:
		return in, &UsageError{fmt.Errorf("--burst and --accepted: want 0 to %d connections", maxBurst)}
	case f.mtu < leastMTU || f.mtu > mostMTU:
		return in, &UsageError{fmt.Errorf("--mtu %d: want %d to %d", f.mtu, leastMTU, mostMTU)}
	case f.cores < 0 || f.cores > maxCores || f.ports < 0 || f.ports > maxPorts:
		return in, &UsageError{fmt.Errorf("--cores and --ports: want at most %d and %d", maxCores, maxPorts)}
	}
	if f.link != "" {
		if in.Link, err = tune.ParseRate(f.link); err != nil {
			return in, &UsageError{fmt.Errorf("--link: %w", err)}
		}
	}
	if f.memory != "" {
		if in.Memory, err = tune.ParseSize(f.memory); err != nil {
			return in, &UsageError{fmt.Errorf("--memory: %w", err)}
		}
	}
	return in, nil
}

const (
	maxBurst = 1_000_000
	maxCores = 4096
	maxPorts = 64

	defaultMTU = 1500
	leastMTU   = 576 // RFC 791: every host accepts this
	mostMTU    = 65535
)

// host returns the host that the flags name. Changing this host needs root.
func (f *tuneFlags) host(changes bool) (*tune.Host, error) {
	if f.root == "" {
		if changes {
			return &tune.Host{}, needRoot()
		}
		return &tune.Host{}, nil
	}
	if info, err := os.Stat(f.root); err != nil || !info.IsDir() {
		return nil, &UsageError{fmt.Errorf("--root %s is no folder", f.root)}
	}
	return &tune.Host{Root: f.root}, nil
}

// plan returns the plan for the flags and keys.
func (f *tuneFlags) plan(changes bool, keys []string) (*tune.Host, *tune.Plan, error) {
	in, err := f.inputs()
	if err != nil {
		return nil, nil, err
	}
	host, err := f.host(changes)
	if err != nil {
		return nil, nil, err
	}
	d, err := db.Load()
	if err != nil {
		return nil, nil, err
	}
	plan, err := host.Plan(d, in, keys...)
	return host, plan, err
}

// addTarget adds the flags for settings of other systems.
func (f *tuneFlags) addTarget(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.target, "target", targetLinux, "`system` to write for: linux, freebsd-15, pfsense-2.8, opnsense-26.7 …")
	flags.StringVar(&f.driver, "driver", "", "of another system: the cards' `driver`, such as igb or ix")
}

const targetLinux = "linux"

var driverForm = regexp.MustCompile(`^[a-z]{0,12}$`)

// targetPlan writes the settings for another system.
func (f *tuneFlags) targetPlan(env *Env, asJSON bool, keys []string) error {
	in, err := f.inputs()
	if err != nil {
		return err
	}
	system, err := target.Find(f.target)
	if err != nil {
		return &UsageError{fmt.Errorf("--target %w, or linux", err)}
	}
	if !driverForm.MatchString(f.driver) {
		return &UsageError{fmt.Errorf("--driver %s: want its name, such as igb or ix", f.driver)}
	}
	d, err := db.Load()
	if err != nil {
		return err
	}
	plan, err := target.NewPlan(d, system, &target.Inputs{
		Role: in.Role, Link: in.Link, RTT: in.RTT, Driver: f.driver, Cores: f.cores, Ports: f.ports,
		PPPoE: f.pppoe, Burst: in.Burst, Accept: in.Accepted,
	}, keys...)
	if errors.Is(err, target.ErrNotAdvised) {
		return &UsageError{err}
	}
	if err != nil {
		return err
	}
	return env.print(asJSON, plan, plan.WriteText)
}

// newTunePlanCommand makes `weir tune plan`.
func newTunePlanCommand(env *Env) *cobra.Command {
	var f tuneFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "plan [KEY...]",
		Args:  cobra.ArbitraryArgs,
		Short: "print what would change on this host, with reason and evidence",
		Long: `plan compares the host with weir's advice for its role. It changes nothing. It leaves
a setting alone, and says so, if the host shows no need (for example, no core ever
ran out of its budget), if only a guide supports it, if a measurement proved no
effect, or if the administrator has set it in sysctl.d or by hand. Keys that you name are planned in any case.

A forwarder's settings act on what passes through. An endpoint's settings act on
connections that end on the host, such as those of a proxy or of a VPN over TCP.

With --target, plan prints the lines for another system's files, each with its
reason. It leaves out a key if no public source for that version is known. What has no
proven effect for the driver's cards is a comment, unless you name its key. For a
version that weir does not know, all lines are comments.`,
		Example: `  weir tune plan
  weir tune plan --role endpoint --link 10G --rtt 80ms
  weir tune plan --target opnsense-25.7 --driver igb --cores 4 --ports 2 --pppoe`,
		RunE: func(_ *cobra.Command, keys []string) error {
			if f.target != targetLinux {
				if f.root != "" {
					return &UsageError{errors.New("--target prints files: it takes no --root")}
				}
				return f.targetPlan(env, asJSON, keys)
			}
			_, plan, err := f.plan(false, keys)
			if err != nil {
				return err
			}
			return env.print(asJSON, plan, plan.WriteText)
		},
	}
	f.add(c)
	f.addTarget(c)
	jsonFlag(c, &asJSON)
	return c
}
