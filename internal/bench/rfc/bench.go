package rfc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"weir/internal/bench/paths"
	"weir/internal/bench/sample"
	"weir/internal/bench/testbed"
	"weir/internal/bench/tester"
	"weir/internal/bench/traffic"
	"weir/internal/bench/web"
	"weir/internal/host/netif"
	"weir/internal/lab"
	"weir/internal/stats"
)

// Addresses of clients and servers. On translated paths clients have addresses of the
// LAN, on others an address known in the internet. Servers answer for a whole network,
// separate from the address that frames go to.
var (
	serverNetwork = netip.MustParsePrefix("198.19.0.0/24")
	firstServer   = netip.MustParseAddr("198.19.0.1")
)

// servers is the number of addresses that clients use in that network.
const servers = 250

// bench is the state that the tests of one run share.
type bench struct {
	o       *Options
	testbed *testbed.Testbed
	missing map[string]string // why paths cannot run on this machine
	server  *web.Server
	nginx   *web.Nginx
	// lines are the highest rates that the generator can send, by frame size. They
	// take the place of a wire's speed.
	lines map[lineKey]float64
	// entries are the faster entries into the kernel's paths.
	entries map[string]string
	// half is half of the highest connection rate of the first path. Tests of latency
	// offer it to all paths.
	half map[string]float64
	// record is the record of the current measurement.
	record *sample.Record
	// earlier are the rates that earlier searches for the same thing found.
	earlier *stats.Sample
	random  *rand.Rand
}

// lineKey is what the generator's speed depends on.
type lineKey struct {
	frame  int
	stamps bool
}

func openBench(ctx context.Context, o *Options) (*bench, error) {
	open, err := testbed.Open(ctx, testbed.Options{
		Name: o.name, Topology: testbed.RoutedGateway(), Offloads: lab.OffloadsOff, Program: o.Program,
	})
	if err != nil {
		return nil, err
	}
	b := &bench{o: o, testbed: open, missing: paths.Missing(ctx, open, Paths), lines: map[lineKey]float64{}, entries: map[string]string{}, half: map[string]float64{}, record: &sample.Record{},
		earlier: &stats.Sample{}, random: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))}
	if err := b.prepareHosts(); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// prepareHosts gives clients enough ports. A port is free again at once, because the
// firewall is measured and not the hosts.
func (b *bench) prepareHosts() error {
	if err := b.testbed.Lab.AddLocal(lab.WAN, serverNetwork); err != nil {
		return err
	}
	return b.testbed.Lab.Do(lab.LAN, func() error {
		return errors.Join(netif.SetSysctl("net/ipv4/ip_local_port_range", "1024\t65535"),
			netif.SetSysctl("net/ipv4/tcp_max_tw_buckets", "1024"))
	})
}

// start returns the first rate of a search: the highest, or a bit below what earlier runs
// of the same path found if that takes fewer trials. It differs in each run, so that the
// searches do not stop at the same rates.
func (b *bench) start(highest float64) float64 {
	const span = 0.1
	if len(*b.earlier) == 0 {
		return highest
	}
	return b.earlier.Median() * (1 - span*b.random.Float64())
}

// learn keeps the result of a search for the next one.
func (b *bench) learn(f Found) {
	if f.Rate > 0 {
		*b.earlier = append(*b.earlier, f.Rate)
	}
}

func (b *bench) close() error {
	var errs []error
	if b.server != nil {
		errs = append(errs, b.server.Close())
	}
	if b.nginx != nil {
		errs = append(errs, b.nginx.Close())
	}
	return errors.Join(append(errs, b.testbed.Close())...)
}

// startFor builds a path for frames and uses its faster entry.
func (b *bench) startFor(ctx context.Context, path string, c traffic.Case) (*tester.Tester, error) {
	names, err := paths.EntryNames(path, b.o.Hook)
	if err != nil {
		return nil, err
	}
	if _, known := b.entries[path]; !known {
		b.entries[path] = names[0]
		if len(names) > 1 {
			if b.entries[path], err = b.fasterEntry(ctx, path, names); err != nil {
				return nil, err
			}
		}
	}
	return tester.Start(ctx, b.testbed, path, tester.Options{Hook: b.o.Hook, Entry: b.entries[path], Case: c,
		Watch: func(run func() error) error { return b.record.During(run) }})
}

