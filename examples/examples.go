// Package examples holds the example rule files, so that the program carries
// them: the demo and the benchmark use them, and "make install" installs them.
package examples

import _ "embed"

// GatewayConf is a home gateway for weir.
//
//go:embed gateway.conf
var GatewayConf string

// GatewayNft is the same policy for nftables.
//
//go:embed gateway.nft
var GatewayNft string
