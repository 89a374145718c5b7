package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/fw/rundir"
	"weir/internal/host/netif"
	"weir/internal/killpoint"
	"weir/internal/lab"
	"weir/test/lib"
)

// Two rulesets that pass ping and not much else.
const (
	onlyPing  = "set skip on lo\nblock\npass proto { icmp, icmp6 }\n"
	onlyPing2 = "set skip on lo\nset limit states 5000\nblock\npass quick proto { icmp, icmp6 }\npass proto udp to port 7\n"
)

// everyStep is the environment variable that sets at which steps weir is killed: 1 means
// every step, 2 every other, and so on, from a random one. Without it, some steps of each
// operation, others each time.
const everyStep = "WEIR_KILL_EVERY_STEP"

// someSteps is how many these are: each costs a start or two.
const someSteps = 2

// An ordeal is an operation of weir that is killed at one of its steps.
type ordeal struct {
	*lib.Box
	list  string // of steps (internal/killpoint)
	at    int    // the step to die at; 0: none
	found string // state of the machine before weir
}

// under returns the environment of a process whose steps are counted.
func (o *ordeal) under() string { return killpoint.Variable + "=" + o.list }

// killAt makes the next process, or the daemon from now on, die at a step; 0: none.
func (o *ordeal) killAt(n int) {
	o.Helper()
	o.at = n
	if err := os.WriteFile(o.list, []byte(strconv.Itoa(n)+"\n"), 0o600); err != nil {
		o.Fatal(err)
	}
}

// dies reports whether the step to die at has been taken.
func (o *ordeal) dies() bool {
	o.Helper()
	return o.at > 0 && len(o.taken()) >= o.at
}

