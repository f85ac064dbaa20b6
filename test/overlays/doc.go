// Package overlays tests config/core and config/overlays: every object that
// kustomize makes of them is held against the schema that an API server would
// hold it against.
//
// It is a module of its own, because the product needs neither kustomize nor
// the code that API servers validate with. The schemas of Knative are taken
// from the modules of Knative as the module proxy has them. The Broker for
// Kafka has no kind of its own in the overlay: its ConfigMap is read as
// Knative documents it.
package overlays
