// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
)

// Addresses inside the network namespace; each instance has its own namespace.
const (
	linkBits = "/30"

	serviceCIDR    = "10.0.0.0/16"
	serviceAddress = "10.0.0.1" // the Service "kubernetes": first of serviceCIDR
	podCIDR        = "10.1.0.0/24"
	domain         = "cluster.local"

	registryPort   = "5000"
	registryInside = "localhost:" + registryPort
)

// instance identifies one of several clusters on a machine. The network
// namespace, the cgroup and the CNI network have its name; other resources add
// a suffix to it.
type instance struct {
	name                       string
	hostLink, clusterLink      string // the two ends of the link, on the host and inside
	hostAddress                string // of hostLink
	nodeAddress                string // of clusterLink: node, API server, registry, DNS and ingress
	containerdDir, manifestDir string // below the cache, not shared with other instances
	loopback                   string // address of etcd and of the ports that only this machine uses
}

const defaultName = "breakwater"

// validName requires a prefix, because "down" kills all processes in the cgroup
// of that name. A link name has at most 15 characters, including the suffix 0
// or 1.
var validName = regexp.MustCompile(`^(breakwater|bw[a-z0-9-]{1,12})$`)

func newInstance(name string) (instance, error) {
	if !validName.MatchString(name) || name == "bwcluster" {
		return instance{}, fmt.Errorf("invalid BREAKWATER_NAME %q: must match %s and not be bwcluster", name, validName)
	}
	i := instance{name: name, loopback: "127.0.0.1", hostLink: name + "0", clusterLink: name + "1",
		containerdDir: "containerd-" + name, manifestDir: "manifests-" + name}
	subnet := uint32(0)
	if name == defaultName {
		i.hostLink, i.clusterLink = "bwcluster0", "bwcluster1"
		i.containerdDir, i.manifestDir = "containerd", "manifests"
	} else {
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(name))
		subnet = 1 + sum.Sum32()%(1<<15-2)
	}
	i.hostAddress, i.nodeAddress = subnetAddress(subnet, 1), subnetAddress(subnet, 2)
	return i, nil
}

// subnetAddress returns an address of a /30 network in 198.18.0.0/15. That
// range is reserved for benchmarks (RFC 2544), so hosts do not use it.
func subnetAddress(subnet, host uint32) string {
	n := uint32(198<<24|18<<16) + subnet*4 + host
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).String()
}

func (i instance) nodeName() string  { return i.name + "-node" }
func (i instance) apiServer() string { return "https://" + i.nodeAddress + ":6443" }
func (i instance) netnsPath() string { return "/run/netns/" + i.name }

// registryHost is the address of the registry from the host; pods use
// registryInside.
func (i instance) registryHost() string { return i.nodeAddress + ":" + registryPort }

// layout has the paths of the cluster. "down" deletes the state and keeps the
// cache, which all instances share. Two cache folders are per instance:
// containerd's root, which containerd locks, and the registry's manifests,
// whose tags differ.
type layout struct {
	instance
	source string // folder of this module, which contains modules/
	cache  string
	state  string
}

func newLayout() (layout, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	name := os.Getenv("BREAKWATER_NAME")
	if name == "" {
		name = defaultName
	}
	i, err := newInstance(name)
	if err != nil {
		return layout{}, err
	}
	return layout{
		instance: i,
		source:   findSource(),
		cache:    fromEnv("BREAKWATER_CACHE", filepath.Join(home, ".cache", "breakwater")),
		state:    fromEnv("BREAKWATER_STATE", "/var/lib/"+name+"-cluster"),
	}, nil
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

// findSource searches upwards from the working folder: "go run" starts in
// test/cluster, a built binary anywhere in the repository.
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
func (l layout) adminKubeconfig() string    { return l.kubeconfig("admin") }
func (l layout) auditLog() string           { return l.in("log", "audit.log") }
func (l layout) readyFile() string          { return l.in("ready.json") }
func (l layout) withoutKnativeFile() string { return l.in("without-knative") }
func (l layout) containerdSocket() string   { return l.in("run", "containerd.sock") }
func (l layout) containerdRoot() string     { return l.cached(l.containerdDir) }
func (l layout) registryData() string       { return l.cached("registry") }
