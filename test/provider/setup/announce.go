package setup

import (
	"context"
	"encoding/json"
	"fmt"
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
	// watchLag is how long the init-action-server may take to see a changed ConfigMap.
	watchLag = 3 * time.Second
)

// UseAnnouncements makes the init-action-server use the announced addresses of pods that are
// created after it returns.
func (c *Cluster) UseAnnouncements(ctx context.Context) error {
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
func (c *Cluster) IgnoreAnnouncements(ctx context.Context) error {
	return c.setAnnouncement(ctx, "", "")
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
