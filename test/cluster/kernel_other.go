// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"errors"
	"os"
	"syscall"
)

var errNotLinux = errors.New("this needs Linux")

func unmount(string) error                    { return errNotLinux }
func signalTo(int, syscall.Signal) error      { return errNotLinux }
func processGone(int) bool                    { return false }
func tryLock(*os.File) error                  { return errNotLinux }
func ownSession() *syscall.SysProcAttr        { return nil }
func interruptedWithUs() *syscall.SysProcAttr { return nil }
