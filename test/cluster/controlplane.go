// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// startEtcd disables fsync, because the data is deleted with the cluster.
func (c *cluster) startEtcd(ctx context.Context) error {
	err := c.start(ctx, process{Name: "etcd", Command: []string{c.binary(etcd, "etcd"),
		"--data-dir=" + c.in("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls=" + c.etcdURL(), "--advertise-client-urls=" + c.etcdURL(),
		"--listen-metrics-urls=http://" + c.nodeAddress + ":2381", // only health and metrics for the host; the data is on loopback
		"--listen-peer-urls=http://" + c.loopback + ":2380", "--initial-advertise-peer-urls=http://" + c.loopback + ":2380",
		"--initial-cluster=default=http://" + c.loopback + ":2380",
		"--log-level=warn", "--quota-backend-bytes=4294967296",
	}})
	if err != nil {
		return err
	}
	return c.awaitHTTP(ctx, "etcd", "http://"+c.nodeAddress+":2381/health", time.Minute)
}

func (c *cluster) etcdURL() string { return "http://" + c.loopback + ":2379" }

func (c *cluster) startAPIServer(ctx context.Context) error {
	if err := writeFile(c.in("audit-policy.yaml"), []byte(auditPolicy), 0o644); err != nil {
		return err
	}
	command := []string{c.binary(kubernetes, "kube-apiserver"),
		"--etcd-servers=" + c.etcdURL(),
		"--advertise-address=" + c.nodeAddress, "--secure-port=6443",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--tls-cert-file=" + c.pki("apiserver.crt"), "--tls-private-key-file=" + c.pki("apiserver.key"),
		"--client-ca-file=" + c.pki("ca.crt"),
		"--kubelet-certificate-authority=" + c.pki("ca.crt"),
		"--kubelet-client-certificate=" + c.pki("apiserver-kubelet.crt"), "--kubelet-client-key=" + c.pki("apiserver-kubelet.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + c.pki("ca.crt"), "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.pki("front-proxy.crt"), "--proxy-client-key-file=" + c.pki("front-proxy.key"),
		"--service-account-issuer=https://kubernetes.default.svc." + domain,
		"--service-account-key-file=" + c.pki("service-account.pub"),
		"--service-account-signing-key-file=" + c.pki("service-account.key"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--audit-policy-file=" + c.in("audit-policy.yaml"), "--audit-log-path=" + c.auditLog(),
		"--audit-log-maxsize=512", "--audit-log-maxbackup=2",
	}
	flags, err := c.flagsByClusterKind()
	if err != nil {
		return err
	}
	// The API server uses half of the CPU that the tests use. With a larger heap, its garbage
	// collector takes less of that.
	env := []string{"GOGC=200", "GOMEMLIMIT=2GiB"}
	if err := c.start(ctx, process{Name: "kube-apiserver", Command: append(command, flags...), Env: env}); err != nil {
		return err
	}
	return waiting{what: "the API server", log: c.log("kube-apiserver"), deadline: 2 * time.Minute, alive: c.check("kube-apiserver")}.
		until(ctx, func(ctx context.Context) error { return c.get(ctx, "/readyz", nil) })
}

// auditPolicy logs each write with its user and user agent, but without the object, and
// each read of Breakwater's processes, which make bench counts.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  omitManagedFields: true
  verbs: [create, update, patch, delete, deletecollection]
- level: Metadata
  verbs: [get, list]
  userGroups: ["system:serviceaccounts:altershieldoperator-system"]
- level: None
`

// startControllers starts the controller manager, scheduler and kube-proxy.
// use-service-account-credentials gives each built-in controller its own
// identity, as in production clusters.
func (c *cluster) startControllers(ctx context.Context) error {
	auth := func(user string) []string {
		k := c.kubeconfig(user)
		return []string{"--kubeconfig=" + k, "--authentication-kubeconfig=" + k, "--authorization-kubeconfig=" + k,
			"--leader-elect=false", "--bind-address=" + c.loopback}
	}
	manager := append([]string{c.binary(kubernetes, "kube-controller-manager"),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.pki("service-account.key"), "--root-ca-file=" + c.pki("ca.crt"),
		"--cluster-signing-cert-file=" + c.pki("ca.crt"), "--cluster-signing-key-file=" + c.pki("ca.key"),
	}, auth("controller-manager")...)
	if !c.controlPlaneOnly {
		// The control plane of the tests keeps the default of production clusters, 20
		// requests per second: no test may depend on a fast garbage collector.
		manager = append(manager, "--kube-api-qps=200", "--kube-api-burst=400")
	}
	if err := c.start(ctx, process{Name: "kube-controller-manager", Command: manager}); err != nil {
		return err
	}
	scheduler := append([]string{c.binary(kubernetes, "kube-scheduler"), "--kube-api-qps=500", "--kube-api-burst=1000"}, auth("scheduler")...)
	if err := c.start(ctx, process{Name: "kube-scheduler", Command: scheduler}); err != nil {
		return err
	}
	if !c.controlPlaneOnly {
		if err := c.startProxy(ctx); err != nil {
			return err
		}
	}
	return waiting{what: "the default service account", log: c.log("kube-controller-manager"), deadline: time.Minute, alive: c.check("kube-controller-manager")}.
		until(ctx, func(ctx context.Context) error {
			return c.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
		})
}

// startProxy does not change conntrack's limits, which apply to the whole
// machine.
func (c *cluster) startProxy(ctx context.Context) error {
	config := fmt.Sprintf(proxyConfig, c.kubeconfig("proxy"), podCIDR, c.nodeName())
	if err := writeFile(c.in("kube-proxy.yaml"), []byte(config), 0o644); err != nil {
		return err
	}
	return c.start(ctx, process{Name: "kube-proxy", Command: []string{c.binary(kubernetes, "kube-proxy"), "--config=" + c.in("kube-proxy.yaml")}})
}

const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: %s, qps: 100, burst: 200}
clusterCIDR: %s
hostnameOverride: %s
nftables: {minSyncPeriod: 100ms}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`

// awaitHTTP waits until a process answers 200 at the URL.
func (c *cluster) awaitHTTP(ctx context.Context, name, url string, deadline time.Duration) error {
	w := waiting{what: name + " at " + url, log: c.log(name), deadline: deadline, alive: c.check(name)}
	return w.until(ctx, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		res, err := direct.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", res.Status)
		}
		return nil
	})
}
