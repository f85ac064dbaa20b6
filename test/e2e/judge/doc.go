// Package judge puts the double of the AlterShield server on a cluster, has
// Breakwater ask it, and tells it what to say. The double is described in
// test/altershield.
package judge

const (
	// Namespace is where the double runs.
	Namespace = "altershield"
	// URL is the double, for who can reach Services.
	URL = "http://altershield.altershield.svc.cluster.local"
	// Platform is Breakwater's name at the double.
	Platform = "breakwater"
	// Token signs, in both directions.
	Token = "altershield-operator"
	// CallbackURL is where the double posts its verdicts.
	CallbackURL = "http://callback.altershieldoperator-system.svc.cluster.local/openapi/altershield/callback"
)

const (
	name      = "altershield"
	manifests = "test/altershield/config"
)
