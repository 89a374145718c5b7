package source

import (
	"fmt"
	"strings"
)

// Without says which constructs of a configuration the user does without. Such a
// configuration loads, although the dataplane ignores them.
type Without struct {
	Queues bool `json:"queues,omitempty"` // queue, altq, set queue, dnpipe, dnqueue
}

// WithoutQueues is the word for Without.Queues.
const WithoutQueues = "queues"

// Set adds one kind of construct by its word.
func (w *Without) Set(word string) error {
	if word != WithoutQueues {
		return fmt.Errorf("weir cannot do without %q; %s is the only word here", word, WithoutQueues)
	}
	w.Queues = true
	return nil
}

// String returns the words, or "".
func (w *Without) String() string {
	var words []string
	if w.Queues {
		words = append(words, WithoutQueues)
	}
	return strings.Join(words, ", ")
}

// Type returns the placeholder for a word in help texts.
func (w *Without) Type() string { return "construct" }
