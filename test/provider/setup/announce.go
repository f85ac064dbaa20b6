package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/settings"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

const (
	// Announcement is the annotation in which the CNI plugin of the embedded cluster announces the
	// address of a pod (test/cluster).
	Announcement = "test.breakwater.dev/pod-ips"
	// Announcer is the user of that plugin.
	Announcer = "breakwater-announce"
	// announcementPolicy is the file of the policy that protects the annotation.
	announcementPolicy = "config/samples/announced-address.yaml"
)

// UseAnnouncements makes the init-action-server use the announced addresses of pods that are
// created after it returns. root is the folder of the repository.
func (c *Cluster) UseAnnouncements(ctx context.Context, root string) error {
	manifest, err := AnnouncementPolicy(root, Announcement, Announcer)
	if err != nil {
		return err
	}
	// A policy that is changed protects no announcement, so that of an interrupted run is deleted.
	if err := deleteAnnouncementPolicy(ctx, root); err != nil {
		return err
	}
	if _, err := (kubectl.Kubectl{}).Output(ctx, manifest, "create", "-f", "-"); err != nil {
		return err
	}
	if err := c.setAnnouncement(ctx, Announcement, Announcer); err != nil {
		return err
	}
	from, err := c.creationTime(ctx)
	if err != nil {
		return err
	}
	from = from.Add(settings.AnnouncedAddressDelay)
	return wait.PollUntilContextTimeout(ctx, time.Second, 2*settings.AnnouncedAddressDelay, true, func(ctx context.Context) (bool, error) {
		now, err := c.creationTime(ctx)
		return !now.Before(from), err
	})
}

// IgnoreAnnouncements restores the default.
func (c *Cluster) IgnoreAnnouncements(ctx context.Context, root string) error {
	return errors.Join(c.setAnnouncement(ctx, "", ""), deleteAnnouncementPolicy(ctx, root))
}

func deleteAnnouncementPolicy(ctx context.Context, root string) error {
	return Kubectl(ctx, "delete", "--ignore-not-found", "-f", filepath.Join(root, announcementPolicy))
}

// AnnouncementPolicy returns the sample of the policy with an annotation and its writer instead of those
// of Calico.
func AnnouncementPolicy(root, annotation, writer string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(root, announcementPolicy))
	if err != nil {
		return "", err
	}
	manifest := string(raw)
	literal := func(value string) string { return `expression: "'` + value + `'"` }
	for former, value := range map[string]string{"cni.projectcalico.org/podIPs": annotation, "system:serviceaccount:calico-system:calico-cni-plugin": writer} {
		if strings.Count(manifest, literal(former)) != 1 {
			return "", fmt.Errorf("%s does not have %s exactly once", announcementPolicy, literal(former))
		}
		manifest = strings.Replace(manifest, literal(former), literal(value), 1)
	}
	return manifest, nil
}

func (c *Cluster) setAnnouncement(ctx context.Context, annotation, writer string) error {
	patch, err := json.Marshal(map[string]any{"data": map[string]string{
		settings.KeyAnnouncedAddressAnnotation: annotation, settings.KeyAnnouncedAddressWriter: writer,
	}})
	if err != nil {
		return err
	}
	if _, err := c.Kube.CoreV1().ConfigMaps(System).Patch(ctx, podmeta.ConfigName, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("set the announced address: %w", err)
	}
	return nil
}

// creationTime returns the creation time of an object that is created now.
func (c *Cluster) creationTime(ctx context.Context) (time.Time, error) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "time-"}}
	created, err := c.Kube.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return time.Time{}, err
	}
	return created.CreationTimestamp.Time, nil
}
