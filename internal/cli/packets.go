package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"weir/internal/fw/pktrecord"
)

// packetForm is the output form of weir log and weir capture.
type packetForm struct {
	file string // name of the pcapng file; "-" is standard output, "" means text
	json bool
}

var (
	errTwoForms = errors.New("use --json or -w, not both")
	errTerminal = errors.New("-w - writes binary data: pipe it to a program (| tcpdump -nr -) or redirect it to a file")
)

// check refuses forms that contradict each other.
func (f *packetForm) check(stdout io.Writer) error {
	if f.json && f.file != "" {
		return &UsageError{errTwoForms}
	}
	if f.file == "-" && isTerminal(stdout) {
		return &UsageError{errTerminal}
	}
	return nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// packetPrinter prints packets in one of the forms. It buffers until Flush.
type packetPrinter struct {
	json  bool
	to    *bufio.Writer
	pcap  *pktrecord.Writer // nil: text or JSON
	close func() error      // closes the file
	count uint64
}

// printer opens the output for packets.
func (f *packetForm) printer(stdout io.Writer, form *pktrecord.Form) (*packetPrinter, error) {
	p := &packetPrinter{json: f.json, close: func() error { return nil }}
	to := stdout
	if f.file != "" && f.file != "-" {
		file, err := os.OpenFile(f.file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return nil, fmt.Errorf("write packets: %w", err)
		}
		to, p.close = file, file.Close
	}
	p.to = bufio.NewWriterSize(to, 1<<16)
	if f.file == "" {
		return p, nil
	}
	var err error
	if p.pcap, err = pktrecord.NewWriter(p.to, form); err == nil {
		err = p.to.Flush()
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *packetPrinter) print(r *pktrecord.Record) error {
	p.count++
	switch {
	case p.pcap != nil:
		return p.pcap.Write(r)
	case p.json:
		return r.PrintJSON(p.to)
	}
	_, err := fmt.Fprintln(p.to, r.Line())
	return err
}

// flush passes the buffered output to the reader.
func (p *packetPrinter) flush() error {
	if p.pcap != nil {
		if err := p.pcap.Flush(); err != nil {
			return err
		}
	}
	return p.to.Flush()
}

// end writes the end of the output. It is not an error if the reader has gone: it has all
// that it wanted.
func (p *packetPrinter) end(lost uint64) error {
	var err error
	if p.pcap != nil {
		err = p.pcap.Close(lost)
	}
	err = errors.Join(err, p.to.Flush(), p.close())
	if errors.Is(err, unix.EPIPE) {
		return nil
	}
	return err
}
