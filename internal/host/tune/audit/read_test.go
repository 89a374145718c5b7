package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/host/tune/audit"
)

// read returns the settings of a text as line:key=value, and the numbers of the lines that
// are passed over.
func read(t interface{ Fatal(...any) }, text string) (settings []string, passed []int) {
	lines, over, err := audit.Read(strings.NewReader(text), "f", func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		settings = append(settings, fmt.Sprintf("%d:%s=%s", l.Line, l.Key, l.Value))
	}
	for _, p := range over {
		passed = append(passed, p.Line)
	}
	return settings, passed
}

// TestReadTrees checks the forms of Ansible's, Salt's and other YAML, of config.xml, and of
// tables in Markdown.
func TestReadTrees(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		want   string
		passed []int
	}{
		"one line":                  {"- sysctl: name=net.a.b value=1 state=present\n- sysctl: name=\"net.a.c\" value=\"2 3\" reload=yes\n", "1:net.a.b=1 2:net.a.c=2 3", nil},
		"a map in the line":         {"- sysctl: {name: net.a.b, value: 1}\n- ansible.posix.sysctl: {value: 2, state: present, name: net/a/c}\n", "1:net.a.b=1 2:net.a.c=2", nil},
		"value first":               {"- name: y\n  ansible.posix.sysctl:\n    value: 4096\n    name: net.a.b\n  when: x\n", "3:net.a.b=4096", nil},
		"other members between":     {"- sysctl:\n    name: net.a.b\n    state: present\n    sysctl_set: true\n    reload: true\n    sysctl_file: /etc/x\n    value: 1\n", "7:net.a.b=1", nil},
		"loop":                      {"- sysctl:\n    name: \"{{ item.n }}\"\n    value: \"{{ item['v'] }}\"\n  loop:\n    - { n: net.a.b, v: '0' }\n    - n: net.a.c\n      v: 1\n    - { n: net.a.d }\n", "5:net.a.b=0 6:net.a.c=1", []int{8}},
		"loop of names":             {"- sysctl: name={{ item }} value=0\n  with_items:\n    - net.a.b\n    - net.a.c\n", "3:net.a.b=0 4:net.a.c=0", nil},
		"loop of a map":             {"- sysctl:\n    name: \"{{ item.key }}\"\n    value: \"{{ item.value }}\"\n  with_dict:\n    net.a.b: 1\n", "5:net.a.b=1", nil},
		"loop elsewhere":            {"- hosts: all\n  vars:\n    all:\n      - { key: net.a.b, value: 1 }\n    more:\n      net.a.c: 2\n  tasks:\n    - sysctl: name={{ item.key }} value={{ item.value }}\n      loop: '{{ all }}'\n", "4:net.a.b=1 6:net.a.c=2", nil},
		"a loop over a map's items": {"- vars:\n    all: { net.a.b: 1, net.a.c: 2 }\n  tasks:\n    - sysctl: {name: '{{ item.key }}', value: '{{ item.value }}'}\n      loop: \"{{ all | dict2items }}\"\n", "2:net.a.b=1 2:net.a.c=2", nil},
		"other members":             {"- vars:\n    all:\n      - { n: net.a.b, v: 1 }\n      - n: net.a.c\n        v: 2\n  tasks:\n    - sysctl: name={{ item.n }} value={{ item.v }}\n      with_items: '{{ all }}'\n", "3:net.a.b=1 4:net.a.c=2", nil},
		"tasks before":              {"- tasks:\n    - sysctl: name={{ item.name }} value={{ item.value }}\n      loop: '{{ all }}'\n  vars:\n    all:\n      - name: net.a.b\n        value: 1\n", "6:net.a.b=1", nil},
		"a value's variable":        {"- vars: {x: 7}\n  tasks:\n    - sysctl:\n        name: net.a.b\n        value: \"{{ x | string }}\"\n    - sysctl: {name: net.a.c, value: '{{ y }}'}\n", "5:net.a.b=7", []int{6}},
		"another play's":            {"- vars: {x: 7}\n- tasks:\n    - sysctl: {name: net.a.b, value: '{{ x }}'}\n", "", []int{1, 3}},
		"a fact":                    {"- set_fact:\n    x: [net.a.b, net.a.c]\n- sysctl: name={{ item }} value=0\n  loop: '{{ x }}'\n", "2:net.a.b=0 2:net.a.c=0", nil},
		"a list of another file":    {"- sysctl: name={{ item.name }} value={{ item.value }}\n  loop: '{{ elsewhere }}'\n- sysctl: {name: net.a.b, value: 1}\n", "3:net.a.b=1", []int{1, 2}},
		"Jinja without quotes":      {"- sysctl:\n    name: net.a.b\n    value: {{ x }}\n- sysctl: {name: net.a.c, value: 2}\n", "4:net.a.c=2", []int{2}},
		"absent":                    {"- sysctl: name=net.a.b state=absent\n- sysctl: {name: net.a.c, value: 2}\n- sysctl:\n    state: absent\n    name: net.a.d\n    value: 3\n", "2:net.a.c=2", []int{1, 3, 5}},
		"commands":                  {"- shell: sysctl -w net.a.b=1\n- lineinfile: path=/etc/sysctl.conf line='net.a.c=2'\n- lineinfile:\n    path: /etc/sysctl.conf\n    line: net.a.d = 3\n- shell: |\n    true\n    sysctl net.a.e=4\n", "1:net.a.b=1 2:net.a.c=2 5:net.a.d=3 8:net.a.e=4", []int{7}},
		"a title":                   {"- template: src=x\n  name: net.a.b\n- sysctl: {name: net.a.c, value: 2}\n", "3:net.a.c=2", []int{1, 2}},
		"Salt":                      {"net.a.b:\n  sysctl.present:\n    - value: 1\nsome:\n  sysctl.present:\n    - name: net.a.c\n    - value: 2\n{% if x %}\nnet.a.d:\n  sysctl.absent\n{% endif %}\n", "3:net.a.b=1 7:net.a.c=2", []int{8, 9, 11}},
		"Kubernetes":                {"spec:\n  sysctls:\n  - name: net.a.b\n    value: \"1\"\n", "4:net.a.b=1", nil},
		"Compose":                   {"services:\n  x:\n    sysctls:\n      - net.a.b=1\n", "4:net.a.b=1", nil},
		"a comment":                 {"- sysctl: {name: net.a.b, value: 1}\n#net.a.c=2\n# net.a.d helps\n", "1:net.a.b=1 2:net.a.c=2", nil},
		"a page's part":             {"Do this:\n\n```yaml\n- sysctl:\n    value: 1\n    name: net.a.b\n```\nnet.a.c=2\n", "5:net.a.b=1 8:net.a.c=2", []int{1, 3}},
		"lines that are none":       {"x: y: z\n- sysctl:\n    value: 1\n    name: net.a.b\n- sysctl: name=net.a.c value=2\n", "4:net.a.b=1 5:net.a.c=2", []int{1, 2}},

		"value before tunable": {"<sysctl>\n<item>\n <value>1</value>\n <tunable>net.a.b</tunable>\n</item>\n</sysctl>\n", "4:net.a.b=1", nil},
		"the same, broken":     {"<sysctl>\n<item>\n <value>1</value>\n <tunable>net.a.b</tunable>\n</item>\n", "4:net.a.b=1", nil},
		"config.xml":           {"<?xml version=\"1.0\"?>\n<pfsense>\n<system><x>sysctl net.a.c=2</x><y>see net.a.d</y></system>\n<sysctl><item><tunable>net.a.b</tunable><descr>net.a.b &eacute;</descr><value><![CDATA[1]]></value></item>\n<item><tunable>net.a.e</tunable></item></sysctl></pfsense>\n", "3:net.a.c=2 4:net.a.b=1", []int{3, 5}},

		"no bars outside": {"Setting | value\n--- | ---\nnet.a.b | 1\n`net.a.c` | `2`\n\nnet.a.d | 3\n", "3:net.a.b=1 4:net.a.c=2", []int{6}},
		"links and code":  {"| Key | Value |\n|---|---|\n| [net.a.b](https://x/a.b) | **1** |\n| [`net.a.c`][1] | [2](https://y) |\n| `net.a.d` (loader) | `3` (default 0) |\n", "3:net.a.b=1 4:net.a.c=2 5:net.a.d=3", nil},
		"two in a cell":   {"| Key | Value |\n|---|---|\n| net.a.b<br>net.a.c | 1 |\n| net.a.d<br/>net.a.e | 2<br>3 |\n| net.a.f, net.a.g | 4<br>5<br>6 |\n", "3:net.a.b=1 3:net.a.c=1 4:net.a.d=2 4:net.a.e=3", []int{5}},
		"no value":        {"| Key | Default |\n|---|---|\n| net.a.b | 1 |\n", "", []int{3}},
	} {
		settings, passed := read(t, c.text)
		if got := strings.Join(settings, " "); got != c.want || !slices.Equal(passed, c.passed) {
			t.Errorf("%s: %s, passed over %v; want %s, %v", name, got, passed, c.want, c.passed)
		}
	}
}

