package collect

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"weir/internal/host/cpulist"
	"weir/internal/host/doctor"
	"weir/internal/host/hostinfo"
	"weir/internal/host/proc"
	"weir/internal/host/tune"
)

// host reads the machine and its cores.
func (r *reader) host() {
	s := r.snapshot
	m, err := hostinfo.Describe()
	if err != nil {
		r.lacks("host", err)
	} else {
		s.Host = doctor.Host{Kernel: m.Kernel, CPU: m.CPU, Machine: m.Host, Hypervisor: m.Hypervisor, MemoryMiB: m.Memory, Mitigations: m.Mitigations}
	}
	s.Host.System = "Linux"
	s.Host.IdleStates = r.idleStates()
	isolated := r.isolated()
	ids, err := cpulist.Parse(r.text("devices/system/cpu/online"))
	if err != nil || len(ids) == 0 {
		r.lacks("cpus", fmt.Errorf("which of %d cores are online is not said: %w", runtime.NumCPU(), err))
		return
	}
	for _, id := range ids {
		c := r.cpu(id)
		c.Isolated = slices.Contains(isolated, id)
		s.CPUs = append(s.CPUs, c)
	}
}

// isolated returns the cores that the kernel keeps its work away from. RPS also leaves
// out the cores of isolcpus= and nohz_full=.
func (r *reader) isolated() (all []int) {
	for _, file := range []string{"isolated", "nohz_full"} {
		text := r.text("devices/system/cpu/" + file)
		if text == "(null)" {
			continue // kernels print this for a list that was never made
		}
		ids, err := cpulist.Parse(text)
		if err != nil {
			r.lacks("cpus.isolated", err)
		}
		all = append(all, ids...)
	}
	return all
}

func (r *reader) cpu(id int) doctor.CPU {
	dir := fmt.Sprintf("devices/system/cpu/cpu%d/", id)
	c := doctor.CPU{
		ID: id, Governor: r.text(dir + "cpufreq/scaling_governor"), Scaling: r.text(dir + "cpufreq/scaling_driver"),
		MHz: r.number(dir+"cpufreq/scaling_cur_freq") / 1000, MaxMHz: r.number(dir+"cpufreq/cpuinfo_max_freq") / 1000,
		BaseMHz: r.number(dir+"cpufreq/base_frequency") / 1000, LimitMHz: r.number(dir+"cpufreq/scaling_max_freq") / 1000,
	}
	if c.BaseMHz == 0 {
		c.BaseMHz = r.number(dir + "acpi_cppc/nominal_freq") // in MHz; AMD, and servers with Arm's processors
	}
	if list, err := cpulist.Parse(r.text(dir + "topology/thread_siblings_list")); err == nil {
		c.Siblings = list
	}
	nodes, err := filepath.Glob(r.sysFile(dir, "node[0-9]*"))
	if err == nil && len(nodes) == 1 {
		if n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(nodes[0]), "node")); err == nil {
			c.Node = &n
		}
	}
	return c
}

// idleStates returns those of core 0; nil if the kernel lists none.
func (r *reader) idleStates() (states []doctor.IdleState) {
	dirs, err := filepath.Glob(r.sysFile("devices/system/cpu/cpu0/cpuidle/state[0-9]*"))
	if err != nil {
		return nil
	}
	for i := range dirs {
		dir := fmt.Sprintf("devices/system/cpu/cpu0/cpuidle/state%d/", i)
		states = append(states, doctor.IdleState{Name: r.text(dir + "name"), ExitUsec: r.number(dir + "latency"), Disabled: r.text(dir+"disable") == "1"})
	}
	return states
}

// throttle returns the cores' throttle counts; nil if the CPU keeps none.
func (r *reader) throttle() map[int]uint64 {
	files, err := filepath.Glob(r.sysFile("devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count"))
	if err != nil || len(files) == 0 {
		return nil
	}
	all := map[int]uint64{}
	for _, file := range files {
		id, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(filepath.Dir(file))), "cpu"))
		text, failed := readFile(file)
		n, bad := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		if err == nil && failed == nil && bad == nil {
			all[id] = n
		}
	}
	return all
}

