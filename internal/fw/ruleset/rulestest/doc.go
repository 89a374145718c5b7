// Package rulestest holds what tests of compiled rules share: random rules, hosts and
// packets that often match each other, and an Evaluator that evaluates the rules one after the
// other. It is the model, and does not use internal/fw/ruleset's output. The tests of
// internal/fw/ruleset compare it with a reading of the compiled tables. Those of
// internal/fw/dataplane compare it with the programs in the kernel.
package rulestest
