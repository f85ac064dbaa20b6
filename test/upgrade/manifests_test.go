package upgrade

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestObjectsAreComparedByKindNamespaceAndName(t *testing.T) {
	read := func(files map[string]string) Installation {
		config := fstest.MapFS{}
		for name, content := range files {
			config[name] = &fstest.MapFile{Data: []byte(content)}
		}
		i, err := ReadInstallation(config)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	old := read(map[string]string{
		"core/1.yaml":    "# only a comment\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: s}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: s}\n",
		"notify/1.yaml":  "apiVersion: v1\nkind: Secret\nmetadata: {name: not-installed}\n",
		"judge/1.yaml":   "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n",
		"judge/hooks.md": "not a manifest",
	})
	now := read(map[string]string{
		"core/1.yaml":       "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: s}\n",
		"protection/1.yaml": "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: v}\nwebhooks: [{name: w.kb.io}]\n",
	})
	if got, want := old.Without(now), []Object{{"ClusterRole.v1.rbac.authorization.k8s.io", "", "r"}, {"ConfigMap", "s", "a"}}; !slices.Equal(got, want) {
		t.Errorf("lacking are %v, want %v", got, want)
	}
	if got := now.Without(now); len(got) != 0 {
		t.Errorf("a version lacks %v of its own objects", got)
	}
	if !now.Webhooks["w.kb.io"] || len(now.Webhooks) != 1 {
		t.Errorf("webhooks are %v", now.Webhooks)
	}
	if _, err := ReadInstallation(fstest.MapFS{}); err == nil {
		t.Error("a folder without manifests is not an error")
	}
}
