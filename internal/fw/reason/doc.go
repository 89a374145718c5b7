// Package reason names why a packet was passed or dropped. The list is
// bpf/observe/reason.h and nothing else: this package's constants, names and texts are
// generated from it, and so is the table at the end of docs/packet-path.md.
//
// The dataplane counts packets per interface and reason, the model uses
// a reason, logs and metrics print one. Run "go generate ./internal/fw/reason"
// after a change of bpf/observe/reason.h; a test in gen fails as long as the generated
// files are behind it.
package reason

//go:generate go run ./gen -header ../../../bpf/observe/reason.h -go reason_gen.go -doc ../../../docs/packet-path.md
