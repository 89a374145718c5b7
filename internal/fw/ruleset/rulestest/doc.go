// Package rulestest holds what tests of compiled rules share: random rules, hosts and
// packets that often match each other, and a Judge that evaluates the rules one after the
// other. The Judge is the model's, and does not use internal/fw/ruleset's output. The tests of
// internal/fw/ruleset compare it with a reading of the compiled tables. Those of
// internal/fw/dataplane compare it with the programs in the kernel.
package rulestest
