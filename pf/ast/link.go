package ast

// Cells is how a line cuts or codes packets.
type Cells uint8

// The kinds of lines.
const (
	AnyCells Cells = iota // the word says nothing about it
	Plain
	ATM // 53 bytes on the line for 48 of the packet, the last cell filled
	PTM // 65 bytes on the line for 64
)

// A LinkKind is what a word after link says of a line. Overheads of several words add up.
type LinkKind struct {
	Overhead int32 // bytes beyond the IP packet
	MPU      uint32
	Cells    Cells
	Alone    bool // it stands for all of the line
	Modem    bool // a modem with a queue of its own is at this end of such a line
}

// Links are the words after link. They are those of tc-cake(8), with the same figures.
var Links = map[string]LinkKind{
	"raw":          {Cells: Plain, Alone: true},
	"conservative": {Overhead: 48, Cells: ATM, Alone: true},

	"ethernet":   {Overhead: 38, MPU: 84},
	"docsis":     {Overhead: 18, MPU: 64, Cells: Plain, Modem: true},
	"ether-vlan": {Overhead: 4},

	"pppoe-ptm":   {Overhead: 30, Cells: PTM, Modem: true},
	"bridged-ptm": {Overhead: 22, Cells: PTM, Modem: true},

	"ipoa-vcmux":      {Overhead: 8, Cells: ATM, Modem: true},
	"ipoa-llcsnap":    {Overhead: 16, Cells: ATM, Modem: true},
	"bridged-vcmux":   {Overhead: 24, Cells: ATM, Modem: true},
	"bridged-llcsnap": {Overhead: 32, Cells: ATM, Modem: true},
	"pppoa-vcmux":     {Overhead: 10, Cells: ATM, Modem: true},
	"pppoa-llc":       {Overhead: 14, Cells: ATM, Modem: true},
	"pppoe-vcmux":     {Overhead: 32, Cells: ATM, Modem: true},
	"pppoe-llcsnap":   {Overhead: 40, Cells: ATM, Modem: true},

	"atm":   {Cells: ATM, Modem: true},
	"ptm":   {Cells: PTM, Modem: true},
	"noatm": {Cells: Plain},
}
