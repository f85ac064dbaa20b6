// Package uninstall tests that hack/uninstall.sh leaves nothing of Breakwater behind. Its control plane
// has the manifests of all parts and none of their processes: webhooks that fail closed deny
// requests, and finalizers have no controller, which is the worst state to uninstall from.
package uninstall
