// Package change has tests of the change part on a control plane without Knative
// (test/controlplane): what follows from webhooks, controllers and the API server. There
// is no server, and people judge. test/e2e tests whole releases with the functions.
package change
