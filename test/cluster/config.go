// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
)

// Addresses inside the network namespace. 198.18.0.0/15 is reserved for benchmarks
// (RFC 2544), so it does not meet an address that a host uses.
const (
	namespace   = "breakwater"
	hostLink    = "bwcluster0"
	clusterLink = "bwcluster1"
	hostAddress = "198.18.0.1"
	nodeAddress = "198.18.0.2"
	linkBits    = "/30"

	serviceCIDR    = "10.0.0.0/16"
	serviceAddress = "10.0.0.1" // the Service "kubernetes": first of serviceCIDR
	podCIDR        = "10.1.0.0/24"
	domain         = "cluster.local"

	nodeName       = "breakwater-node"
	apiServer      = "https://" + nodeAddress + ":6443"
	registryPort   = "5000"
	registryInside = "localhost:" + registryPort
	registryHost   = nodeAddress + ":" + registryPort // the same registry, seen from the host
	cgroupName     = "breakwater"
	cniNetwork     = "breakwater"
)

// layout says where everything is: cache outlives the cluster, state goes with it.
type layout struct {
	source string // folder of this module, for modules/ and its pinned versions
	cache  string
	state  string
}

func newLayout() layout {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	return layout{
		source: findSource(),
		cache:  fromEnv("BREAKWATER_CACHE", filepath.Join(home, ".cache", "breakwater")),
		state:  fromEnv("BREAKWATER_STATE", "/var/lib/breakwater-cluster"),
	}
}

func fromEnv(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		if abs, err := filepath.Abs(v); err == nil {
			return abs
		}
		return v
	}
	return fallback
}

// findSource walks up from the working folder: "go run" starts in test/cluster, a built
// binary may start in the repository or anywhere below it.
func findSource() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for ; ; dir = filepath.Dir(dir) {
		for _, candidate := range []string{dir, filepath.Join(dir, "test", "cluster")} {
			if _, err := os.Stat(filepath.Join(candidate, "modules", "kubernetes", "go.mod")); err == nil {
				return candidate
			}
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

func (l layout) in(parts ...string) string {
	return filepath.Join(append([]string{l.state}, parts...)...)
}
func (l layout) cached(parts ...string) string {
	return filepath.Join(append([]string{l.cache}, parts...)...)
}

func (l layout) log(name string) string     { return l.in("log", name+".log") }
func (l layout) pidFile(name string) string { return l.in("pid", name+".json") }
func (l layout) pki(name string) string     { return l.in("pki", name) }
func (l layout) kubeconfig(user string) string {
	return l.in("kubeconfig", user+".kubeconfig")
}
func (l layout) adminKubeconfig() string  { return l.kubeconfig("admin") }
func (l layout) auditLog() string         { return l.in("log", "audit.log") }
func (l layout) ready() string            { return l.in("ready.json") }
func (l layout) containerdSocket() string { return l.in("run", "containerd.sock") }
func (l layout) containerdRoot() string   { return l.cached("containerd") }
func (l layout) registryData() string     { return l.cached("registry") }

func netnsPath() string { return "/run/netns/" + namespace }
