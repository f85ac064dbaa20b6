//go:build !linux

package controlplane

import "syscall"

// killedWithParent has no effect: the control plane needs Linux.
func killedWithParent() *syscall.SysProcAttr { return nil }
