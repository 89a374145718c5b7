package igd

import "fmt"

var forwardingActions = []action{
	{"GetDefaultConnectionService", nil, []argument{{"NewDefaultConnectionService", "DefaultConnectionService"}}, func(c *call) error {
		c.give(c.defaultConnection(c.version))
		return nil
	}},
	{"SetDefaultConnectionService", []argument{{"NewDefaultConnectionService", "DefaultConnectionService"}}, nil, refuse},
}

// connectionID names the one connection that there is.
const connectionID = "WANIPConn1"

func (d *Device) defaultConnection(version int) string {
	return fmt.Sprintf("uuid:%s:WANConnectionDevice:%d,urn:upnp-org:serviceId:%s", d.partUUID(2, version), version, connectionID)
}

// refuse is for what only the box's administrator decides.
func refuse(*call) error { return errNotAuthorized }

var commonActions = []action{
	{"GetCommonLinkProperties", nil, []argument{
		{"NewWANAccessType", "WANAccessType"}, {"NewLayer1UpstreamMaxBitRate", "Layer1UpstreamMaxBitRate"},
		{"NewLayer1DownstreamMaxBitRate", "Layer1DownstreamMaxBitRate"}, {"NewPhysicalLinkStatus", "PhysicalLinkStatus"},
	}, func(c *call) error {
		c.give("Ethernet", 0, 0, c.linkStatus()) // the rate of the line behind the interface is not known
		return nil
	}},
	{"GetTotalBytesSent", nil, []argument{{"NewTotalBytesSent", "TotalBytesSent"}}, func(c *call) error {
		c.give(uint32(c.Traffic().BytesSent))
		return nil
	}},
	{"GetTotalBytesReceived", nil, []argument{{"NewTotalBytesReceived", "TotalBytesReceived"}}, func(c *call) error {
		c.give(uint32(c.Traffic().BytesReceived))
		return nil
	}},
	{"GetTotalPacketsSent", nil, []argument{{"NewTotalPacketsSent", "TotalPacketsSent"}}, func(c *call) error {
		c.give(uint32(c.Traffic().PacketsSent))
		return nil
	}},
	{"GetTotalPacketsReceived", nil, []argument{{"NewTotalPacketsReceived", "TotalPacketsReceived"}}, func(c *call) error {
		c.give(uint32(c.Traffic().PacketsReceived))
		return nil
	}},
}

var entryKey = []argument{{"NewRemoteHost", "RemoteHost"}, {"NewExternalPort", "ExternalPort"}, {"NewProtocol", "PortMappingProtocol"}}

var entryValue = []argument{
	{"NewInternalPort", "InternalPort"}, {"NewInternalClient", "InternalClient"}, {"NewEnabled", "PortMappingEnabled"},
	{"NewPortMappingDescription", "PortMappingDescription"}, {"NewLeaseDuration", "PortMappingLeaseDuration"},
}

func join(all ...[]argument) (joined []argument) {
	for _, some := range all {
		joined = append(joined, some...)
	}
	return joined
}

var connectionActions = []action{
	{"SetConnectionType", []argument{{"NewConnectionType", "ConnectionType"}}, nil, refuse},
	{"GetConnectionTypeInfo", nil, []argument{{"NewConnectionType", "ConnectionType"}, {"NewPossibleConnectionTypes", "PossibleConnectionTypes"}}, func(c *call) error {
		c.give("IP_Routed", "IP_Routed")
		return nil
	}},
	{"RequestConnection", nil, nil, func(*call) error { return nil }}, // it is up, or not ours to bring up
	{"ForceTermination", nil, nil, refuse},
	{"GetStatusInfo", nil, []argument{{"NewConnectionStatus", "ConnectionStatus"}, {"NewLastConnectionError", "LastConnectionError"}, {"NewUptime", "Uptime"}}, func(c *call) error {
		_, epoch := c.Clock()
		c.give(c.connectionStatus(), "ERROR_NONE", epoch)
		return nil
	}},
	{"GetNATRSIPStatus", nil, []argument{{"NewRSIPAvailable", "RSIPAvailable"}, {"NewNATEnabled", "NATEnabled"}}, func(c *call) error {
		c.give(0, 1)
		return nil
	}},
	{"GetGenericPortMappingEntry", []argument{{"NewPortMappingIndex", "PortMappingNumberOfEntries"}}, join(entryKey, entryValue), (*call).genericEntry},
	{"GetSpecificPortMappingEntry", entryKey, entryValue, (*call).specificEntry},
	{"AddPortMapping", join(entryKey, entryValue), nil, (*call).addPortMapping},
	{"DeletePortMapping", entryKey, nil, (*call).deletePortMapping},
	{"GetExternalIPAddress", nil, []argument{{"NewExternalIPAddress", "ExternalIPAddress"}}, func(c *call) error {
		c.give(c.externalText())
		return nil
	}},
}

var portRange = []argument{{"NewStartPort", "ExternalPort"}, {"NewEndPort", "ExternalPort"}, {"NewProtocol", "PortMappingProtocol"}, {"NewManage", "A_ARG_TYPE_Manage"}}

var connection2Actions = []action{
	{"AddAnyPortMapping", join(entryKey, entryValue), []argument{{"NewReservedPort", "ExternalPort"}}, (*call).addAnyPortMapping},
	{"DeletePortMappingRange", portRange, nil, (*call).deletePortMappingRange},
	{"GetListOfPortMappings", join(portRange, []argument{{"NewNumberOfPorts", "ExternalPort"}}), []argument{{"NewPortListing", "A_ARG_TYPE_PortListing"}}, (*call).listPortMappings},
}

var pinholeEnds = []argument{
	{"RemoteHost", "A_ARG_TYPE_IPv6Address"}, {"RemotePort", "A_ARG_TYPE_Port"},
	{"InternalClient", "A_ARG_TYPE_IPv6Address"}, {"InternalPort", "A_ARG_TYPE_Port"}, {"Protocol", "A_ARG_TYPE_Protocol"},
}

var pinholeActions = []action{
	{"GetFirewallStatus", nil, []argument{{"FirewallEnabled", "FirewallEnabled"}, {"InboundPinholeAllowed", "InboundPinholeAllowed"}}, func(c *call) error {
		c.give(1, 1)
		return nil
	}},
	{"GetOutboundPinholeTimeout", pinholeEnds, []argument{{"OutboundPinholeTimeout", "A_ARG_TYPE_OutboundPinholeTimeout"}}, func(*call) error { return errActionFailed }},
	{"AddPinhole", join(pinholeEnds, []argument{{"LeaseTime", "A_ARG_TYPE_LeaseTime"}}), []argument{{"UniqueID", "A_ARG_TYPE_UniqueID"}}, (*call).addPinhole},
	{"UpdatePinhole", []argument{{"UniqueID", "A_ARG_TYPE_UniqueID"}, {"NewLeaseTime", "A_ARG_TYPE_LeaseTime"}}, nil, (*call).updatePinhole},
	{"DeletePinhole", []argument{{"UniqueID", "A_ARG_TYPE_UniqueID"}}, nil, (*call).deletePinhole},
	{"GetPinholePackets", []argument{{"UniqueID", "A_ARG_TYPE_UniqueID"}}, []argument{{"PinholePackets", "A_ARG_TYPE_PinholePackets"}}, func(*call) error { return errActionFailed }},
	{"CheckPinholeWorking", []argument{{"UniqueID", "A_ARG_TYPE_UniqueID"}}, []argument{{"IsWorking", "A_ARG_TYPE_Boolean"}}, func(*call) error { return errActionFailed }},
}
