package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/fw/daemon"
	"weir/internal/vpn/key"
	"weir/internal/vpn/wgfile"
	"weir/pf/resolve"
	"weir/pf/source"
)

func newVPNImportCommand(env *Env) *cobra.Command {
	var name, folder string
	var skip bool
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "print a file of wg(8) or wg-quick(8) as statements for weir.conf; keys go to files",
		Long: `import prints what a file of wg(8) or wg-quick(8) says as statements for weir.conf. Its secret
keys are not printed: they are written to new files in a folder, which the statements name.

What weir does not do is refused, line by line, and nothing is written: commands (PostUp and the
like), DNS, FwMark, routing tables. --skip leaves it out and says so. Comments "# Name = …" name peers.`,
		Args: exactly(1, "name one file of wg(8) or wg-quick(8)"),
		RunE: func(_ *cobra.Command, args []string) error { return env.importTunnel(args[0], name, folder, skip) },
	}
	c.Flags().StringVar(&name, "interface", "", "`name` of the tunnel's interface; else that of the file, without .conf")
	c.Flags().BoolVar(&skip, "skip", false, "leave out what weir does not do, and say so")
	c.Flags().StringVar(&folder, "keys", filepath.Dir(daemon.DefaultFile), "`folder` for the files of keys")
	return c
}

func (e *Env) importTunnel(path, name, folder string, skip bool) error {
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(path), ".conf")
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	file, left, err := readTunnel(path, f, skip)
	if err != nil {
		return err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return err
	}
	stmts, keys := file.Statements(name, folder)
	var text strings.Builder
	if err := wgfile.Fprint(&text, stmts); err != nil {
		return err
	}
	rules, list := resolve.Load("the statements for "+path, []byte(text.String()), nil)
	if list.HasErrors() {
		return list.Err()
	}
	for i := range keys {
		if err := key.WriteFile(keys[i].Path, keys[i].Key); err != nil {
			for _, written := range keys[:i] {
				os.Remove(written.Path)
			}
			return err
		}
		fmt.Fprintf(e.Stderr, "weir: wrote %s\n", keys[i].Path)
	}
	fmt.Fprint(e.Stdout, text.String())
	if left != nil {
		fmt.Fprintf(e.Stderr, "weir: left out:\n%v\n", left)
	}
	if file.Port == 0 {
		fmt.Fprintf(e.Stderr, "weir: the file has no ListenPort: the tunnel has port %d\n", rules.Options.WireGuard[0].Port)
	}
	for i := range file.Peers {
		for _, a := range file.Peers[i].Allowed {
			if a.Bits() == 0 && !file.NoRoute {
				fmt.Fprintf(e.Stderr, "weir: no route leads to %s, as wg-quick would make: use route-to in a rule\n", a)
			}
		}
	}
	return nil
}

// readTunnel reads a file of wg(8), and returns what is left out of it.
func readTunnel(path string, f io.ReadSeeker, skip bool) (file *wgfile.File, left, err error) {
	if file, left, err = wgfile.ReadMost(path, f); left == nil || skip && err == nil {
		return file, left, err
	}
	other := err != nil
	if _, err = f.Seek(0, io.SeekStart); err == nil {
		_, err = wgfile.Read(path, f) // all that is wrong, line by line
	}
	if !other {
		err = fmt.Errorf("%w\nto leave that out: weir vpn import --skip %s", err, path)
	}
	return nil, nil, err
}

func newVPNExportCommand(env *Env) *cobra.Command {
	var file string
	var macros macrosFlag
	c := &cobra.Command{
		Use:   "export INTERFACE",
		Short: "print a tunnel of weir.conf as a file of wg-quick(8), which reads the keys from their files",
		Args:  exactly(1, "name the interface of one tunnel"),
		RunE: func(c *cobra.Command, args []string) error {
			return env.exportTunnel(c.Context(), file, args[0], macros)
		},
	}
	c.Flags().StringVarP(&file, "file", "f", daemon.DefaultFile, "rule `file`")
	c.Flags().VarP(&macros, "define", "D", macrosUsage)
	return c
}

func (e *Env) exportTunnel(ctx context.Context, file, name string, macros macrosFlag) error {
	path, text, err := readRules(ctx, e, file)
	if err != nil {
		return fmt.Errorf("read the rules: %w", err)
	}
	host, err := (&checkOptions{noDNS: true}).machine()
	if err != nil {
		return err
	}
	rules, list := resolve.LoadWith(path, text, host, resolve.Settings{Files: source.Disk{}, Macros: macros})
	if rules == nil {
		return list.Err()
	}
	for i := range rules.Options.WireGuard {
		if t := &rules.Options.WireGuard[i]; t.Name == name {
			return wgfile.Write(e.Stdout, t)
		}
	}
	return errors.New(file + " has no wireguard " + name)
}
