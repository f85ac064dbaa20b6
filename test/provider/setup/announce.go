package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

const (
	// Announcement is the annotation in which the CNI plugin of the embedded cluster announces the
	// address of a pod (test/cluster).
	Announcement = "test.breakwater.dev/pod-ips"
	// Announcer is the user of that plugin.
	Announcer = "breakwater-announce"
	// announcementPolicy is the file of the policy that protects the annotation.
	announcementPolicy = "config/samples/announced-address.yaml"
	// watchLag is how long the init-action-server may take to see a changed ConfigMap.
	watchLag = 10 * time.Second
)

// UseAnnouncements makes the init-action-server use the announced addresses of pods that are
// created after it returns. root is the folder of the repository.
func (c *Cluster) UseAnnouncements(ctx context.Context, root string) error {
	if err := Kubectl(ctx, "apply", "-f", filepath.Join(root, announcementPolicy)); err != nil {
		return err
	}
	if err := c.setAnnouncement(ctx, Announcement, Announcer); err != nil {
		return err
	}
	from, err := c.creationTime(ctx)
	if err != nil {
		return err
	}
	from = from.Add(settings.AnnouncedAddressDelay + watchLag)
	return wait.PollUntilContextTimeout(ctx, time.Second, 2*settings.AnnouncedAddressDelay, true, func(ctx context.Context) (bool, error) {
		now, err := c.creationTime(ctx)
		return !now.Before(from), err
	})
}

// IgnoreAnnouncements restores the default.
func (c *Cluster) IgnoreAnnouncements(ctx context.Context, root string) error {
	return errors.Join(c.setAnnouncement(ctx, "", ""),
		Kubectl(ctx, "delete", "--ignore-not-found", "-f", filepath.Join(root, announcementPolicy)))
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
