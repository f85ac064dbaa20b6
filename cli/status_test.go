package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// running is a cluster with a release that runs, and passes at its third read. read is called at each
// read of the release by status, and not by informers.
func running(t *testing.T, read func(n int) error) *clients {
	t.Helper()
	d := at(1, "busybox:1")
	release := builder.ChangeWorkload(d, 1, v1alpha1.ReleaseRunning)
	c := cluster(t, optedIn, d)
	n := 0
	c.breakwater.(*fake.Clientset).PrependReactor("list", "changeworkloads", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.(clienttesting.ListAction).GetListRestrictions().Labels.Empty() {
			return true, &v1alpha1.ChangeWorkloadList{Items: []v1alpha1.ChangeWorkload{*release}}, nil
		}
		if n++; n == 3 {
			release = release.DeepCopy()
			release.Status.Phase = v1alpha1.ReleaseSuccess
		}
		return true, &v1alpha1.ChangeWorkloadList{Items: []v1alpha1.ChangeWorkload{*release}}, read(n)
	})
	return c
}

func TestStatusReadsAgainAfterAnErrorThatMayPass(t *testing.T) {
	releases, unavailable := v1alpha1.Resource("changeworkloads"), apierrors.NewServiceUnavailable("restarting")
	for name, tc := range map[string]struct {
		// read is the read that fails; 0 is the first one of the batches.
		read  int
		err   error
		final bool
	}{
		"the API server restarts":                        {2, unavailable, false},
		"the API server restarts before the first read":  {1, unavailable, false},
		"the API server restarts before the first watch": {0, unavailable, false},
		"a lost connection":                              {2, io.ErrUnexpectedEOF, false},
		"the CRD was deleted":                            {2, apierrors.NewNotFound(releases, ""), true},
		"the right was removed":                          {2, apierrors.NewForbidden(releases, "", nil), true},
		"the right is missing":                           {1, apierrors.NewForbidden(releases, "", nil), true},
		"the token has expired":                          {2, apierrors.NewUnauthorized("expired"), true},
		"the certificate is not trusted":                 {1, &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, true},
		"the request is malformed":                       {1, apierrors.NewBadRequest("an HTTP request to an HTTPS server"), true},
		"the workload was deleted":                       {2, argumentErrorf("deployment %q is not in namespace default", "web"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var errOut bytes.Buffer
			c := running(t, func(n int) error {
				if n == tc.read {
					return tc.err
				}
				return nil
			})
			watched := false
			c.breakwater.(*fake.Clientset).PrependReactor("list", "changepods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if tc.read != 0 || watched || !a.(clienttesting.ListAction).GetListRestrictions().Labels.Empty() {
					return false, nil, nil
				}
				watched = true
				return true, nil, tc.err
			})
			answer, err := (&app{IOStreams: genericiooptions.IOStreams{ErrOut: &errOut}}).awaitRelease(t.Context(), c, "deployment/sleep", time.Minute)
			if (err != nil) != tc.final || !tc.final && answer.State != diagnosis.StatePassed {
				t.Errorf("got %+v, %v", answer, err)
			}
			if printed := strings.Contains(errOut.String(), tc.err.Error()); printed == tc.final {
				t.Errorf("printed %s", errOut.String())
			}
		})
	}
}

// An address that nothing listens on is an error, and not a release that has not ended.
func TestStatusGivesUpIfNoReadSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unreachable := apierrors.NewServiceUnavailable("unreachable")
		c := running(t, func(int) error { return unreachable })
		begin := time.Now()
		_, err := (&app{IOStreams: genericiooptions.IOStreams{ErrOut: io.Discard}}).awaitRelease(t.Context(), c, "deployment/sleep", 10*time.Minute)
		var exit exitError
		if waited := time.Since(begin); !errors.Is(err, unreachable) || errors.As(err, &exit) || waited != firstReadTimeout {
			t.Errorf("got %v after %s", err, waited)
		}
	})
}

