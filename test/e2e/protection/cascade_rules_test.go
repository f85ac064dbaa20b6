//go:build controlplane

package protection

import (
	"fmt"
	"strings"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAProtectedDaemonSetIsNotDeletedWhileItHasPods(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, protectedWorkload("DaemonSet", "apps/v1", ""))
	n.await(t, "the DaemonSet has pods", func() error {
		if got := n.get(t, "daemonset", "web", "{.status.currentNumberScheduled}"); got == "" || got == "0" {
			return fmt.Errorf("currentNumberScheduled is %q", got)
		}
		return nil
	})
	n.checkEveryDeletionDenied(t, "belong to it", "daemonsets.apps")
	n.run(t, "patch", "daemonset", "web", "-p", `{"spec":{"template":{"spec":{"nodeSelector":{"nowhere":"true"}}}}}`)
	n.await(t, "the DaemonSet has no pod and can be deleted", func() error {
		if r := n.try(t, "delete", "daemonset", "web", "--wait=false"); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
}

func TestAProtectedJobIsNotDeletedWhileItIsActive(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, `
apiVersion: batch/v1
kind: Job
metadata: {name: web, labels: {`+deleteProtectionLabel+`: Cascading}}
spec:
  template:
    spec: {terminationGracePeriodSeconds: 0, restartPolicy: Never, containers: [{name: sleep, image: busybox, command: [/bin/sleep, infinity]}]}`)
	n.await(t, "the Job is active", func() error {
		if got := n.get(t, "job", "web", "{.status.active}"); got != "1" {
			return fmt.Errorf("active is %q", got)
		}
		return nil
	})
	n.checkEveryDeletionDenied(t, "1 pod belongs to it", "jobs.batch")
	n.run(t, "patch", "job", "web", "-p", `{"spec":{"suspend":true}}`)
	n.await(t, "the suspended Job can be deleted", func() error {
		if r := n.try(t, "delete", "job", "web", "--wait=false"); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
}

// Each way out that the denial names admits the deletion.
func TestWaysOutOfCascadeProtection(t *testing.T) {
	t.Parallel()
	for name, out := range map[string][]string{
		"the pods are orphaned":       {"delete", "deployment", "web", "--cascade=orphan"},
		"the label is removed":        {"label", "deployment", "web", disableCascadingLabel + "-"},
		"the label has another value": {"label", "deployment", "web", "--overwrite", disableCascadingLabel + "=false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t)
			n.apply(t, protectedDeployment)
			n.checkDenied(t, "scale it to 0 first", "delete", "deployment", "web")
			n.run(t, out...)
			if out[0] == "label" {
				n.run(t, "delete", "deployment", "web", "--timeout=60s")
			}
		})
	}
}

// Further deletions of an object that is terminating are admitted, because they
// complete its foreground deletion.
func TestAnAdmittedDeletionCompletes(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, protectedDeployment)
	n.run(t, "label", "deployment", "web", disableCascadingLabel+"-")
	n.run(t, "patch", "deployment", "web", "--type=merge", "-p", `{"metadata":{"finalizers":["test.breakwater.dev/wait"]}}`)
	n.run(t, "delete", "deployment", "web", "--cascade=foreground", "--wait=false")
	n.run(t, "label", "deployment", "web", disableCascadingLabel+"=true")
	n.run(t, "delete", "deployment", "web", "--wait=false")
	n.run(t, "patch", "deployment", "web", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	n.await(t, "the Deployment is deleted", func() error {
		if _, err := n.kube.AppsV1().Deployments(n.name).Get(t.Context(), "web", metav1.GetOptions{}); !apierrs.IsNotFound(err) {
			return fmt.Errorf("it exists: %w", err)
		}
		return nil
	})
}

// The labels of a pod template are also those of ReplicaSets and pods. They block neither the garbage
// collector nor the deletion, once the label of the Deployment is removed; a person cannot delete the
// ReplicaSet.
func TestADeploymentWithTheLabelInItsTemplateIsDeleted(t *testing.T) {
	t.Parallel()
	for key, value := range map[string]string{disableCascadingLabel: `"true"`, deleteProtectionLabel: "Always"} {
		for _, cascade := range []string{"background", "foreground"} {
			t.Run(key+" "+cascade, func(t *testing.T) {
				t.Parallel()
				n := newNamespace(t)
				label := key + ": " + value
				n.apply(t, strings.NewReplacer(disableCascadingLabel+`: "true"`, label, "labels: {app: web}", "labels: {app: web, "+label+"}").Replace(protectedDeployment))
				n.awaitRollout(t)
				n.checkDenied(t, "is protected from", "delete", "replicaset", "-l", "app=web", "--wait=false")
				n.run(t, "label", "deployment", "web", key+"-")
				n.run(t, "delete", "deployment", "web", "--cascade="+cascade, "--timeout=60s")
				n.await(t, "the ReplicaSet and its pods are deleted", func() error {
					if left := n.list(t, "replicaset", metav1.ListOptions{}, itemNames) + n.list(t, "pod", metav1.ListOptions{}, itemNames); left != "" {
						return fmt.Errorf("%s", left)
					}
					return nil
				})
			})
		}
	}
}

// A protected object does not block the deletion of its namespace.
func TestANamespaceWithProtectedObjectsTerminates(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, protectedDeployment)
	n.apply(t, `{apiVersion: v1, kind: Service, metadata: {name: web, labels: {`+deleteProtectionLabel+`: Always}}, spec: {ports: [{port: 80}]}}`)
	n.run(t, "delete", "namespace", n.name, "--timeout=90s")
}

func TestDeleteProtectionAlways(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, `{apiVersion: v1, kind: Service, metadata: {name: web, labels: {`+deleteProtectionLabel+`: Always}}, spec: {ports: [{port: 80}]}}`)
	n.apply(t, strings.Replace(strings.Replace(protectedDeployment, disableCascadingLabel+`: "true"`, deleteProtectionLabel+": Always", 1), "replicas: 3", "replicas: 0", 1))
	n.checkDenied(t, "protected from every deletion", "delete", "service", "web")
	n.checkDenied(t, "protected from every deletion", "delete", "deployment", "web")
	n.run(t, "label", "--overwrite", "deployment", "web", deleteProtectionLabel+"=Cascading")
	n.run(t, "delete", "deployment", "web", "--timeout=60s")
	n.run(t, "label", "service", "web", deleteProtectionLabel+"-")
	n.run(t, "delete", "service", "web")

	n.apply(t, `{apiVersion: v1, kind: Pod, metadata: {name: web, labels: {`+deleteProtectionLabel+`: Always}}, spec: {nodeSelector: {nowhere: "true"},
 containers: [{name: sleep, image: busybox}]}}`)
	n.checkDenied(t, "protected from every deletion", "delete", "pod", "web")
	// The object of an eviction does not have the labels of the pod.
	if err := n.evict(t, connect(t), "web"); err != nil {
		t.Errorf("the eviction: %v", err)
	}
	n.run(t, "wait", "--for=delete", "pod/web", "--timeout=60s")
}

