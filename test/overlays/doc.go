// Package overlays tests config/core and config/overlays. It validates every
// object that kustomize renders against the schema that the API server uses.
//
// It is a separate module, because Breakwater needs neither kustomize nor the
// validation code of the API server. The schemas of Knative are from its Go
// modules. The overlay for Kafka configures the Broker with a ConfigMap, which
// is checked against Knative's documentation.
package overlays
