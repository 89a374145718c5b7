// Package igd is an internet gateway device of UPnP: it is found by SSDP, describes itself
// in XML, and takes orders by SOAP (UPnP Device Architecture 1.1; InternetGatewayDevice 1
// and 2). Sockets and the loading of rules are its caller's.
//
// There are two devices, because many programs do not know version 2: one for whoever looks
// for version 1 or does not say, and one for whoever looks for version 2.
package igd
