// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
)

// makeVolume creates the PersistentVolume of the permission centre. The cluster has no
// provisioner, and other PersistentVolumeClaims stay Pending.
func (c *cluster) makeVolume(ctx context.Context) error {
	path := c.in("volume")
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return c.apply(ctx, "breakwater-volume", fmt.Appendf(nil, centreVolume, path, c.nodeName()))
}

// The kubelet applies fsGroup to a volume of type local, but not to one of type hostPath.
const centreVolume = `apiVersion: v1
kind: PersistentVolume
metadata: {name: permission-centre}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  claimRef: {namespace: altershieldoperator-system, name: permission-centre}
  local: {path: %s}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]
`
