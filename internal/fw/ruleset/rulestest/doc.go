// Package rulestest is what tests of compiled rules share: random rules, hosts
// and packets that meet each other often, and a Judge that asks the rules one
// after the other. The Judge knows nothing of internal/fw/ruleset's output; the
// tests of internal/fw/ruleset compare it with a reading of the compiled tables,
// those of internal/fw/dataplane with the programs in the kernel.
package rulestest
