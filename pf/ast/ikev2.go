package ast

import "weir/pf/token"

// IKEv2 is the interface of an IPsec tunnel, whose keys both ends agree upon by IKEv2.
type IKEv2 struct {
	token.Span
	Name         Word
	Addresses    []Network
	MTU          *Count
	Local        *Word // the address here that the other end sees; nil: any
	Peer         *Word // an address or a name; nil: the peer comes from anywhere
	Passive      bool  // the peer begins
	SrcID, DstID *Word // identities of this end and of the other
	PSK          *Word // the file with the preshared key
	Certificate  *Word // the file with this end's certificate
	Key          *Word // the file with the private key of Certificate
	CAs          []Word
	From, To     []Network // what the tunnel is for: traffic selectors; nil: everything
	Networks     []Network // behind the peer; nil: those of To
	Proposals    *Word
	Lifetime     *Count // seconds, of the keys for packets
	IKELifetime  *Count // seconds, of the keys for IKE
	DPD          *Count // seconds
	Encap        bool   // ESP in UDP always
	PerCPU       bool   // keys for each core
	PerPair      bool   // keys for each pair of a network of From and one of To
	NoDPD        bool
	NoRoute      bool // no routes lead to Networks
	NoMSS        bool // max-mss is left to the rules
}
