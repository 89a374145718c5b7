package doctor

import (
	"fmt"

	"weir/internal/pattern"
	"weir/internal/units"
)

// noMemory matches drivers' statistics of buffers that the kernel did not give them.
var noMemory = pattern.New(`(?i)alloc\w*?[_ ](?:fail\w*|err\w*|discards?)$|(?:^|_)(?:no_skb|oom_discards?|rx_post_fail)$`)

// buffers checks for cards whose driver gets no memory for what comes. The kernel gives
// memory in an interrupt from a reserve (min_free_kbytes), which others' writes and reads use
// up, too. What the driver could not get at first it asks for again: without a loss nothing
// is wrong.
func buffers(v *view, n *nic, o *outcome) {
	if !n.counted {
		o.lacks(v, "links."+n.Name)
		return
	}
	failed, counter := v.worstOf(n.Name, noMemory.MatchString)
	lost, _ := v.lost(n)
	lost = max(lost, n.link.RxDropped)
	share := float64(min(failed, lost)) / float64(max(1, lost+n.link.RxPackets))
	if failed < fewLost || share < lossHurts {
		return
	}
	const reserve = "vm.min_free_kbytes"
	f := Finding{
		Severity: gradeLoss(min(failed, lost), share), Subject: n.Name, core: -1, weight: share, bites: true,
		Says:     fmt.Sprintf("%s loses %s of its packets because the kernel has no free memory for them at that moment", n.Name, percent(share)),
		Evidence: []string{grew(counter, n.Name, failed, v.Seconds), grew("dropped or missed", n.Name, lost, v.Seconds)},
		Expect:   "the driver gets memory at once, and nothing is lost",
	}
	if now, known := v.number(reserve); known {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s = %s", reserve, units.Thousands(now)))
		want := 4 * now
		if v.Host.MemoryMiB > 0 {
			want = min(want, v.Host.MemoryMiB*1024/20) // more than a twentieth does harm
		}
		if want > now {
			f.Remedies = []Remedy{{Command: fmt.Sprintf("sysctl -w %s=%d", reserve, want), Text: "keep a larger reserve for interrupts (at most a twentieth of the memory)"}}
		}
	}
	f.Remedies = append(f.Remedies,
		Remedy{Command: "dmesg | grep -A20 'page allocation failure'", Text: "see what takes the memory: files being written or read, many rings of large MTUs (ethtool -g), or a program"})
	o.add(f)
}
