// Package change tests part change on a control plane without Knative (test/controlplane):
// what webhooks, controllers and the API server do together. There is no AlterShield
// server; people judge. test/e2e tests whole releases with the functions.
package change
