package centre

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/internal/servingcert"
)

func TestTheCentreReportsTheEndOfItsCertificate(t *testing.T) {
	now := time.Now()
	a, _, err := servingcert.Authority{}.Renew(now)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := a.Issue([]string{"permission-centre"}, now)
	if err != nil {
		t.Fatal(err)
	}
	config := testConfig(t, "sqlite:"+filepath.Join(t.TempDir(), "centre.db"))
	config.TLSCertFile, config.TLSKeyFile = filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	for file, content := range map[string][]byte{config.TLSCertFile: pair.Cert, config.TLSKeyFile: pair.Key} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := New(t.Context(), config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.store.Close()
	families, err := c.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := float64(servingcert.Expiry(servingcert.ServerConfig(config.TLSCertFile, config.TLSKeyFile)))
	for _, f := range families {
		if f.GetName() == servingcert.ExpiryMetric {
			if got := f.GetMetric()[0].GetGauge().GetValue(); got != want || want == 0 {
				t.Errorf("%f, want %f", got, want)
			}
			return
		}
	}
	t.Error("no metric of the certificate")
}
