// SPDX-License-Identifier: Apache-2.0

// Cluster brings up a real Kubernetes with a real Knative on one Linux machine, from Go
// modules and Debian packages alone, and takes it away again without a trace.
//
// # What runs
//
// Processes of this machine, in one network namespace: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kube-proxy (nftables), kubelet with a containerd
// of its own (the one real node), kwok (as many simulated nodes as asked for, tainted
// kwok.x-k8s.io/node), CoreDNS, Traefik as the ingress of Knative Serving, and a registry,
// which is this program. Knative Eventing with the in-memory channel and the MTChannel
// broker, and Knative Serving with scale to zero, run as Pods. Versions are pinned in
// modules/*/go.mod.
//
// The namespace has a link to the host and no way further: nothing in it reaches the
// network. The node's end of the link, 198.18.0.2, is the API server (:6443), the registry
// (:5000, localhost:5000 for Pods), DNS (:53) and the ingress (:8080 public, :8081 inside),
// for the host too.
//
// # Where things are
//
// "status" prints all of it. Below BREAKWATER_STATE (/var/lib/breakwater-cluster), which
// "down" deletes: log/ (a file for each process, audit.log of all writes with their user,
// pod-logs/ beside it), kubeconfig/ (admin is in system:masters; load is a cluster-admin
// by RBAC, to whom API priority and fairness applies), pid/, pki/, etcd/, kubelet/ and the
// configuration that each process was given.
//
// Below BREAKWATER_CACHE (~/.cache/breakwater), which stays: bin/ (builds by version),
// knative/ (manifests by version), registry/ (images), containerd/ (unpacked images), ko/.
// A new "up" removes builds not used for a month, and images that were pushed more than a
// week ago and that no tag names; "down --cache" removes it all. A build appears under its
// name only when it is complete.
//
// BREAKWATER_NAME names another instance, "bw…", which lives beside the first: its own
// namespace, links, addresses in 198.18.0.0/15 (see "status"), cgroup, state and
// containerd. Builds, blobs and Knative are shared.
//
// # Debugging
//
// A failed step says what it waited for and shows the end of the log. What is left then
// stays, to be looked at: "status", "exec -- kubectl get events -A", "exec -- bash", ctr
// with --address <state>/run/containerd.sock. "up" starts anew, "down" removes what is
// there; both also after a kill at any moment, because they ask the kernel (cgroup, mounts,
// links) and not the state what is left. When a process of a complete cluster has ended,
// "up" starts that one again; a cluster that does not become healthy within two minutes it
// replaces.
//
// "exec" runs a command in the namespace, in the working folder and on the terminal of the
// caller, with KUBECONFIG, the cluster's DNS, kubectl, ko and ko's settings; signals and
// the exit code are the command's. GOPROXY is off in there: a command that builds needs its
// modules downloaded before, by "go mod download" outside.
//
// # Limits
//
// Linux with cgroups v1 or v2, root, network namespaces and overlayfs; Debian or Ubuntu
// when packages are missing. The first "up" compiles for about 25 minutes on two cores,
// later ones take 20 to 60 s; 1.8 GiB of memory, 4 GiB of cache besides Go's.
// There are no metrics API, no persistent volumes, no LoadBalancer and no IPv6. One real
// node: a drained Pod with a disruption budget waits until the node is uncordoned. Deleting
// an empty namespace takes 5 s, as it does on every Kubernetes.
//
// Kubelet changes six kernel parameters and uses folders that no setting moves, in
// /var/lib/kubelet, /var/lib/cni, /var/log/containers and /run/containerd: "down" puts the
// parameters back, removes our entries, and the folders when nobody had them before. With
// several instances the last one to go does. What stays is what is not ours to decide:
// loaded kernel modules, controllers switched on for the root cgroup (v2), installed
// packages, and commands of "exec" that still run; their namespace ends with them.
//
// # Tests
//
//	go test .                                # the pure parts, anywhere
//	go test -tags cluster -timeout 15m .     # up, crash, repair, down: as root, instance "bwtest"
package main
