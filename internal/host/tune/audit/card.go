package audit

import (
	"strings"

	"weir/internal/pattern"
)

// The words of ethtool, and of files below /proc and /sys, that set a card or a core. A card's name may be filled
// in by a shell or by Ansible.
var (
	ethtoolForm   = pattern.New(`^(#\s*|)(?:\$\s+)?(?:sudo )?(?:/\S*/)?ethtool\s+(-[A-Za-z]|--[a-z-]+)\s+(\$?\{?\{?\s?[\w.$-]+\s?\}?\}?)\s+([a-z0-9][\w .:/-]*?)\s*(?:;.*|&&.*|\|\|.*|#.*)?$`)
	queueForm     = pattern.New(`^(#\s*|)(?:sudo )?echo\s+["']?([^"'>|\s]+)["']?\s*(?:>|\|\s*(?:sudo )?tee)\s*/sys/class/net/([^/\s]+)/(?:queues/[rt]x-[^/\s]+/(?:([rx]ps)_cpus|(rps_flow_cnt))|(threaded))$`)
	affinityForm  = pattern.New(`^(#\s*|)(?:sudo )?echo\s+["']?([^"'>|\s]+)["']?\s*(?:>|\|\s*(?:sudo )?tee)\s*/proc/irq/([^/\s]+)/smp_affinity(?:_list)?$`)
	hashsizeForm  = pattern.New(`^(#\s*|)(?:sudo )?echo\s+["']?([0-9]+)["']?\s*(?:>|\|\s*(?:sudo )?tee)\s*/sys/module/nf_conntrack/parameters/hashsize$`)
	optionForm    = pattern.New(`^(#\s*|)options\s+nf_conntrack\s+(?:\S+\s+)*?hashsize=([0-9]+)\b.*$`)
	governorForm  = pattern.New(`^(#\s*|)(?:sudo )?(?:cpupower\s+(?:-c\s+\S+\s+)?frequency-set\s+(?:-g|--governor)\s+(\w+)|echo\s+["']?(\w+)["']?\s*(?:>|\|\s*(?:sudo )?tee)\s*/sys/devices/system/cpu/cpu[^/\s]*/cpufreq/scaling_governor)$`)
	mtuForm       = pattern.New(`^(#\s*|)(?:sudo )?(?:/\S*/)?(?:ip\s+link\s+set\s+(?:dev\s+)?(\S+)|ifconfig\s+(\S+))\s+(?:up\s+)?mtu\s+([0-9]+)(?:\s+up)?$`)
	qdiscForm     = pattern.New(`^(#\s*|)(?:sudo )?(?:/\S*/)?tc\s+qdisc\s+(?:add|replace|change)\s+dev\s+(\S+)\s+(?:root|parent\s+\S+)\s+(?:handle\s+\S+\s+)?([a-z]\w*(?:\s+[^;&|#]*[^;&|#\s])?)\s*(?:#.*)?$`)
	txqueuelength = pattern.New(`^(#\s*|)(?:sudo )?(?:/\S*/)?(?:ip\s+link\s+set\s+(?:dev\s+)?(\S+)|ifconfig\s+(\S+))\s+(?:txqueuelen|txqlen|qlen)\s+([0-9]+)$`)
)

// ethtoolWords are ethtool's options that set something, with its long names.
var ethtoolWords = map[string]string{
	"-K": "features", "--features": "features", "--offload": "features", "-G": "rings", "--set-ring": "rings",
	"-L": "queues", "--set-channels": "queues", "-C": "coalesce", "--coalesce": "coalesce", "-A": "pause", "--pause": "pause",
	"--set-eee": "eee", "-N": "hash", "-U": "hash", "--config-nfc": "hash", "--config-ntuple": "hash", "-X": "indirection", "--rxfh": "indirection", "--set-rxfh-indir": "indirection",
}

// featureNames are names of features in ethtool for which weir has another.
var featureNames = map[string]string{
	"generic-receive-offload": "gro", "large-receive-offload": "lro", "rx-lro": "lro", "rx-gro": "gro", "rx-gro-hw": "hw-gro",
	"tcp-segmentation-offload": "tso", "generic-segmentation-offload": "gso", "rx-checksumming": "rx", "tx-checksumming": "tx", "scatter-gather": "sg",
	"rx-vlan-offload": "rxvlan", "tx-vlan-offload": "txvlan", "ntuple-filters": "ntuple", "receive-hashing": "rxhash",
}

// readCard returns the settings of cards and cores in a line of a Linux shell.
func readCard(text string) []Line {
	if m := ethtoolForm.FindStringSubmatch(text); m != nil {
		return ethtoolLines(ethtoolWords[m[2]], strings.Join(strings.Fields(m[3]), ""), strings.Fields(m[4]), m[1] != "")
	}
	one := func(key, value, mark string) []Line { return []Line{{Key: key, Value: value, Off: mark != ""}} }
	if m := queueForm.FindStringSubmatch(text); m != nil {
		return one("nic."+m[3]+"."+m[4]+m[5]+m[6], m[2], m[1])
	}
	if m := affinityForm.FindStringSubmatch(text); m != nil {
		return one("irq."+m[3]+".smp_affinity", m[2], m[1])
	}
	for _, form := range []*pattern.Pattern{hashsizeForm, optionForm} {
		if m := form.FindStringSubmatch(text); m != nil {
			return one("net.netfilter.nf_conntrack_buckets", m[2], m[1])
		}
	}
	if m := governorForm.FindStringSubmatch(text); m != nil {
		return one("cpu.governor", m[2]+m[3], m[1])
	}
	if m := mtuForm.FindStringSubmatch(text); m != nil {
		return one("nic."+m[2]+m[3]+".mtu", m[4], m[1])
	}
	if m := qdiscForm.FindStringSubmatch(text); m != nil {
		return one("nic."+m[2]+".qdisc", strings.Join(strings.Fields(m[3]), " "), m[1])
	}
	if m := txqueuelength.FindStringSubmatch(text); m != nil {
		return one("nic."+m[2]+m[3]+".txqueuelen", m[4], m[1])
	}
	return nil
}

