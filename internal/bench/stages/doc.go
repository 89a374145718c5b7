// Package stages measures the cost of each stage of weir's packet path. It forwards
// frames as package forward does, samples the core, and assigns each sample to a stage by
// the line of the program that ran. It keeps results by commit in docs/performance.
package stages
