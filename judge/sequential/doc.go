// Package sequential has tests that may be looked at again and again: e-values,
// which stay below 1/a with probability 1-a at all looks together if there is no
// change and events are independent, and the intervals that belong to them.
//
// Rates compares counts with a mixture over rate ratios, given how the exposure
// is shared between new and old pods (Lindon and Malek, Anytime-valid inference
// for multinomial count data, 2022). Means compares gauges with Robbins' normal
// mixture (Waudby-Smith et al., Time-uniform central limit theory, 2023). Counts
// that vary more than independent events are tempered by their dispersion, which
// is estimated by heuristics: for them the bound is a target that simulations
// check, not a theorem.
package sequential
