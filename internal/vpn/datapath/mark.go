package datapath

// copies says that outer packets have the code point of inner ones.
const copies = 0x100

// Mark has outer packets have the code point of inner ones, or one of their own.
func (p *Path) Mark(copied bool, dscp uint8) {
	marks := uint32(dscp) << 2
	if copied {
		marks = copies
	}
	p.marks.Store(marks)
}

// outer returns the class of an outer packet, with the ECN of the inner one: the normal mode of section 4.1 of RFC 6040.
func (p *Path) outer(inner byte) byte {
	marks := p.marks.Load()
	if marks == copies {
		return inner
	}
	return inner&ecnMask | byte(marks)
}
