package permission

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

const (
	// tokenLifetime is in seconds. The kubelet rotates the token after 80 % of this time.
	tokenLifetime = int64(3600)
	// nonRootUser is the user and group of the image.
	nonRootUser = int64(65532)
)

// Injection is the configuration of the injected init container.
type Injection struct {
	Sets []string
	// Image is the image of the init-action-client.
	Image string
	// Server is the URL of the init-action-server.
	Server string
	// Bundle are the certificates (PEM) that the init container trusts in addition to
	// those of its image.
	Bundle string
	// Deadline is how long one round of requests of the init container lasts.
	Deadline time.Duration
	// Minimum are the smallest requests that the LimitRanges of the namespace allow.
	Minimum corev1.ResourceList
}

// Operation is an operation of a JSON patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Patch returns the operations that add the init container as the first one, the volume with the
// token, the label, and the annotation with the sets, or replace those that differ. Other
// fields stay unchanged, including those unknown to the Go types. The result is empty for a complete pod,
// also if admission plugins have changed the init container.
func (i Injection) Patch(p *corev1.Pod) []Operation {
	var ops []Operation
	ops = append(ops, i.patchContainer(p)...)
	ops = append(ops, i.patchVolume(p)...)
	ops = append(ops, setMapKey("/metadata/labels", p.Labels, podmeta.Label, podmeta.LabelRequired)...)
	return append(ops, setMapKey("/metadata/annotations", p.Annotations, podmeta.PermissionSetAnnotation, strings.Join(i.Sets, ","))...)
}

func (i Injection) patchContainer(p *corev1.Pod) []Operation {
	want := i.container(&p.Spec)
	at := slices.IndexFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == protocol.ContainerName })
	if at >= 0 {
		keepOfPlugins(&want, p.Spec.InitContainers[at])
	}
	switch {
	case at == 0 && equality.Semantic.DeepEqual(p.Spec.InitContainers[0], want):
		return nil
	case at == 0:
		return []Operation{{"replace", "/spec/initContainers/0", want}}
	case at > 0:
		return []Operation{{Op: "remove", Path: "/spec/initContainers/" + strconv.Itoa(at)}, {"add", "/spec/initContainers/0", want}}
	case len(p.Spec.InitContainers) == 0:
		return []Operation{{"add", "/spec/initContainers", []corev1.Container{want}}}
	}
	return []Operation{{"add", "/spec/initContainers/0", want}}
}

// keepOfPlugins copies to the wanted container what an admission plugin of the API server may have set in the
// existing one after the webhook added it: imagePullPolicy Always (AlwaysPullImages), the requests
// and limits of resources for which the wanted container has none (LimitRanger), and the user and group
// (SecurityContextConstraint of OpenShift). These plugins deny the pod if the webhook removes what they set.
func keepOfPlugins(want *corev1.Container, existing corev1.Container) {
	if existing.ImagePullPolicy == corev1.PullAlways {
		want.ImagePullPolicy = corev1.PullAlways
	}
	keepMissing(want.Resources.Requests, existing.Resources.Requests)
	keepMissing(want.Resources.Limits, existing.Resources.Limits)
	if s := existing.SecurityContext; s != nil {
		want.SecurityContext.RunAsUser = cmp.Or(s.RunAsUser, want.SecurityContext.RunAsUser)
		want.SecurityContext.RunAsGroup = cmp.Or(s.RunAsGroup, want.SecurityContext.RunAsGroup)
	}
}

func keepMissing(want, existing corev1.ResourceList) {
	for name, quantity := range existing {
		if _, ok := want[name]; !ok {
			want[name] = quantity
		}
	}
}

// container returns the init container. It sets all fields that the API server would
// default, so that the container in the API server equals this one.
func (i Injection) container(pod *corev1.PodSpec) corev1.Container {
	c := corev1.Container{
		Name: protocol.ContainerName, Image: i.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Env: []corev1.EnvVar{
			{Name: protocol.EnvServer, Value: i.Server},
			{Name: protocol.EnvCA, Value: i.Bundle},
			{Name: protocol.EnvSets, Value: strings.Join(i.Sets, ",")},
			{Name: protocol.EnvTokenFile, Value: podmeta.TokenMountPath + "/token"},
			{Name: protocol.EnvDeadline, Value: i.Deadline.String()},
		},
		Resources:                within(resources(pod.Containers, i.Minimum), pod.Resources),
		VolumeMounts:             []corev1.VolumeMount{{Name: podmeta.TokenVolume, MountPath: podmeta.TokenMountPath, ReadOnly: true}},
		TerminationMessagePath:   corev1.TerminationMessagePathDefault,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		SecurityContext: &corev1.SecurityContext{
			RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), Privileged: new(false),
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	// The kubelet rejects root because of RunAsNonRoot. Any other user of the pod stays, and without one that of the image:
	// OpenShift denies a user outside the range of the namespace.
	if s := pod.SecurityContext; s != nil && s.RunAsUser != nil && *s.RunAsUser == 0 {
		c.SecurityContext.RunAsUser, c.SecurityContext.RunAsGroup = new(nonRootUser), new(nonRootUser)
	}
	return c
}

// patchVolume adds the volume with a token whose audience is the server and which is
// bound to the pod.
func (Injection) patchVolume(p *corev1.Pod) []Operation {
	want := corev1.Volume{Name: podmeta.TokenVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(corev1.ProjectedVolumeSourceDefaultMode),
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: protocol.TokenAudience, ExpirationSeconds: new(tokenLifetime), Path: "token",
		}}},
	}}}
	at := slices.IndexFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == podmeta.TokenVolume })
	switch {
	case at >= 0 && equality.Semantic.DeepEqual(p.Spec.Volumes[at], want):
		return nil
	case at >= 0:
		return []Operation{{"replace", "/spec/volumes/" + strconv.Itoa(at), want}}
	case len(p.Spec.Volumes) == 0:
		return []Operation{{"add", "/spec/volumes", []corev1.Volume{want}}}
	}
	return []Operation{{"add", "/spec/volumes/-", want}}
}
