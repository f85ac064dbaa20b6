// Package change tests part change on a control plane without Knative (test/controlplane):
// what webhooks, controllers and the API server do together. Most tests have no AlterShield
// server, and write the verdict of a person. test/e2e tests whole releases with the functions.
//
// KNATIVE_SERVICES is the number of Knative Services that are released at once.
package change
