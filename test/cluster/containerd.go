// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// containerd has its own root, state and socket, separate from a containerd of
// the machine. Its root is in the cache, so unpacked images survive "down".

func (c *cluster) startContainerd(ctx context.Context) error {
	if err := c.writeContainerdFiles(); err != nil {
		return err
	}
	if err := c.forgetContainers(ctx); err != nil {
		return err
	}
	if err := c.start(ctx, process{Name: "containerd", Command: c.containerdCommand("containerd.toml")}); err != nil {
		return err
	}
	if err := c.awaitContainerd(ctx); err != nil {
		return err
	}
	return c.awaitCRI(ctx)
}

func (c *cluster) containerdCommand(config string) []string {
	return []string{"containerd", "--config=" + c.in(config), "--log-level=info"}
}

func (c *cluster) awaitContainerd(ctx context.Context) error {
	return waiting{what: "containerd", log: c.log("containerd"), deadline: time.Minute, alive: c.check("containerd")}.
		until(ctx, func(ctx context.Context) error { _, err := c.ctr(ctx, "version"); return err })
}

// awaitCRI waits for the service that the kubelet asks when it starts, and without which it
// ends. It is ready later than containerd itself.
func (c *cluster) awaitCRI(ctx context.Context) error {
	connection, err := grpc.NewClient("unix://"+c.containerdSocket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	client := criv1.NewRuntimeServiceClient(connection)
	return waiting{what: "the CRI of containerd", log: c.log("containerd"), deadline: time.Minute, alive: c.check("containerd")}.
		until(ctx, func(ctx context.Context) error {
			_, err := client.Version(ctx, &criv1.VersionRequest{})
			return err
		})
}

// forgetContainers removes the containers of the previous cluster from
// containerd's root, which survives "down". It disables the CRI plugin, which
// would try to recover them.
func (c *cluster) forgetContainers(ctx context.Context) error {
	for _, kind := range []string{"sandboxes", "containers"} {
		if err := os.RemoveAll(filepath.Join(c.containerdRoot(), "io.containerd.grpc.v1.cri", kind)); err != nil {
			return err
		}
	}
	c.used(c.containerdRoot())
	if _, err := os.Stat(filepath.Join(c.containerdRoot(), "io.containerd.metadata.v1.bolt", "meta.db")); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := c.start(ctx, process{Name: "containerd", Command: c.containerdCommand("containerd-bare.toml")}); err != nil {
		return err
	}
	if err := c.awaitContainerd(ctx); err != nil {
		return err
	}
	out, err := c.ctr(ctx, "containers", "list", "-q")
	if err != nil {
		return err
	}
	if ids := strings.Fields(out); len(ids) > 0 {
		if _, err := c.ctr(ctx, append([]string{"containers", "delete"}, ids...)...); err != nil {
			return err
		}
	}
	if err := c.trimImages(ctx); err != nil {
		return err
	}
	return c.stop(ctx, "containerd")
}

func (c *cluster) ctr(ctx context.Context, args ...string) (string, error) {
	return run(ctx, "ctr", append([]string{"--address", c.containerdSocket(), "--namespace", "k8s.io"}, args...)...)
}

func (c *cluster) writeContainerdFiles() error {
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return err
	}
	config := func(disabled string) []byte {
		return fmt.Appendf(nil, containerdConfig, c.containerdRoot(), c.in("run", "containerd"), c.containerdSocket(),
			disabled, registryInside+"/"+pauseTag(busybox), c.in("cni"), c.in("registries"), c.in("opt"), c.in("cni-plugins"))
	}
	mirror := "server = \"http://%s\"\n[host.\"http://%s\"]\n  capabilities = [\"pull\", \"resolve\"]\n"
	files := map[string][]byte{
		"containerd.toml":         config(""),
		"containerd-bare.toml":    config(`, "io.containerd.grpc.v1.cri"`),
		"cni/10-cluster.conflist": fmt.Appendf(nil, cniConfig, c.name, podCIDR, c.in("ipam"), c.apiServer(), c.pki("ca.crt"), c.pki("announce.crt"), c.pki("announce.key"), announcement),
		// The samples use images without a registry, for example "busybox".
		"registries/docker.io/hosts.toml":                fmt.Appendf(nil, mirror, registryInside, registryInside),
		"registries/" + registryInside + "/hosts.toml":   fmt.Appendf(nil, mirror, registryInside, registryInside),
		"registries/" + c.registryHost() + "/hosts.toml": fmt.Appendf(nil, mirror, registryInside, registryInside),
	}
	for name, data := range files {
		if err := writeFile(c.in(name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Small machines and containers lack CAP_SYS_RESOURCE, hence restrict_oom_score_adj.
const containerdConfig = `version = 2
root = "%[1]s"
state = "%[2]s"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"%[4]s]
[grpc]
  address = "%[3]s"
[plugins."io.containerd.internal.v1.opt"]
  path = "%[8]s"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%[5]s"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  max_concurrent_downloads = 2
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "%[9]s"
    conf_dir = "%[6]s"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "%[7]s"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
      Root = "%[2]s-runc"
`

// The ptp plugin routes every packet, so a Service address is translated back
// between two pods of the node. The bridge plugin would need the br_netfilter
// module.
const cniConfig = `{
  "cniVersion": "1.0.0",
  "name": "%s",
  "plugins": [{
    "type": "ptp", "ipMasq": false,
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "%s"}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "%s"}
  }, {
    "type": "announce", "server": "%s", "ca": "%s", "certificate": "%s", "key": "%s", "annotation": "%s"
  }]
}
`
