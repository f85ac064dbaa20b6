// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"syscall"
)

// What only Linux can, so that elsewhere this compiles and says why it does nothing.

// unmount takes the mount away at once; who uses it still keeps it until it lets go.
func unmount(path string) error {
	if err := syscall.Unmount(path, syscall.MNT_DETACH); !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil // it is no mount any more
}

func signalTo(pid int, s syscall.Signal) error { return syscall.Kill(pid, s) }

func processGone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// tryLock locks the file for as long as it is open, or fails at once.
func tryLock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// ownSession is for what outlives this command and must not see its Ctrl-C.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// interruptedWithUs is for what must not go on when this command is killed.
func interruptedWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
}
