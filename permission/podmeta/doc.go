// Package podmeta defines the labels, annotations, conditions and reasons of the
// permission part, and reads them from pods. The webhook, the init-action-server, the
// permission controller and kubectl breakwater share it.
package podmeta
