// Package centreclient speaks to the permission centre for the parts in the
// cluster: the webhook, the init-action-server and the finalizer controller.
// What it says is package permission/api.
package centreclient
