package docs

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// manifest has the fields of a Deployment, a Knative Service and a Namespace.
type manifest struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		Template corev1.PodTemplateSpec
	}
}

func TestProcessesRunRestricted(t *testing.T) {
	checked := map[string]int{}
	for _, part := range []string{"core", "judge", "notify", "protection", "permission"} {
		for _, file := range tracked(t, "config/"+part+"/*.yaml") {
			for _, m := range objectsIn[manifest](t, file) {
				if m.Kind == "Namespace" {
					checked[part+" Namespace"]++
					if got := m.Metadata.Labels["pod-security.kubernetes.io/enforce"]; got != "restricted" {
						t.Errorf("%s: Pod Security is enforced at %q", file, got)
					}
				}
				for _, c := range m.Spec.Template.Spec.Containers {
					checked[part]++
					if wrong := unrestricted(m.Spec.Template.Spec, c); len(wrong) > 0 {
						t.Errorf("%s: container %s of %s %s: %v", file, c.Name, m.Kind, m.Metadata.Name, wrong)
					}
				}
			}
		}
	}
	for part, least := range map[string]int{"core": 8, "judge": 1, "notify": 1, "protection": 2, "permission": 4, "core Namespace": 1, "protection Namespace": 1, "permission Namespace": 1} {
		if checked[part] < least {
			t.Errorf("%s: %d checked, want at least %d", part, checked[part], least)
		}
	}
}

// unrestricted lists the missing restrictions of a container.
func unrestricted(pod corev1.PodSpec, c corev1.Container) (missing []string) {
	own, of := c.SecurityContext, pod.SecurityContext
	if own == nil {
		own = &corev1.SecurityContext{}
	}
	if of == nil {
		of = &corev1.PodSecurityContext{}
	}
	is := func(b *bool, want bool) bool { return b != nil && *b == want }
	seccomp := own.SeccompProfile
	if seccomp == nil {
		seccomp = of.SeccompProfile
	}
	for what, ok := range map[string]bool{
		"runAsNonRoot":             is(own.RunAsNonRoot, true) || own.RunAsNonRoot == nil && is(of.RunAsNonRoot, true),
		"allowPrivilegeEscalation": is(own.AllowPrivilegeEscalation, false),
		"readOnlyRootFilesystem":   is(own.ReadOnlyRootFilesystem, true),
		"capabilities":             own.Capabilities != nil && len(own.Capabilities.Add) == 0 && slices.Contains(own.Capabilities.Drop, "ALL"),
		"seccompProfile":           seccomp != nil && seccomp.Type == corev1.SeccompProfileTypeRuntimeDefault,
	} {
		if !ok {
			missing = append(missing, what)
		}
	}
	slices.Sort(missing)
	return missing
}

// Cluster Autoscaler removes no node with a pod that has an emptyDir, unless an annotation of the pod names the volume.
func TestProcessesDoNotKeepNodes(t *testing.T) {
	checked := 0
	for _, part := range []string{"core", "judge", "notify", "protection", "permission"} {
		for _, file := range tracked(t, "config/"+part+"/*.yaml") {
			for _, m := range objectsIn[manifest](t, file) {
				named := strings.Split(m.Spec.Template.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"], ",")
				for _, v := range m.Spec.Template.Spec.Volumes {
					if v.EmptyDir == nil {
						continue
					}
					checked++
					if !slices.Contains(named, v.Name) {
						t.Errorf("%s: volume %s of %s %s keeps its node", file, v.Name, m.Kind, m.Metadata.Name)
					}
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no emptyDir was checked")
	}
}
