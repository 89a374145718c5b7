package test

import (
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"weir/internal/host/doctor"
	"weir/internal/host/proc"
	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// farWeir runs a command of weir in wan, and returns what it prints.
func farWeir(b *lib.Box, args ...string) string {
	b.Helper()
	return b.Run(lab.WAN, string(weir), args...)
}

// twoSites has weir at both ends of a tunnel, in fw and in wan. extra is added to the tunnel's peer at either end. It
// returns weir vpn run of fw and of wan, and the rules of fw for another extra.
func twoSites(b *lib.Box, extra string) (near, far *lib.Process, rulesWith func(extra string) string) {
	b.Helper()
	return twoSitesBy(b, wanHost+" port 51821", extra)
}

// twoSitesBy does the same with an endpoint of its own.
func twoSitesBy(b *lib.Box, endpoint, extra string) (near, far *lib.Process, rulesWith func(extra string) string) {
	b.Helper()
	dir := b.TempDir()
	var secrets, publics [2]string
	for i := range secrets {
		secrets[i] = filepath.Join(dir, fmt.Sprintf("%d.key", i))
		publics[i] = strings.TrimSpace(b.Weir("vpn", "genkey", secrets[i]))
	}
	b.Address(lab.WAN, "lo", tunnelFar+"/32")
	rulesWith = func(extra string) string {
		return fmt.Sprintf(`wireguard wg0 key file "%s" address 10.9.0.1/30 engine userspace
peer far on wg0 key "%s" endpoint %s allowed { 10.9.0.2 10.2.0.0/16 } %s
block
pass in on lan0
pass out
pass in on wg0
`, secrets[0], publics[1], endpoint, extra)
	}
	b.WeirRun(b.Rules(rulesWith(extra)))
	rules := b.Rules(fmt.Sprintf(`wireguard wg0 key file "%s" port 51821 address 10.9.0.2/30 engine userspace
peer near on wg0 key "%s" allowed { 10.9.0.1 192.168.1.0/24 } %s
pass
`, secrets[1], publics[0], extra))
	daemon := b.Start(lab.WAN, string(weir), "run", "--hook", "tcx", "-f", rules)
	b.Cleanup(func() {
		for _, end := range []string{"stop", "vpn down"} {
			cmd := exec.Command(string(weir), append([]string{"--netns", b.Namespace(lab.WAN)}, strings.Fields(end)...)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Errorf("weir %s in wan: %v: %s", end, err, out)
			}
		}
	})
	b.AwaitSaid(daemon, "weir: ready")
	far = b.Start(lab.WAN, string(weir), "vpn", "run")
	near = vpnRun(b)
	b.Cleanup(func() { // before what stops weir in wan
		near.Kill()
		far.Kill()
		b.Weir("vpn", "down")
	})
	b.Until(20*time.Second, "the tunnel works", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
	return near, far, rulesWith
}

// busiest returns the worker that sends the most.
func busiest(b *lib.Box, v *doctor.VPN) *doctor.WorkerPlace {
	b.Helper()
	if len(v.Tunnels) != 1 || v.Tunnels[0].Interface != "wg0" || len(v.Tunnels[0].Workers) != min(16, runtime.NumCPU()) {
		b.Fatalf("weir vpn affinity: %+v", v)
	}
	most := &v.Tunnels[0].Workers[0]
	for i := range v.Tunnels[0].Workers {
		if w := &v.Tunnels[0].Workers[i]; w.Sends > most.Sends {
			most = w
		}
	}
	return most
}

// carried returns what all workers of wg0 send and receive, in Mbit/s.
func carried(v *doctor.VPN) (sends, takes float64) {
	for i := range v.Tunnels {
		for _, w := range v.Tunnels[i].Workers {
			sends, takes = sends+w.Sends/1e6, takes+w.Takes/1e6
		}
	}
	return sends, takes
}

// ran has a worker's thread be watched for a while: the time that it has used, by the core that it ran on.
func ran(b *lib.Box, pid, thread int) map[int]uint64 {
	b.Helper()
	by := map[int]uint64{}
	folder := fmt.Sprintf("/proc/%d/task", pid)
	used := func() (ticks uint64, core int) {
		b.Helper()
		ticks, core, err := proc.Process(folder, thread)
		if err != nil {
			b.Fatal(err)
		}
		return ticks, core
	}
	last, _ := used()
	for range 80 {
		time.Sleep(25 * time.Millisecond)
		now, core := used()
		by[core] += now - last
		last = now
	}
	return by
}

//	lan ── fw ══ wg0, a weir at both ends ══ wan
//	iperf3, 150 Mbit/s                       iperf3 -s
//
// The tables of both ends have what iperf3 measures. A worker is moved to another core and back under traffic: its
// time goes with it, and no packet is lost. Another process has the workers where they were.
func TestVPNAffinity(t *testing.T) {
	if runtime.NumCPU() < 2 {
		testenv.SkipOutside(t, "a worker needs another core to go to")
	}
	weir.UnderTCX(t, func(b *lib.Box) {
		near, _, rulesWith := twoSites(b, "show-load")
		b.Listen(lab.WAN, 5201, "iperf3", "-s")
		b.Tell("figures", func(b *lib.Box) {
			bulk := b.Start(lab.LAN, "iperf3", "-c", tunnelFar, "-b", "150M", "-t", "8", "-J")
			time.Sleep(2 * time.Second)
			distant := make(chan string, 1)
			go func() {
				out, err := b.Try(lab.WAN, string(weir), "vpn", "affinity", "--interval", "4s", "--json")
				if err != nil {
					out = err.Error()
				}
				distant <- out
			}()
			here := lib.WeirJSON[doctor.VPN](b, "vpn", "affinity", "--interval", "4s")
			var there doctor.VPN
			if out := <-distant; json.Unmarshal([]byte(out), &there) != nil {
				b.Fatalf("weir vpn affinity in wan: %s", out)
			}
			var result struct {
				End struct {
					Received struct {
						Bits float64 `json:"bits_per_second"`
					} `json:"sum_received"`
				}
			}
			if err := json.Unmarshal([]byte(bulk.Wait(30*time.Second, 0)), &result); err != nil {
				b.Fatal(err)
			}
			want := result.End.Received.Bits / 1e6
			sends, _ := carried(&here)
			_, takes := carried(&there)
			b.Logf("iperf3 %.1f Mbit/s, the near end sends %.1f, the far end receives %.1f", want, sends, takes)
			for _, got := range []float64{sends, takes} {
				if math.Abs(got-want) > want/10 {
					b.Errorf("weir vpn affinity says %.1f Mbit/s, iperf3 %.1f", got, want)
				}
			}
			if q := here.Tunnels[0].Queues; len(q) == 0 || q[0].Interface != "wan0" {
				b.Errorf("the outer packets come by %+v", q)
			}
			b.Logf("\n%s\n%s", b.Weir("vpn", "affinity"), farWeir(b, "vpn", "affinity"))
		})
		b.Tell("the far end", func(b *lib.Box) {
			type both struct {
				doctor.VPN
				Far []struct {
					Peer, Tunnel, Error string
					Says                *doctor.VPN
				}
			}
			for i, out := range []string{b.Weir("vpn", "affinity", "--far", "--json"), farWeir(b, "vpn", "affinity", "--far", "--json")} {
				var v both
				if err := json.Unmarshal([]byte(out), &v); err != nil || len(v.Far) != 1 || v.Far[0].Says == nil || v.Far[0].Tunnel != "wg0" || v.Far[0].Peer != []string{"far", "near"}[i] {
					b.Fatalf("%v: %s", err, out)
				}
				if says := v.Far[0].Says; len(says.Cores) != runtime.NumCPU() || len(says.Tunnels) != 1 || says.Tunnels[0].Queues[0].Interface != []string{"eth0", "wan0"}[i] {
					b.Errorf("the far end says %+v", says)
				}
			}
			b.Run(lab.WAN, "curl", "-s", "-f", "--max-time", "8", "http://10.9.0.1:51820/load")
			if out, err := b.Try(lab.LAN, "curl", "-s", "-f", "--max-time", "3", "http://10.9.0.1:51820/load"); err == nil {
				b.Errorf("the LAN is told, too: %s", out)
			}
			b.Weir("load", b.Rules(rulesWith("")))
			b.Until(5*time.Second, "nobody is told any more", func() bool {
				_, err := b.Try(lab.WAN, "curl", "-s", "-f", "--max-time", "3", "http://10.9.0.1:51820/load")
				return err != nil
			})
			if out := farWeir(b, "vpn", "affinity", "--far"); !strings.Contains(out, "The other end, near of wg0:\nit does not tell: ") {
				b.Errorf("a peer that does not tell:\n%s", out)
			}
		})
		b.Tell("moves", func(b *lib.Box) {
			bulk := b.Start(lab.LAN, "iperf3", "-c", tunnelFar, "-b", "150M", "-t", "40")
			flood := b.FloodEvery(lab.LAN, tunnelFar, 5*time.Millisecond)
			time.Sleep(time.Second)
			v := lib.WeirJSON[doctor.VPN](b, "vpn", "affinity")
			w := busiest(b, &v)
			home := w.Allowed
			for _, core := range []int{1, 0, 1} {
				b.Weir("vpn", "affinity", "set", fmt.Sprintf("wg0:%d=%d", w.Number, core))
				by := ran(b, near.PID(), w.Thread)
				b.Logf("on cpu%d: %v ticks", core, by)
				if by[1-core] > 1 || by[core] < 3 {
					b.Errorf("worker %d was moved to cpu%d, and has its time by core: %v", w.Number, core, by)
				}
			}
			if out := b.Weir("affinity"); !strings.Contains(out, fmt.Sprintf("wg0:%d (", w.Number)) {
				b.Errorf("weir affinity does not show the worker:\n%s", out)
			}
			if out, status := b.WeirStatus("vpn", "affinity", "set", "wg0:99=0"); status != 2 || !strings.Contains(out, "wg0 has no worker 99") {
				b.Errorf("a worker that is not there: %d, %s", status, out)
			}
			flood.AllAnswered(500)
			near.Kill()
			near = vpnRun(b)
			v = lib.WeirJSON[doctor.VPN](b, "vpn", "affinity")
			if now := v.Tunnels[0].Workers[w.Number]; now.Allowed != "1" || now.Thread == w.Thread {
				b.Errorf("another process has the worker at %+v", now)
			}
			b.Weir("affinity", "revert")
			v = lib.WeirJSON[doctor.VPN](b, "vpn", "affinity")
			if now := v.Tunnels[0].Workers[w.Number]; now.Allowed != home {
				b.Errorf("after weir affinity revert the worker may run on %s, before on %s", now.Allowed, home)
			}
			bulk.Kill()
		})
	})
}
