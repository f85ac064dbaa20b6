// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"
)

// startKubelet starts the one real node.
func (c *cluster) startKubelet(ctx context.Context) error {
	if err := writeFile(c.in("resolv.conf"), c.resolvConf(), 0o644); err != nil {
		return err
	}
	config := fmt.Sprintf(kubeletConfig, c.pki("ca.crt"), c.pki("kubelet-server.crt"), c.pki("kubelet-server.key"),
		c.nodeAddress, domain, c.in("resolv.conf"), c.in("pod-logs"), "/"+c.name, c.containerdSocket(), c.in("volume-plugins"))
	if err := writeFile(c.in("kubelet.yaml"), []byte(config), 0o644); err != nil {
		return err
	}
	return c.start(ctx, process{Name: "kubelet", Command: []string{c.binary(kubernetes, "kubelet"),
		"--config=" + c.in("kubelet.yaml"), "--root-dir=" + c.in("kubelet"), "--kubeconfig=" + c.kubeconfig("kubelet"),
		"--hostname-override=" + c.nodeName(), "--node-ip=" + c.nodeAddress, "--v=1",
	}})
}

func (c *cluster) awaitNode(ctx context.Context) error {
	return waiting{what: "the node to be Ready", log: c.log("kubelet"), deadline: 2 * time.Minute, alive: c.check("kubelet")}.
		until(ctx, func(ctx context.Context) error {
			var n node
			if err := c.get(ctx, "/api/v1/nodes/"+c.nodeName(), &n); err != nil {
				return err
			}
			if !n.ready() {
				return fmt.Errorf("node is not Ready: %s", n.message())
			}
			return nil
		})
}

// Evictions start late and images are never collected, because the disk is
// shared with the developer.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, x509: {clientCAFile: %s}, webhook: {enabled: true}}
authorization: {mode: Webhook}
tlsCertFile: %s
tlsPrivateKeyFile: %s
clusterDNS: [%s]
clusterDomain: %s
resolvConf: %s
podLogsDir: %s
cgroupDriver: cgroupfs
cgroupRoot: %s
cgroupsPerQOS: true
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix://%s
volumePluginDir: %s
localStorageCapacityIsolation: false
maxPods: 110
registerNode: true
serializeImagePulls: false
maxParallelImagePulls: 4
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 50Mi, nodefs.available: 1%%, nodefs.inodesFree: 1%%, imagefs.available: 1%%}
nodeStatusReportFrequency: 1m
fileCheckFrequency: 60s
syncFrequency: 10s
kubeAPIQPS: 100
kubeAPIBurst: 200
registryPullQPS: 0
eventRecordQPS: 0
shutdownGracePeriod: 0s
`

func (c *cluster) resolvConf() []byte {
	return []byte("nameserver " + c.nodeAddress + "\nsearch svc." + domain + " " + domain + "\noptions ndots:3\n")
}