// Objects without the label are deleted, and so are kinds that the label does
// not protect.
func TestUnprotectedObjectsAreDeleted(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, strings.Replace(protectedDeployment, disableCascadingLabel+`: "true"`, "app: web", 1))
	n.apply(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, labels: {`+disableCascadingLabel+`: "true"}}}`)
	n.run(t, "delete", "deployment", "web", "--timeout=60s")
	n.run(t, "delete", "configmap", "web")
}

func TestAProtectedNamespaceIsNotDeletedWhileItHasBoundVolumeClaims(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.run(t, "label", "namespace", n.name, disableCascadingLabel+"=true")
	n.cleanup(t, "delete", "persistentvolume", n.name, "--ignore-not-found")
	n.apply(t, fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  capacity: {storage: 1Mi}
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  claimRef: {namespace: %[1]s, name: data}
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: /nowhere}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  volumeName: %[1]s
  resources: {requests: {storage: 1Mi}}`, n.name))
	n.run(t, "wait", "--for=jsonpath={.status.phase}=Bound", "persistentvolumeclaim", "data", "--timeout=60s")
	n.checkDenied(t, "1 bound PersistentVolumeClaim would be deleted with it", "delete", "namespace", n.name, "--wait=false")
	n.run(t, "delete", "persistentvolumeclaim", "data", "--timeout=60s")
	n.run(t, "delete", "namespace", n.name, "--timeout=90s")
}
