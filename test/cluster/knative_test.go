// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestCRDsAndNamespacesAreAppliedFirst(t *testing.T) {
	first, rest := splitFoundation("kind: Service\n---\nkind: Namespace\nmetadata: {name: a}\n--- # comment\nkind: CustomResourceDefinition\n---\n\n---\n  kind: Namespace\n")
	if strings.Count(first, "---") != 2 || !strings.Contains(first, "CustomResourceDefinition") {
		t.Errorf("first: %q", first)
	}
	if !strings.Contains(rest, "kind: Service") || strings.Count(rest, "---") != 2 {
		t.Errorf("rest: %q", rest)
	}
}

func TestDeploymentsGetSmallRequestsAndFastReadinessProbes(t *testing.T) {
	const in = `kind: Deployment
spec:
  readinessProbe:
    httpGet:
      path: /
    initialDelaySeconds: 20
    periodSeconds: 10
  livenessProbe:
    initialDelaySeconds: 20
    timeoutSeconds: 1
    failureThreshold: 3
  resources:
    requests:
      cpu: 100m
      memory: 100Mi
    limits:
      cpu: 200m
      memory: 200Mi
  after: here
---
kind: Deployment
spec:
  containers:
    - name: dispatcher
      image: dispatcher
      readinessProbe:
        periodSeconds: 2
      after: here
---
kind: ConfigMap
data:
  limits:
    cpu: 200m
`
	const want = `kind: Deployment
spec:
  readinessProbe:
    httpGet:
      path: /
    initialDelaySeconds: 0
    periodSeconds: 1
  livenessProbe:
    timeoutSeconds: 10
    failureThreshold: 12
    initialDelaySeconds: 20
  resources:
    requests:
      cpu: 20m
      memory: 20Mi
  after: here
---
kind: Deployment
spec:
  containers:
    - name: dispatcher
      image: dispatcher
      resources: {requests: {cpu: 20m, memory: 20Mi}}
      readinessProbe:
        periodSeconds: 1
      after: here
---
kind: ConfigMap
data:
  limits:
    cpu: 200m
`
	if got := reduceResources(in); got != want {
		t.Errorf("got\n%s", got)
	}
}
