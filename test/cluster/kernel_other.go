// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"errors"
	"os"
	"syscall"
)

var errNotLinux = errors.New("the operating system is not Linux")

func unmount(string) error                        { return errNotLinux }
func signalTo(int, syscall.Signal) error          { return errNotLinux }
func processGone(int) bool                        { return false }
func tryLock(*os.File) error                      { return errNotLinux }
func ownSession() *syscall.SysProcAttr            { return nil }
func endedWithParent() *syscall.SysProcAttr       { return nil }
func interruptedWithParent() *syscall.SysProcAttr { return nil }
