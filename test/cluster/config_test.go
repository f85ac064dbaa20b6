// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestTheDefaultInstanceKeepsItsNamesAndAddresses(t *testing.T) {
	i, err := newInstance(defaultName)
	if err != nil {
		t.Fatal(err)
	}
	want := instance{name: "breakwater", loopback: "127.0.0.1", hostLink: "bwcluster0", clusterLink: "bwcluster1",
		hostAddress: "198.18.0.1", nodeAddress: "198.18.0.2", containerdDir: "containerd", manifestDir: "manifests"}
	if i != want {
		t.Errorf("got %+v, want %+v", i, want)
	}
}

func TestInstancesShareNoNameAndNoAddress(t *testing.T) {
	names := []string{defaultName, "bwtest", "bwcold", "bwa", "bwa0", "bw-01234567890", "bwdemo"}
	owner := map[string]string{}
	for _, name := range names {
		i, err := newInstance(name)
		if err != nil {
			t.Fatal(err)
		}
		for kind, s := range map[string]string{"namespace": i.name, "link": i.hostLink, "host's address": i.hostAddress,
			"node's address": i.nodeAddress, "containerd": i.containerdDir, "manifests": i.manifestDir, "node": i.nodeName()} {
			if other := owner[kind+s]; other != "" {
				t.Errorf("%s and %s have the same %s: %s", name, other, kind, s)
			}
			owner[kind+s] = name
		}
		if len(i.hostLink) > 15 {
			t.Errorf("link name %s has %d characters, more than the kernel allows", i.hostLink, len(i.hostLink))
		}
		if !strings.HasPrefix(i.nodeAddress, "198.18.") && !strings.HasPrefix(i.nodeAddress, "198.19.") {
			t.Errorf("%s is not in 198.18.0.0/15", i.nodeAddress)
		}
	}
}

func TestReservedNamesAreRejected(t *testing.T) {
	for _, name := range []string{"", "docker", "kubepods", "bw", "bw/..", "bwcluster", "BWX", "bw-0123456789012", "breakwater2"} {
		if _, err := newInstance(name); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}

func TestEnvironmentVariablesSetStateAndCache(t *testing.T) {
	t.Setenv("BREAKWATER_NAME", "bwx")
	t.Setenv("BREAKWATER_CACHE", "/c")
	t.Setenv("BREAKWATER_STATE", "")
	l, err := newLayout()
	if err != nil {
		t.Fatal(err)
	}
	if l.state != "/var/lib/bwx-cluster" || l.cache != "/c" || l.containerdRoot() != "/c/containerd-bwx" || l.netnsPath() != "/run/netns/bwx" {
		t.Errorf("%+v", l)
	}
}