// blocks are forms of a setting, each in a kind of file. KEY and VALUE stand for what they
// set.
var blocks = map[string][]string{
	"yaml": {
		"- sysctl: name=KEY value=VALUE state=present",
		"- sysctl: {name: KEY, value: VALUE}",
		"- sysctl: {value: 'VALUE', reload: yes, name: 'KEY'}",
		"- name: a title\n  ansible.posix.sysctl:\n    name: KEY\n    value: VALUE\n    state: present",
		"- ansible.posix.sysctl:\n    value: \"VALUE\"\n    name: KEY\n  tags: [x]",
		"- sysctl:\n    name: '{{ item.name }}'\n    value: '{{ item.value }}'\n  with_items:\n    - { name: KEY, value: VALUE }",
		"- sysctl: name={{ item.key }} value={{ item.value }}\n  loop:\n    - key: KEY\n      value: VALUE",
		"- shell: sysctl -w KEY=VALUE",
		"- vars:\n    s:\n      KEY: VALUE",
		"- block:\n    - sysctl:\n        name: KEY\n        value: VALUE",
	},
	"xml": {
		"<item><tunable>KEY</tunable><value>VALUE</value></item>",
		"<item uuid=\"x\">\n<value>VALUE</value>\n<descr/>\n<tunable>KEY</tunable>\n</item>",
		"<item>\n<descr>about KEY</descr>\n<tunable>KEY</tunable>\n<value>VALUE</value>\n</item>",
	},
	"markdown": {
		"| KEY | VALUE | text |", "`KEY` | VALUE | text", "[KEY](https://x) | `VALUE` | see `x.y`", "| **KEY** (loader) | VALUE (was 3) | |",
	},
	"lines": {
		"KEY=VALUE", "KEY = VALUE # text", "sysctl KEY=VALUE", "echo VALUE > /proc/sys/KEY", "echo 'KEY=VALUE' >> /etc/sysctl.conf",
		"<tr><td>KEY</td><td>VALUE</td></tr>", "<tr>\n<td>KEY</td>\n<td>VALUE</td>\n</tr>", "- name: KEY\n  value: VALUE", "- value: VALUE\n  name: KEY",
		"Text says that KEY should be large.", "name: KEY\nstate: absent", "| KEY |", "KEY: see below",
	},
}

