package pktrecord

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// A Writer writes records as pcapng (draft-ietf-opsawg-pcapng): an interface block for
// each interface, times in nanoseconds, and comments on each packet.
//
// A file has one link type, because libpcap reads no other. If it is Ethernet, packets of
// devices without a header get one with zeros for addresses, as the kernel does on lo.
type Writer struct {
	w          *pcapgo.NgWriter
	snap       int
	bare       bool
	interfaces map[string]int
}

// A Form says how a Writer writes.
type Form struct {
	Snap        int      // most bytes kept of a frame
	Bare        bool     // packets without Ethernet header (LINKTYPE_RAW), for records that have none
	Application string   // named as the file's author
	Interfaces  []string // known at the beginning, at least one; others are added when they appear
}

// NewWriter returns a writer to w, and writes the head of the file.
func NewWriter(w io.Writer, f *Form) (*Writer, error) {
	n := &Writer{snap: f.Snap, bare: f.Bare, interfaces: make(map[string]int)}
	section := pcapgo.NgSectionInfo{Hardware: runtime.GOARCH, OS: runtime.GOOS, Application: f.Application}
	var err error
	n.w, err = pcapgo.NewNgWriterInterface(w, n.block(f.Interfaces[0]), pcapgo.NgWriterOptions{SectionInfo: section})
	if err != nil {
		return nil, fmt.Errorf("write pcapng: %w", err)
	}
	n.interfaces[f.Interfaces[0]] = 0
	for _, name := range f.Interfaces[1:] {
		if _, err := n.interfaceID(name); err != nil {
			return nil, err
		}
	}
	return n, n.Flush()
}

func (w *Writer) block(name string) pcapgo.NgInterface {
	link := layers.LinkTypeEthernet
	if w.bare {
		link = layers.LinkTypeRaw
	}
	return pcapgo.NgInterface{Name: name, OS: runtime.GOOS, LinkType: link, SnapLength: uint32(w.snap)}
}

// Write writes a record. It may stay in a buffer until Flush.
func (w *Writer) Write(r *Record) error {
	id, err := w.interfaceID(r.Shown())
	if err != nil {
		return err
	}
	frame, length := r.Data, r.Length
	switch {
	case r.L3 && !w.bare:
		frame, length = withEthernet(frame), length+etherHeader
	case !r.L3 && w.bare:
		return errors.New("write pcapng: a frame among packets without Ethernet header")
	}
	frame = frame[:min(len(frame), w.snap)]
	direction := pcapgo.NgEpbFlagDirectionInbound
	if r.outwards() {
		direction = pcapgo.NgEpbFlagDirectionOutbound
	}
	err = w.w.WritePacketWithOptions(
		gopacket.CaptureInfo{Timestamp: r.Time, CaptureLength: len(frame), Length: length, InterfaceIndex: id},
		frame,
		pcapgo.NgPacketOptions{Comments: r.Comments(), Flags: &pcapgo.NgEpbFlags{Direction: direction}},
	)
	if err != nil {
		return fmt.Errorf("write pcapng: %w", err)
	}
	return nil
}

// Flush passes the buffer to the underlying writer, so that a reader at the other end of
// a pipe sees it.
func (w *Writer) Flush() error {
	if err := w.w.Flush(); err != nil {
		return fmt.Errorf("write pcapng: %w", err)
	}
	return nil
}

// Close writes how many packets were lost, and flushes.
func (w *Writer) Close(lost uint64) error {
	err := w.w.WriteInterfaceStats(0, pcapgo.NgInterfaceStatistics{
		LastUpdate: time.Now(), PacketsReceived: pcapgo.NgNoValue64, PacketsDropped: lost,
	})
	if err != nil {
		return fmt.Errorf("write pcapng: %w", err)
	}
	return w.Flush()
}

// interfaceID returns the number of an interface's block. It writes the block if there is
// none yet.
func (w *Writer) interfaceID(name string) (int, error) {
	if id, ok := w.interfaces[name]; ok {
		return id, nil
	}
	id, err := w.w.AddInterface(w.block(name))
	if err != nil {
		return 0, fmt.Errorf("write pcapng: %w", err)
	}
	w.interfaces[name] = id
	return id, nil
}

// withEthernet puts an Ethernet header without addresses before an IP packet.
func withEthernet(packet []byte) []byte {
	frame := make([]byte, etherHeader, etherHeader+len(packet))
	frame[12], frame[13] = etherIP4>>8, etherIP4&0xff
	if len(packet) > 0 && packet[0]>>4 == 6 {
		frame[12], frame[13] = etherIP6>>8, etherIP6&0xff
	}
	return append(frame, packet...)
}
