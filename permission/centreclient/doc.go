// Package centreclient is the client of the permission centre for the processes
// in the cluster: the webhook, the init-action-server and the permission
// controller. The types are those of package permission/api.
package centreclient
