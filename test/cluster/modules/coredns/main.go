// SPDX-License-Identifier: Apache-2.0

// Command coredns is CoreDNS with the plugins that the embedded cluster uses. Those of
// clouds take most of the time that it takes to build all.
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() { coremain.Run() }
