// Package sequential has statistical tests that stay valid if they are evaluated repeatedly:
// e-values and their confidence intervals. If there is no change and events are independent,
// an e-value stays below 1/a at all looks together with a probability of at least 1-a.
//
// Rates compares counts with a mixture over rate ratios, given how the exposure
// is shared between new and old pods (Lindon and Malek, Anytime-valid inference
// for multinomial count data, 2022). Means compares gauges with Robbins' normal
// mixture (Waudby-Smith et al., Time-uniform central limit theory, 2023). The evidence of
// counts that vary more than independent events is reduced by their dispersion, which is
// estimated by heuristics: for them the bound is a target that simulations verify, not a
// theorem.
package sequential
