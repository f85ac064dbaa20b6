// Package podmeta defines the labels, annotations, conditions and reasons of the
// permission part, and reads them from pods. The webhook, the
// init-action-server and the permission controller share it.
package podmeta
