package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"weir/internal/fw/view"
)

// What follows with --json is one object a line, as weir capture prints it; what is printed once is for people, too.
func TestFollowedJSON(t *testing.T) {
	var out strings.Builder
	e := &Env{Stdout: &out}
	now := view.Queues{Trees: []view.QueueTree{{Interface: "wan0", Queues: []view.Queue{{Name: "up"}, {Name: "bulk", Parent: "up"}}}}}
	states := []stateLine{{}, {}}
	for name, print := range map[string]func(follow bool) error{
		"queues": func(follow bool) error { return e.printQueues(&queuesTask{json: true, follow: follow}, now, &now) },
		"states": func(follow bool) error { return e.printStateLines(&statesTask{json: true, follow: follow}, states) },
	} {
		out.Reset()
		for range 3 {
			if err := print(true); err != nil {
				t.Fatal(err)
			}
		}
		lines := strings.SplitAfter(strings.TrimSuffix(out.String(), "\n"), "\n")
		for _, line := range lines {
			if len(lines) != 3 || !json.Valid([]byte(line)) {
				t.Errorf("weir %s -f --json prints %d lines for 3 times, such as %q", name, len(lines), line)
				break
			}
		}
		out.Reset()
		if err := print(false); err != nil || !json.Valid([]byte(out.String())) || strings.Count(out.String(), "\n") < 3 {
			t.Errorf("weir %s --json prints %q (%v)", name, out.String(), err)
		}
	}
}
