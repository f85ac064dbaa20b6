// SPDX-License-Identifier: Apache-2.0

// Cluster runs a real Kubernetes with a real Knative on one Linux machine,
// built only from Go modules and Debian packages. "up" starts it, "down"
// removes it completely.
//
// # What runs
//
// These run as processes in one network namespace: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kube-proxy (nftables), kubelet with
// its own containerd (the one real node) and CNI plugins, of which the last
// announces the address of a pod (announce), kwok (the simulated nodes, tainted
// kwok.x-k8s.io/node), CoreDNS, Traefik as the ingress of Knative Serving, and
// a registry, which is this program. These run as Pods: Knative Eventing with
// the in-memory channel and the MTChannel broker, and Knative Serving with
// scale to zero. Versions are pinned in modules/*/go.mod.
//
// The namespace has a link to the host and no other route: nothing in it
// reaches the network. The node's address on the link, 198.18.0.2, serves the
// API server (:6443), the registry (:5000; Pods use localhost:5000), DNS (:53)
// and the ingress (:8080 public, :8081 cluster-local). The host can use it too.
//
// # Files
//
// "status" prints the paths. BREAKWATER_STATE (/var/lib/breakwater-cluster) is
// deleted by "down". It contains log/ (a file for each process, and audit.log
// with all writes and their users), pod-logs/, kubeconfig/ (admin is in
// system:masters; load is a cluster-admin by RBAC, to whom API priority and
// fairness applies), pid/, pki/, etcd/, kubelet/ and the configuration files of
// the processes.
//
// BREAKWATER_CACHE (~/.cache/breakwater) is kept by "down". It contains bin/
// (builds by version), knative/ (manifests by version), registry/ (images),
// containerd/ (unpacked images) and ko/. A new "up" removes builds that were
// not used for a month, and untagged images that were pushed more than a week
// ago. "down --cache" removes the whole cache. An incomplete build has a
// temporary name.
//
// BREAKWATER_NAME selects another instance, "bw…", which can run at the same
// time. It has its own namespace, links, addresses in 198.18.0.0/15 (see
// "status"), cgroup, state and containerd. Builds, blobs and Knative manifests
// are shared.
//
// # Debugging
//
// A failed step prints the condition that it waited for and the end of the log.
// The processes keep running for inspection: "status", "exec -- kubectl get
// events -A", "exec -- bash", ctr with --address <state>/run/containerd.sock.
// Then "up" starts again and "down" cleans up. Both work after a kill at any
// time, because they find leftovers through the kernel (cgroup, mounts, links)
// and not through the state. If a process of a complete cluster has ended, "up"
// restarts that process. It replaces a cluster that does not become healthy
// within two minutes.
//
// "exec" runs a command in the namespace, in the working folder and on the
// terminal of the caller. The command has KUBECONFIG, the cluster's DNS,
// kubectl, ko and ko's settings, and kn after "build kn"; it receives signals
// directly, and its exit code is returned. GOPROXY is off: before a command that
// builds, run "go mod download" outside.
//
// "controlplane" runs only etcd, the API server, controller manager, scheduler and
// kwok, without root, for the tests of one package (test/controlplane).
//
// # Limits
//
// The tool needs Linux with cgroups v1 or v2, root, network namespaces and
// overlayfs; to install missing packages it needs Debian or Ubuntu. The first
// "up" compiles for about 25 minutes on two cores, later ones take 20 to 60 s.
// The cluster uses 1.8 GiB of memory and 4 GiB of cache besides Go's. There is
// no metrics API, no provisioner of volumes, no LoadBalancer and no IPv6. The
// only PersistentVolume is that of the permission centre. There is one real
// node: a drained Pod with a disruption budget waits until the node is
// uncordoned. Deleting an empty namespace takes 5 s, as on every Kubernetes.
//
// Kubelet changes six kernel parameters and uses folders that cannot be
// configured: /var/lib/kubelet, /var/lib/cni, /var/log/containers and
// /run/containerd. "down" restores the parameters and removes our entries, and
// also the folders if "up" created them. With several instances, the last
// "down" does this. "down" keeps loaded kernel modules, controllers enabled for
// the root cgroup (v2), installed packages, and running commands of "exec",
// whose namespace ends with them.
//
// # Tests
//
//	go test .                                # unit tests, on any machine
//	go test -tags cluster -timeout 60m .      # up, crash, repair and down of instance "bwtest", as root
package main
