package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"weir/internal/bench/option"
	"weir/internal/host/tune/db"
)

// newTuneCommand makes `weir tune`.
func newTuneCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "tune",
		Short: "what to set on a router, and why: for this host, FreeBSD and its firewalls",
		Long: `tune knows the settings that guides recommend for FreeBSD, pfSense, OPNsense,
OpenBSD, IPFire and Check Point, and those of Linux. It says what each does, what it
costs, how far its effect is proven, and which are obsolete or do harm.`,
	}
	c.AddCommand(
		newTunePlanCommand(env), newTuneApplyCommand(env), newTuneConfirmCommand(env), newTuneStatusCommand(env), newTuneRevertCommand(env), newTuneRestoreCommand(env),
		newTuneAuditCommand(env),
		newTuneListCommand(env), newTuneExplainCommand(env),
	)
	return c
}

// newTuneListCommand makes `weir tune list`.
func newTuneListCommand(env *Env) *cobra.Command {
	var all bool
	var role, account string
	c := &cobra.Command{
		Use:   "list",
		Short: "list the settings that the guides name, with a verdict on each",
		Long: `list prints one line for each setting of the guides' table. Its account is record
(useful), obsolete (newer systems do not have it), refused (measurement contradicts
it, or it breaks something) or elsewhere (not a router's business). Its grade is A
(measured here), B (published measurement), C (vendor or standard) or D (folklore).`,
		Example: `  weir tune list --account refused
  weir tune list --role forwarder --all
  weir tune list --json | jq '.[] | select(.grade == "B") | .key'`,
	}
	c.Flags().BoolVar(&all, "all", false, "also list settings beyond the guides, such as those of Linux")
	c.Flags().StringVar(&role, "role", "", "only settings of this `role`: forwarder, endpoint, hardening, storage, cosmetic")
	c.Flags().StringVar(&account, "account", "", "only settings with this `account`: record, obsolete, refused, elsewhere")
	return printing(env, c, func(context.Context, []string) ([]*db.Entry, error) {
		if err := cmp.Or(oneOfWords("--role", role, roleWords), oneOfWords("--account", account, accountWords)); err != nil {
			return nil, err
		}
		d, err := db.Load()
		if err != nil {
			return nil, err
		}
		entries := []*db.Entry{}
		for _, r := range d.Records {
			if (r.Row != nil || all) && (role == "" || role == string(r.Role)) && (account == "" || account == string(r.Account)) {
				entries = append(entries, d.Entry(r))
			}
		}
		return entries, nil
	}, func(entries []*db.Entry) error { return db.WriteList(env.Stdout, entries) })
}

var (
	roleWords    = []string{string(db.Forwarder), string(db.Endpoint), string(db.Hardening), string(db.Storage), string(db.Cosmetic)}
	accountWords = []string{string(db.Kept), string(db.Obsolete), string(db.Refused), string(db.Elsewhere)}
)

// oneOfWords refuses a flag's value that is not one of the words. Without the flag the
// value is empty.
func oneOfWords(flag, value string, words []string) error {
	if value == "" || slices.Contains(words, value) {
		return nil
	}
	return &UsageError{option.Words(flag, []string{value}, words...)}
}

// newTuneExplainCommand makes `weir tune explain`.
func newTuneExplainCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "explain KEY",
		Short: "print what is known about a setting",
		Example: `  weir tune explain net.inet.ip.redirect
  weir tune explain "Hyper-threading"
  weir tune explain -- -lro`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return tuneKeys(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return &UsageError{fmt.Errorf("tune explain: %w; put a key that begins with - behind --: weir tune explain -- -lro", plain(err))}
	})
	return printing(env, c, func(_ context.Context, args []string) (entries []*db.Entry, err error) {
		d, err := db.Load()
		if err != nil {
			return nil, err
		}
		for _, r := range d.Match(args[0]) {
			entries = append(entries, d.Entry(r))
		}
		if entries == nil {
			err = fmt.Errorf("tune: there is no setting %s; weir tune list --all lists them", args[0])
		}
		return entries, err
	}, func(entries []*db.Entry) error {
		for _, e := range entries {
			if err := e.WriteWhole(env.Stdout); err != nil {
				return err
			}
		}
		return nil
	})
}

// tuneKeys returns the names of all settings, each once.
func tuneKeys() []string {
	d, err := db.Load()
	if err != nil {
		return nil
	}
	var keys []string
	for _, r := range d.Records {
		keys = append(keys, r.Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
