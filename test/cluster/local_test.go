// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestAControlPlaneListensOnlyOnItsLoopbackAddress(t *testing.T) {
	c := testCluster(t)
	if flags, err := c.flagsByClusterKind(); err != nil || !slices.Equal(flags, []string{"--bind-address=0.0.0.0"}) {
		t.Errorf("the API server of a cluster has %v, %v", flags, err)
	}
	address, err := freeLoopback(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !net.ParseIP(address).IsLoopback() {
		t.Errorf("%s is no loopback address", address)
	}
	c.controlPlaneOnly, c.loopback = true, address
	flags, err := c.flagsByClusterKind()
	if err != nil || !slices.Contains(flags, "--bind-address="+address) {
		t.Errorf("the API server has %v, %v", flags, err)
	}
	config, err := os.ReadFile(c.in("egress-selector.yaml"))
	if err != nil || !strings.Contains(string(config), "udsName: "+c.webhookProxy()) {
		t.Errorf("webhooks are called through %q, %v", config, err)
	}
	if err := checkGraph(c.localTasks()); err != nil {
		t.Error(err)
	}
}
