// Package podmeta holds the names of pod pre-authorization, and what they
// mean on a pod: which sets it asks for, whether it carries the init container,
// and whether it has ended. Webhook, server and controller read the same object
// with the same words.
package podmeta