// taken returns the steps taken since killAt.
func (o *ordeal) taken() []string {
	o.Helper()
	text, err := os.ReadFile(o.list)
	if err != nil {
		o.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
}

// forget ends the counting.
func (o *ordeal) forget() {
	o.Helper()
	if err := os.Remove(o.list); err != nil {
		o.Fatal(err)
	}
}

// open returns ends that all rulesets here block but that reply: beyond the box and, if
// weir filters what comes to it, at the box.
func (o *ordeal) open(toBox bool) []string {
	o.Helper()
	targets := []string{net.JoinHostPort(wanHost, "9"), net.JoinHostPort(wanHost6, "9")}
	if toBox {
		targets = append(targets, net.JoinHostPort(fwLAN, "9"), net.JoinHostPort("fd00:1::1", "9"))
	}
	var reached []string
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, to := range targets {
		all.Go(func() {
			err := o.Do(lab.LAN, func() error {
				d := net.Dialer{Timeout: 300 * time.Millisecond}
				c, err := d.DialContext(context.Background(), "tcp", to)
				if err == nil {
					c.Close()
				}
				return err
			})
			if err == nil {
				mu.Lock()
				reached = append(reached, to)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return reached
}

// closed checks that nothing forbidden passes, and that nothing could: if the kernel
// forwards, the guard is in place.
func (o *ordeal) closed(when string, toBox bool) {
	o.Helper()
	if reached := o.open(toBox); len(reached) > 0 {
		o.Errorf("%s: %v can be reached", when, reached)
	}
	forwards := false
	err := o.Do(lab.FW, func() error {
		for _, name := range []string{"net/ipv4/conf/lan0/forwarding", "net/ipv4/conf/wan0/forwarding", "net/ipv6/conf/all/forwarding", "net/ipv6/conf/lan0/force_forwarding"} {
			value, err := netif.Sysctl(name)
			forwards = forwards || err == nil && value == "1"
		}
		return nil
	})
	if err != nil {
		o.Fatal(err)
	}
	if _, err := o.Try(lab.FW, "nft", "list", "table", "inet", "weir"); forwards && err != nil {
		o.Errorf("%s: the kernel forwards, and no guard stands", when)
	}
}

// right checks that weir works after a start.
func (o *ordeal) right(when string) {
	o.Helper()
	o.closed(when, true)
	for _, to := range []string{wanHost, wanHost6} {
		if out, err := o.Try(lab.LAN, "ping", "-n", "-c", "2", "-i", "0.2", "-W", "2", to); err != nil {
			o.Errorf("%s: ping %s: %v\n%s", when, to, err, out)
		}
	}
	for _, device := range []string{"lo", "lan0", "wan0"} {
		if n := o.Packets(device, reason.Internal); n > 0 {
			o.Errorf("%s: %d packets of %s met what cannot happen", when, n, device)
		}
	}
	o.Weir("rules")
}

// An operation starts what is to be killed, and says what must hold afterwards.
type operation struct {
	name string
	// prepare makes the box ready for the operation.
	prepare func(o *ordeal)
	// run starts the operation; ended waits for its end, of any kind.
	run func(o *ordeal) (ended func() (killed bool))
	// judged says that weir's programs filter what comes to the box, even if the
	// operation is killed.
	judged bool
	// always is the beginning of a step at which the operation is always killed.
	always string
	// repair starts weir again.
	repair func(o *ordeal)
}

// kill kills an operation at a step. It returns false if there are fewer steps.
func (op *operation) kill(o *ordeal, n int) bool {
	o.Helper()
	op.prepare(o)
	var existing *lib.Process
	if op.judged {
		existing = o.Start(lab.LAN, "ping", "-n", "-i", "0.1", wanHost)
		defer existing.Kill()
		o.AwaitSaid(existing, "bytes from")
	}
	o.killAt(n)
	killed := op.run(o)()
	all := o.taken()
	o.forget()
	if !killed {
		o.Logf("%s ended by itself, after %d steps", op.name, len(all))
		if len(all) >= n {
			o.Errorf("%s was not killed at step %d", op.name, n)
		}
		return false
	}
	step := all[len(all)-1]
	when := fmt.Sprintf("%s, killed at step %d, %s", op.name, n, step)
	o.closed(when, op.judged)
	if op.name != "stop" {
		o.readyIfSaid(when, step, op.judged)
	}
	if op.judged {
		o.goesOn(when, existing)
		pings := o.Start(lab.LAN, "sh", "-c", "while sleep 0.05; do ping -n -c 1 -W 1 "+wanHost+"; done")
		defer pings.Kill()
	}
	op.repair(o)
	o.right(when + ", and started again")
	return true
}

// readyIfSaid checks that the box forwards if weir info exits with 0. It must do so if a
// dataplane was ready before. While some links have the next generation, whose states are
// in another table, a new connection may get no replies until the next start.
func (o *ordeal) readyIfSaid(when, step string, must bool) {
	o.Helper()
	out, err := o.Try(lab.FW, string(weir), "info")
	switch {
	case err == nil && step != "replace a program":
		o.Ping(lab.LAN, wanHost, 2)
	case err != nil && must:
		o.Errorf("%s: weir info: %v\n%s", when, err, out)
	}
}

// goesOn checks that a connection goes on that began before the operation. Single packets
// may be lost: those that go through the stack because the daemon is dead, while some
// links have the next generation.
func (o *ordeal) goesOn(when string, existing *lib.Process) {
	o.Helper()
	answers := func() int { return strings.Count(existing.Said(), "bytes from") }
	before := answers()
	o.Until(5*time.Second, when+": an existing connection goes on", func() bool { return answers() >= before+3 })
}

// steps counts the steps of an operation.
func (op *operation) steps(o *ordeal) []string {
	o.Helper()
	op.prepare(o)
	o.killAt(0)
	op.run(o)()
	all := o.taken()
	o.forget()
	return all
}

// endure kills an operation at all steps, or at some.
func (op *operation) endure(o *ordeal) {
	o.Helper()
	if text := os.Getenv(everyStep); text != "" {
		op.endureFrom(o, text)
		return
	}
	all := op.steps(o)
	if len(all) < 10 {
		o.Fatalf("%s: only these steps: %q", op.name, all)
	}
	picked := rand.Perm(len(all))[:someSteps]
	if op.always != "" {
		i := slices.IndexFunc(all, func(step string) bool { return strings.HasPrefix(step, op.always) })
		if i < 0 {
			o.Fatalf("%s: no step %q", op.name, op.always)
		}
		picked[0] = i
	}
	slices.Sort(picked)
	picked = slices.Compact(picked)
	o.Logf("%s has %d steps; killed at %v", op.name, len(all), picked)
	kills := 0
	for _, i := range picked {
		if op.kill(o, i+1) { // the number of steps varies
			kills++
		}
	}
	if kills == 0 {
		o.Errorf("%s: not killed at all", op.name)
	}
}

// endureFrom kills an operation at every n-th step.
func (op *operation) endureFrom(o *ordeal, text string) {
	o.Helper()
	apart, err := strconv.Atoi(text)
	if err != nil || apart < 1 {
		o.Fatalf("%s=%s is no distance of steps", everyStep, text)
	}
	first, kills := 1+rand.N(apart), 0
	for n := first; op.kill(o, n); n += apart {
		kills++
	}
	o.Logf("%s: killed at %d steps, from %d on, %d apart", op.name, kills, first, apart)
	if kills == 0 {
		o.Errorf("%s: not killed at all", op.name)
	}
}

// ended waits for a process that is killed, or gets as far as it can.
func ended(o *ordeal, p *lib.Process, far func() bool) func() bool {
	return func() bool {
		o.Helper()
		o.Until(2*lib.StartPatience, "it is killed, or done", func() bool { return !p.Running() || far() })
		if o.dies() { // a client may learn of the daemon's end before its parent does
			o.Until(lib.StartPatience, "it is killed", func() bool { return !p.Running() })
		}
		if p.Running() {
			p.Kill()
			return false
		}
		return p.Killed()
	}
}

func ready(p *lib.Process) func() bool {
	return func() bool { return strings.Contains(p.Said(), "weir: ready") }
}

// operations returns those that change the kernel.
func operations(rules, other string) []operation {
	var daemon *lib.Process
	start := func(o *ordeal) { daemon = o.WeirRun(rules) }
	again := func(o *ordeal) {
		if daemon != nil && daemon.Running() {
			daemon.Kill()
		}
		daemon = o.WeirRun(rules)
	}
	return []operation{
		{
			name: "start",
			prepare: func(o *ordeal) {
				if _, err := os.Stat(o.RunFolder()); err == nil {
					o.Weir("stop")
				}
				o.SameMachine(lab.FW, o.found, "after weir stop")
			},
			run: func(o *ordeal) func() bool {
				p := o.WeirUnder(o.under(), "run", "--hook", o.Hook, "-f", rules)
				return ended(o, p, ready(p))
			},
			always: "set net/ipv4/conf/lan0/forwarding", repair: start,
		},
		{
			name:    "load",
			prepare: func(o *ordeal) { daemon = counted(o, daemon, rules) },
			run: func(o *ordeal) func() bool {
				load := o.WeirCommand("load", other)
				return ended(o, daemon, func() bool { return !load.Running() })
			},
			judged: true, repair: again,
		},
		{
			name:    "takeover",
			prepare: again,
			run: func(o *ordeal) func() bool {
				p := o.WeirUnder(o.under(), "run", "--hook", o.Hook, "-f", other)
				return ended(o, p, ready(p))
			},
			judged: true, repair: again,
		},
		{
			name: "stop",
			prepare: func(o *ordeal) {
				if daemon == nil || !daemon.Running() {
					again(o)
				}
			},
			run: func(o *ordeal) func() bool {
				p := o.WeirUnder(o.under(), "stop")
				return ended(o, p, func() bool { return false })
			},
			repair: again,
		},
		{
			// Packets are prefetched; this ends and begins again with each
			// new table.
			name:    "rollback",
			prepare: func(o *ordeal) { daemon = counted(o, daemon, rules, prefetch...) },
			run: func(o *ordeal) func() bool {
				load := o.WeirCommand("load", "--confirm", "3s", other)
				return ended(o, daemon, func() bool { return !load.Running() && !o.waits() })
			},
			judged: true,
			repair: func(o *ordeal) {
				want := other
				if o.waits() {
					want = rules
				}
				daemon = o.WeirRun(other, prefetch...)
				if got := inForce(o.Box); got != want {
					o.Errorf("%s is in force after a start, want %s:\n%s", got, want, daemon.Said())
				}
			},
		},
	}
}

// waits reports whether a load waits for its confirmation.
func (o *ordeal) waits() bool {
	_, err := os.Stat(rundir.Folder(o.RunFolder()).Rollback())
	return err == nil
}

// counted starts a daemon whose steps are counted from the next list on. It replaces one
// that may still run.
func counted(o *ordeal, before *lib.Process, rules string, args ...string) *lib.Process {
	o.Helper()
	if before != nil && before.Running() {
		before.Kill()
	}
	p := o.WeirUnder(o.under(), append([]string{"run", "--hook", o.Hook, "-f", rules}, args...)...)
	o.Until(lib.StartPatience, "weir run is ready", ready(p))
	return p
}

//	lan ─── fw ─── wan           fw: kill -9 between two changes of the kernel
//
// Wherever a start, a load, a takeover, a stop or a rollback is killed, what is forbidden
// does not pass, and the next start repairs everything. The box has a connection of its
// own and, for XDP, devices that strip VLAN tags: a start changes something for both.
func TestKilledBetweenTwoChanges(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"start", "load", "takeover", "stop", "rollback"} {
		hooks := []string{[]string{"xdp", "tcx"}[i%2]}
		if os.Getenv(everyStep) != "" {
			hooks = []string{"tcx", "xdp"}
		}
		for _, hook := range hooks {
			t.Run(name+"/"+hook, func(t *testing.T) {
				t.Parallel()
				b := weir.Box(t, hook)
				b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
				b.Run(lab.WAN, "ip", "route", "add", "fd00:1::/64", "via", fwWAN6)
				for _, host := range []string{lab.FW, lab.WAN} {
					b.Listen(host, 9, "socat", "-t", "30", "TCP6-LISTEN:9,ipv6only=0,fork,reuseaddr", "EXEC:cat")
				}
				if hook == "xdp" {
					for _, device := range []string{"lan0", "wan0"} {
						b.Run(lab.FW, "ethtool", "-K", device, "rxvlan", "on")
					}
				}
				startTalk(b, "own", lab.FW, "TCP4-LISTEN:2201", lab.LAN, "TCP4:"+fwLAN+":2201", 2201).say(0, "before")
				o := &ordeal{Box: b, list: filepath.Join(t.TempDir(), "steps")}
				o.found = b.Machine(lab.FW)
				op := operations(b.Rules(onlyPing), b.Rules(onlyPing2))[i]
				op.endure(o)
				if _, err := os.Stat(b.RunFolder()); err == nil { // a stop that was not killed has removed it
					b.Weir("stop")
				}
				b.SameMachine(lab.FW, o.found, "after weir stop in the end")
			})
		}
	}
}

//	fw: weir stop, killed around the last link that it detaches
//
// The devices strip VLAN tags again in the end: what a start has found is recorded until
// it is restored.
func TestKilledWhileDetaching(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "xdp")
	for _, device := range []string{"lan0", "wan0"} {
		b.Run(lab.FW, "ethtool", "-K", device, "rxvlan", "on")
	}
	b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
	b.Run(lab.WAN, "ip", "route", "add", "fd00:1::/64", "via", fwWAN6)
	o := &ordeal{Box: b, list: filepath.Join(t.TempDir(), "steps"), found: b.Machine(lab.FW)}
	op := &operations(b.Rules(onlyPing), b.Rules(onlyPing2))[3]
	var last int
	for i, step := range op.steps(o) {
		if step == "detach" || strings.Contains(step, "/links/") {
			last = i + 1
		}
	}
	if op.name != "stop" || last < 2 {
		t.Fatalf("%s detaches last at step %d", op.name, last)
	}
	for _, n := range []int{last - 1, last} {
		op.kill(o, n)
		b.Weir("stop")
		b.SameMachine(lab.FW, o.found, fmt.Sprintf("after a stop that was killed at step %d, a start and a stop", n))
	}
}
