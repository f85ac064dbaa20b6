// Package serverdouble installs the double of the AlterShield server on a cluster,
// configures Breakwater for it and sets its answers. test/altershielddouble describes
// the double.
package serverdouble

const (
	// Namespace is the namespace of the double.
	Namespace = "altershield"
	// URL is the address of the double's Service.
	URL = "http://altershield.altershield.svc.cluster.local"
	// Platform identifies Breakwater at the double.
	Platform = "breakwater"
	// Token signs calls in both directions.
	Token = "altershield-operator"
	// CallbackURL receives the verdicts of the double.
	CallbackURL = "http://callback.altershieldoperator-system.svc.cluster.local/openapi/altershield/callback"
)

const (
	name      = "altershield"
	manifests = "test/altershielddouble/config"
)
