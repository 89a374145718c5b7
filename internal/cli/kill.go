package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/fw/state"
	"weir/internal/fw/view"
)

// killTask is what weir kill and weir flush are asked for.
type killTask struct {
	filter  state.Filter
	sources bool // forget sources; else end states
	dry     bool
	quiet   bool
	json    bool
	spare   *session // states of this session stay
}

func newKillCommand(env *Env) *cobra.Command {
	t := &killTask{}
	c := &cobra.Command{
		Use:   "kill [ADDRESS [ADDRESS]] " + stateFilterUsage,
		Args:  cobra.ArbitraryArgs,
		Short: "end the connections that meet the conditions, or forget sources",
		Long: `kill ends the states that meet all conditions. A connection that is forwarded or
translated is one state, so nothing of it stays. Its next packet meets the rules: a TCP
packet without SYN matches no rule with flags S/SA, which is the default.

An address without a word before it means what it does for "pfctl -k": the first is the
end that has opened the connections, the second the other end.

` + stateFilterHelp + `

With -K, kill forgets sources (weir sources), as "pfctl -K" does: what it knows of an
address's rate, and which translation address it uses. A source with states stays until
they end, because they count; its rate begins anew. With to, only translation addresses that
are kept are forgotten, if they are the one given.`,
		RunE: func(_ *cobra.Command, words []string) (err error) {
			if t.filter, err = parseKill(words); err != nil {
				return &UsageError{err}
			}
			if t.filter.Empty() {
				return &UsageError{errors.New("say which: weir kill host ADDRESS; weir flush states ends all")}
			}
			return env.kill(t)
		},
	}
	c.Flags().BoolVarP(&t.sources, "sources", "K", false, "forget sources from these addresses; states stay")
	t.flags(c)
	return c
}

func (t *killTask) flags(c *cobra.Command) {
	c.Flags().BoolVarP(&t.dry, "dry-run", "n", false, "say how many these are, and end none")
	c.Flags().BoolVarP(&t.quiet, "quiet", "q", false, "say nothing about what was done")
	jsonFlag(c, &t.json)
}

// parseKill reads a filter, with addresses before it as pfctl -k takes them.
func parseKill(words []string) (state.Filter, error) {
	var ends [2]string
	n := 0
	for n < len(words) && n < 2 && strings.ContainsAny(words[n], ".:") {
		ends[n] = words[n]
		n++
	}
	var all []string
	for i, end := range ends[:n] {
		all = append(all, []string{"from", "to"}[i], end)
	}
	return state.ParseFilter(append(all, words[n:]...))
}

// killRecord is the output with --json.
type killRecord struct {
	Killed    int  `json:"killed"`
	Spared    int  `json:"spared,omitempty"` // the session's own
	Forgotten int  `json:"forgotten,omitempty"`
	Stay      int  `json:"stay,omitempty"` // sources with states
	DryRun    bool `json:"dry_run,omitempty"`
}

// kill ends states or forgets sources, and says how many.
func (e *Env) kill(t *killTask) error {
	done, err := e.killed(t)
	if err != nil {
		return err
	}
	if t.json {
		return e.printJSON(done)
	}
	if t.quiet {
		return nil
	}
	_, err = fmt.Fprintln(e.Stdout, t.said(done))
	return err
}

func (t *killTask) said(done *killRecord) string {
	end := ""
	if t.dry {
		end = " (dummy)"
	}
	if t.sources {
		text := fmt.Sprintf("%s forgotten", several(done.Forgotten, "source"))
		if done.Stay > 0 {
			text += fmt.Sprintf("; %d with states stay, and their rates begin anew", done.Stay)
		}
		return text + end
	}
	text := fmt.Sprintf("%s killed", several(done.Killed, "state"))
	if done.Spared > 0 {
		text += "; that of this session stays (--force kills it too)"
	}
	return text + end
}

func several(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// killed does what is asked.
func (e *Env) killed(t *killTask) (*killRecord, error) {
	v, err := e.reader()
	if err != nil {
		return nil, err
	}
	defer v.Close()
	done := &killRecord{DryRun: t.dry}
	if t.sources {
		return done, t.forget(v, done)
	}
	wanted := func(s *state.View) bool {
		if !t.filter.Match(s) {
			return false
		}
		if t.spare.is(s) {
			done.Spared++
			return false
		}
		return true
	}
	if !t.dry {
		done.Killed, err = v.KillStates(wanted)
		return done, err
	}
	return done, v.States(&t.filter, func(s *state.View) bool {
		if wanted(s) {
			done.Killed++
		}
		return true
	})
}

// forget forgets sources.
func (t *killTask) forget(v *view.View, done *killRecord) (err error) {
	from := append(slices.Clone(t.filter.From), t.filter.Hosts...)
	only := t.filter
	only.From, only.Hosts, only.To = nil, nil, nil
	if !only.Empty() {
		return &UsageError{errors.New("-K takes addresses only")}
	}
	wanted := func(s *view.Source) bool {
		return among(from, s.Addr) && t.keeps(s)
	}
	if !t.dry {
		done.Forgotten, done.Stay, err = v.KillSources(wanted)
		return err
	}
	sources, err := v.AllSources()
	for i := range sources {
		switch {
		case !wanted(&sources[i]):
		case sources[i].States > 0 && sources[i].Keeps == nil:
			done.Stay++
		default:
			done.Forgotten++
		}
	}
	return err
}

// among reports whether one of some networks has an address. None: any does.
func among(networks []netip.Prefix, a netip.Addr) bool {
	return len(networks) == 0 || slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) })
}

