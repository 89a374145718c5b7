package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/lab"
)

// newLabCommand makes `weir lab`: the network namespaces that the demo and the examples
// use.
func newLabCommand(env *Env) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "lab",
		Short: "a small network of namespaces: lan - fw - wan",
		Long: `lab is a small network to try weir in: the network namespaces weir-lan, weir-fw and
weir-wan, joined by veth pairs. The devices of weir-fw have the names that
examples/gateway.conf uses (lan0, wan0). Nothing else is touched.`,
	}
	c.PersistentFlags().StringVar(&name, "name", lab.DefaultName, "`prefix` of the namespaces' names")
	c.AddCommand(newLabUpCommand(env, &name), newLabDownCommand(env, &name), newLabExecCommand(&name))
	return c
}

// checkLab checks what all lab commands need.
func checkLab(name string) error {
	if err := lab.CheckName(name); err != nil {
		return &UsageError{err}
	}
	return needRoot()
}

func newLabUpCommand(env *Env, name *string) *cobra.Command {
	var offloads string
	c := &cobra.Command{
		Use:   "up",
		Short: "build the lab",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkLab(*name); err != nil {
				return err
			}
			opts := lab.Options{Name: *name}
			switch offloads {
			case "on":
			case "off":
				opts.Offloads = lab.OffloadsOff
			default:
				return &UsageError{fmt.Errorf("--offloads %s: on or off", offloads)}
			}
			l, err := lab.Up(c.Context(), opts)
			if err != nil {
				return err
			}
			for _, host := range l.Hosts() {
				fmt.Fprintln(env.Stdout, l.Namespace(host))
			}
			return nil
		},
	}
	c.Flags().StringVar(&offloads, "offloads", "on", "checksum, segmentation and VLAN offloads `on|off`; XDP programs need them off")
	return c
}

func newLabDownCommand(env *Env, name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "remove the lab, complete or not",
		RunE: func(*cobra.Command, []string) error {
			if err := checkLab(*name); err != nil {
				return err
			}
			found, err := lab.Remove(*name, lab.Topology{})
			if err == nil && !found {
				fmt.Fprintf(env.Stderr, "weir: no lab %s was there\n", *name)
			}
			return err
		},
	}
}

func newLabExecCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "exec lan|fw|wan -- COMMAND [ARGUMENT]...",
		Short: "run a command in one host of the lab",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New("lab exec: name a host (lan, fw or wan) and a command")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkLab(*name); err != nil {
				return err
			}
			l, err := lab.Open(*name, lab.Topology{})
			if err != nil {
				return fmt.Errorf("%w; weir lab up builds it", err)
			}
			if !l.Has(args[0]) {
				return &UsageError{fmt.Errorf("lab exec: no host %q; there are %s", args[0], strings.Join(l.Hosts(), ", "))}
			}
			return l.Exec(args[0], args[1:])
		},
	}
}