// text returns the contents of a file below /sys, "" if there is none.
func (r *reader) text(name string) string {
	text, err := readFile(r.sysFile(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(text)
}

// number returns 0 if there is no such file.
func (r *reader) number(name string) int {
	n, err := strconv.Atoi(r.text(name))
	if err != nil {
		return 0
	}
	return n
}

// wanted lists the sysctls that checks read, as files below /proc/sys.
var wanted = []string{
	"net/ipv4/ip_forward", "net/ipv4/conf/*/forwarding", "net/ipv4/conf/*/rp_filter",
	"net/ipv6/conf/*/forwarding", "net/ipv6/conf/*/accept_ra",
	"net/ipv4/neigh/default/gc_thresh*", "net/ipv6/neigh/default/gc_thresh*",
	"net/netfilter/nf_conntrack_max", "net/netfilter/nf_conntrack_buckets", "net/netfilter/nf_conntrack_*timeout*", "net/netfilter/nf_conntrack_tcp_be_liberal",
	"net/ipv4/ipfrag_high_thresh", "net/ipv4/tcp_mem", "net/ipv4/tcp_max_orphans", "net/ipv4/tcp_max_syn_backlog", "net/ipv4/tcp_syncookies", "net/ipv4/tcp_rmem", "net/ipv4/tcp_tw_recycle",
	"net/ipv4/xfrm4_gc_thresh", "net/ipv6/xfrm6_gc_thresh", "kernel/printk",
	"net/core/rmem_max", "net/core/rmem_default", "net/core/somaxconn", "vm/min_free_kbytes", "net/ipv6/route/max_size", "net/bridge/bridge-nf-call-iptables",
	"net/core/netdev_max_backlog", "net/core/netdev_budget", "net/core/netdev_budget_usecs",
	"net/core/rps_sock_flow_entries", "net/core/default_qdisc", "net/core/bpf_jit_enable",
}

func (r *reader) sysctls() {
	all := map[string]string{}
	root := r.procFile("sys")
	for _, pattern := range wanted {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			continue
		}
		for _, file := range files {
			text, err := readFile(file)
			if err != nil {
				continue
			}
			name := strings.TrimPrefix(file, root+"/")
			all[strings.NewReplacer("/", ".", ".", "/").Replace(name)] = strings.TrimSpace(text)
		}
	}
	r.snapshot.Sysctls = all
}

// unknownLines reads lines for sysctls that the kernel does not have. A recorded tree has
// its own list.
func (r *reader) unknownLines() {
	h := &tune.Host{}
	if r.root != "/" {
		h.Root = r.root
	}
	lines, err := h.UnknownLines()
	if err != nil {
		r.lacks("unknown_sysctls", err)
		return
	}
	r.snapshot.Unknown = []doctor.UnknownLine{}
	for _, l := range lines {
		r.snapshot.Unknown = append(r.snapshot.Unknown, doctor.UnknownLine(l))
	}
}

// firstOnly is a sysctl that the kernel shows in the machine's first network namespace
// alone, whatever the PID namespace. Its folder is in each.
const firstOnly = "netdev_budget"

// namespace sets whether this is another network namespace than the machine's first. If
// nothing tells, it counts as another: then nobody judges what may be others'.
func (r *reader) namespace() {
	is := &r.snapshot.Host.Namespace
	if entries, err := os.ReadDir(r.procFile("sys", "net", "core")); err == nil && len(entries) > 0 {
		*is = !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == firstOnly })
		return
	}
	own, err := os.Readlink(r.procFile("thread-self", "ns", "net"))
	first, unknown := os.Readlink(r.procFile("1", "ns", "net"))
	if err = cmp.Or(err, unknown, proc.KernelThreads(r.proc)); err != nil {
		*is = true
		r.lacks("host.network_namespace", err)
		return
	}
	*is = own != first
}

// programs lists those that matter, by the kernel's name, which is cut at 15 bytes.
var programs = map[string]string{
	"irqbalance": "irqbalance", "tuned": "tuned", "NetworkManager": "NetworkManager", "systemd-network": "systemd-networkd",
	"dockerd": "dockerd", "firewalld": "firewalld", "bpftune": "bpftune", "ksmtuned": "ksmtuned",
}

var processes = regexp.MustCompile(`^[0-9]+$`)

func (r *reader) services() {
	entries, err := os.ReadDir(r.proc)
	if err != nil {
		r.lacks("services", err)
		return
	}
	found := []string{}
	for _, e := range entries {
		if !processes.MatchString(e.Name()) {
			continue
		}
		text, err := readFile(r.procFile(e.Name(), "comm"))
		if name := programs[strings.TrimSpace(text)]; err == nil && name != "" {
			found = appendNew(found, name)
		}
	}
	r.snapshot.Services = found
}

func appendNew(list []string, word string) []string {
	for _, w := range list {
		if w == word {
			return list
		}
	}
	return append(list, word)
}
