// Package reason names why a packet was passed or dropped. The list is
// bpf/observe/reason.h and nothing else: this package's constants, names and texts are
// generated from it, and so is the table at the end of docs/packet-path.md.
//
// The dataplane counts packets per interface and reason, the model returns a reason, and
// logs and metrics print it. Run "go generate ./internal/fw/reason" after a change of
// bpf/observe/reason.h. A test in gen fails while the generated files are out of date.
package reason

//go:generate go run ./gen -header ../../../bpf/observe/reason.h -go reason_gen.go -doc ../../../docs/packet-path.md