func TestStatusPrintsEachNewErrorAndAtTheTimeoutTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := at(1, "busybox:1")
		c := cluster(t, optedIn, d) // the release has no ChangeWorkload yet
		n := 0
		c.breakwater.(*fake.Clientset).PrependReactor("list", "changepods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if !a.(clienttesting.ListAction).GetListRestrictions().Labels.Empty() {
				return false, nil, nil
			}
			n++ // 1 to 4, one in each second
			return true, nil, fmt.Errorf("error %d", n/3)
		})
		var errOut bytes.Buffer
		answer, err := (&app{IOStreams: genericiooptions.IOStreams{ErrOut: &errOut}}).awaitRelease(t.Context(), c, "deployment/sleep", 3500*time.Millisecond)
		const want = "list the batches: error 0; reading again\nlist the batches: error 1; reading again\n"
		if err != nil || !strings.HasSuffix(errOut.String(), want) || !strings.HasSuffix(answer.Message, "; the last read failed: list the batches: error 1") {
			t.Errorf("got %+v, %v, printed %q", answer, err, errOut.String())
		}
	})
}

// The release knows only the pods that exist. After its rollout, further wanted pods are not judged.
func TestStatusCountsAgainstThePodsToJudge(t *testing.T) {
	for _, tc := range []struct {
		wanted, rolledOut int32
		want              string
	}{
		{5, 0, "Running Judging: 0 of 5 pods passed\n"},
		{2, 0, "Running Judging: 0 of 3 pods passed\n"},
		{50, 3, "Running Judging: 0 of 3 pods passed\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := at(1, "busybox:1")
			d.Spec.Replicas = &tc.wanted
			c := cluster(t, optedIn, d)
			release := builder.ChangeWorkload(d, 1, v1alpha1.ReleaseRunning)
			release.APIVersion, release.Kind = v1alpha1.SchemeGroupVersion.String(), "ChangeWorkload"
			release.Status.Counts.Pods, release.Status.RolledOutPods = 3, tc.rolledOut
			release.Status.Conditions = duckv1.Conditions{{Type: apis.ConditionSucceeded, Status: corev1.ConditionUnknown, Reason: "Judging"}}
			c.add(t, release)
			var errOut bytes.Buffer
			_, err := (&app{IOStreams: genericiooptions.IOStreams{ErrOut: &errOut}}).awaitRelease(t.Context(), c, "deployment/sleep", time.Second)
			if err != nil || errOut.String() != tc.want {
				t.Errorf("printed %q, %v, want %q", errOut.String(), err, tc.want)
			}
		})
	}
}

func TestStatusPausesBetweenReads(t *testing.T) {
	t.Parallel()
	var reads []time.Time
	c := running(t, func(int) error {
		reads = append(reads, time.Now())
		return nil
	})
	// Each read is followed by a change.
	c.breakwater.(*fake.Clientset).PrependReactor("list", "changepods", func(clienttesting.Action) (bool, runtime.Object, error) {
		go func() {
			b := &v1alpha1.ChangePod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "sleep-"}}
			_, _ = c.breakwater.AppV1alpha1().ChangePods("default").Create(context.Background(), b, metav1.CreateOptions{})
		}()
		return false, nil, nil
	})
	answer, err := (&app{IOStreams: genericiooptions.IOStreams{ErrOut: io.Discard}}).awaitRelease(t.Context(), c, "deployment/sleep", time.Minute)
	if err != nil || answer.State != diagnosis.StatePassed {
		t.Fatalf("got %+v, %v", answer, err)
	}
	for i := range reads[1:] {
		if pause := reads[i+1].Sub(reads[i]); pause < watchInterval {
			t.Errorf("read again after %s", pause)
		}
	}
}

