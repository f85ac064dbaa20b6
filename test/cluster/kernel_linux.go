// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"syscall"
)

// System calls of Linux. kernel_other.go lets the tool compile elsewhere and return an error.

// unmount detaches the mount at once; processes that use it keep it until they
// close their files.
func unmount(path string) error {
	if err := syscall.Unmount(path, syscall.MNT_DETACH); !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil // it is not a mount
}

func signalTo(pid int, s syscall.Signal) error { return syscall.Kill(pid, s) }

func processGone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// tryLock locks the file until it is closed, or fails at once.
func tryLock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// ownSession is for processes that outlive this command and must not receive
// its Ctrl-C.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// endedWithParent is for processes that must not outlive this command and must
// not receive its Ctrl-C.
func endedWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// interruptedWithParent is for processes that must not outlive this command.
func interruptedWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
}
