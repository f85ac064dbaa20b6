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

// Addresses inside the network namespace; each instance has them for itself.
const (
	linkBits = "/30"

	serviceCIDR    = "10.0.0.0/16"
	serviceAddress = "10.0.0.1" // the Service "kubernetes": first of serviceCIDR
	podCIDR        = "10.1.0.0/24"
	domain         = "cluster.local"

	registryPort   = "5000"
	registryInside = "localhost:" + registryPort
)

// instance is what tells clusters on one machine apart. Its name is that of the network
// namespace, of the cgroup, of the CNI network and, with a suffix, of the rest.
type instance struct {
	name                       string
	hostLink, clusterLink      string // the two ends of the link, on the host and inside
	hostAddress                string // of hostLink
	nodeAddress                string // of clusterLink: node, API server, registry, DNS and ingress
	containerdDir, manifestDir string // below the cache, not shared: see layout
}

const defaultName = "breakwater"

// validName keeps names apart from what others call theirs, because "down" kills whatever
// is in the cgroup of the name; links have room for 15 characters, two digits apart.
var validName = regexp.MustCompile(`^(breakwater|bw[a-z0-9-]{1,12})$`)

func newInstance(name string) (instance, error) {
	if !validName.MatchString(name) || name == "bwcluster" {
		return instance{}, fmt.Errorf("BREAKWATER_NAME must match %s and not be bwcluster, it is %q", validName, name)
	}
	i := instance{name: name, hostLink: name + "0", clusterLink: name + "1",
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

// subnetAddress counts /30 networks in 198.18.0.0/15, which is reserved for benchmarks
// (RFC 2544), so it does not meet an address that a host uses.
func subnetAddress(subnet, host uint32) string {
	n := uint32(198<<24|18<<16) + subnet*4 + host
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).String()
}

func (i instance) nodeName() string  { return i.name + "-node" }
func (i instance) apiServer() string { return "https://" + i.nodeAddress + ":6443" }
func (i instance) netnsPath() string { return "/run/netns/" + i.name }

// registryHost is the registry seen from the host: the one that is registryInside.
func (i instance) registryHost() string { return i.nodeAddress + ":" + registryPort }

// layout says where everything is. The state goes with the cluster; the cache outlives it
// and is shared by all instances, but for containerd's root, which one containerd locks,
// and the manifests of the registry, because tags mean different images.
type layout struct {
	instance
	source string // folder of this module, for modules/ and its pinned versions
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
func (l layout) withoutKnative() string   { return l.in("without-knative") }
func (l layout) containerdSocket() string { return l.in("run", "containerd.sock") }
func (l layout) containerdRoot() string   { return l.cached(l.containerdDir) }
func (l layout) registryData() string     { return l.cached("registry") }