// fasterEntry overloads a path by each of its entries and returns the faster one.
func (b *bench) fasterEntry(ctx context.Context, path string, names []string) (faster string, err error) {
	most := uint64(0)
	for _, name := range names {
		r, err := tester.Start(ctx, b.testbed, path, tester.Options{Hook: b.o.Hook, Entry: name, Case: b.udp(64)})
		if err != nil {
			return "", err
		}
		err = r.Open(ctx)
		var o tester.Outcome
		if err == nil {
			o, err = r.Send(ctx, tester.Load{Frames: 1 << 20})
		}
		if err = errors.Join(err, r.Stop()); err != nil {
			return "", fmt.Errorf("enter %s by %s: %w", path, name, err)
		}
		if o.Arrived >= most {
			most, faster = o.Arrived, name
		}
	}
	return faster, nil
}

// with builds a path for frames, opens its connections, uses it and takes it down.
func (b *bench) with(ctx context.Context, path string, c traffic.Case, use func(*tester.Tester) error) (err error) {
	r, err := b.startFor(ctx, path, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Stop()) }()
	if err := r.Open(ctx); err != nil {
		return err
	}
	return use(r)
}

func (b *bench) lanHost() web.Host { return web.Host{Lab: b.testbed.Lab, Name: lab.LAN} }
func (b *bench) wanHost() web.Host { return web.Host{Lab: b.testbed.Lab, Name: lab.WAN} }

// clients builds a path and runs a plan over it.
func (b *bench) clients(ctx context.Context, path string, p web.Plan) (r web.Result, err error) {
	err = b.standing(ctx, path, func() error {
		r, err = b.run(ctx, path, p)
		return err
	})
	return r, err
}

// run runs a plan over a path that is already built, against Go's server unless the plan
// names another one.
func (b *bench) run(ctx context.Context, path string, p web.Plan) (r web.Result, err error) {
	if !p.Target.IsValid() {
		if b.server == nil {
			if b.server, err = web.StartServer(b.wanHost(), netip.IPv4Unspecified()); err != nil {
				return r, err
			}
		}
		p.Target = netip.AddrPortFrom(firstServer, b.server.Address(p.TLS).Port())
	}
	p.Source, p.Targets = source(path), servers
	err = b.watch(lab.LAN, func() (err error) {
		r, err = web.Run(ctx, b.lanHost(), p)
		return err
	})
	return r, err
}

// standing builds a path for sockets, uses it and takes it down.
func (b *bench) standing(ctx context.Context, path string, use func() error) (err error) {
	stop, err := paths.StartForSockets(ctx, b.testbed, path, paths.SocketOptions{Hook: b.o.Hook, GRO: !isWeir(path) || b.o.Hook == "tcx", States: b.o.Connections})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return use()
}

// nginxRate starts nginx and measures the load that bare routing carries. Tests offer
// half of it.
func (b *bench) nginxRate(ctx context.Context) (rate float64, err error) {
	if rate := b.half["nginx"]; rate > 0 {
		return rate, nil
	}
	if b.nginx, err = web.StartNginx(ctx, b.wanHost(), netip.IPv4Unspecified(), b.testbed.Folder, objectSizes()); err != nil {
		return 0, err
	}
	p := b.plan(false, 1, objectSizes()...)
	p.Target = b.nginxAddress()
	r, err := b.clients(ctx, paths.Kernel, p)
	if err != nil {
		return 0, err
	}
	if why := r.Invalid(); why != "" {
		return 0, fmt.Errorf("learn how much nginx can serve: %s", why)
	}
	b.half["nginx"] = float64(r.Connections) / r.Seconds / 2
	return b.half["nginx"], nil
}

// nginxAddress returns the first address of nginx that clients use.
func (b *bench) nginxAddress() netip.AddrPort {
	return netip.AddrPortFrom(firstServer, b.nginx.Address().Port())
}

func isWeir(path string) bool { return path == paths.Weir || path == paths.WeirNAT }

// source returns the clients' address: one of the LAN if the path translates it.
func source(path string) netip.Addr {
	if path == paths.NftNAT || path == paths.WeirNAT {
		return netip.MustParseAddr("192.168.1.10")
	}
	return testbed.RoutedClient.Addr()
}

// invalid returns a finding that does not count.
func invalid(format string, args ...any) finding {
	return finding{invalid: fmt.Sprintf(format, args...)}
}