// keeps reports whether a source keeps an address that is asked for. One that keeps none goes only with all, as
// in pf.
func (t *killTask) keeps(s *view.Source) bool {
	if s.Keeps == nil {
		return len(t.filter.To) == 0 || slices.ContainsFunc(t.filter.To, func(p netip.Prefix) bool { return p.Bits() == 0 })
	}
	return among(t.filter.To, *s.Keeps)
}

func newFlushCommand(env *Env) *cobra.Command {
	t := &killTask{}
	force := false
	c := &cobra.Command{
		Use:   "flush states|sources",
		Short: "end all connections, or forget all sources",
		Long: `flush does what "pfctl -F states" and "pfctl -F Sources" do. states: the state of the
SSH session that asks stays, unless --force is given.

It refuses what would open the box or make it forget what it blocks: weir stop removes
weir, weir load replaces the rules, weir table flush empties one table.`,
		Args: exactly(1, "say what: weir flush states, or weir flush sources"),
		RunE: func(_ *cobra.Command, args []string) error {
			switch what := args[0]; what {
			case "states":
				if !force {
					t.spare = ownSession()
				}
			case "sources", "Sources":
				t.sources = true
			default:
				return refuseFlush(what)
			}
			return env.kill(t)
		},
	}
	c.Flags().BoolVar(&force, "force", false, "also end the state of this session")
	t.flags(c)
	return c
}

// refuseFlush says what to use instead.
func refuseFlush(what string) error {
	switch what {
	case "all", "rules", "nat", "Reset", "ethernet":
		return fmt.Errorf("flush %s would open the box: weir stop removes weir; weir load FILE replaces the rules", what)
	case "queue":
		return errors.New("flush queue: queues go with the rules that define them; weir load FILE replaces both")
	case "tables", "Tables":
		return errors.New("flush tables would forget what they block: weir table flush -t NAME empties one, weir table kill -t NAME removes one that no rule names")
	case "info", "counters":
		return errors.New("flush info: weir never clears its counters; the difference of two readings says what has happened since")
	case "osfp":
		return errors.New("flush osfp: fingerprints of operating systems belong to the rules, and are read with them")
	}
	return &UsageError{fmt.Errorf("flush takes states or sources, not %q", what)}
}

// A session is the SSH connection that a command was typed in.
type session struct{ client, server netip.AddrPort }

// is reports whether a state is that of the session.
func (s *session) is(v *state.View) bool {
	return s != nil && v.Proto == "tcp" && v.Src.Port == s.client.Port() && v.Src.Addr == s.client.Addr() &&
		(v.Dst.Port == s.server.Port() || v.Dst.NewPort == s.server.Port())
}

// ownSession finds the session of this process or of its parents: sudo removes the variable
// from the environment. nil: there is none.
func ownSession() *session {
	if s := parseSession(os.Getenv(sshVariable)); s != nil {
		return s
	}
	for pid, n := os.Getppid(), 0; pid > 1 && n < 32; n++ {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			return nil
		}
		for _, variable := range bytes.Split(text, []byte{0}) {
			if value, ok := bytes.CutPrefix(variable, []byte(sshVariable+"=")); ok {
				return parseSession(string(value))
			}
		}
		pid = parentOf(pid)
	}
	return nil
}

// sshVariable holds the client's address and port, then the server's (sshd(8)).
const sshVariable = "SSH_CONNECTION"

func parseSession(value string) *session {
	words := strings.Fields(value)
	if len(words) != 4 {
		return nil
	}
	client, err := netip.ParseAddrPort(joinPort(words[0], words[1]))
	if err != nil {
		return nil
	}
	server, err := netip.ParseAddrPort(joinPort(words[2], words[3]))
	if err != nil {
		return nil
	}
	return &session{
		netip.AddrPortFrom(client.Addr().Unmap().WithZone(""), client.Port()),
		netip.AddrPortFrom(server.Addr().Unmap().WithZone(""), server.Port()),
	}
}

func joinPort(addr, port string) string {
	if strings.Contains(addr, ":") {
		return "[" + addr + "]:" + port
	}
	return addr + ":" + port
}

// parentOf returns the parent of a process; 0: it is gone.
func parentOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(text, []byte(") "))
	fields := bytes.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}
