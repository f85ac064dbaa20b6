//go:build controlplane

package attack

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	admission "github.com/breakwater-dev/breakwater/admission/change"
	"github.com/breakwater-dev/breakwater/admission/change/releasecheck"
	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
	"github.com/breakwater-dev/breakwater/internal/webhookpeers"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/controlplane"
)

// A stranger invents a release. If the webhook decided it, it would ask the server and store its pass,
// and the real release of this version would not be checked, at a time when the server fails it.
func TestAStrangersReleaseObtainsNoStoredPass(t *testing.T) {
	f := newFixture(t)
	f.connectServer(t)
	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // a stranger has no CA
	send := func(path, name string) error {
		_, err := webhookpeers.SendReview(t.Context(), stranger, controlplane.WebhookURL(admission.ServiceName)+path, nil, inventedRelease(t, f.namespace, name))
		return err
	}
	// With the secret of the path, the pass is stored as soon as the setting is in effect.
	path := kubectl(t, "", "get", "validatingwebhookconfiguration", admission.Configuration, "-o",
		`jsonpath={.webhooks[?(@.name=="`+releasecheck.Webhook+`")].clientConfig.service.path}`)
	want := map[string]v1alpha1.Outcome{"with-secret": v1alpha1.OutcomePass}
	err := wait.PollUntilContextTimeout(t.Context(), 250*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		err := send(path, "with-secret")
		return len(f.releaseChecks(t)) > 0, err
	})
	if diff := cmp.Diff(want, f.releaseChecks(t)); err != nil || diff != "" {
		t.Fatalf("%v; stored with the secret (-want +got):\n%s", err, diff)
	}
	for _, path := range []string{webhookpath.Prefix + releasecheck.Webhook, webhookpath.Prefix + "secret/" + releasecheck.Webhook} {
		if err := send(path, "without-secret"); err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("%s: got error %v, want 403", path, err)
		}
	}
	if diff := cmp.Diff(want, f.releaseChecks(t)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// connectServer enables the release check, at a server that passes each release.
func (f fixture) connectServer(t *testing.T) {
	t.Helper()
	const token = "token-of-the-server"
	d := double.NewDouble(double.Options{
		Tokens: map[string]string{"breakwater": token}, HeaderPrefix: altershield.DefaultHeaderPrefix, Scene: "scene", Generation1Scene: "release",
	})
	server := httptest.NewServer(d.Handler())
	if err := d.SetScript(double.Script{Checks: []double.CheckRule{{
		Match: double.Match{Step: "RELEASE", Namespace: f.namespace}, Then: double.Behaviour{Verdict: "pass"},
	}}}); err != nil {
		t.Fatal(err)
	}
	patch := func(resource, name, patch string) {
		kubectl(t, "", "patch", "-n", v1alpha1.SystemNamespace, resource, name, "--type=merge", "-p", patch)
	}
	patch("secret", altershield.SecretName, fmt.Sprintf(`{"stringData":{%q:%q}}`, altershield.TokenKey, token))
	patch("configmap", altershield.ConfigMapName, fmt.Sprintf(`{"data":{"base-url":%q,"platform":"breakwater","tenant-code":"tenant","cluster-name":"one",
 "change-scene-key":"scene","release-check-scene-key":"release"}}`, server.URL))
	configs := f.Breakwater.AppV1alpha1().OpsConfigInfoes(v1alpha1.SystemNamespace)
	const setting = string(v1alpha1.ConfigReleaseCheck)
	if _, err := configs.Create(t.Context(), &v1alpha1.OpsConfigInfo{
		ObjectMeta: metav1.ObjectMeta{Name: setting},
		Spec:       v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigReleaseCheck, Content: "3s", Enable: true},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := configs.Delete(context.Background(), setting, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := f.Kube.CoreV1().ConfigMaps(v1alpha1.SystemNamespace).Patch(context.Background(), altershield.ConfigMapName, types.MergePatchType,
			[]byte(`{"data":{"base-url":null,"platform":null,"tenant-code":null,"cluster-name":null,"change-scene-key":null,"release-check-scene-key":null}}`), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
		server.Close()
		d.Close()
	})
}

// inventedRelease is the review of the creation of a Deployment that does not exist.
func inventedRelease(t *testing.T, namespace, name string) *admissionv1.AdmissionRequest {
	t.Helper()
	d := builder.Deployment(name, 1)
	d.Namespace = namespace
	d.APIVersion, d.Kind = "apps/v1", "Deployment"
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return &admissionv1.AdmissionRequest{
		UID: "stranger", Operation: admissionv1.Create, Namespace: namespace, Name: d.Name,
		Kind:     metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Resource: metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		Object:   runtime.RawExtension{Raw: raw},
	}
}

// releaseChecks are the outcomes of the stored release checks of the namespace, by workload.
func (f fixture) releaseChecks(t *testing.T) map[string]v1alpha1.Outcome {
	t.Helper()
	stored, err := f.Breakwater.AppV1alpha1().ReleaseChecks(f.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]v1alpha1.Outcome{}
	for _, c := range stored.Items {
		outcomes[c.Spec.Name] = c.Status.Outcome
	}
	return outcomes
}