// The webhook fails open for a creation, and the controller asks it again.
func TestStatusWaitsForTheFirstReleaseThatTheWebhookMissed(t *testing.T) {
	released := at(1, "busybox:1")
	created := released.DeepCopy()
	created.Annotations = nil
	for name, tc := range map[string]struct {
		namespace *corev1.Namespace
		// seen is the read at which the release is in the annotations; 0 is never.
		seen    int
		timeout time.Duration
		want    diagnosis.State
		code    int
	}{
		"the webhook sees it later":     {optedIn, 3, time.Minute, diagnosis.StatePassed, exitOK},
		"the webhook does not see it":   {optedIn, 0, time.Minute, diagnosis.StateNotJudged, exitNo},
		"a short timeout":               {optedIn, 0, 5 * time.Second, diagnosis.StateRunning, exitTimeout},
		"no wait":                       {optedIn, 0, 0, diagnosis.StateNotJudged, exitNo},
		"the namespace is not opted in": {namespace(nil), 0, time.Minute, diagnosis.StateNotJudged, exitNo},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cluster(t, tc.namespace, created, released)
				reads := 0
				c.dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
					if reads++; reads != tc.seen {
						return false, nil, nil
					}
					return true, unstructuredOf(t, released), nil
				})
				answer, err := (&app{IOStreams: genericiooptions.IOStreams{ErrOut: io.Discard}}).awaitRelease(t.Context(), c, "deployment/sleep", tc.timeout)
				if err != nil || answer.State != tc.want {
					t.Errorf("got %+v, %v, want %s", answer, err, tc.want)
				}
				var exit exitError
				if errors.As(exitOf(answer, tc.timeout, ""), &exit); exit.code != tc.code {
					t.Errorf("code %d, want %d", exit.code, tc.code)
				}
			})
		})
	}
}

func TestAnInterruptIsNotTheEndOfTheTimeout(t *testing.T) {
	for range 20 { // a select chooses a ready case at random
		ctx, cancel := context.WithCancel(t.Context())
		c := running(t, func(int) error { return nil })
		c.breakwater.(*fake.Clientset).PrependReactor("list", "changepods", func(clienttesting.Action) (bool, runtime.Object, error) {
			cancel()
			return false, nil, nil
		})
		_, err := (&app{IOStreams: genericiooptions.IOStreams{ErrOut: io.Discard}}).awaitRelease(ctx, c, "deployment/sleep", time.Minute)
		if err == nil || err.Error() != "interrupted" {
			t.Fatalf("got %v, want interrupted", err)
		}
	}
}

// A script takes exit code 0 of status for the release that it named.
func TestStatusAndExplainAreAboutTheNamedRelease(t *testing.T) {
	first, second := at(1, "busybox:1"), at(2, "busybox:2")
	older := v1alpha1.ChangeWorkloadName("sleep", builder.Version(first))
	current := v1alpha1.ChangeWorkloadName("sleep", builder.Version(second))
	for name, tc := range map[string]struct {
		named string
		err   bool
	}{
		"a workload":                  {"deployment/sleep", false},
		"its current release":         {"changeworkload/" + current, false},
		"a batch":                     {"changepod/" + v1alpha1.ChangePodName(current, 1), false},
		"a former release":            {"changeworkload/" + older, true},
		"a batch of a former release": {"changepod/" + v1alpha1.ChangePodName(older, 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, optedIn, second, first, second)
			c.addBatch(t, older, 1, "a1")
			c.addBatch(t, current, 1, "b1")
			_, statusErr := (&app{}).awaitRelease(t.Context(), c, tc.named, 0)
			_, explainErr := c.explain(t.Context(), tc.named)
			for command, err := range map[string]error{"status": statusErr, "explain": explainErr} {
				want := "`kubectl breakwater " + command + " deployment/sleep -n default --context c` is for the current release"
				if (err != nil) != tc.err || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: error is %v, want %t", command, err, tc.err)
				}
			}
		})
	}
}
