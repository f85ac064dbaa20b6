//go:build controlplane

package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/docs/commands"
)

// connectPage is the page with the Role of connect.
const connectPage = "../../docs/change/altershield.md"

// bindConnect applies the Role of the page and binds it to the user that it returns.
func (f fixture) bindConnect(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(connectPage)
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := commands.Of(connectPage, string(text))
	if err != nil {
		t.Fatal(err)
	}
	var role string
	for _, c := range all {
		for _, call := range c.Calls {
			if strings.Contains(call.Stdin, "kind: Role") {
				role = call.Stdin
			}
		}
	}
	kubectl(t, role, "apply", "-f", "-")
	user := f.namespace + "-connect"
	_, err = f.Kube.RbacV1().RoleBindings(v1alpha1.SystemNamespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "breakwater-connect"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		for _, err := range []error{
			f.Kube.RbacV1().RoleBindings(v1alpha1.SystemNamespace).Delete(ctx, user, metav1.DeleteOptions{}),
			f.Kube.RbacV1().Roles(v1alpha1.SystemNamespace).Delete(ctx, "breakwater-connect", metav1.DeleteOptions{}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return user
}

// connection returns ConfigMap config-altershield and Secret altershield-token.
func (f fixture) connection(t *testing.T) (*corev1.ConfigMap, *corev1.Secret) {
	t.Helper()
	config, secret, err := altershield.ReadConfig(t.Context(), f.Kube.CoreV1())
	if err != nil {
		t.Fatal(err)
	}
	return config, secret
}

// disconnect removes the keys that connect stores.
func (f fixture) disconnect(t *testing.T) {
	t.Helper()
	ctx, api := context.Background(), f.Kube.CoreV1()
	keys := map[string]any{"data": map[string]any{
		"base-url": nil, "platform": nil, "tenant-code": nil, "cluster-name": nil, "change-scene-key": nil, "release-check-scene-key": nil,
	}}
	raw, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.ConfigMaps(v1alpha1.SystemNamespace).Patch(ctx, altershield.ConfigMapName, types.MergePatchType, raw, metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	raw = []byte(`{"data":{"token":null,"token-previous":null}}`)
	if _, err := api.Secrets(v1alpha1.SystemNamespace).Patch(ctx, altershield.SecretName, types.MergePatchType, raw, metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}

// It is not parallel: other tests have no server.
func TestConnectSetsUpAnEmptyServerUntilItJudgesABatch(t *testing.T) {
	f := newFixture(t)
	user := f.bindConnect(t)
	// It accepts what is signed with the token of the Secret, as function callback does.
	verdicts := make(chan altershield.Callback, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		config, secret, err := altershield.ReadConfig(r.Context(), f.Kube.CoreV1())
		if err == nil {
			err = altershield.Verify(r.Header, altershield.DefaultHeaderPrefix, config.Data["platform"], body, string(secret.Data["token"]), time.Now(), 0)
		}
		verdict, parseErr := altershield.ParseCallback(body)
		if err != nil || parseErr != nil || r.URL.Path != "/openapi/altershield/callback" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		verdicts <- verdict
	}))
	t.Cleanup(receiver.Close)
	server := double.NewDouble(double.Options{Empty: true})
	serving := httptest.NewServer(server.Handler())
	t.Cleanup(serving.Close)
	t.Cleanup(server.Close)
	t.Cleanup(func() { f.disconnect(t) })
	connect := []string{
		"connect", "--server", serving.URL, "--allow-http", "--callback", receiver.URL, "--cluster", "hangzhou-1", "--release-check",
		"--as", user, "--as-group", "system:authenticated",
	}
	before, secretBefore := f.connection(t)

	f.mustPlugin(t, 1, []string{"cannot get resource"}, append(connect, "--as", "nobody")...)
	steps := []string{
		"server: create platform breakwater", "server: create type of change pod", "server: create scene breakwater.hangzhou_1.rollout of generation G2",
		"server: create scene breakwater.hangzhou_1.release of generation G1", receiver.URL + "/openapi/altershield/callback",
		"Secret altershield-token: store a generated token", "ConfigMap config-altershield: set base-url to " + serving.URL,
	}
	f.mustPlugin(t, 0, steps, append(connect, "--dry-run")...)
	if config, secret := f.connection(t); config.ResourceVersion != before.ResourceVersion || secret.ResourceVersion != secretBefore.ResourceVersion {
		t.Error("a dry run changes the cluster")
	}
	out := f.mustPlugin(t, 0, append(steps, "server: accepted a signed call", "/callback accepted a signed call", "connected: "+serving.URL), connect...)
	config, secret := f.connection(t)
	if token := string(secret.Data["token"]); len(token) != 32 || strings.Contains(out, token) {
		t.Errorf("the token has %d bytes, or is printed:\n%s", len(token), out)
	}
	f.mustPlugin(t, 0, []string{"nothing is missing", "connected: "}, connect...)
	if again, secretAgain := f.connection(t); again.ResourceVersion != config.ResourceVersion || secretAgain.ResourceVersion != secret.ResourceVersion {
		t.Error("a repeated command changes the cluster")
	}
	f.mustPlugin(t, 1, []string{`key cluster-name of ConfigMap config-altershield is "hangzhou-1"`, "--replace"}, append(connect, "--cluster", "other")...)

	// The functions read these objects.
	parsed, err := altershield.ParseConfig(config, secret)
	if err != nil {
		t.Fatal(err)
	}
	client := altershield.New(parsed)
	t.Cleanup(client.Close)
	if _, err := client.OpenOrder(t.Context(), altershield.OpenOrder{OrderID: "order"}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.StartBatch(t.Context(), altershield.StartBatch{OrderID: "order", Info: altershield.BatchInfo{Pods: []string{"web-1"}}}); err != nil {
		t.Fatal(err)
	}
	await(t, "the server calls back about the order", func(context.Context) error {
		select {
		case verdict := <-verdicts:
			if verdict.BizExecOrderID == "order" && verdict.Verdict == "pass" {
				return nil
			}
			return fmt.Errorf("the verdict is %+v", verdict) // of a proof of connect
		default:
			return errors.New("no verdict came")
		}
	})
	release := altershield.New(parsed.ForReleaseCheck())
	t.Cleanup(release.Close)
	if err := server.LoadScript([]byte(`{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"pass"}}]}`)); err != nil {
		t.Fatal(err)
	}
	if answer, err := release.CheckRelease(t.Context(), altershield.CheckRelease{OrderID: "check", Timeout: time.Second}); err != nil || answer.Verdict != "pass" {
		t.Errorf("the release check is %+v, %v", answer, err)
	}
}

// A platform that exists has a token that its server does not show.
func TestConnectNeedsTheTokenOfAnExistingPlatform(t *testing.T) {
	f := newFixture(t)
	server := double.NewDouble(double.Options{Tokens: map[string]string{"breakwater": "a-token"}})
	serving := httptest.NewServer(server.Handler())
	t.Cleanup(serving.Close)
	t.Cleanup(server.Close)
	t.Cleanup(func() { f.disconnect(t) })
	connect := []string{"connect", "--server", serving.URL, "--allow-http", "--callback", "http://127.0.0.1:1", "--replace"}
	f.mustPlugin(t, 1, []string{"--token-file is missing: platform breakwater exists"}, connect...)
	file := t.TempDir() + "/token"
	for token, want := range map[string]string{"another": "the server has another token for platform breakwater", "a-token": ""} {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		code, words := 1, []string{want}
		if want == "" {
			code, words = 0, []string{"Secret altershield-token: store the given token", "callback: not proven from here", "connected: "}
		}
		f.mustPlugin(t, code, words, append(connect, "--token-file", file)...)
		config, secret := f.connection(t)
		if connected := config.Data["base-url"] != ""; connected != (want == "") || connected && string(secret.Data["token"]) != token {
			t.Errorf("with token %q: connected %t", token, connected)
		}
		f.disconnect(t)
	}
}