// ethtoolLines returns the settings of a command of ethtool's. Rings, queues and pause frames are
// one setting with several words, as weir tune has them.
func ethtoolLines(what, card string, words []string, off bool) (lines []Line) {
	add := func(name, value string) {
		lines = append(lines, Line{Key: "nic." + card + "." + name, Value: value, Off: off})
	}
	switch what {
	case "rings", "queues", "pause", "indirection":
		add(what, strings.Join(words, " "))
	case "hash":
		if len(words) == 3 && words[0] == "rx-flow-hash" {
			add("hash-"+words[1], words[2])
		} else if words[0] == "flow-type" && len(words) > 1 {
			add("flow-rule", strings.Join(words[1:], " "))
		}
	case "features", "coalesce", "eee":
		for i := 0; i+1 < len(words); i += 2 {
			name := words[i]
			if known := featureNames[name]; known != "" {
				name = known
			}
			add(name, words[i+1])
		}
	}
	return lines
}

// cardSettings are settings of Linux's cards that weir tune does not make, with what they do. on and off
// tell of switches; of others, on tells of every value.
var cardSettings = map[string]struct{ on, off string }{
	"tso":    {off: "The kernel cuts large packets in place of the card: those of connections that end here, and those that GRO merged on their way through. It costs time, and mends cards that send large packets wrongly."},
	"gso":    {off: "Large packets are cut before the queueing discipline, not behind it: each piece passes it alone. It costs time; shapers at low rates send more evenly."},
	"rx":     {off: "The CPU computes the checksum of each packet that ends here, and GRO merges less. It mends cards that check wrongly, and costs time."},
	"tx":     {off: "The CPU computes the checksum of what it sends, and TSO goes off with it. It mends cards that compute wrongly, and costs time."},
	"sg":     {off: "What is sent is copied into one piece, and TSO goes off with it."},
	"rxvlan": {off: "The CPU takes VLAN tags off. XDP programs then see the tags."},
	"txvlan": {off: "The CPU puts VLAN tags on."},
	"rxhash": {off: "The kernel computes each flow's hash itself, where RPS needs one."},
	"ntuple": {on: "Rules may send flows to chosen queues (ethtool -N); without rules it does nothing.", off: "No rules send flows to chosen queues."},

	"rx-usecs":    {on: "How many microseconds the card waits for further packets before it interrupts. More wait means fewer interrupts, and more delay; adaptive-rx on overrides it in most drivers."},
	"rx-frames":   {on: "After how many packets the card interrupts at the latest."},
	"tx-usecs":    {on: "How many microseconds the card waits before it reports packets as sent. It adds no delay to them."},
	"tx-frames":   {on: "After how many sent packets the card reports them at the latest."},
	"adaptive-tx": {on: "The driver chooses how long reports of sent packets wait, by the load.", off: "Reports of sent packets wait for a fixed time."},

	"rps_flow_cnt": {on: "How many flows of a queue are handed to the core whose program reads them (RFS), with net.core.rps_sock_flow_entries. Forwarded packets have no such program: for them it does nothing."},
	"flow-rule":    {on: "The card puts what fits the rule into a chosen queue, or drops it (action -1). What fits no rule is spread as before. Rules are gone after the next start."},
	"mtu":          {on: "The largest packet of the interface. All hosts of its network need the same; where a router's interfaces differ, large packets are cut or answered with an error, which firewalls on the way must not drop. In XDP, some drivers refuse more than about 3,500 bytes."},
	"qdisc":        {on: "The queueing discipline: what waits, and for how long, while the link is full. fq_codel, fq and cake keep the delay short. Packets that XDP forwards do not pass it."},

	"txqueuelen": {on: "How many packets pfifo_fast, pfifo and the queue in front of a program's tun hold. fq_codel, fq and cake have limits of their own and do not look at it; long queues only add delay."},
}

// card judges a setting of a card that no record describes. known is false if weir does not know it
// either.
func card(l Line) (verdict Verdict, why string, known bool) {
	if strings.HasPrefix(l.Key, "irq.") {
		return Valid, "Binds an interrupt to cores; its number may be another after the next start, and irqbalance moves it again. weir affinity auto, or irqs of weir tune, does the same for all queues.", true
	}
	if !strings.HasPrefix(l.Key, "nic.") {
		return "", "", false
	}
	s, known := cardSettings[l.Key[strings.LastIndex(l.Key, ".")+1:]]
	switch {
	case !known:
		return "", "", false
	case l.Value == "off":
		return Valid, s.off, true
	case s.on == "" && l.Value == "on":
		return IsDefault, "on by default if the card supports it", true
	}
	return Valid, s.on, true
}
