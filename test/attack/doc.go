// Package attack has the attacks of docs/security.md that need an API server with our
// policies and webhooks, and nothing else of ours. The name of a test says what holds despite
// the attack. docs/security.md lists the tests of all attacks, also those of other packages.
package attack