var frames = map[string][2]string{
	"yaml": {"", ""}, "lines": {"", ""},
	"xml":      {"<?xml version=\"1.0\"?>\n<opnsense><a>b</a>\n<sysctl>\n", "\n</sysctl>\n</opnsense>"},
	"markdown": {"text\n\nKey | Value | Text\n--- | --- | ---\n", "\n\ntext"},
}

// drawDocument returns a generated file. settings are its keys with their values.
func drawDocument(t *rapid.T) (kind, text string, settings map[string]string) {
	kind = rapid.SampledFrom([]string{"lines", "markdown", "xml", "yaml"}).Draw(t, "kind")
	settings = map[string]string{}
	var parts []string
	for i := range rapid.IntRange(1, 8).Draw(t, "blocks") {
		key, value := fmt.Sprintf("net.inet.k%d", i), fmt.Sprint(rapid.IntRange(0, 99999).Draw(t, "value"))
		form := rapid.SampledFrom(blocks[kind]).Draw(t, "form")
		settings[key] = value
		parts = append(parts, strings.NewReplacer("KEY", key, "VALUE", value).Replace(form))
	}
	return kind, frames[kind][0] + strings.Join(parts, "\n") + frames[kind][1] + "\n", settings
}

// TestNothingVanishes checks that each setting of a file, whatever its form, is judged with
// its value; and that in a file of any lines, whole or spoilt, each line that names a
// setting is judged or counted as passed over.
func TestNothingVanishes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind, text, settings := drawDocument(t)
		found, _ := read(t, text)
		for key, value := range settings {
			if kind != "lines" && !slices.ContainsFunc(found, func(s string) bool { return strings.HasSuffix(s, ":"+key+"="+value) }) {
				t.Fatalf("%s=%s is not found: %v in\n%s", key, value, found, text)
			}
		}
		lines := strings.Split(text, "\n")
		for range rapid.IntRange(0, 3).Draw(t, "faults") {
			i, j := rapid.IntRange(0, len(lines)-1).Draw(t, "i"), rapid.IntRange(0, len(lines)-1).Draw(t, "j")
			switch rapid.SampledFrom([]string{"cut", "swap", "drop", "twice"}).Draw(t, "fault") {
			case "cut":
				lines[i] = lines[i][:len(lines[i])/2]
			case "swap":
				lines[i], lines[j] = lines[j], lines[i]
			case "drop":
				lines[i] = ""
			case "twice":
				lines[i] += " " + lines[j]
			}
		}
		spoilt := strings.Join(lines, "\n")
		found, passed := read(t, spoilt)
		for n, line := range lines {
			for key := range settings {
				if strings.Contains(line+" ", key+" ") || strings.Contains(line, key+"<") {
					judged := slices.ContainsFunc(found, func(s string) bool {
						return strings.Contains(s, ":"+key+"=") || strings.HasPrefix(s, fmt.Sprint(n+1, ":"))
					})
					if !judged && !slices.Contains(passed, n+1) {
						t.Fatalf("line %d names %s, which vanished: found %v, passed over %v in\n%s", n+1, key, found, passed, spoilt)
					}
				}
			}
		}
	})
}
