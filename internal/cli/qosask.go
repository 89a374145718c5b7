package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"weir/internal/qosinit"
)

// A qosQuestion is what qos init has to know.
type qosQuestion struct {
	flag, given string        // the flag, and its value; empty: ask
	before      string        // what is printed before the question
	what, such  string        // the question, and an example of an answer
	offered     func() string // the answer if somebody gives none; "": there must be one
	take        func(text string) error
}

// questions returns what is to be known of a line, which the answers are put into.
func (o *qosInit) questions(line *qosinit.Line, offered func() string) []qosQuestion {
	none := func() string { return "" }
	return []qosQuestion{
		{"interface", o.iface, "", "Interface of the line", "", offered, func(text string) error {
			line.Interface = text
			return checkLineInterface(text)
		}},
		{"line", o.kind, kindsText("  ") + "\n", "Kind of line", "", func() string { return "unknown" }, func(text string) (err error) {
			line.Kind, err = lineKind(text)
			return err
		}},
		{"down", o.down, "", "Rate down", ", such as 100M", none, func(text string) (err error) {
			line.Down, err = initRate(text)
			return err
		}},
		{"up", o.up, "", "Rate up", ", such as 40M", none, func(text string) (err error) {
			line.Up, err = initRate(text)
			return err
		}},
	}
}

func checkLineInterface(name string) error {
	if !plainInterface(name) {
		return fmt.Errorf("%q is no name of an interface that rules can have", name)
	}
	return nil
}

func lineKind(word string) (*qosinit.Kind, error) {
	kind := qosinit.KindOf(word)
	if kind == nil {
		return nil, fmt.Errorf("weir knows no kind of line %q; --help lists them", word)
	}
	return kind, nil
}

func initRate(text string) (uint64, error) {
	bits, err := bandwidth(text)
	if err != nil {
		return 0, err
	}
	return bits, qosinit.CheckRate(bits)
}

// An answerer gives the answers to questions.
type answerer struct {
	lines    *bufio.Scanner
	prompts  io.Writer // nil: nobody reads questions, so a wrong answer is final
	answered bool      // there has been an answer
}

// answerer returns who answers: somebody at a terminal, or the lines of another input.
func (e *Env) answerer() *answerer {
	a := &answerer{lines: bufio.NewScanner(e.Stdin)}
	if in, ok := e.Stdin.(*os.File); ok && isTerminal(in) {
		a.prompts = e.Stderr
	}
	return a
}

// read reads the flags, and then asks for what they do not say.
func (o *qosInit) read(a *answerer, offered func() string) (*qosinit.Line, error) {
	line := &qosinit.Line{}
	questions := o.questions(line, offered)
	for i := range questions {
		if q := &questions[i]; q.given != "" {
			if err := q.take(q.given); err != nil {
				return nil, fmt.Errorf("--%s: %w", q.flag, err)
			}
		}
	}
	for i := range questions {
		if q := &questions[i]; q.given == "" {
			if err := a.ask(q); err != nil {
				return nil, err
			}
		}
	}
	return line, line.Check()
}

// ask asks until an answer is right; without a terminal it asks once.
func (a *answerer) ask(q *qosQuestion) error {
	offered := q.offered()
	for {
		if a.prompts != nil {
			choice := ""
			if offered != "" {
				choice = " [" + offered + "]"
			}
			fmt.Fprintf(a.prompts, "%s%s%s%s: ", q.before, q.what, q.such, choice)
		}
		if !a.lines.Scan() {
			return a.ended(q)
		}
		a.answered = true
		err := q.answer(cmp.Or(strings.TrimSpace(a.lines.Text()), offered))
		if err == nil || a.prompts == nil {
			return err
		}
		fmt.Fprintf(a.prompts, "weir: %v\n", err)
	}
}

// answer takes an answer.
func (q *qosQuestion) answer(text string) error {
	if text == "" {
		return fmt.Errorf("%s: the answer is empty", q.what)
	}
	if err := q.take(text); err != nil {
		return fmt.Errorf("%s: the answer %q: %w", q.what, text, err)
	}
	return nil
}

// ended says what is missing at the end of the answers.
func (a *answerer) ended(q *qosQuestion) error {
	switch err := a.lines.Err(); {
	case err != nil:
		return fmt.Errorf("read the answer to %q: %w", q.what, err)
	case a.answered || a.prompts != nil:
		return fmt.Errorf("the input ends before an answer to %q: --%s is missing", q.what, q.flag)
	}
	return fmt.Errorf("--%s is missing", q.flag)
}
