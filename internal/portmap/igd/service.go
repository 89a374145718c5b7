package igd

import "fmt"

// A service is what can be asked of a part of the device. Its description is generated.
type service struct {
	device  int // the version of the devices that have it; 0: all
	part    int // of the device
	kind    string
	version int
	id      string
	name    string // in its addresses
	actions []action
}

// An action is called by SOAP. Arguments are in the order in which they are written.
type action struct {
	name    string
	in, out []argument
	do      func(*call) error
}

// An argument has the type of a state variable, of which nothing else is used here.
type argument struct{ name, variable string }

func (s *service) urn() string {
	return fmt.Sprintf("urn:schemas-upnp-org:service:%s:%d", s.kind, s.version)
}

func (s *service) action(name string) *action {
	for i := range s.actions {
		if s.actions[i].name == name {
			return &s.actions[i]
		}
	}
	return nil
}

// variable is a state variable: its type, the values that it may have, and whether changes
// are told.
type variable struct {
	kind   string
	values []string
	event  bool
}

// variables of all services. Those of arguments alone have A_ARG_TYPE in their names.
var variables = map[string]variable{
	"DefaultConnectionService":          {kind: "string", event: true},
	"WANAccessType":                     {kind: "string", values: []string{"DSL", "POTS", "Cable", "Ethernet"}},
	"Layer1UpstreamMaxBitRate":          {kind: "ui4"},
	"Layer1DownstreamMaxBitRate":        {kind: "ui4"},
	"PhysicalLinkStatus":                {kind: "string", values: []string{"Up", "Down"}, event: true},
	"TotalBytesSent":                    {kind: "ui4"},
	"TotalBytesReceived":                {kind: "ui4"},
	"TotalPacketsSent":                  {kind: "ui4"},
	"TotalPacketsReceived":              {kind: "ui4"},
	"ConnectionType":                    {kind: "string"},
	"PossibleConnectionTypes":           {kind: "string", values: []string{"Unconfigured", "IP_Routed", "IP_Bridged"}, event: true},
	"ConnectionStatus":                  {kind: "string", values: []string{"Unconfigured", "Connecting", "Connected", "PendingDisconnect", "Disconnecting", "Disconnected"}, event: true},
	"Uptime":                            {kind: "ui4"},
	"LastConnectionError":               {kind: "string", values: []string{"ERROR_NONE", "ERROR_UNKNOWN"}},
	"RSIPAvailable":                     {kind: "boolean"},
	"NATEnabled":                        {kind: "boolean"},
	"ExternalIPAddress":                 {kind: "string", event: true},
	"PortMappingNumberOfEntries":        {kind: "ui2", event: true},
	"PortMappingEnabled":                {kind: "boolean"},
	"PortMappingLeaseDuration":          {kind: "ui4"},
	"RemoteHost":                        {kind: "string"},
	"ExternalPort":                      {kind: "ui2"},
	"InternalPort":                      {kind: "ui2"},
	"PortMappingProtocol":               {kind: "string", values: []string{"TCP", "UDP"}},
	"InternalClient":                    {kind: "string"},
	"PortMappingDescription":            {kind: "string"},
	"SystemUpdateID":                    {kind: "ui4", event: true},
	"A_ARG_TYPE_Manage":                 {kind: "boolean"},
	"A_ARG_TYPE_PortListing":            {kind: "string"},
	"FirewallEnabled":                   {kind: "boolean", event: true},
	"InboundPinholeAllowed":             {kind: "boolean", event: true},
	"A_ARG_TYPE_OutboundPinholeTimeout": {kind: "ui4"},
	"A_ARG_TYPE_IPv6Address":            {kind: "string"},
	"A_ARG_TYPE_Port":                   {kind: "ui2"},
	"A_ARG_TYPE_Protocol":               {kind: "ui2"},
	"A_ARG_TYPE_LeaseTime":              {kind: "ui4"},
	"A_ARG_TYPE_UniqueID":               {kind: "ui2"},
	"A_ARG_TYPE_PinholePackets":         {kind: "ui4"},
	"A_ARG_TYPE_Boolean":                {kind: "boolean"},
}

// allServices are the services of all versions. Version 1 has pinholes, too: programs that
// look for it alone open them.
var allServices = []*service{
	{part: 0, kind: "Layer3Forwarding", version: 1, id: "Layer3Forwarding1", name: "L3F", actions: forwardingActions},
	{part: 1, kind: "WANCommonInterfaceConfig", version: 1, id: "WANCommonIFC1", name: "CmnIfCfg", actions: commonActions},
	{device: 1, part: 2, kind: "WANIPConnection", version: 1, id: connectionID, name: "IPConn", actions: connectionActions},
	{device: 2, part: 2, kind: "WANIPConnection", version: 2, id: connectionID, name: "IPConn", actions: append(connectionActions[:len(connectionActions):len(connectionActions)], connection2Actions...)},
	{part: 2, kind: "WANIPv6FirewallControl", version: 1, id: "WANIPv6Firewall1", name: "IP6FCtl", actions: pinholeActions},
}
